"""A figure of the report: a query of `sql/report/`, a chart of its rows, and a sentence about them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warehouse.reader.citations import Citation, all_rows, of_rows
from warehouse.reader.guard import check_read_only
from warehouse.reader.named_queries import Query, bind, find_query
from warehouse.reader.query_errors import from_engine
from warehouse.reader.result import Row, open_result

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from warehouse.report.svg import Panel

Values = Mapping[str, Any]
"""A row by column: numbers as int or float, lists as lists, other values as text, NULL as None."""


@dataclass(frozen=True)
class Figure:
    """Query, chart and texts of a figure."""

    query: str
    """Name of the file in `sql/report/`."""
    title: Callable[[Sequence[Values]], str]
    """Function that returns the finding as a title."""
    says: Callable[[Sequence[Values]], str]
    """Function that returns one or two sentences about the rows, also the chart's text for screen readers."""
    subject: str
    """Subject in a few words: the title if there are no rows."""
    without: str
    """Line shown if the query returns no row or the chart has nothing to draw."""
    chart: Callable[[Sequence[Values]], list[Panel]] | None = None
    """Chart of the rows; None shows the table only."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    """Source tables for further reading."""
    further: str = ""
    """Command that shows more, without `warehouse`."""
    id: str = ""
    """Name of the figure if several figures share a query."""
    place: str = ""
    """Suffix for another cluster or an earlier hour; empty for the first."""
    is_folded: bool = False
    """True to show the table folded although it is short."""
    is_open: bool = False
    """True to show the table although it is long: its box scrolls."""

    @property
    def name(self) -> str:
        """Id in the page and file name."""
        return "-".join(filter(None, [self.id or self.query, plain(self.place)]))

    @property
    def hour(self) -> str:
        """Hour of the figure, empty if it has none."""
        return self.parameters.get("hour", "")


@dataclass(frozen=True)
class Section:
    """Figures that answer one question."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    without: str = ""
    """Line shown if there is no figure at all."""


@dataclass(frozen=True)
class Answer:
    """A figure with the rows of its query."""

    figure: Figure
    query: Query
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: list[Row]
    """Rows as exact text, as the table shows them."""
    citation: Citation

    @property
    def values(self) -> list[Values]:
        """Rows as values, for the chart and the sentence."""
        return [
            {
                name: _value(text, number=number)
                for name, text, number in zip(self.columns, row, self.numeric, strict=True)
            }
            for row in self.rows
        ]


def ask(
    connection: duckdb.DuckDBPyConnection, target: Path, figure: Figure, queries: Mapping[str, Query]
) -> Answer | None:
    """Run a figure's query; return None if the warehouse lacks a table of the query.

    Raises
    ------
    QueryError
        When the file holds no query, or the query fails.
    """
    from warehouse.base.startup import duckdb

    query = find_query(figure.query, queries)
    text = query.sql.strip()
    try:
        [statement] = check_read_only(connection, text)
        bound = bind(query, figure.parameters)
        result = open_result(connection, statement, bound)
        rows = all_rows(result)
    except duckdb.CatalogException:  # a custom project without the shipped models
        return None
    except duckdb.Error as error:
        raise from_engine(error, text, connection, path=query.path) from error
    names = [column.name for column in result.columns]
    return Answer(
        figure,
        query,
        tuple(names),
        tuple(column.kind == "number" or _is_numbers(column.type) for column in result.columns),
        rows,
        of_rows(connection, target, statement, bound, names, rows),
    )


def plain(text: str) -> str:
    """Return text for file names and anchors: characters other than letters, digits, `.` and `_` become `-`."""
    return "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._") else "-" for sign in text).strip("-.")


def _is_numbers(declared: str) -> bool:
    return declared.endswith("[]") and not declared.startswith(("VARCHAR", "TIMESTAMP", "BOOLEAN", "STRUCT"))


def _value(text: str | None, *, number: bool) -> object:
    if text is None or not number:
        return text
    try:
        return json.loads(text.replace("NULL", "null"))  # a list, as DuckDB shows it
    except ValueError:
        return None  # NaN, infinity
