"""A figure of the report: a query of `sql/report/` with its texts, and a chart of its rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from warehouse.base.startup import duckdb
from warehouse.reader.citations import Citation, cited_answer
from warehouse.reader.guard import check_read_only
from warehouse.reader.named_queries import Query, bind, find_query, tables_of
from warehouse.reader.query_errors import from_engine
from warehouse.reader.result import Column, Row
from warehouse.report.charts import Panel, Values

TEXTS = ("title", "conclusion")
"""Columns with texts about all rows. A second figure of a query has a prefix: `spines_title`."""


@dataclass(frozen=True)
class Figure:
    """Query and chart of a figure. Its title and conclusion are columns of the query, equal in all rows."""

    query: str
    """Name of the file in `sql/report/`."""
    subject: str
    """Subject in a few words: the title if there are no rows."""
    without: str
    """Line shown if the query returns no row or the chart has nothing to draw."""
    chart: Callable[[Sequence[Values]], list[Panel]] | None = None
    """Chart of the rows; None shows the table only."""
    further: str = ""
    """Command that shows more, without `warehouse`; a named query gets the hour."""
    id: str = ""
    """Name of the figure if several figures share a query, and with `_` the prefix of its texts."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    place: str = ""
    """Suffix for another cluster or an earlier hour; empty for the first."""
    is_open: bool = False
    """True to show the table although it is long: its box scrolls."""
    each: str = ""
    """`hour` for a figure of each cluster and hour, `cluster` for one of each cluster; empty for a single one."""

    @property
    def name(self) -> str:
        """Id in the page and file name."""
        return "-".join(filter(None, [self.id or self.query, plain(self.place)]))

    @property
    def hour(self) -> str:
        """Hour of the figure, empty if it has none."""
        return self.parameters.get("hour", "")

    @property
    def command(self) -> str:
        """Command that shows more, for the figure's hour."""
        is_named = self.further.startswith("sql -q ") and self.hour
        return f"{self.further} --hour {self.hour[:13].replace(' ', 'T')}:00" if is_named else self.further


@dataclass(frozen=True)
class Section:
    """Figures that answer one question."""

    name: str
    title: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Answer:
    """A figure with the rows of its query."""

    figure: Figure
    query: Query
    columns: tuple[str, ...]
    """Columns of the table: all but the texts about all rows."""
    numeric: tuple[bool, ...]
    rows: list[Row]
    """Rows as exact text, as the table shows them."""
    citation: Citation
    texts: Mapping[str, str | None] = field(default_factory=dict)

    def text(self, name: str, of: Figure) -> str:
        """Return the title or the conclusion of a figure of this query."""
        return self.texts.get(f"{of.id}_{name}") or self.texts.get(name) or ""

    @property
    def tables(self) -> list[str]:
        """Tables that the query reads."""
        return sorted(tables_of(self.query.sql))

    @property
    def values(self) -> list[Values]:
        """Rows as values, for the chart."""
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
    query = find_query(figure.query, queries)
    text = query.sql.strip()
    try:
        [statement] = check_read_only(connection, text)
        citation, columns, rows = cited_answer(connection, target, statement, bind(query, figure.parameters))
    except duckdb.CatalogException:  # a custom project without the shipped models
        return None
    except duckdb.Error as error:
        raise from_engine(error, text, connection, path=query.path) from error
    names = [column.name for column in columns]
    texts = _texts(names)
    shown = [at for at, name in enumerate(names) if name not in texts]
    return Answer(
        figure,
        query,
        tuple(names[at] for at in shown),
        tuple(_is_number(columns[at]) for at in shown),
        [tuple(row[at] for at in shown) for row in rows],
        citation,
        {name: rows[0][at] for at, name in enumerate(names) if rows and name in texts},
    )


def plain(text: str) -> str:
    """Return text for file names and anchors: characters other than letters, digits, `.` and `_` become `-`."""
    return "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._") else "-" for sign in text).strip("-.")


def _texts(columns: Sequence[str]) -> set[str]:
    """Return the columns with texts about all rows: a title with its conclusion.

    >>> sorted(_texts(["job_title", "title", "conclusion", "spines_title", "spines_conclusion"]))
    ['conclusion', 'spines_conclusion', 'spines_title', 'title']
    """
    title, conclusion = ({one.removesuffix(text) for one in columns if one.endswith(text)} for text in TEXTS)
    return {f"{prefix}{text}" for prefix in title & conclusion for text in TEXTS}


def _is_number(column: Column) -> bool:
    """Return True for numbers and lists of numbers."""
    is_list = column.type.endswith("[]") and not column.type.startswith(("VARCHAR", "TIMESTAMP", "BOOLEAN", "STRUCT"))
    return is_list or column.kind == "number"


def _value(text: str | None, *, number: bool) -> object:
    if text is None or not number:
        return text
    try:
        # From the exact text, so that chart and table show one number.
        return json.loads(text.replace("NULL", "null"))  # a list, as DuckDB shows it
    except ValueError:
        return None  # NaN, infinity
