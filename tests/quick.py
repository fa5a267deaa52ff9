"""Run lint, types and the tests of what changed: `make quick`, or `python -m tests.quick FILE ...`.

A changed module runs its doctests and the tests of its package, a model its test, a page the tests of documents.
`make test` runs everything.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]


def changed_files() -> list[str]:
    """Return the files that differ from the last commit, including new files."""
    commands = (["git", "diff", "--name-only", "HEAD"], ["git", "ls-files", "--others", "--exclude-standard"])
    found = (subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True) for command in commands)
    return [line for one in found for line in one.stdout.splitlines()]


def chosen_tests(changed: str) -> list[str]:
    """Return the files and folders of tests for one changed file."""
    path = Path(changed)
    found: list[Path] = []
    if path.parts[0] == "tests":
        found = [path if path.name.startswith("test_") else path.parent]
    elif path.suffix == ".py" and path.parts[0] == "warehouse":
        found = [path, Path("tests", *path.parts[1:-1][:1])]
    elif path.parts[0] == "models":
        found = [path.with_name(f"{path.name.split('.')[0]}.test.yaml")]
    elif path.suffix == ".md" or path.parts[:2] == ("sql", "queries"):
        found = [Path("tests/test_docs.py")]
    return [one.as_posix() for one in found if (ROOT / one).exists()]


def main(given: Iterable[str]) -> int:
    """Run lint, types and the tests; return the first nonzero exit status."""
    changed = list(given) or changed_files()
    tests = sorted({test for one in changed for test in chosen_tests(one)} | {"tests/test_house.py"})
    binaries = Path(sys.executable).parent
    print(f"{len(changed)} changed, tests: {' '.join(tests)}")
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
