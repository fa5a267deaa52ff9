"""NULLs have the reason from their column's contract; a condition that matches no row is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import call

if TYPE_CHECKING:
    from pathlib import Path

ITP = "NULL for jobs without a start, and for ITP, which does not publish start times"


@pytest.mark.parametrize(
    ("sql", "note"),
    [
        (
            "SELECT median(queue_seconds) FROM metrics.jobs WHERE trace = 'itp'",
            f"queue_seconds of metrics.jobs is {ITP}",
        ),
        (
            "WITH j AS (SELECT start_utc AS s FROM metrics.jobs WHERE trace = 'itp') SELECT min(s) AS first FROM j",
            f"start_utc of metrics.jobs is {ITP}",
        ),
        (
            "SELECT start_utc, queue_seconds FROM metrics.jobs WHERE trace = 'itp' LIMIT 1",
            f"start_utc, queue_seconds of metrics.jobs are {ITP}",
        ),
        ("SELECT median(queue_seconds) FROM metrics.jobs WHERE cluster = 'ITP'",
         f"no cluster ITP; write trace = 'itp'\nnote: queue_seconds of metrics.jobs is {ITP}"),
        ("SELECT median(queue_seconds) FROM metrics.jobs WHERE trace = 'ITP'",
         f"no trace ITP; write trace = 'itp'\nnote: queue_seconds of metrics.jobs is {ITP}"),
        ("SELECT max(in_bytes) FROM metrics.leaf_hour WHERE switch = 'Leaf1' AND in_bytes > 0",
         "no switch Leaf1 in metrics.leaf_hour; near: Leaf-1"),
        ("SELECT max(in_bytes) FROM metrics.leaf_hour WHERE in_bytes < 0", None),
        ("SELECT max(in_bytes) FROM metrics.leaf_hour WHERE in_bytes < 0 GROUP BY switch", None),
        ("SELECT NULL AS nothing FROM metrics.leaf_hour", None),
        ("SELECT sum(in_bytes) FROM metrics.leaf_hour", None),
    ],
)  # fmt: skip
def test_a_null_has_its_reason(built: Path, tmp_path: Path, sql: str, note: str | None) -> None:
    said = call("sql", sql, "--format", "table", "-t", built, cwd=tmp_path)
    assert "\n".join(line for line in said.err.splitlines() if line.startswith("note: ")) == (
        f"note: {note}" if note else ""
    )


def test_programs_get_no_note(built: Path, tmp_path: Path) -> None:
    sql = "SELECT median(queue_seconds) FROM metrics.jobs WHERE trace = 'itp'"
    said = call("sql", sql, "--format", "csv", "-t", built, cwd=tmp_path)
    assert (said.out, said.err) == ("median(queue_seconds)\n\n", "")


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("FROM metrics.server_hour WHERE server = 'GPU-999'", "no server GPU-999 in metrics.server_hour; near: GPU-"),
        ("FROM metrics.job_state_share WHERE trace = 'borg'", "no trace borg in metrics.job_state_share; there are "),
        ("FROM metrics.jobs WHERE trace = 'borg'", "no trace borg; there are acme, helios, itp, pai and 1 more"),
        ("FROM staging.port_counters WHERE switch = 'leaf-1'", "no switch leaf-1; write switch = 'Leaf-1'"),
        ("FROM staging.port_counters AS p WHERE p.switch = 'Leaf-99'", "no switch Leaf-99; near: Leaf-"),
        ("FROM metrics.leaf_hour WHERE switch = 'Leaf-1' AND in_bytes < 0", "none meets the conditions of the query"),
    ],
)
def test_a_condition_value_that_no_row_has_is_named(built: Path, tmp_path: Path, sql: str, reason: str) -> None:
    said = call("sql", sql, "--format", "csv", "-t", built, cwd=tmp_path)
    assert said.err.startswith(f"no rows: {reason}")
