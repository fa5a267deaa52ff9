"""Rules of aggregation: each measure, aggregated over each dimension by its rule, equals the finest rows."""

from __future__ import annotations

from typing import NamedTuple

import duckdb
import pytest

from bi.superset.semantic import Table, read_table
from tests.models.conftest import Planted
from warehouse.project.project import Project

RATE = "8e0 / 3600"


class Finest(NamedTuple):
    """Finest rows of a table: a SELECT with its dimensions, and each measure as an aggregate of these rows."""

    rows: str
    measures: dict[str, str]


SERVERS = (
    "SELECT p.*, o.* FROM metrics.port_hour AS p JOIN topology.hour_owners AS o USING (cluster, switch, port, hour_utc)"
)
SPINES = """
    SELECT u.spine, p.*
    FROM metrics.port_hour AS p
    JOIN topology.hour_uplinks AS u
        ON u.cluster = p.cluster AND u.leaf = p.switch AND u.leaf_port = p.port AND u.hour_utc = p.hour_utc
"""
WAYS = "(VALUES ('in'), ('out')) AS d (direction)"
UPLINK_MINUTES = f"""
    SELECT m.cluster, m.switch, m.port, m.minute_utc, d.direction,
        CASE d.direction WHEN 'in' THEN in_bytes ELSE out_bytes END AS bytes
    FROM metrics.port_minute AS m
    JOIN staging.port_files AS p USING (cluster, switch, port, hour_utc), {WAYS}
    WHERE port_class IN ('uplink', 'storage_uplink')
"""


def jobs_by(jobs: str, whole: str) -> Finest:
    """Return the jobs behind a table of shares: a row is a job, beside the sums of what the shares are of."""
    rows = f"""
        SELECT *, 1 AS jobs, count(*) OVER whole AS all_jobs, sum(gpu_seconds) OVER whole AS all_seconds,
            sum(published_gpu_seconds) OVER whole AS all_published
        FROM ({jobs}) WINDOW whole AS (PARTITION BY {whole})
    """
    return Finest(
        rows,
        {
            "jobs": "count(*)",
            "gpu_seconds": "coalesce(sum(gpu_seconds), 0)::DOUBLE",
            "published_gpu_seconds": "coalesce(sum(published_gpu_seconds), 0)::DOUBLE",
            "job_share": "count(*) / any_value(all_jobs)",
            "gpu_time_share": "coalesce(sum(gpu_seconds), 0)::DOUBLE / nullif(any_value(all_seconds), 0)",
            "published_gpu_time_share": "coalesce(sum(published_gpu_seconds), 0)::DOUBLE "
            "/ nullif(any_value(all_published), 0)",
        },
    )


