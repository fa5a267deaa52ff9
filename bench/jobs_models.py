"""The models of jobs in the traffic on given rails: groups, jobs, and the largest similarity of an hour."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType

import duckdb
import numpy as np
import pyarrow as pa

from tests.models.planted_hours import HOUR, dense
from warehouse.base.shipped import shipped_root
from warehouse.engine.python_model import function_of
from warehouse.project.model import Model, read_model

LAYER = "metrics"


@dataclass
class Found:
    """Result for an hour: servers by group, the job of each group, and CPU seconds by model."""

    groups: dict[int, list[str]] = field(default_factory=dict)
    jobs: dict[int, dict[str, object]] = field(default_factory=dict)
    """Row of `traffic_jobs` by its `job_id`, which is the `group_id`; today's `traffic_groups` knows the period."""
    cpu: dict[str, float] = field(default_factory=dict)


@cache
def model(name: str) -> Model | None:
    """Return the contract of a model of the layer."""
    for suffix in ("py", "sql"):
        path = shipped_root() / "models" / LAYER / f"{name}.{suffix}"
        if path.exists():
            return read_model(path, shipped_root())
    return None


@cache
def module(name: str) -> ModuleType:
    """Return the module of a Python model."""
    known = model(name)
    assert known is not None, f"no model {name}"
    return sys.modules[function_of(known).__module__]


def find(rails: pa.Table) -> Found:
    """Run the models on the rails of one hour."""
    tables: dict[str, pa.Table] = {}
    found = Found()
    groups = _table("traffic_groups", rails, tables, found)
    for row in groups.to_pylist():
        found.groups.setdefault(row["group_id"], []).append(row["server"])
        if "period_seconds" in row:
            found.jobs[row["group_id"]] = {"period_seconds": row["period_seconds"], "resolved_from": "server"}
    if model("traffic_jobs") is not None:
        found.jobs = {row["job_id"]: row for row in _table("traffic_jobs", rails, tables, found).to_pylist()}
    return found


def _table(name: str, rails: pa.Table, tables: dict[str, pa.Table], found: Found) -> pa.Table:
    """Return a relation: of servers, of a Python model, empty if it is of tasks; any other is the rails."""
    if name in tables:
        return tables[name]
    known = model(name)
    if name in ("busy_server_second", "server_hour"):
        tables["busy_server_second"], tables["server_hour"] = of_servers(rails)
    elif known is not None and known.is_python:
        given = [_table(read.partition(".")[2], rails, tables, found) for read in known.reads]
        started = time.process_time()
        tables[name] = module(name).model(*given)
        found.cpu[name] = time.process_time() - started
    elif known is not None and name.startswith("task_"):
        columns = ", ".join(f"NULL::{column.type} AS {column.name}" for column in known.columns)
        tables[name] = duckdb.sql(f"SELECT {columns} LIMIT 0").to_arrow_table()
    else:
        tables[name] = rails
    return tables[name]


def of_servers(rails: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the seconds of each server, and the servers."""
    moved, longest = dense(rails)
    names = rails["server"].to_pylist()
    edges = [place for place, name in enumerate(names) if not place or names[place - 1] != name]
    if not edges:
        return rails.select([]), rails.select(["cluster", "server", "hour_utc"])
    total, window = np.add.reduceat(moved, edges), np.maximum.reduceat(longest, edges)
    server, second = np.nonzero(window)
    servers = rails.select(["cluster", "server", "hour_utc"]).take(pa.array(edges))
    rows = servers.take(pa.array(server))
    for column, values, kind in (
        ("second", second, pa.int32()),
        ("bytes", total[server, second], pa.int64()),
        ("longest_ms", window[server, second], pa.int32()),
    ):
        rows = rows.append_column(column, pa.array(values, kind))
    assert second.max() < HOUR
    return rows, servers


def largest(rails: pa.Table) -> float:
    """Return the largest similarity of two servers of the hour."""
    groups = module("traffic_groups")
    if hasattr(groups, "largest"):
        return float(groups.largest(rails))
    series = [groups.wave(*one) for _, one in groups.per_server(of_servers(rails)[0])]
    alike = groups.correlations(*map(np.stack, zip(*series, strict=True)))
    return float((alike - 2 * np.eye(len(alike))).max())
