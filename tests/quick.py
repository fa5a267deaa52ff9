"""Run the tests affected by a change, with lint and types: `make quick`, or `python -m tests.quick FILE ...`.

For a changed module, run its doctests and the first `MOST` test files that import it; if none does, run all of its
package. `make test` runs everything.
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
        return [changed] if path.name.startswith("test_") else _with(path.stem)
    if path.suffix == ".py" and path.parts[0] == "warehouse":
        parent, _, name = ".".join(path.with_suffix("").parts).rpartition(".")
        found = _with(rf"{parent}\.{name}|from {parent} import [^\n]*\b{name}")
        return [changed, *(found or [f"tests/{path.parts[1] if len(path.parts) > 2 else ''}"])]
    if path.parts[0] == "models":
        test = path.with_name(f"{path.name.split('.')[0]}.test.yaml")
        return [test.as_posix()] if (ROOT / test).is_file() else _with(path.stem)
    return ["tests/test_docs.py"] if path.suffix == ".md" or path.parts[:2] == ("sql", "queries") else []


@cache
def _tests() -> dict[str, str]:
    paths = sorted({*(ROOT / "tests").rglob("test_*.py")} - {*(ROOT / "tests" / "e2e").iterdir()})
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def _with(pattern: str) -> list[str]:
    """Return the first test files with a name."""
    return [name for name, text in _tests().items() if re.search(rf"\b(?:{pattern})\b", text)][:MOST]


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
