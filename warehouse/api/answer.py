"""Answer of a query in Python: a DuckDB relation with what it needs to be shown and cited; tables in a notebook."""

from __future__ import annotations

import functools
import io
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

from warehouse.base.errors import QueryError
from warehouse.base.startup import complete, duckdb
from warehouse.base.text import error_text, wrapped
from warehouse.reader.connection import refuse_damage
from warehouse.reader.query_errors import from_engine
from warehouse.reader.result import column_meanings, open_result
from warehouse.reader.text_table import for_reading, write_table
from warehouse.reader.user_query import no_rows, unknown_parameters

if TYPE_CHECKING:
    from warehouse.reader.guard import Statement
    from warehouse.reader.request import Request

    # For editors: `__getattr__` finds all that a relation has.
    Relation = duckdb.DuckDBPyRelation
else:
    Relation = object

Item = TypeVar("Item")
SHOWN = 40
"""Rows that a terminal or a notebook shows."""


class LazyRows(Relation):
    """DuckDB relation whose errors are sentences, and so are those of the relations that its methods give.

    `.relation` is the relation itself.
    """

    def __init__(self, relation: duckdb.DuckDBPyRelation, told: Callable[[Exception], QueryError]) -> None:
        self.relation, self._told = relation, told

    def __getattr__(self, name: str) -> Any:
        if name == "relation":  # its constructor failed
            raise AttributeError(name)
        with self._sentences():
            return self._wrapped(getattr(self.relation, name))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *dir(self.relation)]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        with self._sentences():
            yield from self.relation.iter_rows()

    def __repr__(self) -> str:
        try:
            return repr(self.relation)
        except duckdb.Error as error:
            return error_text(self._told(error))

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Raise errors of the engine as QueryError."""
        try:
            yield
        except duckdb.Error as error:
            # A notebook would print the engine's traceback first.
            raise self._told(error) from None

    def _wrapped(self, found: Any) -> Any:
        if type(found) is type(self.relation):
            return LazyRows(found, self._told)
        if not callable(found):
            return found

        @functools.wraps(found)
        def method(*given: Any, **named: Any) -> Any:
            plain = (one.relation if isinstance(one, LazyRows) else one for one in given)
            with self._sentences():
                return self._wrapped(found(*plain, **named))

        return method


class Answer(LazyRows):
    """Rows of a query: a DuckDB relation that knows its query, its units and why it is empty.

    It has each attribute of a `duckdb.DuckDBPyRelation`: `.fetchall()` (a list of tuples), `.df()` (pandas), `.pl()`
    (polars), `.arrow()`, `.filter(...)`, `.show()`; `.relation` is the relation itself. `.df()` and `.pl()` need that
    library. `for row in answer` gives tuples. Values are exact: bytes are whole numbers in B, rates are in bit/s,
    durations in s, shares are fractions of 1, and timestamps are UTC without a zone. A terminal and a notebook show the
    first 40 rows with readable numbers and units, or the reason why there are none; a notebook shows meanings, too.
    Rows that cannot be computed, such as a text that is no number, raise WarehouseError when they are fetched; the
    reader that `.arrow()` gives raises an error of Arrow.
    """

    def __init__(
        self,
        checking: duckdb.DuckDBPyConnection,
        connection: duckdb.DuckDBPyConnection,
        request: Request,
        values: Mapping[str, object],
    ) -> None:
        """Check and bind a query.

        Parameters
        ----------
        checking
            Connection whose errors have places: opened with `json_errors`.
        connection
            Connection of the same database for the rows: errors of its relations are plain text.
        request
            Question, with parameters as the user gave them.
        values
            Values of its parameters.
        """
        sql, self.statement = request.text(), request.statement(checking, values)
        self.values = {name: values[name] for name in self.statement.parameters}
        refuse_damage(request.target, self.statement.tables)
        # Only answers in Python need all of the package; commands start faster without.
        complete()
        self._connection, self.asked = connection, request
        try:
            relation = connection.sql(self.statement.text, params=self.values)
        except duckdb.Error as error:
            raise _placed(error, sql, self.statement, self.values, checking) from None
        super().__init__(relation, lambda error: _sentence(error, sql, checking))
        not_loaded = list(unknown_parameters(checking, request.query, request.parameters)) if request.query else []
        # A query may also answer for a name that no file has, so only an empty answer is an error.
        if not_loaded and not self.limit(1).fetchall():
            raise QueryError("; ".join(not_loaded))

    @property
    def units(self) -> dict[str, str | None]:
        """Unit by column: `B`, `bit/s`, `s`, `share` (of 1), `count`, another one of a contract, or None."""
        return {name: unit for name, (unit, _) in self._described().items()}

    @property
    def meanings(self) -> dict[str, str]:
        """Meaning by column, where the contracts of the tables of the query have one."""
        return {name: about for name, (_, about) in self._described().items() if about}

    def _described(self) -> dict[str, tuple[str | None, str]]:
        names = self.relation.columns
        return dict(zip(names, column_meanings(self._connection.cursor(), self.statement.tables, names), strict=True))

    def __repr__(self) -> str:
        """Return the first rows as `warehouse sql` prints them on a terminal, or why there are none."""
        out, width = io.StringIO(), shutil.get_terminal_size().columns
        cursor = self._connection.cursor()
        try:
            result = open_result(cursor, self.statement, self.values)
            write_table(result, out, width=width, limit=SHOWN, query=self.asked.query, all_by=".columns")
            if not result.count:
                out.writelines(wrapped(no_rows(cursor, self.statement, self.asked), width))
            elif next(result.rows, None):
                out.write(f"the first {SHOWN} rows")
        except duckdb.Error as error:
            return error_text(self._told(error), width)
        return out.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        """Return the first rows with units and meanings for a notebook, or why there are none."""
        try:
            return self._page()
        except duckdb.Error as error:
            return f"<pre>{escape(error_text(self._told(error)))}</pre>"

    def _page(self) -> str:
        cursor = self._connection.cursor()
        result = open_result(cursor, self.statement, self.values)
        names = [one.name for one in result.columns]
        meanings = column_meanings(self._connection.cursor(), self.statement.tables, names)
        rows = list(result.take(SHOWN))
        above = f"the first {SHOWN} rows" if next(result.rows, None) else ""
        if not rows:
            above = no_rows(cursor, self.statement, self.asked)
        columns, texts = for_reading(result.columns, [unit for unit, _ in meanings], rows)
        headers = [(one.name, about) for one, (_, about) in zip(columns, meanings, strict=True)]
        return html_table(headers, texts, above=above)


def _placed(
    error: duckdb.Error,
    sql: str,
    statement: Statement,
    values: Mapping[str, object],
    checking: duckdb.DuckDBPyConnection,
) -> QueryError:
    """Return the error of a statement that cannot be bound: with its place, which relations do not say."""
    try:
        checking.execute(statement.text, dict(values))
    except duckdb.Error as again:
        error = again
    return from_engine(error, sql, checking, offset=statement.start)


def _sentence(error: Exception, sql: str, connection: duckdb.DuckDBPyConnection) -> QueryError:
    """Return the error of rows that cannot be computed."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return QueryError("the query needs more memory than the machine allows", hint="aggregate, or ask for less")
    return from_engine(error, sql, connection)


