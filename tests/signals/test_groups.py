"""Groups of simulated servers: planted jobs, and what must not be joined."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.signals.waves import alone, job, rails_of, starts
from warehouse.signals.groups import CHANCE
from warehouse.signals.rails import HOUR, Rails
from warehouse.signals.together import together


def _groups(rails: Rails) -> list[set[str]]:
    return [{rails.servers[one] for one in found.group.members} for found in together(rails)]


def test_jobs_are_found_among_unrelated_servers() -> None:
    random = np.random.default_rng(5)
    first, second = job("a", 7, 31, random), job("b", 3, 12, random, rate=3e9)
    assert _groups(rails_of(first | second | alone("z", 12, random))) == [set(first), set(second)]


def test_unrelated_servers_form_no_group() -> None:
    assert _groups(rails_of(alone("z", 40, np.random.default_rng(0)))) == []


def test_a_job_whose_servers_are_shifted_forms_no_group() -> None:
    random = np.random.default_rng(0)
    servers = job("a", 12, 33, random) | job("b", 6, 11, random, jitter=0.02)
    for name, series in servers.items():
        shift = int(random.integers(40, HOUR - 40))
        servers[name] = [np.roll(one, shift) for one in series]
    assert _groups(rails_of(servers, gap=0)) == []


def test_a_late_member_is_found_with_its_lag() -> None:
    random = np.random.default_rng(6)
    rails = rails_of(job("a", 6, 40, random, lags=(9.0,)))
    (found,) = together(rails)
    lag = dict(zip((rails.servers[one] for one in found.group.members), found.group.lags, strict=True))
    assert set(lag) == set(rails.servers)
    assert lag.pop("a0") == pytest.approx(9, abs=0.5)
    assert all(abs(one) < 1 for one in lag.values())


def test_jobs_on_one_clock_with_other_bytes_are_two() -> None:
    random = np.random.default_rng(7)
    clock = starts(30, 0.04, random)
    first, second = job("a", 4, 30, random, own=clock), job("b", 4, 30, random, own=clock, rate=2e9)
    assert _groups(rails_of(first | second)) == [set(first), set(second)]


def _on_other_rails(servers: dict[str, list[NDArray[np.int64]]]) -> dict[str, list[NDArray[np.int64]]]:
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
    assert [rails.servers[one] for one in found.group.members] == [*sorted(servers), "a7"]
    assert found.group.p_value < CHANCE
    assert found.coherence[-1] == pytest.approx(found.coherence[0], abs=0.2)
    assert found.matches == [True] * 7 + [False]
    assert abs(found.group.lags[-1]) < 1


def test_a_member_on_other_rails_may_have_a_little_on_those_of_its_job() -> None:
    """As GPU-198 of the real hour: 1.7 TB on each of two rails, and 25 GB of it on the others."""
    random = np.random.default_rng(3)
    servers = job("a", 8, 24, random)
    (other,) = alone("z", 1, random).values()
    little = [one // 70 for one in other[:2]]
    there = {"a7": [*little, *servers.pop("a7")]}
    rails = rails_of(servers | there)
    assert _groups(rails) == [set(servers) | {"a7"}]


def test_equal_bytes_alone_make_no_group() -> None:
    random = np.random.default_rng(8)
    copies: dict[str, list[NDArray[np.int64]]] = {}
    for one in range(5):
        copies |= job(f"a{one}-", 1, 30, random)
    total = [series.sum() for series in copies["a0-0"]]
    for series in copies.values():
        for rail, wave in enumerate(series):
            series[rail] = (wave.astype(float) * total[rail] / wave.sum()).astype(np.int64)
    rails = rails_of(copies)
    assert _groups(rails) == []


def test_a_job_of_a_part_of_the_hour_is_found_in_a_block() -> None:
    random = np.random.default_rng(9)
    before = job("a", 3, 9, random, jitter=0.05, part=0.05)
    for name, own in (alone("z", 3, random)).items():
        series = before[f"a{name[1]}"]
        for rail, wave in enumerate(series):
            wave[1500:] = (5, 12, 30)[int(name[1])] * own[rail][1500:]
    found = together(rails_of(before, gap=0))
    assert [len(one.group.members) for one in found] == [3]
    assert found[0].seconds == (HOUR - 1) // 3


def test_an_owner_of_two_servers_is_one_member_whose_bytes_match_none() -> None:
    random = np.random.default_rng(11)
    servers = job("GPU-", 4, 20, random)
    servers["GPU-8/9"] = servers.pop("GPU-0")
    rails = rails_of(servers)
    (found,) = together(rails)
    matches = dict(zip((rails.servers[one] for one in found.group.members), found.matches, strict=True))
    assert len(matches) == 4
    assert matches.pop("GPU-8/9") is False
    assert all(matches.values())


def test_a_short_hour_has_no_group() -> None:
    rails = rails_of(job("a", 3, 20, np.random.default_rng(1)))
    short = Rails("c", rails.servers, rails.moved, rails.observed & (np.arange(HOUR) < 300), rails.switches)
    assert together(short) == []


def test_a_few_servers_of_a_regular_job_in_step_by_chance_are_no_group() -> None:
    """Three of twelve servers whose bytes match run at once, the others at times of their own."""
    random = np.random.default_rng(12)
    servers = job("a", 12, 33, random, jitter=0.02)
    for place, name in enumerate(servers):
        servers[name] = [np.roll(one, 0 if place < 3 else 251 * place) for one in servers[name]]
    assert _groups(rails_of(servers, gap=0)) == []
    assert _groups(rails_of(dict(list(servers.items())[:3]), gap=0)) == [{"a0", "a1", "a2"}]


def _with_gap(rails: Rails, servers: slice, seconds: slice) -> Rails:
    """The rails without polls of some servers for some seconds: their bytes are spread evenly over the gap."""
    moved, observed = rails.moved.copy(), rails.observed.copy()
    moved[servers, :, seconds] = moved[servers, :, seconds].mean(axis=2, keepdims=True).astype(np.int64)
    observed[servers, seconds] = False
    return Rails(rails.cluster, rails.servers, moved, observed, rails.switches)


@pytest.mark.parametrize("seconds", [15, 1200])
def test_unrelated_servers_with_one_gap_form_no_group(seconds: int) -> None:
    random = np.random.default_rng(seconds)
    servers: dict[str, list[NDArray[np.int64]]] = {}
    for one in range(24):  # one period, as its gap is like an event at the same second in all of them
        servers |= job(f"{one}-", 1, 20, random, jitter=0.03, part=0.02, rails=1)
    rails = rails_of(servers | alone("z", 24, random))
    assert _groups(_with_gap(rails, slice(None), slice(1200, 1200 + seconds))) == []


@pytest.mark.parametrize("seconds", [15, 1200])
def test_a_job_with_a_switch_that_is_not_polled_for_a_while_is_one_group(seconds: int) -> None:
    random = np.random.default_rng(seconds)
    servers = job("a", 12, 20, random)
    rails = _with_gap(rails_of(servers | alone("z", 12, random)), slice(0, 6), slice(1500, 1500 + seconds))
    assert _groups(rails) == [set(servers)]


def test_servers_that_moved_all_bytes_in_the_opening_gap_form_no_group() -> None:
    rails = rails_of(alone("z", 3, np.random.default_rng(13)))
    rails.moved[:, :, 250:] = 0
    assert _groups(rails) == []
