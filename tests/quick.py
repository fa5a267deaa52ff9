"""Run the tests affected by a change, with lint and types: `make quick`, or `python -m tests.quick FILE ...`.

For a changed module, run its doctests, the test file of its name, and the test files that import it. If more than
`MOST` files import it, run only those of its package; if none does, run all of its package. `make test` runs
everything.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = 12
"""Maximum number of test files for one changed file."""
ALWAYS = ("tests/test_house.py",)


def changed_files() -> list[str]:
    """Return the files that differ from the last commit, including new files."""
    commands = (["git", "diff", "--name-only", "HEAD"], ["git", "ls-files", "--others", "--exclude-standard"])
    found = (subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True) for command in commands)
    return [line for one in found for line in one.stdout.splitlines()]


def chosen_tests(changed: str) -> list[str]:
    """Return pytest's arguments for one changed file; nothing if no test names it."""
    path = Path(changed)
    if not (ROOT / path).is_file():
        return []
    if path.parts[0] == "tests":
        return [changed] if path.name.startswith("test_") else _naming(path.stem, "")
    if path.suffix == ".py" and path.parts[0] == "warehouse":
        return [changed, *_of_module(path)]
    if path.parts[0] == "models":
        test = path.with_name(f"{path.name.split('.')[0]}.test.yaml")
        return [test.as_posix()] if (ROOT / test).is_file() else _naming(path.stem, "models")
    if path.suffix == ".md" or path.parts[:2] == ("sql", "queries"):
        return ["tests/test_docs.py"]
    return []


def _of_module(path: Path) -> list[str]:
    package = path.parts[1] if len(path.parts) > 2 else ""
    mirror = ROOT / "tests" / path.relative_to("warehouse").with_name(f"test_{path.stem}.py")
    found = _naming(path.stem, package, of=".".join(path.with_suffix("").parts))
    own = [mirror.relative_to(ROOT).as_posix()] if mirror.is_file() else []
    return list(dict.fromkeys([*own, *found])) or [f"tests/{package}"]


@cache
def _tests() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py"))}


def _naming(stem: str, package: str, of: str = "") -> list[str]:
    """Return the test files that import a module (`of`), or name a helper of the tests or a model."""
    module = re.escape(of) + r"\b" if of else rf"\b{re.escape(stem)}\b"
    parent, _, last = of.rpartition(".")
    also = rf"|from {re.escape(parent)} import [^\n]*\b{re.escape(last)}\b" if of else ""
    pattern = re.compile(module + also)
    found = [path for path, text in _tests().items() if (last or stem) in text and pattern.search(text)]
    if len(found) > MOST:
        found = [path for path in found if package and (ROOT / "tests" / package) in path.parents][:MOST]
    return [path.relative_to(ROOT).as_posix() for path in found if "e2e" not in path.parts]


def main(given: Iterable[str]) -> int:
    """Run lint, types and the tests; return the first nonzero exit status."""
    changed = list(given) or changed_files()
    tests = list(dict.fromkeys([*(test for one in changed for test in chosen_tests(one)), *ALWAYS]))
    binaries = Path(sys.executable).parent
    print(f"{len(changed)} changed, {len(tests)} test files: {' '.join(tests)}")
    for command in (
        [binaries / "ruff", "check", "."],
        [binaries / "ruff", "format", "--check", "."],
        [binaries / "codespell", "-D", "-"],
        [binaries / "lint-imports", "--no-cache"],
        [binaries / "mypy"],
        [binaries / "pytest", "-n", "2", "--dist", "worksteal", *tests],
    ):
        status = subprocess.run(list(map(str, command)), cwd=ROOT, check=False).returncode
        if status:
            return status
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