FINEST = {
    "metrics.port_hour": Finest(
        "FROM metrics.port_hour",
        {
            "line_rate_bps": "sum(line_rate_bps)",
            "in_mean_bps": f"sum(in_bytes) * {RATE}",
            "out_mean_bps": f"sum(out_bytes) * {RATE}",
            "in_utilization": f"sum(in_bytes) * {RATE} / sum(line_rate_bps)",
            "out_utilization": f"sum(out_bytes) * {RATE} / sum(line_rate_bps)",
            "in_max_bps": "max(in_max_bps)",
            "out_max_bps": "max(out_max_bps)",
            "busy_seconds": "sum(busy_seconds)",
        },
    ),
    "metrics.port_minute": Finest(
        "SELECT * EXCLUDE (quality), date_trunc('minute', second_utc) AS minute_utc FROM metrics.port_second",
        {"covered_ms": "sum(covered_ms)"},
    ),
    "metrics.leaf_hour": Finest(
        "FROM metrics.port_hour",
        {
            "leaving_share": "sum(out_bytes) FILTER (ends_with(port_class, 'uplink')) "
            "/ sum(in_bytes) FILTER (ends_with(port_class, 'access'))",
        },
    ),
    "metrics.server_hour": Finest(
        SERVERS,
        {
            "nics": "count(*)",
            "rx_mean_bps": f"sum(out_bytes) * {RATE}",
            "tx_mean_bps": f"sum(in_bytes) * {RATE}",
        },
    ),
    "metrics.spine_hour": Finest(SPINES, {"uplinks_seen": "count(*)"}),
    "metrics.sampling_quality": Finest(
        "SELECT *, offset_ms - previous_ms AS length_ms FROM staging.switch_polls",
        {"polls": "count(*)", "opening_gap_seconds": "max(length_ms) FILTER (previous_ms < 300000) / 1000"},
    ),
    "metrics.uplink_balance": Finest(
        f"FROM metrics.port_hour, {WAYS} WHERE port_class IN ('uplink', 'storage_uplink')", {"uplinks": "count(*)"}
    ),
    "metrics.uplink_balance_minute": Finest(
        UPLINK_MINUTES, {"uplinks": "count(*)", "mean_bytes": "sum(bytes) / count(*)"}
    ),
    "metrics.flow_pairs": Finest(
        "SELECT *, coalesce(source_server, source_ip) AS src_server, coalesce(dest_server, dest_ip) AS dst_server, "
        "date_trunc('minute', time_utc) AS minute_utc FROM staging.hour_flow",
        {"nak_ratio": "sum(nak_packets) / sum(packets)"},
    ),
    "metrics.gpu_allocation": Finest(
        "FROM metrics.gpu_allocation",
        {
            "mean_gpus": "sum(gpu_seconds) / 600 / count(*)",
            "allocation_share": "sum(gpu_seconds) / 600 / sum(cluster_gpus)",
        },
    ),
    "metrics.job_totals": Finest(
        "FROM staging.job_sizes",
        {
            "max_run_seconds": "max(run_seconds)",
            "max_duration_seconds": "max(duration_seconds)",
            "max_gpus": "max(num_gpus)",
        },
    ),
    "metrics.job_share": jobs_by(
        "SELECT *, 'job_type' AS quantity, coalesce(job_type, 'none') AS name, NULL::DOUBLE AS value "
        "FROM staging.job_sizes WHERE trace = 'acme' UNION ALL "
        "SELECT *, 'state' AS quantity, coalesce(state, 'none') AS name, NULL AS value "
        "FROM staging.job_sizes WHERE trace <> 'itp' UNION ALL "
        "SELECT *, 'num_gpus' AS quantity, printf('%g', num_gpus) AS name, num_gpus AS value "
        "FROM staging.job_sizes WHERE kind = 'gpu' UNION ALL "
        "SELECT *, 'submit_hour' AS quantity, submit_hour::VARCHAR AS name, submit_hour AS value "
        "FROM staging.job_sizes WHERE submit_hour IS NOT NULL",
        "trace, cluster, kind, quantity",
    ),
    "metrics.traffic_jobs": Finest(
        "SELECT *, group_id FROM metrics.traffic_groups", {"servers": "count(DISTINCT server)"}
    ),
    "metrics.utilization_minute": Finest(
        "SELECT *, date_trunc('minute', time_utc) AS minute_utc FROM staging.utilization WHERE value IS NOT NULL",
        {
            "samples": "count(*)",
            "zero_samples": "count(*) FILTER (value = 0)",
            "min_value": "min(value)",
            "max_value": "max(value)",
        },
    ),
    "metrics.utilization_distribution": Finest(
        "SELECT *, 'measured' AS origin FROM staging.utilization WHERE value IS NOT NULL",
        {"samples": "count(*)", "min_value": "min(value)", "max_value": "max(value)"},
    ),
}
"""Tables whose rows sum up finer ones, with each measure that is no plain sum."""
ROWS = {
    "metrics.flow_locality_hour": "flows of a cluster and hour are distinct across no locality",
    "metrics.job_pauses": "a pause is a row",
    "metrics.job_periods": "a group of servers is a row",
    "metrics.job_time_cdf": "cumulative: sums over one threshold of clusters only",
    "metrics.jobs": "a job is a row; means are over jobs",
    "metrics.nic_hour": "queue pairs belong to one NIC",
    "metrics.port_second": "the finest rows of traffic",
    "metrics.suspect_links": "a link is a row",
    "metrics.task_iteration_traffic": "a NIC in an iteration is a row",
    "metrics.task_iterations": "a line of the log is a row; means are over the lines of one task",
    "metrics.task_lines": "a line of the log is a row; means are over the lines of one task",
    "metrics.task_periods": "a pod in an hour is a row; pods of a task see the same iterations",
    "metrics.task_traffic": "a NIC of a task is a row",
    "metrics.traffic_groups": "a server of a group is a row",
    "metrics.traffic_periods": "a server in an hour is a row",
    "metrics.utilization_quality": "a file is a row",
}
"""Tables whose rows are the finest ones of their measures, and why their rules hold."""