def html_table(headers: Sequence[tuple[str, str]], rows: Iterable[Sequence[object]], *, above: str = "") -> str:
    """Return a table as HTML: a header for each (name, meaning), and a text above it. All text is escaped.

    >>> html_table([("bytes", "received")], [["6.67 TB"]])
    '<table><tr><th>bytes<br><small>received</small></th></tr><tr><td>6.67 TB</td></tr></table>'
    """
    names = "".join(
        f"<th>{escape(name)}{f'<br><small>{escape(meaning)}</small>' if meaning else ''}</th>"
        for name, meaning in headers
    )
    cells = "".join(f"<tr>{''.join(f'<td>{escape(_text(value))}</td>' for value in row)}</tr>" for row in rows)
    return (f"<p>{escape(above)}</p>" if above else "") + f"<table><tr>{names}</tr>{cells}</table>"


def _text(value: object) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value).strip()


class Rows(list[Item]):
    """List of findings or tables, which a terminal and a notebook show as a table of these fields."""

    def __init__(self, items: Iterable[Item], fields: Sequence[str]) -> None:
        super().__init__(items)
        self._fields = fields

    def __repr__(self) -> str:
        width = shutil.get_terminal_size().columns
        lines = (" · ".join(filter(None, map(_text, row))) for row in self._rows())
        return "".join(part for line in lines for part in wrapped(line, width)).rstrip("\n")

    def _repr_html_(self) -> str:
        return html_table([(field, "") for field in self._fields], self._rows())

    def _rows(self) -> list[list[Any]]:
        return [[getattr(one, field) for field in self._fields] for one in self]
