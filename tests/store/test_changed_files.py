"""Signatures of files that are read: a look before and a look after tell of any change between them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.ingest.listed import raw_files_of
from tests.tiny import Tiny
from warehouse.ingest import look as looks
from warehouse.ingest.look import of_content
from warehouse.store.signatures import settle

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
