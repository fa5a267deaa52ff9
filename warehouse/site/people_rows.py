"""Query rows for pages: exact text, and readable numbers with units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from warehouse.base.text import grouped
from warehouse.reader.answer_table import people_values
from warehouse.reader.guard import check_read_only
from warehouse.reader.named_queries import bind, tables_of
from warehouse.reader.readable import header_unit
from warehouse.reader.result import Row, for_people, open_result

if TYPE_CHECKING:
    import duckdb

    from warehouse.reader.named_queries import Query
    from warehouse.reader.value_text import Column

TextRow = Mapping[str, str | None]
"""A row by column, as readable text."""


@dataclass(frozen=True)
class Rows:
    """Result of a SELECT as exact text, with its units."""

    columns: Sequence[Column] = ()
    units: Sequence[str | None] = ()
    rows: Sequence[Row] = ()

    def of(self, row: Row, name: str) -> str:
        """Return a value of a row, empty if NULL."""
        return row[self._places[name]] or ""

    def by(self, *names: str) -> dict[tuple[str, ...], list[Row]]:
        """Return the rows grouped by some columns."""
        return grouped((tuple(self.of(row, name) for name in names), row) for row in self.rows)

    def text_rows(self, rows: Sequence[Row] | None = None) -> list[TextRow]:
        """Return rows by column with readable numbers, formatted alike within a column."""
        rows = self.rows if rows is None else rows
        columns = people_values(self.columns, self.units, rows)
        texts = [[None if text is None else text.strip() for text in column] for column in columns]
        return [dict(zip(self._places, values, strict=True)) for values in zip(*texts, strict=True)]

    @property
    def heads(self) -> list[tuple[str, bool]]:
        """Return the headers with units (if cells lack them), and True for numbers."""
        return [
            (column.name + header_unit(unit), column.kind == "number")
            for column, unit in zip(self.columns, self.units, strict=True)
        ]

    @property
    def names(self) -> list[str]:
        """Return the names of the columns."""
        return [column.name for column in self.columns]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {column.name: at for at, column in enumerate(self.columns)}


NO_ROWS = Rows()


def ask(connection: duckdb.DuckDBPyConnection, query: Query) -> Rows:
    """Return the rows of a site query; empty if the build lacks a table or column of the query."""
    from warehouse.base.startup import duckdb

    built = {model for (model,) in connection.execute("SELECT model FROM meta.models").fetchall()}
    if not tables_of(query.sql) <= built:
        return NO_ROWS
    try:
        [statement] = check_read_only(connection, query.sql.strip())
        result = for_people(open_result(connection, statement, bind(query, {})))
    except duckdb.BinderException:  # a project's own model of that name has other columns
        return NO_ROWS
    return Rows(result.columns, result.units or (), list(result.rows))
