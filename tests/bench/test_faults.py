"""After any fault the published warehouse is the last good one, and the next build succeeds: a few of each.

`python -m bench.faults` does the same hundreds of times.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bench.fault_rig import Ended, Limit, Rig
from bench.faults import DAMAGES, FAULTS, KILLED, broken, kind_of
from tests.conftest import call

TIMES = {KILLED: 2, "memory short": 2}  # of the engine and of the process
SELDOM = 1
WHOLE = ("disk full", "memory short", "files of the target damaged", "clock off")
"""Faults at no moment within a build."""
KINDS = (
    "parts/*.parquet", "state.sqlite", "warehouse.duckdb", "catalog.duckdb", "manifest.json", "files.json", "current",
)  # fmt: skip


class Within(Rig):
    """A rig whose builds run in the process of the test, but those with another clock or a limit."""

    def build(self, *options: str, clock: int = 0, limit: Limit | None = None) -> Ended:
        if clock or limit:
            return super().build(*options, clock=clock, limit=limit)
        said = call(*self.command(*options)[3:], cwd=self.folder)
        return Ended(said.status, said.err)


@pytest.mark.parametrize("fault", FAULTS)
def test_readers_find_the_last_good_build_and_the_next_one_succeeds(tmp_path: Path, fault: str) -> None:
    times = TIMES.get(fault, SELDOM)
    counts = FAULTS[fault]((Within if fault in WHOLE else Rig)(tmp_path, rows=500), random.Random(fault), times)
    assert counts.total() >= times


def test_every_kind_of_file_is_made_anew_whatever_became_of_it(tmp_path: Path) -> None:
    rig = Within(tmp_path, rows=50)
    rig.recover()
    files = [path for path in rig.target.rglob("*") if path.is_file() and path.name != "lock"]
    found = {kind_of(rig, path) for path in files}
    assert found == set(KINDS)
    for number, kind in enumerate(KINDS):
        path = next(path for path in sorted(rig.target.rglob("*")) if path.is_file() and kind_of(rig, path) == kind)
        broken(path, list(DAMAGES)[number % len(DAMAGES)])
        rig.recover()
