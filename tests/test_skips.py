"""Runs that skip tests end with the reasons, and with what would run the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_a_run_ends_with_the_skipped_tests(tmp_path: Path) -> None:
    own = f"--basetemp={tmp_path / 'own'}"  # else it removes the files of earlier runs, which can take minutes
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", own, "tests/models/test_real.py"],
        cwd=ROOT,
        env={**os.environ, "WAREHOUSE_REAL": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout
    [line] = [line for line in done.stdout.splitlines() if " skipped: " in line]
    count, reason = line.split(" skipped: ")
    assert int(count) > 5
    assert reason == "no real files at hand: set WAREHOUSE_REAL, or lay them out in data/real"
