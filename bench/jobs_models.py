"""The models of jobs in the traffic on given rails: groups and jobs."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

import pyarrow as pa

from warehouse.base.shipped import shipped_root
from warehouse.engine.python_model import function_of
from warehouse.project.model import read_model


@dataclass
class Found:
    """Result for an hour: servers by group, the job of each group, and CPU seconds by model."""

    groups: dict[int, list[str]] = field(default_factory=dict)
    jobs: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Row of `job_periods` by its `group_id`."""
    cpu: dict[str, float] = field(default_factory=dict)


@cache
def module(name: str) -> ModuleType:
    """Return the module of a Python model of metrics."""
    root = shipped_root()
    return sys.modules[function_of(read_model(root / "models" / "metrics" / f"{name}.py", root)).__module__]


def find(rails: pa.Table, phases: pa.Table) -> Found:
    """Run the models on the rails of one hour and the phases of its switches."""
    names = rails["server"].to_pylist()
    first = [place for place, name in enumerate(names) if not place or names[place - 1] != name]
    servers = rails.select(["cluster", "server", "hour_utc"]).take(pa.array(first, pa.int64()))
    found = Found()

    def made(name: str, *given: pa.Table) -> pa.Table:
        started = time.process_time()
        rows: pa.Table = module(name).model(*given)
        found.cpu[name] = time.process_time() - started
        return rows

    periods = made("traffic_periods", servers, rails)
    groups = made("traffic_groups", periods, rails)
    for row in groups.to_pylist():
        found.groups.setdefault(row["group_id"], []).append(row["server"])
    found.jobs = {row["group_id"]: row for row in made("job_periods", groups, periods, rails, phases).to_pylist()}
    return found
