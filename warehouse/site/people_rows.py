"""Query rows for pages: exact text, and readable numbers with units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from warehouse.reader.guard import check_read_only
from warehouse.reader.named_queries import bind, tables_of
from warehouse.reader.result import Row, for_people, open_result
from warehouse.reader.text_table import header_unit, people_values

if TYPE_CHECKING:
    import duckdb

    from warehouse.reader.named_queries import Query
    from warehouse.reader.result import Column

TextRow = Mapping[str, str | None]
"""A row by column, as readable text."""


@dataclass(frozen=True)
class Rows:
    """Result of a SELECT as exact text, with its units."""

    columns: Sequence[Column] = ()
    units: Sequence[str | None] = ()
    rows: Sequence[Row] = ()

    def text_rows(self) -> list[TextRow]:
        """Return the rows by column with readable numbers, formatted alike within a column."""
        columns = people_values(self.columns, self.units, self.rows)
        texts = [[None if text is None else text.strip() for text in column] for column in columns]
        names = [column.name for column in self.columns]
        return [dict(zip(names, values, strict=True)) for values in zip(*texts, strict=True)]

    @property
    def heads(self) -> list[tuple[str, str, bool]]:
        """Return the columns: name, header with the unit (if cells lack it), and True for numbers."""
        return [
            (column.name, column.name + header_unit(unit), column.kind == "number")
            for column, unit in zip(self.columns, self.units, strict=True)
        ]


NO_ROWS = Rows()


def run(connection: duckdb.DuckDBPyConnection, query: Query, given: Mapping[str, str], most: int | None = None) -> Rows:
    """Return the rows of a query with these values of its parameters, the first `most` of them."""
    [statement] = check_read_only(connection, query.sql.strip())
    result = for_people(open_result(connection, statement, bind(query, given)))
    return Rows(result.columns, result.units or (), list(islice(result.rows, most)))


def ask(connection: duckdb.DuckDBPyConnection, query: Query) -> Rows:
    """Return the rows of a site query; empty if the build lacks a table or column of the query."""
    from warehouse.base.startup import duckdb

    built = {model for (model,) in connection.execute("SELECT model FROM meta.models").fetchall()}
    if not tables_of(query.sql) <= built:
        return NO_ROWS
    try:
        return run(connection, query, {})
    except duckdb.BinderException:  # a project's own model of that name has other columns
        return NO_ROWS
