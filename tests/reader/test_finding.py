from __future__ import annotations

import io
from pathlib import Path

import duckdb
import pytest

from tests.conftest import Command
from warehouse.base.errors import QueryError
from warehouse.project.project import Project
from warehouse.reader.finding import (
    OTHERS,
    QUESTIONS,
    Found,
    find_columns,
    find_tables,
    matching_queries,
    print_by_question,
    print_queries,
    print_query,
    question_of,
)
from warehouse.reader.named_queries import load_queries
from warehouse.reader.relation import Table

QUERIES = load_queries([Path(__file__).parents[2] / "sql" / "queries"])


def test_every_shipped_table_and_query_answers_a_question() -> None:
    names = [name for name in Project.open().models if not name.startswith("staging.")]
    assert [name for name in names if question_of(name) == OTHERS] == []
    assert {query.question for query in QUERIES.values()} <= set(QUESTIONS)


def test_the_queries_fit_one_screen() -> None:
    stream = io.StringIO()
    print_queries(QUERIES, stream, width=80)
    lines = stream.getvalue().splitlines()
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80
    assert all(name in stream.getvalue() for name in QUERIES)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("nic", "nic"),
        ("miscabled", "suspect-links"),
        ("network-jobs", "traffic-jobs"),
        ("pulsing-together", "traffic-jobs"),
        ("spine-balance", "spine-balance"),
        ("wait", "jobs"),
    ],
)
def test_a_query_is_found_by_common_words(word: str, name: str) -> None:
    assert [one.name for one in matching_queries(QUERIES, word)] == [name]


def test_no_alias_is_a_name_of_another_query() -> None:
    names = [*QUERIES, *(alias for query in QUERIES.values() for alias in query.aliases)]
    assert len(set(names)) == len(names)
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


def test_words_and_short_names_mean_tables_and_the_schema_start_is_found_by_its_name(
    built: Path, command: Command
) -> None:
    for words in (("show", "uplink_balance"), ("show", "max_over_mean"), ("ls", "uplink"), ("ls",), ("ls", "--all")):
        said = command(*words, "-t", built)
        assert (said.status, "start." in said.out) == (0, False), words
    assert "metrics.leaf_hour: a table" in command("sql", "-t", built, "FROM leaf_hour").err_text
    listed = command("ls", "-t", built, "start.*").out
    assert listed.startswith("Where do I begin?\n  start.findings")
    assert listed.count("  start.") == 10
    said = command("show", "-t", built, "start.uplink_balance.max_over_mean")
    assert said.out.count("uplink_balance.max_over_mean") >= 1


def test_a_column_is_found_by_its_name(connection: duckdb.DuckDBPyConnection) -> None:
    [found] = find_columns(connection, "LEAVING_SHARE")
    assert (found.table, found.name) == ("metrics.leaf_hour", "leaving_share")
    assert find_columns(connection, "leaf_hour.leaving_share") == [found]
    assert find_columns(connection, "no_such") == []


def test_a_search_lists_empty_tables_with_their_reason() -> None:
    found = [
        Found(Table("metrics.jobs", "table", 3, 1, "Jobs.")),
        Found(Table("metrics.gpu_allocation", "table", 0, 1, "GPUs.")),
    ]
    stream = io.StringIO()
    print_by_question(found, stream, word="job", empty={"metrics.gpu_allocation": "no files of AcmeTrace"})
    assert "  metrics.gpu_allocation  (empty: no files of AcmeTrace)\n" in stream.getvalue()


def test_a_search_says_which_relations_of_raw_files_are_empty() -> None:
    found = [
        Found(Table("raw.acme_jobs", "raw", None, None, "Jobs.")),
        Found(Table("raw.itp_jobs", "raw", None, None, "Jobs.")),
    ]
    stream = io.StringIO()
    print_by_question(found, stream, word="jobs", empty={"raw.acme_jobs": "no files of AcmeTrace"})
    assert "  raw.acme_jobs  (empty: no files of AcmeTrace)\n  raw.itp_jobs\n    Jobs.\n" in stream.getvalue()


def test_a_listed_query_fits_80_columns() -> None:
    for query in QUERIES.values():
        stream = io.StringIO()
        print_query(query, stream, width=80)
        assert max(map(len, stream.getvalue().splitlines())) <= 80


def test_staging_and_empty_tables_are_counted_unless_asked_for() -> None:
    found = [
        Found(Table("metrics.jobs", "table", 3, 1, "Jobs.")),
        Found(Table("metrics.job_totals", "table", 0, 1, "Totals.")),
        Found(Table("staging.acme_jobs", "table", 3, 1, "As published.")),
    ]
    stream = io.StringIO()
    print_by_question(found, stream)
    assert stream.getvalue() == (
        "How long do jobs run and wait?\n  metrics.jobs  3 rows\n    Jobs.\n\n"
        "2 more: 1 of rows as published, 1 empty (--all shows them)\n"
    )
    stream = io.StringIO()
    print_by_question(found, stream, everything=True)
    assert "metrics.job_totals  empty\n" in stream.getvalue()
    assert "staging.acme_jobs" in stream.getvalue()
