"""Accuracy of periods on simulated servers, and their cost on the real hour: `python -m bench.periods`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

from bench.measure import machine
from tests.models.pulses import Job, server
from warehouse.base.shipped import shipped_root
from warehouse.engine.python_model import function_of
from warehouse.project.model import read_model
from warehouse.signals.period import period_of

DRAWN = 1500
JITTERS = (0.0, 0.01, 0.03)
LONGEST = 275.0
"""Slightly less than 1/12 of the hour without its opening gap."""


def _module(name: str) -> object:
    function = function_of(read_model(shipped_root() / "models" / "metrics" / f"{name}.py", shipped_root()))
    return sys.modules[function.__module__]


def accuracy(jitter: float, shortest: float, longest: float, rng: np.random.Generator) -> list[float]:
    """Return relative errors of the resolved periods of `DRAWN` servers; short periods are more frequent."""
    errors = []
    for _ in range(DRAWN):
        period = float(np.exp(rng.uniform(np.log(shortest), np.log(longest))))
        job = Job(
            period, float(rng.uniform(0.05, 0.85)), float(rng.uniform(0, period)), jitter,
            float(rng.choice([0.02, 0.1, 0.3])), float(rng.choice([0, 0, 0.3])),
        )  # fmt: skip
        gap = float(rng.choice([0, 250]))
        moved, observed, starts = server([job], rng, ports=int(rng.choice([1, 2, 4])), gap=gap)
        found = period_of(moved, observed).period_seconds
        inside = starts[(starts > gap) & (starts < 3599)]
        if found is not None:
            errors.append(abs(found * (len(inside) - 1) / (inside[-1] - inside[0]) - 1))
    return errors


def main() -> None:
    print(machine())
    print(f"{DRAWN:,} simulated servers a line\n")
    print("period s       iterations vary by   resolved   beyond 0.3 %   median error      99 %   largest")
    rng = np.random.default_rng(1)
    for jitter in JITTERS:
        errors = accuracy(jitter, 4, LONGEST, rng)
        beyond = sum(error > 0.003 for error in errors)
        middle, most = np.quantile(errors, [0.5, 0.99])
        text = f"{len(errors):>11,} {beyond:>14} {middle:>13.4%} {most:>10.3%} {max(errors):>8.3%}"
        print(f"4 to {LONGEST:.0f}  {jitter:>20.0%} {text}")
    errors = accuracy(0.0, 0.3, 3.7, rng)
    print(f"0.3 to 3.7 {0:>19.0%} {len(errors):>11,}")

    real = Path(os.environ.get("WAREHOUSE_REAL", "data/real"))
    if not real.is_dir():
        return
    import warehouse

    target = Path("build/bench-periods")
    warehouse.build(real, target, threads=1)
    with warehouse.open(target) as connection:
        print("\nthe real hour at hand")
        tables = {}
        for name, order in (
            ("server_hour", "cluster, server"),
            ("rail_seconds", "cluster, server, rail"),
            ("traffic_periods", "cluster, server"),
        ):
            started = time.process_time()
            tables[name] = connection.sql(f"SELECT * FROM metrics.{name} ORDER BY {order}").to_arrow_table()
            cost = time.process_time() - started
            size = f"{tables[name].num_rows:>9,} rows {tables[name].nbytes / 1e6:>7.1f} MB"
            print(f"read {name:<18} {size} {cost:>6.2f} s CPU")
        for name, given in (
            ("traffic_periods", ("server_hour", "rail_seconds")),
            ("traffic_groups", ("traffic_periods", "rail_seconds")),
        ):
            started = time.process_time()
            rows = _module(name).model(*(tables[one] for one in given))  # type: ignore[attr-defined]
            print(f"make {name:<18} {rows.num_rows:>9,} rows            {time.process_time() - started:>6.2f} s CPU")


if __name__ == "__main__":
    main()
