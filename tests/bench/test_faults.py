"""After any fault the published warehouse is the last good one, and the next build succeeds: a few of each.

`python -m bench.faults` does the same hundreds of times.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bench.faults import FAULTS, KILLED, Ended, Limit, Rig, inject
from tests.conftest import call

TIMES = {KILLED: 2, "memory short": 2, "files of the target damaged": 7}
"""Memory of the engine and of the process; each kind of file of a target."""
SELDOM = 1
WHOLE = ("disk full", "memory short", "files of the target damaged", "clock off")
"""Faults at no moment within a build."""


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
    rig = (Within if fault in WHOLE else Rig)(tmp_path, rows=500)
    counts = inject(fault, rig, random.Random(fault), times)
    assert counts.total() == times
