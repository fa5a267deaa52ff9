"""Matrices of leaves and servers, against the traffic that was planted in the sample, and by independent sums."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import pytest

from tests.models.conftest import Planted
from warehouse.base.startup import duckdb
from warehouse.project.project import Project
from warehouse.sample import SampleOptions, port_files
from warehouse.sample.basics import Ints
from warehouse.sample.plan import Plan, make_plan
from warehouse.sample.port_files import refresh_ms

Cell = tuple[int, str, str]


@pytest.fixture(scope="module")
def plan(planted: Planted) -> Plan:
    options = {name: value for name, value in planted.truth["options"].items() if name != "first_hour"}
    return make_plan(SampleOptions(**options))


def counted(series: Ints, begin_ms: int, end_ms: int) -> int:
    """Return the bytes of a span of time, of bytes by second."""
    before = np.concatenate([[0], np.cumsum(series)])
    seconds = [divmod(at, 1000) for at in (begin_ms, end_ms)]
    begin, end = (int(before[second] + series[second] * rest // 1000) for second, rest in seconds)
    return end - begin


@pytest.fixture(scope="module")
def truth(plan: Plan) -> dict[Cell, int]:
    """Bytes from leaf to leaf that both ends counted in an hour: up to the last refresh that a poll of each saw.

    What the servers of a leaf sent and did not go up stayed under it.
    """
    last: dict[tuple[str, int], int] = {}
    for switch in plan.fabric.switches.values():
        times, hour_of = port_files.hours_of_polls(switch, plan.options)
        phase = refresh_ms(switch.name, plan.options.seed)
        last[switch.name, -1] = 0
        for hour in range(plan.options.hours):
            last[switch.name, hour] = (int(times[hour_of == hour][-1]) - phase) // 1000 * 1000 + phase
    found: dict[Cell, int] = {}
    for hour in range(plan.options.hours):
        for switch in plan.fabric.switches.values():
            access = [place for place, port in enumerate(switch.ports) if "access" in port.kind]
            own = last[switch.name, hour - 1], last[switch.name, hour]
            found[hour, switch.name, switch.name] = counted(plan.traffic.into[switch.name][access].sum(axis=0), *own)
        for (source, target), series in plan.traffic.between.items():
            begins, ends = ([last[leaf, at] for leaf in (source, target)] for at in (hour - 1, hour))
            found[hour, source, target] = counted(series, max(begins), min(ends))
            found[hour, source, source] -= counted(series, begins[0], ends[0])
    return found


def matrix(connection: duckdb.DuckDBPyConnection, table: str) -> dict[Cell, tuple[int, int, int]]:
    """Return low, estimate and high of each cell that is not outside."""
    rows = connection.execute(
        "SELECT dense_rank() OVER (ORDER BY hour_utc) - 1, src, dst, bytes_low, bytes_estimate, bytes_high"
        f" FROM {table} WHERE 'outside' NOT IN (src, dst)"
    ).fetchall()
    return {(hour, src, dst): (low, estimate, high) for hour, src, dst, low, estimate, high in rows}


def error(found: dict[Cell, float], truth: dict[Cell, int], *, within: bool) -> float:
    """Return the sum of absolute errors over the bytes, of all pairs or only of pairs of different leaves."""
    cells = [cell for cell in found if within or cell[1] != cell[2]]
    return sum(abs(found[cell] - truth.get(cell, 0)) for cell in cells) / sum(truth.get(cell, 0) for cell in cells)


def test_no_planted_value_is_outside_its_bounds(planted: Planted, truth: dict[Cell, int]) -> None:
    found = matrix(planted.connection, "metrics.leaf_matrix")
    assert len(found) == 2 * 9 * 9
    assert set(truth) <= set(found)
    assert not {cell for cell, (low, _, high) in found.items() if not low <= truth.get(cell, 0) <= high}
    within = [cell for cell in found if cell[1] == cell[2]]
    assert all(abs(found[cell][1] - truth[cell]) <= 0.0001 * truth[cell] for cell in within), "within a leaf"


def test_sums_are_those_of_the_raw_files(planted: Planted) -> None:
    """The truth has the totals of each file as written: access ports are those of servers and of storage."""
    sent: dict[tuple[int, str], int] = defaultdict(int)
    received: dict[tuple[int, str], int] = defaultdict(int)
    hours = sorted({row["hour_utc"] for row in planted.truth["ports"]})
    for row in planted.truth["ports"]:
        number = int(row["port"].split("/")[-1].split(":")[0])
        storage = row["switch"].startswith("ST-") and "FourHundredGigE" in row["port"] and number < 55
        if row["port"].startswith("TwoHundredGigE") or storage:
            sent[hours.index(row["hour_utc"]), row["switch"]] += row["in_bytes"]
            received[hours.index(row["hour_utc"]), row["switch"]] += row["out_bytes"]
    for side, counted in (("src", sent), ("dst", received)):
        rows = planted.connection.execute(
            f"SELECT dense_rank() OVER (ORDER BY hour_utc) - 1, {side}, sum(bytes_estimate) FROM metrics.leaf_matrix"
            f" WHERE {side} <> 'outside' GROUP BY hour_utc, {side}"
        ).fetchall()
        assert {(hour, leaf): total for hour, leaf, total in rows} == dict(counted)


def test_evidence_halves_the_error_of_gravity(planted: Planted, plan: Plan, truth: dict[Cell, int]) -> None:
    """The model once more, on the same build without its flow table, its logs, and its groups of traffic, in turn.

    Plain gravity knows only what each leaf sent and received. `pytest -s` prints the table of the docs.
    """
    project = Project.open()
    select = project.render(project.models["metrics.leaf_matrix"])
    estimates: dict[str, dict[Cell, float]] = {}
    said: dict[str, set[tuple[str, str, str, str | None]]] = {}
    with duckdb.connect() as scratch:
        scratch.execute(f"ATTACH '{planted.target / 'warehouse.duckdb'}' AS built (READ_ONLY)")
        for name in sorted(set(re.findall(r"\b(?:staging|topology|metrics|reference)\.\w+", select))):
            scratch.execute(
                f"CREATE SCHEMA IF NOT EXISTS {name.split('.')[0]}; CREATE VIEW {name} AS FROM built.{name}"
            )
        for kind, without in {
            "flow": None,
            "ring": "staging.hour_flow",
            "job": "topology.rank_paths",
            "gravity": "metrics.traffic_groups",
        }.items():
            if without:
                scratch.execute(f"CREATE OR REPLACE VIEW {without} AS FROM built.{without} LIMIT 0")
            scratch.execute(f"CREATE OR REPLACE TABLE found AS {select}")
            estimates[kind] = {cell: middle for cell, (_, middle, _) in matrix(scratch, "found").items()}
            said[kind] = set(scratch.execute("SELECT DISTINCT src, dst, evidence, pattern FROM found").fetchall())
    sent: dict[tuple[int, str], int] = defaultdict(int)
    received: dict[tuple[int, str], int] = defaultdict(int)
    for (hour, src, dst), bytes_ in truth.items():
        sent[hour, src] += bytes_
        received[hour, dst] += bytes_
    total = {hour: sum(bytes_ for (of, _), bytes_ in sent.items() if of == hour) for hour, _, _ in truth}
    estimates["plain"] = {
        (hour, src, dst): sent[hour, src] * received[hour, dst] / total[hour] for hour, src, dst in estimates["flow"]
    }
    whole, crossing = (
        {kind: error(found, truth, within=way) for kind, found in estimates.items()} for way in (True, False)
    )
    for kind in ("plain", "gravity", "job", "ring", "flow"):
        print(f"{kind:8} {whole[kind]:.2f} {crossing[kind]:.2f}")
    assert whole["job"] < 0.5 * whole["plain"]
    assert crossing["flow"] < crossing["ring"] < crossing["job"] < 0.5 * crossing["gravity"]

    places = {pattern for _, _, evidence, pattern in said["job"] if evidence == "job" and pattern}
    assert places == {"place", "all"}, "one job of the sample is partly on other rails; the others keep theirs"
    rings = {
        tuple(plan.fabric.nics[job.servers[at]][rail].switch for at in (member - 1, member))
        for job in plan.jobs
        if job.name in {task.job for task in plan.tasks}
        for member in range(len(job.servers))
        for rail in range(job.rails)
    }
    by_ring = {(src, dst) for src, dst, evidence, _ in said["ring"] if evidence == "ring"}
    assert by_ring == {(src, dst) for src, dst in rings if src != dst}
