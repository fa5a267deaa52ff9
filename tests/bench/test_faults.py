"""After any fault the published warehouse is the last good one, and the next build succeeds: a few of each.

`python -m bench.faults` does the same hundreds of times.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bench.faults import FAULTS, KILLED, Limit, Rig, inject
from tests.conftest import Completed
from tests.tiny import Tiny

TIMES = {KILLED: 2, "memory short": 2, "files of the target damaged": 7}
"""Memory of the engine and of the process; each kind of file of a target."""
SELDOM = 1
WHOLE = ("disk full", "memory short", "files of the target damaged", "clock off")
"""Faults at no moment within a build."""


class Within(Rig):
    """A rig whose builds may run in the process of the test, but those with another clock or a limit."""

    in_process = False

    def build(self, *options: str | Path, clock: int = 0, limit: Limit | None = None) -> Completed:
        if clock or limit or not self.in_process:
            return super().build(*options, clock=clock, limit=limit)
        return Tiny.build(self, "--project", self.folder, *options)


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Within:
    """Return a warehouse that meets one fault after the other."""
    return Within(tmp_path_factory.mktemp("faults"), rows=500)


@pytest.mark.parametrize("fault", FAULTS)
def test_readers_find_the_last_good_build_and_the_next_one_succeeds(rig: Within, fault: str) -> None:
    times = TIMES.get(fault, SELDOM)
    rig.in_process = fault in WHOLE
    counts = inject(fault, rig, random.Random(fault), times)
    assert counts.total() == times
    if fault == [*FAULTS][-1]:
        rig.prove()
