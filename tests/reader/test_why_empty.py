from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest

import warehouse
from warehouse.reader.connection import connect
from warehouse.reader.why_empty import why_empty

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["-q", "nic", "--server", "GPU-999"], "no server GPU-999; near: GPU-"),
        (["-q", "hottest-uplinks", "--leaf", "leaf_1"], "no switch leaf_1; near: Leaf-1"),
        (["-q", "busiest-servers", "--hour", "2020-01-01"], "the hour 2020-01-01 is not loaded; loaded"),
        (["-q", "suspect-links", "--kind", "none"], "none meets the conditions of the query"),
        (["FROM metrics.server_hour WHERE server = 'GPU-999'"], "no server GPU-999; near: GPU-"),
        (["FROM metrics.jobs WHERE trace = 'borg'"], "no trace borg; there are acme, helios, itp, pai and 1 more"),
        (["FROM staging.port_counters AS p WHERE p.switch = 'Leaf-99'"], "no switch Leaf-99; near: Leaf-"),
        (["FROM metrics.leaf_hour WHERE switch = 'Leaf-1' AND in_bytes < 0"], "none meets the conditions of the query"),
        (["FROM metrics.utilization_distribution"], "metrics.utilization_distribution is empty: "),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)  # fmt: skip
def test_an_empty_answer_has_a_reason(command: Command, built: Path, arguments: list[str], reason: str) -> None:
    said = command("sql", *arguments, "--format", "csv", "-t", built)
    assert said.status == 0
    assert said.err.startswith(f"no rows: {reason}")


def test_an_empty_table_names_the_missing_files(command: Command, small: Path) -> None:
    assert command("sql", "-q", "jobs", "-t", small).err == (
        "no rows: metrics.job_totals is empty: no files of AcmeTrace, Alibaba GPU v2023, Helios, ITP, PAI or Philly "
        f"in the data folders (warehouse doctor -t {small})\n"
    )
    assert "metrics.flow_locality_hour is empty: no files of flow" in command(
        "show", "metrics.flow_locality_hour", "-t", small
    ).out.replace("\n  ", " ")
    connection = connect(small)
    try:
        assert why_empty(connection, "metrics.port_hour") is None
        assert why_empty(connection, "no.such") is None
    finally:
        connection.close()


@pytest.fixture(scope="module")
def small(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a build of one server port and the uplinks of one leaf."""
    folder = tmp_path_factory.mktemp("small")
    for file in (*sample.rglob("Leaf-1_1_1.csv"), *sample.rglob("Leaf-1_3[3-9].csv")):
        place = folder / "data" / file.relative_to(sample)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    warehouse.build(folder / "data", folder / "target")
    return folder / "target"


def test_job_files_that_are_missing_beside_others_of_the_trace_are_named(
    sample: Path, command: Command, tmp_path: Path
) -> None:
    shutil.copytree(sample / "acme", tmp_path / "acme", ignore=shutil.ignore_patterns("job_trace"))
    warehouse.build(tmp_path / "acme", tmp_path / "target")

    said = command("sql", "-q", "gpu-days", "-t", tmp_path / "target").err
    assert "no files of jobs of AcmeTrace, Alibaba GPU v2023, Helios, ITP, PAI or Philly in the data folders" in said


def test_spines_that_cannot_be_judged_have_numbers(small: Path, command: Command) -> None:
    said = command("sql", "-q", "spine-balance", "--format", "table", "-t", small).out
    assert re.search(r"^spine-1 +[\d.]+ [A-Z]B +[\d.]+ [A-Z]B +NULL +[\d.]+$", said, re.MULTILINE), said


def test_groups_have_the_bytes_and_the_share_of_the_finding(command: Command, built: Path) -> None:
    found = json.loads(command("findings", "--json", "-t", built).out)
    [job] = [one for one in found if one["kind"] == "job_trades_most"]
    rows = json.loads(command("sql", "-q", "traffic-jobs", "--hour", job["hour_utc"], "--json", "-t", built).out)
    assert [row["bytes"] for row in rows] == sorted((row["bytes"] for row in rows), reverse=True)
    assert rows[0]["bytes"] == job["number"]
    assert f", {100 * rows[0]['access_share']:.1f} % of the bytes of all servers" in job["sentence"]


def test_a_job_says_who_where_and_how_often(command: Command, built: Path) -> None:
    rows = json.loads(command("sql", "-q", "traffic-jobs", "--json", "-t", built).out)
    told = {row["group_id"]: row for row in rows}
    with warehouse.open(built) as asked:
        jobs = asked.execute(
            "SELECT group_id, servers, leaves, period_seconds, period_error_seconds, resolved_from, clock_of, task "
            "FROM metrics.traffic_jobs WHERE hour_utc = (SELECT max(hour_utc) FROM metrics.traffic_jobs)"
        ).fetchall()
    assert [job[0] for job in sorted(jobs)] == sorted(told)
    for job, servers, leaves, period, error, source, clock, task in jobs:
        row = told[job]
        assert len(row["which"].split()) == servers
        assert len(row["on_leaves"].split()) == leaves
        assert (f"; in step with job {clock}, " in row["pulses"]) == (clock is not None)
        assert row["pulses"].endswith(f"; log of {task}") == (task is not None)
        if period is None:
            assert row["period"] is None
            assert row["pulses"].startswith("not resolved: ")
            continue
        digits = len(row["period"].split(" ± ")[1].removesuffix(" s").partition(".")[2])
        assert row["period"] == f"{period:.{digits}f} ± {error:.{digits}f} s"
        assert 10**-digits <= error < 10 ** (1 - digits) or error >= 1
        sums = " in the sum of the servers only" if source == "group" else " in single servers"
        assert sums in row["pulses"]
    said = command("sql", "-q", "pulsing-together", "--format", "table", "-t", built).out
    assert max(map(len, said.splitlines())) <= 80
    assert "pulses  " in said
