"""Tables, columns and queries: found by words, listed by question, described; comments in the published file."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import duckdb
import pytest

import warehouse
from tests.conftest import Command
from tests.environments import ROOT
from warehouse.base.errors import QueryError
from warehouse.project.contract import Column
from warehouse.project.project import Project
from warehouse.reader.finding import OTHERS, QUESTIONS, find_columns, find_tables, matching_queries, question_of
from warehouse.reader.named_queries import load_queries
from warehouse.reader.table_info import Check, as_json, print_relation, reasons_of, show

QUERIES = load_queries(Project.open().query_folders)


def test_every_shipped_table_and_query_answers_a_question_and_no_name_is_given_twice() -> None:
    names = [name for name in Project.open().models if not name.startswith("staging.")]
    assert [name for name in names if question_of(name) == OTHERS] == []
    assert {query.question for query in QUERIES.values()} <= set(QUESTIONS)
    names = [*QUERIES, *(alias for query in QUERIES.values() for alias in query.aliases)]
    assert len(set(names)) == len(names)


def test_a_query_is_found_by_common_words() -> None:
    words = {"nic": "nic", "miscabled": "suspect-links", "pulsing-together": "traffic-jobs", "wait": "jobs"}
    for word, name in words.items():
        assert [one.name for one in matching_queries(QUERIES, word)] == [name]
    with pytest.raises(QueryError, match="no query is named suspekt-links") as error:
        matching_queries(QUERIES, "suspekt-links")
    assert error.value.hint == "nearest: suspect-links"


def test_a_word_finds_names_columns_meanings_and_synonyms(connection: duckdb.DuckDBPyConnection) -> None:
    assert "metrics.port_hour" in [one.table.name for one in find_tables(connection, "bandwidth")]
    [first, *_] = find_tables(connection, "leaf_hour")
    assert first.table.name == "metrics.leaf_hour"
    assert [one.table.name for one in find_tables(connection, "leaving")] == ["metrics.leaf_hour"]
    with pytest.raises(QueryError, match="no table, column or meaning holds bandwith") as error:
        find_tables(connection, "bandwith")
    assert error.value.hint == "nearest: bandwidth"
    [found] = find_columns(connection, "LEAVING_SHARE")
    assert (found["table"], found["name"]) == ("metrics.leaf_hour", "leaving_share")
    assert find_columns(connection, "leaf_hour.leaving_share") == [found]
    assert find_columns(connection, "no_such") == []
    [found_by_pattern] = find_tables(connection, "METRICS.port_hour*")
    assert found_by_pattern.table.bytes == 500


def test_show_describes_a_table(target: Path) -> None:
    relation = show(target, "port_hour")
    assert relation.name == "metrics.port_hour"
    assert relation.grain == ("cluster", "switch", "port", "hour_utc")
    assert relation.partition_column == "hour_utc"
    assert relation.columns[6] == Column("in_bytes", "BIGINT", "B", "meaning of in_bytes")
    assert relation.checks == (
        Check("grain is unique", "error", "passed", 0),
        Check("in_utilization <= 1", "warn", "warned", 3),
    )
    assert json.loads(json.dumps(as_json(relation)))["columns"][0]["about"] == "meaning of cluster"
    stream = io.StringIO()
    print_relation(relation, stream, width=80, target=Path("build/warehouse"))
    assert "meaning of in_bytes\n" in stream.getvalue()
    assert "warned         3  in_utilization <= 1\n" in stream.getvalue()


def test_show_suggests_the_nearest_name(target: Path) -> None:
    for name, message in {
        "port_hours": "no table port_hours\nnearest: metrics.port_hour",
        "port_counters": "port_counters may be raw.port_counters or staging.port_counters\ngive the full name",
    }.items():
        with pytest.raises(QueryError) as error:
            show(target, name)
        assert str(error.value) == message


# first sight of the published file ----------------------------------------------------------------


def test_the_schema_start_has_the_listed_tables_with_comments_and_rules(built: Path) -> None:
    with (ROOT / "data" / "start.csv").open(encoding="utf-8", newline="") as file:
        listed = [row["relation"] for row in csv.DictReader(file)]
    with duckdb.connect(str(built / "warehouse.duckdb"), read_only=True) as plain:
        views = plain.execute("SELECT view_name FROM duckdb_views() WHERE schema_name = 'start'").fetchall()
        assert sorted(name for (name,) in views) == sorted(one.partition(".")[2] for one in listed)
        for table in listed:
            view = f"start.{table.partition('.')[2]}"
            [(ours, theirs)] = plain.execute(f"SELECT (SELECT count(*) FROM {view}), count(*) FROM {table}").fetchall()
            assert ours == theirs > 0, table
            measures = "SELECT * EXCLUDE (model) FROM meta.measures WHERE model = $1"
            assert plain.execute(measures, [view]).fetchall() == plain.execute(measures, [table]).fetchall()


def test_commands_follow_a_view_to_its_table_and_never_show_it_for_a_word(built: Path, command: Command) -> None:
    for words in (("show", "uplink_balance"), ("show", "max_over_mean"), ("ls", "uplink"), ("ls", "--all")):
        said = command(*words, "-t", built)
        assert (said.status, "start." in said.out) == (0, False), words
        assert ("\n  staging.port_counters\n" in said.out) == (words == ("ls", "--all")), words
    assert "metrics.leaf_hour: a table" in command("sql", "-t", built, "FROM leaf_hour").err_text
    assert command("ls", "-t", built, "start.*").out.startswith("Where do I begin?\n  start.findings")
    shown = command("show", "start.leaf_hour", "-t", built)
    assert shown.out.startswith("start.leaf_hour  view"), shown.err
    cited = command("sql", "--cite", "SELECT count(*) AS n FROM start.leaf_hour", "-t", built)
    assert cited.status == 0, cited.err


def test_every_table_and_column_has_a_comment_and_empty_tables_say_why(two_leaves: Path, command: Command) -> None:
    with warehouse.open(two_leaves) as opened:
        names = [name for (name,) in opened.execute("SELECT model FROM meta.models").fetchall()]
        reasons = reasons_of(opened, names)
        said = dict(
            opened.execute(
                "SELECT schema_name || '.' || table_name, comment FROM duckdb_tables() WHERE NOT internal "
                "UNION ALL SELECT schema_name || '.' || view_name, comment FROM duckdb_views() WHERE NOT internal"
            ).fetchall()
        )
        silent = opened.execute("SELECT count(*) FROM duckdb_columns() WHERE NOT internal AND comment IS NULL")
        assert silent.fetchall() == [(0,)]
    empty = {name for name, comment in said.items() if comment.startswith("empty: ")}
    assert empty == {name for name in reasons if name != "raw.rejected_rows"}
    assert "metrics.flow_locality_hour" in empty
    said_by_ls = command("ls", "locality", "-t", two_leaves).out
    assert "  metrics.flow_locality_hour  (empty: no files of " in said_by_ls
    for name in empty:
        reason = reasons[name].removesuffix(" (warehouse doctor)")
        assert said[name].startswith(f"empty: {reason}. "), name
