"""Why an answer or a table is empty: an unknown name, an hour that is not loaded, missing files."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from warehouse.formats import known_formats
from warehouse.graph.empty_tables import EmptyTables
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


def test_an_empty_table_names_the_missing_files(command: Command, two_leaves: Path) -> None:
    files = "AcmeTrace, Alibaba GPU v2023, Helios, ITP, PAI or Philly in the data folders"
    assert command("sql", "-q", "jobs", "-t", two_leaves).err == (
        f"no rows: metrics.job_totals is empty: no files of {files} (warehouse doctor -t {two_leaves})\n"
    )
    shown = " ".join(command("show", "metrics.flow_locality_hour", "-t", two_leaves).out.split())
    assert "metrics.flow_locality_hour is empty: no files of flow" in shown
    with closing(connect(two_leaves)) as connection:
        assert why_empty(connection, "metrics.port_hour") is None
        assert why_empty(connection, "no.such") is None


@pytest.mark.parametrize(
    ("loaded", "reason"),
    [
        ((), "no files of AcmeTrace in the data folders"),
        (("acme.utilization",), "no files of jobs of AcmeTrace in the data folders"),
    ],
)
def test_files_that_are_missing_beside_others_of_the_trace_are_named(loaded: tuple[str, ...], reason: str) -> None:
    [relation] = [one.full_name for form in known_formats() if form.name == "acme.jobs" for one in form.relations][:1]
    needs = {"metrics.jobs": [[relation]], relation: []}
    tables = EmptyTables({"metrics.jobs": "table", relation: "raw"}, {"metrics.jobs": 0}, needs, {}, loaded)
    found = tables.reason("metrics.jobs")
    assert found == reason
