"""Periods of simulated servers and sums: what is resolved, what must not be believed, the same bits on any machine."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.conftest import PATIENCE
from tests.models.pulses import HOUR, Job, server
from tests.signals.waves import job, rails_of, starts
from warehouse.signals.groups import pace
from warehouse.signals.job import iterations_of
from warehouse.signals.period import comb_of, period_of
from warehouse.signals.series import Rails
from warehouse.signals.together import together

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

WITHIN = 0.003
"""What the docs say of resolved periods."""


def _look(jobs: list[Job], seed: int, *, ports: int = 4, gap: float = 250.0) -> tuple[Any, Any]:
    """What is found of a simulated server, and the starts of its iterations inside the observed time."""
    moved, observed, begun = server(jobs, np.random.default_rng(seed), ports=ports, gap=gap)
    after_gap = np.flatnonzero(observed & (np.arange(HOUR) > 1))
    inside = (begun > after_gap[0]) & (begun < after_gap[-1])
    return period_of(moved, observed), begun[inside]


_seeds = st.integers(0, 2**31)


@given(st.floats(6, 150), st.floats(0.15, 0.6), st.floats(0, 1), st.sampled_from([1, 4]), st.booleans(), _seeds)
@settings(deadline=None, max_examples=15)
def test_steady_pulses_are_resolved(period: float, duty: float, phase: float, ports: int, gap: bool, seed: int) -> None:
    found, _ = _look([Job(period, duty, phase * period)], seed, ports=ports, gap=250.0 if gap else 0.0)
    assert found.unresolved is None
    assert found.period_seconds == pytest.approx(period, rel=0.001)
    if min(duty, 1 - duty) * period > 3:  # pulses and quiet that last for several seconds
        assert found.duty_cycle == pytest.approx(duty, abs=0.15)


def test_two_pulses_an_iteration_are_one_iteration() -> None:
    found, _ = _look([Job(30.0, 0.35), Job(30.0, 0.12, phase=16.0, height=0.6e10)], 2)
    assert found.period_seconds == pytest.approx(30.0, rel=0.001)


@given(
    st.floats(0.3, 280), st.floats(0.05, 0.95), st.sampled_from([0, 0.003, 0.01]), st.sampled_from([0.02, 0.1, 0.2]),
    st.sampled_from([0, 0.3, 1]), st.sampled_from([1, 2, 4]), _seeds,
)  # fmt: skip
@settings(deadline=None, max_examples=30)
def test_what_is_resolved_is_right(
    period: float, duty: float, jitter: float, noise: float, level: float, ports: int, seed: int
) -> None:
    found, begun = _look([Job(period, duty, 0.3 * period, jitter, noise, level)], seed, ports=ports)
    if found.period_seconds is not None:
        true = (begun[-1] - begun[0]) / (len(begun) - 1)
        # iterations that vary have a mean that depends on where one begins to count
        assert abs(found.period_seconds / true - 1) < WITHIN + 2 * jitter / np.sqrt(len(begun))


@given(st.floats(0.3, 3.6), st.floats(0.05, 0.95), st.sampled_from([1, 4]), _seeds)
@settings(deadline=None, max_examples=20)
def test_pulses_that_the_seconds_cannot_show_are_not_resolved(
    period: float, duty: float, ports: int, seed: int
) -> None:
    """Below two seconds an alias shows, as slow as anything; it must not be taken for a period."""
    found, _ = _look([Job(period, duty)], seed, ports=ports)
    assert found.unresolved is not None
    assert found.period_seconds is None
    assert found.starts_ms is None


@given(_seeds)
@settings(deadline=None, max_examples=10)
def test_noise_has_no_period(seed: int) -> None:
    rng = np.random.default_rng(seed)
    observed = np.ones(HOUR, bool)
    for moved in (rng.integers(0, 10**10, HOUR), (rng.random(HOUR) < 0.05) * 10**10, np.full(HOUR, 10**9)):
        assert period_of(moved.astype(np.int64), observed).unresolved == "aperiodic"


def test_the_reason_is_said() -> None:
    for one, why in ((Job(3.0, 0.4), "fast"), (Job(300.0, 0.4), "few_cycles"), (Job(20.0, 0.4, level=3.0), "shallow")):
        found, _ = _look([one], 1)
        assert (found.unresolved, found.period_seconds) == (why, None)


def test_a_period_that_changes_is_unsteady() -> None:
    rng = np.random.default_rng(1)
    moved, observed, _ = server([Job(20.0, 0.4)], rng)
    moved[1800:] = server([Job(21.0, 0.4)], rng)[0][1800:]
    assert period_of(moved, observed).unresolved == "unsteady"


@pytest.mark.parametrize(("ports", "scatter"), [(1, 0.6), (4, 0.3)])
def test_pulses_are_dated_to_a_second(ports: int, scatter: float) -> None:
    found, starts = _look([Job(45.8, 0.4, 11.0)], 3, ports=ports)
    dated = np.array(found.starts_ms) / 1000
    late = dated - starts[np.abs(dated[:, None] - starts[None, :]).argmin(axis=1)]
    assert len(dated) == found.pulses >= len(starts) - 1
    assert 0.1 < late.mean() < 0.7  # a refresh comes up to a second after the bytes
    assert np.abs(late - late.mean()).max() < 1.5
    assert 0.05 < found.scatter_seconds < scatter


# any series

SERIES = 120
HEIGHTS = (1, 1_000, 10**9, 2 * 10**11, 2**50)
"""Bytes a second: from one to far beyond what all ports of a server can move."""
REASONS = {None, "idle", "aperiodic", "fast", "few_cycles", "shallow", "unsteady"}


def _moved(rng: np.random.Generator) -> Ints:
    """A constant, single seconds, noise, levels of a minute each, spikes, or several intervals."""
    height = int(rng.choice(HEIGHTS))
    moved = np.zeros(HOUR, np.int64)
    match int(rng.integers(6)):
        case 0:
            moved += rng.integers(0, height + 1)
        case 1:
            moved[rng.integers(0, HOUR, rng.integers(1, 6))] = height
        case 2:
            moved += rng.integers(0, height + 1, HOUR)
        case 3:
            moved += np.repeat(rng.integers(0, height + 1, 60), 60)
        case 4:
            moved[:: rng.integers(1, 400)] = height
        case _:
            for _ in range(rng.integers(1, 9)):
                low, high = np.sort(rng.integers(0, HOUR + 1, 2))
                moved[low:high] += rng.integers(0, height + 1)
    return moved


def _observed(rng: np.random.Generator) -> Mask:
    """Part of the hour, or all but the opening gap, with up to three gaps."""
    low, high = sorted(rng.integers(0, HOUR + 1, 2).tolist())
    observed = np.zeros(HOUR, bool)
    observed[slice(low, high) if rng.random() < 0.5 else slice(low % 300, HOUR)] = True
    for start in rng.integers(0, HOUR, rng.integers(4)):
        observed[start : start + rng.integers(1, 800)] = False
    return observed


def test_any_series_has_a_period_or_a_reason() -> None:
    """A server's series, and every twentieth as the sum over a job: sums over any number of servers are such series."""
    rng = np.random.default_rng(27)
    reasons = set()
    for number in range(SERIES):
        moved, observed = _moved(rng), _observed(rng)
        with np.errstate(all="raise"):
            found = period_of(moved, observed)
        assert (found.period_seconds is None) == (found.unresolved is not None)
        reasons.add(found.unresolved)
        if number % 20 == 0:
            seen = np.flatnonzero(observed)
            window = (int(seen[0]), int(seen[-1]) + 1) if len(seen) else (0, 0)
            with np.errstate(all="raise", under="ignore"):
                job = iterations_of(np.stack([moved, _moved(rng)]), observed, window, [None])
                assert np.isfinite(pace(moved[np.newaxis, np.newaxis], observed[np.newaxis])).all()
            assert (job.period_seconds is None) == (job.unresolved is not None)
            assert job.unresolved in REASONS
            assert job.alias_seconds is None or 1 < job.alias_seconds <= 2
    assert {None, "idle", "aperiodic", "few_cycles"} <= reasons <= REASONS


