"""First sight of the published file: tables to begin with, and comments on every table and column."""

from __future__ import annotations

import csv
from pathlib import Path

import duckdb
import pytest

import warehouse
from tests.conftest import Command
from tests.environments import ROOT
from warehouse.reader.why_empty import reasons_of


@pytest.fixture(scope="module")
def listed() -> list[str]:
    with (ROOT / "data" / "start.csv").open(encoding="utf-8", newline="") as file:
        return [row["relation"] for row in csv.DictReader(file)]


def test_the_schema_start_has_the_listed_tables_with_comments_and_rules(built: Path, listed: list[str]) -> None:
    with duckdb.connect(str(built / "warehouse.duckdb"), read_only=True) as plain:
        views = plain.execute("SELECT view_name, comment FROM duckdb_views() WHERE schema_name = 'start'").fetchall()
        assert sorted(name for name, _ in views) == sorted(one.partition(".")[2] for one in listed)
        for table in listed:
            view = f"start.{table.partition('.')[2]}"
            counts = plain.execute(f"SELECT (SELECT count(*) FROM {view}), (SELECT count(*) FROM {table})").fetchall()
            assert counts[0][0] == counts[0][1] > 0, table
            rules = [
                plain.execute("SELECT * EXCLUDE (model) FROM meta.measures WHERE model = $1", [one]).fetchall()
                for one in (view, table)
            ]
            assert rules[0] == rules[1]


def test_every_table_and_column_has_a_comment_and_empty_tables_say_why(built: Path) -> None:
    with warehouse.open(built) as opened:
        names = [name for (name,) in opened.execute("SELECT model FROM meta.models").fetchall()]
        reasons = reasons_of(opened, names)
        said = dict(
            opened.execute(
                "SELECT schema_name || '.' || table_name, comment FROM duckdb_tables() WHERE NOT internal "
                "UNION ALL SELECT schema_name || '.' || view_name, comment FROM duckdb_views() WHERE NOT internal"
            ).fetchall()
        )
        silent = opened.execute(
            "SELECT count(*) FROM duckdb_columns() WHERE NOT internal AND comment IS NULL"
        ).fetchall()
    assert silent == [(0,)]
    empty = {name for name, comment in said.items() if comment.startswith("empty: ")}
    assert empty == {name for name in reasons if name != "raw.rejected_rows"}
    assert "metrics.utilization_minute" in empty
    for name in empty:
        reason = reasons[name].removesuffix(" (warehouse doctor)")
        assert said[name].startswith(f"empty: {reason}. "), name


def test_commands_follow_a_view_to_its_table(built: Path, command: Command) -> None:
    shown = command("show", "start.leaf_hour", "-t", built)
    assert shown.out.startswith("start.leaf_hour  view"), shown.err
    counted = command("sql", "SELECT count(*) AS n FROM start.leaf_hour", "-t", built)
    assert counted.out == command("sql", "SELECT count(*) AS n FROM metrics.leaf_hour", "-t", built).out
    cited = command("sql", "--cite", "SELECT count(*) AS n FROM start.leaf_hour", "-t", built)
    assert cited.status == 0, cited.err
