"""Jobs on one clock: who follows whom, and how much later."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.signals.waves import Floats, job, noisy, pulses, rails_of, starts
from warehouse.signals.clocks import Clock, clocks
from warehouse.signals.rails import HOUR, Rails

Servers = dict[str, list[NDArray[np.int64]]]
WINDOW = (255, HOUR - 1)


def _stage(name: str, clock: Floats, delays: tuple[float, ...], rate: float, seed: int) -> Servers:
    """Four servers that repeat the iterations of a clock, each rail with a delay of its own."""
    random = np.random.default_rng(seed)
    return {
        f"{name}{one}": [noisy(pulses(clock + delay, 0.4, rate), 0.3, random) for delay in delays] for one in range(4)
    }


def _clocks(rails: Rails) -> list[Clock | None]:
    """Clocks of the groups a, b and c."""
    names = sorted({name[0] for name in rails.servers})
    groups = [[place for place, one in enumerate(rails.servers) if one[0] == name] for name in names]
    return clocks(rails, groups, WINDOW)


@pytest.mark.parametrize("lag", [6.0, -9.0])
def test_a_stage_follows_the_larger_one_with_its_lag(lag: float) -> None:
    clock = starts(31, 0.03, np.random.default_rng(1))
    small = _stage("a", clock + lag, (0.0, 7.0), 1e9, 2)
    first, second = _clocks(rails_of(small | _stage("b", clock, (0.0, 7.0), 3e9, 3)))
    assert second is None
    assert first is not None
    assert first.of == 1
    assert first.lag_seconds == pytest.approx(lag, abs=0.5)


def test_a_stage_whose_rails_pulse_in_another_order_has_a_clock_and_no_lag() -> None:
    clock = starts(31, 0.03, np.random.default_rng(4))
    rails = rails_of(_stage("a", clock, (0.0, 9.0), 1e9, 5) | _stage("b", clock, (6.0, 0.0), 3e9, 6))
    assert _clocks(rails) == [Clock(1, None), None]


def test_jobs_of_nearly_one_period_have_clocks_of_their_own() -> None:
    """The level is for unrelated waves; two of these rhythms rarely exceed it."""
    false = 0
    for seed in range(12):
        random = np.random.default_rng(seed)
        servers: Servers = {}
        for name, period in (("a", 31.0), ("b", 31.1), ("c", 62.0)):
            servers |= job(name, 4, period, random, rate=1e9 * (1 + ord(name) - ord("a")))
        false += any(_clocks(rails_of(servers)))
    assert false <= 1


def test_three_stages_follow_the_largest() -> None:
    clock = starts(25, 0.04, np.random.default_rng(10))
    rails = rails_of(
        _stage("a", clock + 3, (0.0, 5.0), 1e9, 1)
        | _stage("b", clock + 8, (0.0, 5.0), 2e9, 2)
        | _stage("c", clock, (0.0, 5.0), 4e9, 3)
    )
    found = _clocks(rails)
    assert [one and one.of for one in found] == [2, 2, None]
    assert [one and one.lag_seconds for one in found] == [pytest.approx(3, abs=0.5), pytest.approx(8, abs=0.5), None]