def groupings(dimensions: set[str], not_over: set[str]) -> set[tuple[str, ...]]:
    """Return the columns to group by: all but one dimension, and one alone; never without those of `not_over`."""
    assert not_over <= dimensions, f"the finest rows have no {not_over - dimensions}"
    found = {tuple(sorted(kept)) for one in dimensions for kept in (dimensions - {one}, {one} | not_over)}
    return {by for by in found if not_over <= set(by)}


def differing(
    opened: duckdb.DuckDBPyConnection, table: Table, measures: dict[str, str], by: tuple[str, ...]
) -> dict[str, int]:
    """Return the number of groups whose value by rule is not that of the finest rows, by measure."""
    rules = []
    for column in measures:
        measure = table.measures[column]
        rules.append(measure.sql(measure.how) + ("" if measure.is_share else f" * {measure.factor!r}"))
    keys = "".join(f"{key}, " for key in by)
    a, b = (
        f"SELECT {keys}{', '.join(f'{rule} AS m{at}' for at, rule in enumerate(some))} FROM {name} GROUP BY ALL"
        for some, name in ((rules, table.name), (measures.values(), "finest_rows"))
    )
    wrong = ", ".join(
        f"count(*) FILTER (abs(coalesce(a.m{at}, 0) - coalesce(b.m{at}, 0)) "
        f"> 1e-9 * greatest(abs(a.m{at}), abs(b.m{at}), 1e-3))"
        for at in range(len(rules))
    )
    joined = " AND ".join(f"a.{key} IS NOT DISTINCT FROM b.{key}" for key in by) or "true"
    row = opened.execute(f"SELECT count(*), {wrong} FROM ({a}) AS a FULL JOIN ({b}) AS b ON {joined}").fetchone()
    assert row
    assert row[0] > 0
    return {column: differ for column, differ in zip(measures, row[1:], strict=True) if differ}


@pytest.mark.parametrize("name", FINEST)
def test_a_measure_over_a_dimension_equals_the_finest_rows(name: str, planted: Planted) -> None:
    finest, opened = FINEST[name], planted.connection
    table = read_table(opened, name)
    opened.execute(f"CREATE OR REPLACE TEMP TABLE finest_rows AS {finest.rows}")
    has = {column for column, *_ in opened.execute("FROM finest_rows LIMIT 0").description}
    said = opened.execute("SELECT column_name FROM meta.dimensions WHERE model = $1", [name]).fetchall()
    dimensions = {column for (column,) in said} & has
    measures: dict[tuple[str, ...], dict[str, str]] = {}
    for column, value in finest.measures.items():
        for by in groupings(dimensions, set(table.measures[column].not_over)):
            measures.setdefault(by, {})[column] = value
    wrong = {by: differing(opened, table, some, by) for by, some in measures.items()}
    assert {by: some for by, some in wrong.items() if some} == {}


def test_every_rule_that_is_no_plain_sum_is_looked_at() -> None:
    """A mean, an extreme, a ratio, and a sum with exceptions have finest rows here, or a reason."""
    models = {name: one for name, one in Project.open().models.items() if one.layer == "metrics"}
    special = {
        name: {one.column for one in model.semantics.measures if one.how not in ("sum", "none") or one.not_over}
        for name, model in models.items()
    }
    assert {name for name, columns in special.items() if columns and name not in FINEST} == set(ROWS)
    left = {name: special[name] - set(finest.measures) for name, finest in FINEST.items()}
    assert {name: columns for name, columns in left.items() if columns} == {
        "metrics.flow_pairs": {"queue_pairs"},
        "metrics.server_hour": {"rails_used"},
        "metrics.spine_hour": {"leaves_seen"},
        "metrics.traffic_jobs": {"leaves", "rails"},
        "metrics.uplink_balance": {"flows", "jain_index", "max_over_mean"},
        "metrics.uplink_balance_minute": {"jain_index", "max_over_mean"},
    }, "extremes and counts of single rows, which are the finest of their kind"
