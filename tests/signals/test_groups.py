"""Groups of simulated servers and their clocks: planted jobs are found, and nothing else is joined."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.signals.waves import Floats, alone, job, noisy, pulses, rails_of, starts
from warehouse.signals.groups import CHANCE, least_score, pace, scores, tail
from warehouse.signals.series import HOUR, Rails
from warehouse.signals.together import Clock, clocks, series_phases, together

Servers = dict[str, list[NDArray[np.int64]]]
WINDOW = (255, HOUR - 1)
SECONDS = slice(*WINDOW)


def _groups(rails: Rails) -> list[set[str]]:
    return [{rails.servers[one] for one in found.members} for found in together(rails)]


# scores of two servers ----------------------------------------------------------------------------


@pytest.mark.parametrize("rails", [2, 4], ids=["of two rails", "of four equal rails, which say no more than one"])
def test_unrelated_servers_have_standard_normal_scores(rails: int) -> None:
    servers = alone("a", 60, np.random.default_rng(4))
    made = rails_of({name: one if rails == 2 else one[:1] * 4 for name, one in servers.items()})
    series = series_phases(made.moved[:, :, SECONDS], made.observed[:, SECONDS])
    found = scores(series, series)[np.triu_indices(60, 1)]
    assert abs(found.mean()) < 0.1
    assert 0.85 < found.std() < 1.15
    assert np.abs(found).max() < 5


@pytest.mark.parametrize("period", [2.7, 11.0])
def test_the_time_that_iterations_gain_is_followed(period: float) -> None:
    random = np.random.default_rng(1)
    clock = starts(period, 0.02, random)
    rails = rails_of(job("a", 1, period, random, own=clock, part=0.2))
    gained = np.cumsum(pace(rails.moved[:, :, SECONDS], rails.observed[:, SECONDS])[0])
    wanted = np.interp(np.arange(*WINDOW), clock, np.arange(len(clock))) * period
    both = [one - np.polyval(np.polyfit(np.arange(len(one)), one, 1), np.arange(len(one))) for one in (gained, wanted)]
    inside = slice(60, -60)
    assert np.corrcoef(both[0][inside], both[1][inside])[0, 1] > 0.98
    assert both[0][inside].std() == pytest.approx(both[1][inside].std(), rel=0.1)


def test_a_level_bounds_the_chance_of_any_of_many_pairs() -> None:
    assert tail(1.96) == pytest.approx(0.025, abs=1e-4)
    assert 1000 * tail(least_score(1000)) == pytest.approx(CHANCE)


# what is a group ----------------------------------------------------------------------------------


def test_jobs_are_found_among_unrelated_servers() -> None:
    random = np.random.default_rng(5)
    first, second = job("a", 7, 31, random), job("b", 3, 12, random, rate=3e9)
    rails = rails_of(first | second | alone("z", 12, random))
    found = together(rails)
    assert [{rails.servers[one] for one in of.members} for of in found] == [set(first), set(second)]
    assert all(all(one.matches) and one.p_value < CHANCE for one in found)


def test_servers_of_short_iterations_are_together_by_their_pace() -> None:
    random = np.random.default_rng(4)
    members = job("a", 5, 7.0, random, jitter=0.03, part=0.6)
    assert _groups(rails_of(members | alone("z", 10, random))) == [set(members)]


def test_a_late_member_is_found_with_its_lag() -> None:
    rails = rails_of(job("a", 6, 40, np.random.default_rng(6), lags=(9.0,)))
    (found,) = together(rails)
    lag = dict(zip((rails.servers[one] for one in found.members), found.lags, strict=True))
    assert set(lag) == set(rails.servers)
    assert lag.pop("a0") == pytest.approx(9, abs=0.5)
    assert all(abs(one) < 1 for one in lag.values())


def test_jobs_on_one_clock_with_other_bytes_are_two() -> None:
    random = np.random.default_rng(7)
    clock = starts(30, 0.04, random)
    first, second = job("a", 4, 30, random, own=clock), job("b", 4, 30, random, own=clock, rate=2e9)
    assert _groups(rails_of(first | second)) == [set(first), set(second)]


def test_two_servers_are_a_group_if_they_have_nearly_one_rate_that_few_others_have() -> None:
    random = np.random.default_rng(0)
    servers = job("a", 2, 31, random)
    assert _groups(rails_of(servers)) == [set(servers)]
    others = job("b", 1, 31, random) | job("c", 1, 31, random)
    assert _groups(rails_of(servers | others)) == []
    servers["a1"] = [np.rint(1.05 * one).astype(np.int64) for one in servers["a1"]]
    assert _groups(rails_of(servers)) == []


def _on_other_rails(servers: Servers) -> Servers:
    """The servers with what they moved on rails 1 and 2 on rails 3 and 4 instead."""
    return {name: [np.zeros(HOUR, np.int64)] * 2 + series for name, series in servers.items()}


def test_a_member_on_other_rails_is_found_by_the_sum_of_its_rails() -> None:
    """Not one like it with iterations of its own, nor one with the same iterations and half the bytes."""
    random = np.random.default_rng(0)
    servers, clock = job("a", 8, 24, random), starts(24, 0.03, random)
    there = _on_other_rails({"a7": servers.pop("a7")})
    near = _on_other_rails(job("near", 1, 24, random, own=clock))
    half = _on_other_rails({"half": [one // 2 for one in servers["a0"]]})
    rails = rails_of(servers | there | near | half | alone("z", 20, random))
    (found,) = together(rails)
    assert [rails.servers[one] for one in found.members] == [*sorted(servers), "a7"]
    assert found.p_value < CHANCE
    assert found.coherence[-1] == pytest.approx(found.coherence[0], abs=0.2)
    assert found.matches == (True,) * 7 + (False,)
    assert abs(found.lags[-1]) < 1


def test_a_member_on_other_rails_may_have_a_little_on_those_of_its_job() -> None:
    """As GPU-198 of the real hour: 1.7 TB on each of two rails, and 25 GB of it on the others."""
    random = np.random.default_rng(3)
    servers = job("a", 8, 24, random)
    (other,) = alone("z", 1, random).values()
    there = {"a7": [*(one // 70 for one in other[:2]), *servers.pop("a7")]}
    assert _groups(rails_of(servers | there)) == [set(servers) | {"a7"}]


def test_a_job_of_a_part_of_the_hour_is_found_in_a_block() -> None:
    random = np.random.default_rng(9)
    before = job("a", 3, 9, random, jitter=0.05, part=0.05)
    for name, own in alone("z", 3, random).items():
        for rail, wave in enumerate(before[f"a{name[1]}"]):
            wave[1500:] = (5, 12, 30)[int(name[1])] * own[rail][1500:]
    found = together(rails_of(before, gap=0))
    assert [len(one.members) for one in found] == [3]
    assert found[0].seconds == (HOUR - 1) // 3


def test_an_owner_of_two_servers_is_one_member_whose_bytes_match_none() -> None:
    servers = job("GPU-", 4, 20, np.random.default_rng(11))
    servers["GPU-8/9"] = servers.pop("GPU-0")
    rails = rails_of(servers)
    (found,) = together(rails)
    matches = dict(zip((rails.servers[one] for one in found.members), found.matches, strict=True))
    assert len(matches) == 4
    assert [name for name, one in matches.items() if not one] == ["GPU-8/9"]


# what is none -------------------------------------------------------------------------------------


def test_unrelated_servers_and_those_of_a_short_hour_form_no_group() -> None:
    rails = rails_of(alone("z", 40, np.random.default_rng(0)))
    assert _groups(rails) == []
    rails.moved[:, :, 250:] = 0  # all bytes in the opening gap
    assert _groups(rails) == []
    rails = rails_of(job("a", 3, 20, np.random.default_rng(1)))
    short = Rails("c", rails.servers, rails.moved, rails.observed & (np.arange(HOUR) < 300), rails.switches)
    assert together(short) == []


def test_a_job_whose_servers_are_shifted_forms_no_group() -> None:
    random = np.random.default_rng(0)
    servers = job("a", 12, 33, random) | job("b", 6, 11, random, jitter=0.02)
    for name, series in servers.items():
        shift = int(random.integers(40, HOUR - 40))
        servers[name] = [np.roll(one, shift) for one in series]
    assert _groups(rails_of(servers, gap=0)) == []


def test_a_few_servers_of_a_regular_job_in_step_by_chance_are_no_group() -> None:
    """Three of twelve servers whose bytes match run at once, the others at times of their own."""
    servers = job("a", 12, 33, np.random.default_rng(12), jitter=0.02)
    for place, name in enumerate(servers):
        servers[name] = [np.roll(one, 0 if place < 3 else 251 * place) for one in servers[name]]
    assert _groups(rails_of(servers, gap=0)) == []
    assert _groups(rails_of(dict(list(servers.items())[:3]), gap=0)) == [{"a0", "a1", "a2"}]


def test_equal_bytes_alone_make_no_group() -> None:
    random = np.random.default_rng(8)
    copies: Servers = {}
    for one in range(5):
        copies |= job(f"a{one}-", 1, 30, random)
    total = [series.sum() for series in copies["a0-0"]]
    for series in copies.values():
        for rail, wave in enumerate(series):
            series[rail] = (wave.astype(float) * total[rail] / wave.sum()).astype(np.int64)
    assert _groups(rails_of(copies)) == []


def _with_gap(rails: Rails, servers: slice, seconds: slice) -> Rails:
    """The rails without polls of some servers for some seconds: their bytes are spread evenly over the gap."""
    moved, observed = rails.moved.copy(), rails.observed.copy()
    moved[servers, :, seconds] = moved[servers, :, seconds].mean(axis=2, keepdims=True).astype(np.int64)
    observed[servers, seconds] = False
    return Rails(rails.cluster, rails.servers, moved, observed, rails.switches)


@pytest.mark.parametrize("seconds", [15, 1200])
def test_a_gap_makes_no_group_and_parts_none(seconds: int) -> None:
    """Unrelated servers of one period, as their gap is like an event at the same second in all of them."""
    random = np.random.default_rng(seconds)
    unrelated: Servers = {}
    for one in range(24):
        unrelated |= job(f"{one}-", 1, 20, random, jitter=0.03, part=0.02, rails=1)
    rails = rails_of(unrelated | alone("z", 24, random))
    assert _groups(_with_gap(rails, slice(None), slice(1200, 1200 + seconds))) == []
    servers = job("a", 12, 20, random)
    rails = _with_gap(rails_of(servers | alone("z", 12, random)), slice(0, 6), slice(1500, 1500 + seconds))
    assert _groups(rails) == [set(servers)]


# clocks -------------------------------------------------------------------------------------------


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


def test_stages_follow_the_largest_with_their_lags() -> None:
    clock, delays = starts(25, 0.04, np.random.default_rng(10)), (0.0, 5.0)
    first, second = _stage("a", clock + 3, delays, 1e9, 1), _stage("b", clock - 8, delays, 2e9, 2)
    found = _clocks(rails_of(first | second | _stage("c", clock, delays, 4e9, 3)))
    assert [one and one.of for one in found] == [2, 2, None]
    assert [one and one.lag_seconds for one in found] == [pytest.approx(3, abs=0.5), pytest.approx(-8, abs=0.5), None]


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
