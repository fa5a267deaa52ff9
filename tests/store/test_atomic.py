"""Files that are written under a hidden name first: what a killed process left is found."""

from __future__ import annotations

import os
import time
from pathlib import Path

from warehouse.store.atomic import left_behind, temporary_path


def test_what_a_process_that_is_gone_left_is_found(tmp_path: Path) -> None:
    mine = temporary_path(tmp_path / "part.parquet")
    mine.write_bytes(b"")
    gone = tmp_path / f".part.parquet.1.{2**22 + 1}"
    gone.write_bytes(b"")
    assert list(left_behind(tmp_path)) == [gone]


def test_a_process_that_got_the_number_of_a_killed_one_keeps_nothing(tmp_path: Path) -> None:
    left = temporary_path(tmp_path / "part.parquet")
    left.write_bytes(b"")
    before = time.time() - 365 * 86_400
    os.utime(left, (before, before))  # long before this process began
    assert list(left_behind(tmp_path)) == [left]