def test_a_series_whose_peaks_are_all_negative_is_not_resolved() -> None:
    moved = np.zeros(HOUR, np.int64)
    moved[862:1140] = moved[1444:2834] = 10**9
    with np.errstate(all="raise"):
        assert period_of(moved, np.ones(HOUR, bool)).unresolved == "aperiodic"


def test_servers_that_were_never_observed_at_once_have_no_period() -> None:
    found = iterations_of(np.ones((1, HOUR), np.int64), np.zeros(HOUR, bool), (0, HOUR - 1), [None, None])
    assert (found.period_seconds, found.unresolved) == (None, "idle")


# sums of servers

WINDOW = (255, HOUR - 1)


def _sum(rails: Rails) -> Ints:
    found: Ints = rails.moved.sum(axis=0)[:, slice(*WINDOW)]
    return found


@pytest.mark.parametrize(("period", "jitter"), [(2.6, 0.0), (3.6, 0.05), (11.4, 0.03), (125.0, 0.03)])
def test_a_period_that_single_servers_hide_is_found_in_the_sum(period: float, jitter: float) -> None:
    random = np.random.default_rng(3)
    clock = starts(period, jitter, random)
    found = comb_of(_sum(rails_of(job("a", 30, period, random, own=clock, part=1.5))))
    inside = clock[(clock > WINDOW[0]) & (clock < WINDOW[1])]
    assert found is not None
    assert found.height > found.chance
    assert found.period == pytest.approx(np.diff(inside).mean(), rel=0.01)


