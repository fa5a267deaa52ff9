"""Numbers of named queries: against Python over polls and seconds, findings, made tables, and a release in part."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

import warehouse
from tests.conftest import Command, call
from warehouse.project.project import Project
from warehouse.reader.named_queries import load_queries

FOLDERS = Project.open()
QUERIES = {
    f"{kind}/{name}": query.sql
    for kind, folders in (("queries", FOLDERS.query_folders), ("report", FOLDERS.report_folders))
    for name, query in load_queries(folders).items()
}


def ask(target: Path, sql: str) -> list[Any]:
    with warehouse.open(target) as connection:
        return connection.execute(sql).fetchall()


def test_lost_polls_stand_beside_the_traffic_at_that_time(built: Path) -> None:
    """Missing polls, and the utilization of the seconds that lost a poll beside that of the other seconds."""
    hour = "hour_utc = '2024-05-23 16:00:00'"
    found = warehouse.query("lost-polls", target=built, hour="2024-05-23 16:00:00", limit=1)
    first = dict(zip(found.columns, found.fetchall()[0], strict=True))
    assert [(first["missing_polls"],)] == ask(built, f"SELECT max(missing_polls) FROM metrics.port_hour WHERE {hour}")
    place = f"switch = '{first['switch']}' AND {hour}"
    [(key, rate)] = ask(
        built, f"SELECT file_key, line_rate_bps FROM staging.port_files WHERE {place} AND port = '{first['port']}'"
    )
    stored = set(ask(built, f"SELECT offset_ms FROM staging.port_readings WHERE file_key = {key} AND {hour}"))
    polls = ask(built, f"SELECT offset_ms FROM staging.switch_polls WHERE {place}")
    lost = {at // 1000 for (at,) in set(polls) - stored}
    by_loss: dict[bool, list[int]] = defaultdict(list)
    for second, moved in ask(
        built,
        "SELECT second, greatest(in_bytes, out_bytes) FROM staging.port_seconds "
        f"WHERE file_key = {key} AND {hour} AND longest_ms <= 10000",
    ):
        by_loss[second in lost].append(moved)
    for name, is_lost in (("at_lost", True), ("at_other", False)):
        values = by_loss[is_lost]
        assert first[name] == pytest.approx(sum(values) / len(values) * 8 / rate, abs=1e-4), name


def test_groups_have_the_bytes_and_the_share_of_the_finding(command: Command, built: Path) -> None:
    found = json.loads(command("findings", "--json", "-t", built).out)
    [job] = [one for one in found if one["kind"] == "job_trades_most"]
    rows = json.loads(command("sql", "-q", "traffic-jobs", "--hour", job["hour_utc"], "--json", "-t", built).out)
    assert rows[0]["bytes"] == job["number"]
    assert f", {100 * rows[0]['access_share']:.1f} % of the bytes of all servers" in job["sentence"]


def test_the_bytes_of_a_group_are_those_at_loaded_leaves(two_leaves: Path, command: Command) -> None:
    """Two of the four leaves that the servers of a job are plugged into are loaded."""
    found = json.loads(command("findings", "--json", "-t", two_leaves).out)
    said = {one["kind"]: one["sentence"] for one in found}
    assert " at their NICs on loaded leaves (2 of 4 per server), " in said["job_trades_most"]
    assert said["fullest_link"].startswith("Of the links observed (2 of 9 leaves), the fullest is ")


@pytest.mark.real
def test_two_servers_whose_ports_no_sheet_tells_apart_have_a_name_together(
    real_output: tuple[Path, str], tmp_path: Path
) -> None:
    said = call("sql", "-q", "nic", "--server", "GPU-123/124", "-t", real_output[0], cwd=tmp_path)
    assert "TwoHundredGigE1/0/2:2" in said.out


# rankings use values that are not rounded ---------------------------------------------------------


def rounded(tree: exp.Expr) -> set[tuple[str, str]]:
    """Return the columns that a query rounds, each with its CTE; '' for the outermost SELECT."""
    found = [(one.find_ancestor(exp.CTE), one.alias) for one in tree.find_all(exp.Alias) if one.find(exp.Round)]
    return {(cte.alias if cte else "", name) for cte, name in found}


def ranked_by(tree: exp.Expr) -> Iterator[tuple[str, str]]:
    """Yield the columns in every ORDER BY, including windows, each with all columns that it may refer to."""
    for order in tree.find_all(exp.Ordered):
        column, select, cte = order.this, order.find_ancestor(exp.Select), order.find_ancestor(exp.CTE)
        if isinstance(column, exp.Column) and select:
            tables = {one.alias_or_name: one.name for one in select.find_all(exp.Table)}
            of = [tables[column.table]] if column.table else [cte.alias if cte else "", *tables.values()]
            yield from ((one, column.name) for one in of)


def test_no_query_ranks_by_a_rounded_column() -> None:
    wrong = "WITH a AS (SELECT round(load) AS load FROM t) SELECT rank() OVER (ORDER BY b.load) FROM a AS b"
    for name, sql in {**QUERIES, "wrong": wrong}.items():
        tree = sqlglot.parse_one(sql, "duckdb") if "round" in sql else exp.Select()
        assert bool(rounded(tree) & set(ranked_by(tree))) == (name == "wrong"), name


def test_queries_of_capacity_weigh_by_time() -> None:
    """Node a: 8 GPUs, 6 held for 100 s, 2 for 300 s, then unknown; b is held in full. Free GPUs of both: 2 and 6."""
    with duckdb.connect() as made:
        made.execute("""
            CREATE SCHEMA metrics;
            CREATE TABLE metrics.node_allocation AS SELECT 't' AS trace, 'c' AS cluster, 'A100' AS gpu_model,
                8 AS node_gpus, * FROM (VALUES ('a', 0, 100, 6.0, 0), ('a', 100, 400, 2.0, 3), ('a', 400, NULL, 0.0, 0),
                ('b', 0, 400, 8.0, 0)) AS t(node, begin_seconds, end_seconds, gpus, sharing_jobs);
            CREATE TABLE metrics.idle_gpus AS SELECT 't' AS trace, 'c' AS cluster, 'A100' AS gpu_model, 16 AS gpus,
                * FROM (VALUES (0, 100, 2.0, 2, 2, 0.0, 0.0), (100, 400, 6.0, 3, 5, 1.0, 3.0),
                (400, NULL, 8.0, 8, 8, 0.0, 0.0)) AS t(begin_seconds, end_seconds, free_gpus, whole_gpus_min,
                whole_gpus_max, fragment_gpus_min, fragment_gpus_max);
        """)
        given = {"trace": None, "cluster": "c"}
        nodes = made.execute(QUERIES["queries/node-allocation"], {**given, "limit": 2}).fetchall()
        free = made.execute(QUERIES["queries/idle-gpus"], given).fetchall()
    assert nodes == [
        ("t", "c", "a", "A100", 8, 0.1, 5.0, 37.5, 6, 3),
        ("t", "c", "b", "A100", 8, 0.1, 0.0, 100.0, 8, 0),
    ]
    assert free == [("t", "c", "A100", 16, 5.0, 2.75, 4.25, 0.75, 2.25, 2, 0.1)]
