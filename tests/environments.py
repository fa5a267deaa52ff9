"""Virtual environments for other versions of readers' software: created once, with pinned packages."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = Path(os.environ.get("WAREHOUSE_ENVIRONMENTS") or ROOT / "build" / "envs")
ASKED = "WAREHOUSE_MUST_RUN"
"""Variable that makes a failed installation fail the test instead of skipping it."""


def environment(name: str, pinned: str) -> Path:
    """Return the Python of the environment `name`, which holds these packages and nothing else.

    Parameters
    ----------
    name
        Folder below `build/envs`.
    pinned
        Lines of a requirements file, every package with its version. Changed lines create the environment again.
    """
    folder = ENVIRONMENTS / name
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with (ENVIRONMENTS / f"{name}.lock").open("w") as lock:  # tests run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _installed(name, folder, pinned)


def _installed(name: str, folder: Path, pinned: str) -> Path:
    python, done = folder / "bin" / "python", folder / "installed.txt"
    if not done.is_file() or done.read_text(encoding="utf-8") != pinned:
        subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)], check=True)
        wanted = folder / "wanted.txt"
        wanted.write_text(pinned, encoding="utf-8")
        pip = [sys.executable, "-m", "pip", f"--python={python}", "install", "--quiet", "--no-compile", "--retries=1"]
        said = subprocess.run(
            [*pip, "--disable-pip-version-check", "--no-deps", "--requirement", str(wanted)],
            capture_output=True,
            text=True,
            check=False,
        )
        if said.returncode:
            problem = next((line for line in said.stderr.splitlines() if "ERROR" in line), "pip failed")
            missing(f"{name} cannot be installed: {problem}")
        wanted.rename(done)
    return python


def missing(what: str) -> None:
    """Skip the test, or fail if it must run."""
    if os.environ.get(ASKED):
        pytest.fail(what)
    pytest.skip(what)
