"""Named queries: those that are shipped, their headers, and the values of their parameters."""

from __future__ import annotations

from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path

import duckdb
import pytest

from warehouse.base.errors import ModelError, QueryError
from warehouse.project.project import Project
from warehouse.reader.guard import check_read_only
from warehouse.reader.named_queries import Parameter, bind, load_queries, parse_value
from warehouse.reader.result import open_result

QUERIES = load_queries(Project.open().query_folders)


def rows(connection: duckdb.DuckDBPyConnection, name: str, **given: str) -> list[dict[str, str | None]]:
    query = QUERIES[name]
    [statement] = check_read_only(connection, query.sql)
    result = open_result(connection, statement, bind(query, given))
    names = [column.name for column in result.columns]
    return [dict(zip(names, row, strict=True)) for row in result.rows]


def test_each_query_uses_its_declared_parameters(connection: duckdb.DuckDBPyConnection) -> None:
    for query in QUERIES.values():
        assert query.about.endswith(".")
        assert "{" not in query.about
        [statement] = check_read_only(connection, query.sql, path=query.path)
        assert statement.parameters == set(query.parameters), query.name


def test_a_query_takes_parameters_and_never_parses_a_value(connection: duckdb.DuckDBPyConnection) -> None:
    first, second = rows(connection, "nic", server="gpu-1")
    assert (first["hca"], first["switch"], first["port"]) == ("mlx5_0", "Leaf-1", "TwoHundredGigE1/0/1:1")
    assert (first["rx_bytes"], first["tx_bytes"], first["spread"]) == ("3000", "2000", "▁▁▂▃▃▄▄▅▆▆▇█")
    assert second["status"] == "inferred"
    [lost] = rows(connection, "nic", server="GPU-2")
    assert (lost["status"], lost["reason"]) == ("unresolved", "no_topology_row")
    assert lost["port"] is lost["spread"] is None
    [quiet] = rows(connection, "nic", server="GPU-1", hca="mlx5_1", hour="2020-01-01")
    assert (quiet["nic"], quiet["port"]) == ("ens11np0", "TwoHundredGigE1/0/1:1")
    assert quiet["rx_bytes"] is quiet["spread"] is None
    assert rows(connection, "nic", server="GPU-1' OR true --") == []

    busiest = rows(connection, "busiest-ports", limit="2")
    assert [(row["switch"], row["in_bytes"]) for row in busiest] == [("Leaf-2", "5000"), ("Leaf-2", "4000")]
    assert len(rows(connection, "busiest-ports", switch="Leaf-1")) == 3
    assert rows(connection, "hour-summary", hour="2020-01-01 00:00") == []


def write(folder: Path, text: str, name: str = "mine.sql") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


HEADER = """/* ---
about: "A sentence, with a colon: here."
params:
  leaf: VARCHAR = null the leaf
  gap: "DOUBLE = 1.5 seconds: at least"
  deep: BOOLEAN = true all of it
  name: VARCHAR = 'two words' the name
  must: BIGINT how many
--- */
SELECT $leaf, $gap, $deep, $name, $must
"""


def test_a_header_is_read(tmp_path: Path) -> None:
    query = load_queries([write(tmp_path, HEADER)])["mine"]
    assert query.about == "A sentence, with a colon: here."
    assert query.parameters["leaf"] == Parameter("leaf", "VARCHAR", "the leaf")
    assert query.parameters["gap"] == Parameter("gap", "DOUBLE", "seconds: at least", default=1.5)
    assert query.parameters["deep"].default is True
    assert query.parameters["name"].default == "two words"
    assert query.parameters["must"].required
    assert query.sql.index("SELECT") == HEADER.count("\n") - 1
    defaults = {"leaf": None, "gap": 1.5, "deep": True, "name": "two words"}
    assert bind(query, {"must": "7"}) == {**defaults, "must": 7}
    later = write(tmp_path / "later", "/* ---\nabout: Two.\n--- */\nSELECT 1\n")
    assert load_queries([tmp_path, later, tmp_path / "none"])["mine"].about == "Two."


def test_a_wrong_header_is_an_error_with_its_line(tmp_path: Path) -> None:
    about = "/* ---\nabout: x\nparams:\n  "
    for text, message in {
        "SELECT 1": "mine.sql:1:1: the file does not start with",
        f"{about}a: VARCHAR\n--- */\nSELECT 1": "mine.sql:4:3: `a` is not",
        f"{about}a: TEXT the a\n--- */\nSELECT 1": "mine.sql:4:3: `a` is not .*types: VARCHAR",
        f"{about}a: INTEGER = x the a\n--- */\nSELECT 1": "mine.sql:4:3: .* not a whole",
        "/* ---\nparams:\n--- */\nSELECT 1": "mine.sql:1:1: the front matter has no `about`",
    }.items():
        with pytest.raises(ModelError, match=message):
            load_queries([write(tmp_path, text)])


def test_a_wrong_value_is_one_sentence(tmp_path: Path) -> None:
    query = load_queries([write(tmp_path, HEADER)])["mine"]
    cases: tuple[tuple[dict[str, str], str], ...] = (
        ({}, "query mine needs must: how many\ngive --must VALUE"),
        ({"must": "x"}, "must of query mine is not a whole number: x\nmust: how many"),
        ({"must": "1", "gap": "1,5"}, "gap of query mine is not a number: 1,5\ngap: seconds: at least"),
        ({"must": "1", "deep": "perhaps"}, "deep of query mine is not true or false: perhaps\n*"),
        ({"must": "1", "laef": "x"}, "query mine has no parameter laef\nnearest: leaf"),
        ({"must": "1", "zzz": "x"}, "query mine has no parameter zzz\nits parameters: leaf, gap, deep, *"),
    )
    for given, message in cases:
        with pytest.raises(QueryError) as error:
            bind(query, given)
        assert fnmatchcase(str(error.value), message)


def test_times_are_utc() -> None:
    hour = datetime(2024, 5, 23, 16)  # noqa: DTZ001
    for text in ("2024-05-23T16:00:00", "2024-05-23 16:00Z", "2024-05-24 00:00+08:00"):
        assert parse_value(text, "TIMESTAMP") == hour
    with pytest.raises(ValueError, match="not a time like 2024-05-23 16:00"):
        parse_value("yesterday", "TIMESTAMP")