@pytest.mark.parametrize("seed", range(0, 5, 2))
def test_noise_of_any_color_has_no_comb(seed: int) -> None:
    random = np.random.default_rng(seed)
    wave, red = random.standard_normal(3340), 0.98 * seed / 12
    for second in range(1, len(wave)):
        wave[second] += red * wave[second - 1]
    assert comb_of(np.rint(1e6 * (wave + 100))[np.newaxis].astype(np.int64)) is None


@pytest.mark.parametrize(("period", "second"), [(3.8, 0.4), (3.85, 0.7), (3.9, 0.4), (4.0, 0.7)])
def test_a_second_pulse_faster_than_counters_hides_no_period(period: float, second: float) -> None:
    """The wave of both pulses is shorter than two seconds, or nearly: its alias is no wave of the iteration."""
    moved, mean = _two_pulses(period, second, 0)
    found = comb_of(moved[:, slice(*WINDOW)])
    assert found is not None
    assert found.period == pytest.approx(mean, rel=0.003)


def _two_pulses(period: float, second: float, seed: int) -> tuple[Ints, float]:
    """Bytes per second, on one rail, of two unequal pulses in each iteration, and the mean iteration."""
    random = np.random.default_rng(seed)
    clock = starts(period, 0.01, random)
    edges = (clock[:-1, np.newaxis] + np.outer(np.diff(clock), [0.0, 0.225, 0.45, 0.675])).ravel()
    moved = np.cumsum(np.tile([0.0, 1.0, 0.0, second], len(clock) - 1))
    read = np.diff(np.interp(np.arange(HOUR + 1) - 0.6 * random.random(HOUR + 1), edges, moved))
    inside = clock[(clock > WINDOW[0]) & (clock < WINDOW[1])]
    return np.rint(1e9 * read).astype(np.int64)[np.newaxis], float(np.diff(inside).mean())


@pytest.mark.parametrize("period", [4.2, 4.4, 4.7])
def test_starts_of_wrong_pulses_are_not_taken_for_the_period(period: float) -> None:
    moved, mean = _two_pulses(period, 0.7, 1)
    found = iterations_of(moved, np.arange(HOUR) >= WINDOW[0], WINDOW, [None] * 20)
    assert found.period_seconds == pytest.approx(mean, rel=0.004)


def test_what_a_job_is() -> None:
    random = np.random.default_rng(5)
    clock = starts(15, 0.02, random)
    rails = rails_of(job("a", 6, 15, random, own=clock, duty=0.4, rails=2, rate=1e9))
    found = iterations_of(rails.moved.sum(axis=0), np.asarray(rails.observed.all(axis=0)), WINDOW, [15.0] * 6)
    inside = clock[(clock > WINDOW[0]) & (clock < WINDOW[1])]
    assert found.period_seconds == pytest.approx(np.diff(inside).mean(), rel=0.002)
    assert found.period_error_seconds is not None
    assert 0 < found.period_error_seconds < 0.05
    assert found.iterations == pytest.approx(len(inside), abs=2)
    assert found.duty_cycle == pytest.approx(0.4, abs=0.2)
    assert found.bytes_per_iteration == pytest.approx(6 * 2 * 15e9, rel=0.02)
    assert (found.resolved_from, found.unresolved) == ("server", None)


def test_pauses_do_not_change_the_period() -> None:
    """Five pauses, which are no whole number of iterations, as for checkpoints."""
    random = np.random.default_rng(0)
    clock = starts(8.3, 0.01, random)
    mean = np.diff(clock[(clock > WINDOW[0]) & (clock < WINDOW[1])]).mean()
    for begin in (600, 1100, 1700, 2300, 2900):
        clock[clock > begin] += random.uniform(15, 25)
    rails = rails_of(job("a", 6, 8.3, random, own=clock, duty=0.4, rails=1))
    found = iterations_of(rails.moved.sum(axis=0), np.asarray(rails.observed.all(axis=0)), WINDOW, [None] * 6)
    assert found.period_seconds is not None
    assert found.period_error_seconds is not None
    assert abs(found.period_seconds - mean) < 3 * found.period_error_seconds
    assert found.period_error_seconds < 0.001 * mean


# the same bits ------------------------------------------------------------------------------------

HASH = """
import sys
sys.path[:0] = {path!r}
from tests.signals.test_periods import digest
print(digest())
"""


def digest() -> str:
    """A hash of the period, the group and the comb of simulated servers."""
    rng = np.random.default_rng(9)
    moved, observed, _ = server([Job(12.3, 0.4)], rng)
    rails = rails_of(job("a", 40, 17, rng))
    comb = comb_of(rails.moved.sum(axis=0)[:, 255:3599])
    return hashlib.sha256(repr((period_of(moved, observed), together(rails), comb)).encode()).hexdigest()


def test_threads_of_numpy_change_no_bit() -> None:
    said = set()
    for threads in ("1", "4"):
        done = subprocess.run(
            [sys.executable, "-c", HASH.format(path=sys.path)],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
        said.add(done.stdout)
    assert said == {digest() + "\n"}
