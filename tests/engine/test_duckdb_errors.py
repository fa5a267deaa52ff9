"""DuckDB errors, parsed from JSON and from text."""

from __future__ import annotations

import duckdb
import pytest

from warehouse.engine.duckdb_errors import ErrorDetails, read


@pytest.fixture(params=[True, False], ids=["json", "text"])
def connection(request: pytest.FixtureRequest) -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect()
    opened.execute(f"SET errors_as_json = {request.param}")
    opened.execute("CREATE TABLE main.ports (switch INTEGER, in_bytes BIGINT)")
    return opened


def details_of(connection: duckdb.DuckDBPyConnection, sql: str) -> ErrorDetails:
    with pytest.raises(duckdb.Error) as error:
        connection.execute(sql).fetchall()
    return read(error.value)


def test_errors_are_parsed_alike_as_json_and_as_text(connection: duckdb.DuckDBPyConnection) -> None:
    for sql, message in (
        ("SELECT in_byte FROM ports", 'Referenced column "in_byte" not found in FROM clause!'),
        ("FROM port", "Table with name port does not exist!"),
        ("SELECT 'x'::INTEGER", "Could not convert string 'x' to INT32"),
    ):
        assert details_of(connection, sql).message == message
    error = details_of(connection, "SELECT p.in_byte FROM ports p")
    assert error.message == 'Table "p" does not have a column named "in_byte"'
    assert (error.kind, error.table, error.name, error.candidates) == ("column", "p", "in_byte", ("in_bytes",))
    assert details_of(connection, "FROM '/nowhere/*.csv'").no_files == "/nowhere/*.csv"
    connection.execute("SET enable_external_access = false")
    assert details_of(connection, "FROM '/nowhere/a.csv'").no_access == "/nowhere/a.csv"
