"""Simulated bytes per second of servers: jobs of shared iterations, and noise of their own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from warehouse.signals.series import HOUR, Rails

Floats = NDArray[np.float64]


def starts(period: float, jitter: float, rng: np.random.Generator) -> Floats:
    """Starts of the iterations of a job, from before the hour to after it."""
    count = int(HOUR / period * 1.3) + 10
    return np.cumsum(period * np.maximum(1 + jitter * rng.standard_normal(count), 0.2)) - 3 * period


def pulses(begin: Floats, duty: float, rate: float = 1e9) -> Floats:
    """Bytes of each second of the hour, of pulses of this part of each iteration."""
    ends = begin[:-1] + duty * np.diff(begin)
    edges = np.stack([begin[:-1], ends], axis=1).ravel()
    moved = np.cumsum(np.stack([np.zeros(len(ends)), np.diff(begin) * rate], axis=1).ravel())
    return np.diff(np.interp(np.arange(HOUR + 1), edges, moved))


def noisy(wave: Floats, part: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """The series with noise of its own, a part of its mean, and the same sum."""
    noise = rng.standard_normal(HOUR) * part * wave.mean()
    found = np.maximum(wave + noise, 0)
    whole: NDArray[np.int64] = np.rint(found * wave.sum() / found.sum()).astype(np.int64)
    return whole


def rails_of(servers: dict[str, list[NDArray[np.int64]]], gap: int = 250) -> Rails:
    """Servers with the series of each rail; the first seconds were not observed."""
    names = sorted(servers)
    most = max(len(one) for one in servers.values())
    moved = np.zeros((len(names), most, HOUR), np.int64)
    for place, name in enumerate(names):
        moved[place, : len(servers[name])] = servers[name]
    observed = np.ones((len(names), HOUR), bool)
    observed[:, :gap] = False
    leaves = {
        (place, rail): f"Leaf-{rail + 1}" for place, name in enumerate(names) for rail in range(len(servers[name]))
    }
    return Rails("c", names, moved, observed, leaves)


def job(
    name: str, count: int, period: float, rng: np.random.Generator, *, jitter: float = 0.03, duty: float = 0.4,
    rate: float = 1e9, part: float = 0.3, rails: int = 2, lags: tuple[float, ...] = (), own: Floats | None = None,
) -> dict[str, list[NDArray[np.int64]]]:  # fmt: skip
    """Servers of one job: the same iterations, other phases on other rails, noise of each."""
    begin = starts(period, jitter, rng) if own is None else own
    phases = rng.uniform(0, period, rails)
    late = (*lags, *[0.0] * (count - len(lags)))
    return {
        f"{name}{one}": [noisy(pulses(begin + phase + late[one], duty, rate), part, rng) for phase in phases]
        for one in range(count)
    }


def alone(name: str, count: int, rng: np.random.Generator) -> dict[str, list[NDArray[np.int64]]]:
    """Servers that have nothing in common: jobs of one server, of any period."""
    found: dict[str, list[NDArray[np.int64]]] = {}
    for one in range(count):
        period = float(np.exp(rng.uniform(np.log(3), np.log(150))))
        found |= job(
            f"{name}{one}-", 1, period, rng, jitter=float(rng.uniform(0, 0.05)), rate=float(rng.uniform(2e8, 4e9))
        )
    return found
