"""Targets of earlier releases, with the DuckDB that they were built with, in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.environments import ROOT, environment
from tests.old_targets import ENGINE

MODULES = ("tests/history/test_old_target.py", "tests/history/test_second_engine.py")


def test_targets_of_earlier_releases_are_continued_by_their_engine() -> None:
    python = environment(f"duckdb-{ENGINE}", f"duckdb=={ENGINE}\n")
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *MODULES],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped: run by" not in done.stdout
