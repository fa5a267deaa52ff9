"""Pace of iterations: time gained and lost is followed by the phase of fast waves."""

from __future__ import annotations

import numpy as np
import pytest

from tests.signals.waves import alone, job, rails_of, starts
from warehouse.signals.pace import pace
from warehouse.signals.rails import HOUR
from warehouse.signals.together import together

SECONDS = slice(255, HOUR - 1)


@pytest.mark.parametrize("period", [2.7, 11.0])
def test_the_time_gained_is_that_of_the_iterations(period: float) -> None:
    random = np.random.default_rng(1)
    clock = starts(period, 0.02, random)
    rails = rails_of(job("a", 1, period, random, own=clock, part=0.2))
    gained = np.cumsum(pace(rails.moved[:, :, SECONDS], rails.observed[:, SECONDS])[0])
    number = np.interp(np.arange(SECONDS.start, SECONDS.stop), clock, np.arange(len(clock)))
    wanted = number * period
    both = [one - np.polyval(np.polyfit(np.arange(len(one)), one, 1), np.arange(len(one))) for one in (gained, wanted)]
    inside = slice(60, -60)
    assert np.corrcoef(both[0][inside], both[1][inside])[0, 1] > 0.98
    assert both[0][inside].std() == pytest.approx(both[1][inside].std(), rel=0.1)


def test_noise_has_no_pace() -> None:
    moved = np.random.default_rng(2).integers(1, 10**9, (5, 2, 3300))
    assert not pace(moved, np.ones((5, 3300), bool)).any()


def test_servers_of_short_iterations_are_together_by_their_pace() -> None:
    random = np.random.default_rng(4)
    members = job("a", 5, 7.0, random, jitter=0.03, part=0.6)
    rails = rails_of(members | alone("z", 10, random))
    (found,) = together(rails)
    assert {rails.servers[one] for one in found.group.members} == set(members)
