"""Periods of simulated servers: what is resolved, what must not be believed, and the same bits on any machine."""

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

from tests.conftest import PATIENCE
from tests.models.pulses import HOUR, Job, server
from tests.signals.waves import job, rails_of
from warehouse.signals.comb import comb_of
from warehouse.signals.period import period_of
from warehouse.signals.together import together

WITHIN = 0.003
"""What the docs say of resolved periods."""


def _look(jobs: list[Job], seed: int, *, ports: int = 4, gap: float = 250.0) -> tuple[Any, Any]:
    """What is found of a simulated server, and the starts of its iterations inside the observed time."""
    moved, observed, starts = server(jobs, np.random.default_rng(seed), ports=ports, gap=gap)
    after_gap = np.flatnonzero(observed & (np.arange(HOUR) > 1))
    inside = (starts > after_gap[0]) & (starts < after_gap[-1])
    return period_of(moved, observed), starts[inside]


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
    job = Job(period, duty, 0.3 * period, jitter, noise, level)
    found, starts = _look([job], seed, ports=ports)
    if found.period_seconds is not None:
        true = (starts[-1] - starts[0]) / (len(starts) - 1)
        # iterations that vary have a mean that depends on where one begins to count
        assert abs(found.period_seconds / true - 1) < WITHIN + 2 * jitter / np.sqrt(len(starts))


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


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (Job(3.0, 0.4), "fast"),
        (Job(300.0, 0.4), "few_cycles"),
        (Job(20.0, 0.4, level=3.0), "shallow"),
    ],
)
def test_the_reason_is_said(job: Job, why: str) -> None:
    found, _ = _look([job], 1)
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


# the same bits ------------------------------------------------------------------------------------

HASH = """
import sys
sys.path[:0] = {path!r}
from tests.signals.test_period import digest
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
