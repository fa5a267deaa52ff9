"""Signatures of files that are read: a look before and a look after tell of any change between them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.ingest.listed import raw_files_of
from tests.tiny import Tiny
from warehouse.base.errors import DataError
from warehouse.ingest import look as looks
from warehouse.ingest.look import of_content
from warehouse.store import signatures as changed_files
from warehouse.store.signatures import look, refuse_changed, settle

SECOND = 10**9
NOW = 1_700_000_000 * SECOND + SECOND // 2


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were waited, at the time NOW."""
    found: list[float] = []
    monkeypatch.setattr(time, "time_ns", lambda: NOW)
    monkeypatch.setattr(time, "sleep", found.append)
    return found


@pytest.mark.parametrize(
    ("ctime_ns", "seconds"),
    [
        (NOW - SECOND, 0),
        (NOW - 5_000_000, 0.015),
        (NOW + 60 * SECOND, 0.02),  # the clock of the file server is ahead
        (NOW - SECOND // 2, 1.5),  # times in whole seconds
        (NOW - SECOND // 2 - 2 * SECOND, 0),
    ],
)
def test_a_file_is_hashed_once_each_later_change_has_another_time(
    waits: list[float], ctime_ns: int, seconds: float
) -> None:
    settle([[], [1, 0, 1, 1], [1, NOW, ctime_ns, 1]])
    assert waits == [pytest.approx(seconds)]


def test_files_settle_before_they_are_hashed(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def hashed(*given: Any) -> str:
        done.append("hash")
        return of_content(*given)

    monkeypatch.setattr(looks, "settle", lambda seen: done.append(f"settle {len(list(seen))}"))
    monkeypatch.setattr(looks, "of_content", hashed)
    raw_files_of(tiny.data, tiny.target)
    assert done == ["settle 2", "hash", "hash"]


def test_equal_content_and_time_do_not_hide_a_change(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("a", encoding="utf-8")
    os.utime(path, (1, 1))
    seen = {path: look(path)}
    refuse_changed(seen)
    changed_files.settle(seen.values())
    path.write_text("a", encoding="utf-8")
    os.utime(path, (1, 1))
    with pytest.raises(DataError, match="1 file changed while the build ran"):
        refuse_changed(seen)
    path.unlink()
    assert look(path) == []


def test_a_link_that_leads_back_has_changed(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.touch()
    link.symlink_to(file)
    before = look(link)
    changed_files.settle([before])
    link.unlink()
    link.symlink_to(file)
    assert look(link) != before
