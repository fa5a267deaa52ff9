"""A figure of the report: a query of `sql/report/`, a chart of its rows, and a sentence that says what they show."""

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
"""A row by column: numbers as int or float, lists as lists, all else as text; None is NULL."""


@dataclass(frozen=True)
class Figure:
    """What is asked, and how it is shown."""

    query: str
    """The name of its file in `sql/report/`."""
    title: Callable[[Sequence[Values]], str]
    """What was found, in a line."""
    says: Callable[[Sequence[Values]], str]
    """What the rows show, in a sentence or two; also the chart's text for those who do not see it."""
    subject: str
    """What it is about, in a few words: the title where there are no rows."""
    without: str
    """The line that stands there when the query gives no row, or the chart nothing to draw."""
    chart: Callable[[Sequence[Values]], list[Panel]] | None = None
    """None: the table alone."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    """Where the numbers are from, for those who look further."""
    further: str = ""
    """A command that shows more, without `warehouse`."""
    id: str = ""
    """Where one query has several figures: the name of this one."""
    place: str = ""
    """What tells it from the same figure of another cluster or an earlier hour; empty in the first."""

    @property
    def name(self) -> str:
        """Its id in the page and the name of its files."""
        return "-".join(filter(None, [self.id or self.query, plain(self.place)]))

    @property
    def hour(self) -> str:
        """The hour that it is about, where it is about one."""
        return self.parameters.get("hour", "")


@dataclass(frozen=True)
class Section:
    """Figures that answer one question."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    without: str = ""
    """The line that stands there when there is no figure at all."""


@dataclass(frozen=True)
class Answer:
    """A figure with the rows that its query gave."""

    figure: Figure
    query: Query
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: list[Row]
    """As exact text, as the table shows them."""
    citation: Citation

    @property
    def values(self) -> list[Values]:
        """The same rows as values, for the chart and the sentence."""
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
    """Run a figure's query, once; None where the warehouse has not the tables that it reads.

    Raises
    ------
    QueryError
        When the query is none, or fails.
    """
    from warehouse.base.startup import duckdb

    query = find_query(figure.query, queries)
    text = query.sql.strip()
    try:
        [statement] = check_read_only(connection, text)
        bound = bind(query, figure.parameters)
        result = open_result(connection, statement, bound)
        rows = all_rows(result)
    except duckdb.CatalogException:  # a project of its own, without the shipped models
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
    """A text as part of a name of files and places: other signs than letters, digits, `.` and `_` become `-`."""
    return "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._") else "-" for sign in text).strip("-.")


def _is_numbers(declared: str) -> bool:
    return declared.endswith("[]") and not declared.startswith(("VARCHAR", "TIMESTAMP", "BOOLEAN", "STRUCT"))


def _value(text: str | None, *, number: bool) -> object:
    if text is None or not number:
        return text
    try:
        return json.loads(text.replace("NULL", "null"))  # a list, as the engine shows it
    except ValueError:
        return None  # nan, inf
