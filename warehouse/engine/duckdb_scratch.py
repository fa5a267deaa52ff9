"""A scratch of DuckDB: relations by name, SELECTs that are described and run, and parts that are written."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.base.sql_text import identifier, literal, qualified
from warehouse.base.startup import complete, duckdb, pandas_left_out
from warehouse.engine import duckdb_errors
from warehouse.engine.base import Empty, EngineError, Parts, Select, Source
from warehouse.engine.duckdb_sql import casts, declared, source_sql

if TYPE_CHECKING:
    import pyarrow

    from warehouse.kernels import Arrays
    from warehouse.project.contract import Column

_NUMBERS = itertools.count(1)
_HELD_ROWS = 1_000_000
"""Parts of more rows are read from their files."""


class DuckDBScratch:
    """A cursor inside one scratch catalog, and one more for what a kernel reads while its rows are written."""

    def __init__(
        self, opened: Callable[[], duckdb.DuckDBPyConnection], held: dict[Path, str] | None, gone: set[Path]
    ) -> None:
        self._cursor = opened()
        self._opened = opened
        self._held = held
        self._gone = gone
        self._written = ""
        self._bound: dict[str, Source] = {}
        self._schemas: set[str] = set()
        self.is_whole = True
        """Whether it is known what is bound in it."""

    def add(self, relation: str, source: Source) -> None:
        """Bind one more relation."""
        self.bind([(relation, source)])

    def bind(self, sources: Iterable[tuple[str, Source]]) -> None:
        """Bind relations: as empty tables, or as views; one that is bound to the same source stays."""
        changed = {
            relation: source
            for relation, source in sources
            if self._bound.get(relation) != source
            or (isinstance(source, Parts) and not self._gone.isdisjoint(source.paths))
        }
        schemas = {relation.partition(".")[0] for relation in changed} - self._schemas
        statements = [f"CREATE SCHEMA IF NOT EXISTS {identifier(schema)}" for schema in sorted(schemas)]
        for relation, source in changed.items():
            statements += self._statements(relation, source)
        try:
            self._cursor.execute(";".join(statements))
        except duckdb.Error as error:
            self.is_whole = False
            raise engine_error(error, "", 0) from error
        self._bound |= changed
        self._schemas |= schemas

    def _statements(self, relation: str, source: Source) -> Iterator[str]:
        name, bound = qualified(relation), self._bound.pop(relation, None)
        if bound is not None:
            yield f"DROP {'TABLE' if isinstance(bound, Empty) else 'VIEW'} {name}"
        if isinstance(source, Empty):
            yield f"CREATE TABLE {name} ({declared(source.columns)})"
        else:
            yield f"CREATE VIEW {name} AS {source_sql(source, self._held)}"

    @cached_property
    def _beside(self) -> duckdb.DuckDBPyConnection:
        return self._opened()

    def _cursors(self) -> Iterator[duckdb.DuckDBPyConnection]:
        yield self._cursor
        if "_beside" in vars(self):
            yield self._beside

    def tell_last(self) -> None:
        """Have observed cursors tell of their last statement."""
        for cursor in self._cursors():
            cursor.tell_last()  # type: ignore[attr-defined]  # Observed, which stands in for a cursor

    def interrupt(self) -> None:
        """End what runs, from another thread."""
        for cursor in self._cursors():
            cursor.interrupt()

    def describe(self, sql: str) -> list[tuple[str, str]]:
        """Bind the SELECT and name its columns, without running it."""
        prefix = "SELECT * FROM ("
        try:
            self._cursor.execute(f"{prefix}{sql}\n) LIMIT 0")
        except duckdb.Error as error:
            found = engine_error(error, sql, len(prefix))
            if found.kind == "function":  # DuckDB offers one name, seldom the nearest
                found.candidates = tuple(
                    str(row[0]) for row in self.rows("SELECT DISTINCT function_name FROM duckdb_functions() ORDER BY 1")
                )
            raise found from error
        return [(str(column[0]), str(column[1])) for column in self._cursor.description or []]

    def write(self, select: Select, path: Path, order: Sequence[str]) -> int:
        """COPY the SELECT to Parquet: zstd, rows in the given order.

        The sort also cuts the rows into equal chunks, which the bytes depend on: that makes them the same at any
        number of threads. Rows that are not sorted need one thread for that.
        """
        prefix = f"SELECT {casts(select.columns)} FROM ("
        by = f" ORDER BY {', '.join(identifier(name) for name in order)}" if order else ""
        if self._held is not None:
            table = f"memory.main.held_{next(_NUMBERS)}"
            create = f"CREATE TABLE {table} AS "
            try:
                self._cursor.execute(f"{create}{prefix}{select.sql}\n){by}")
            except duckdb.Error as error:
                raise engine_error(error, select.sql, len(create) + len(prefix)) from error
            rows = _copy(self._cursor, f"FROM {table}", path, 0, "", _types(select.columns))
            if rows <= _HELD_ROWS:
                self._written = table
            else:
                self._cursor.execute(f"DROP TABLE {table}")
            return rows
        return _copy(
            self._cursor, f"{prefix}{select.sql}\n){by}", path, len(prefix), select.sql, _types(select.columns)
        )

    def _write_nothing(self, columns: Sequence[Column], path: Path) -> int:
        """Write a part without rows."""
        return _copy(self._cursor, source_sql(Empty(tuple(columns))), path, 0, "", _types(columns))

    def hold(self, path: Path) -> None:
        """Say where the rows that were written last have their file."""
        if self._held is not None and self._written:
            self._held[path], self._written = self._written, ""

    def arrays(self, sql: str) -> Arrays:
        """Fetch the columns as numpy arrays."""
        try:
            return self._beside.execute(sql).fetchnumpy()
        except duckdb.Error as error:
            raise engine_error(error, sql, 0) from error

    def batches(self, sql: str, rows: int) -> Iterator[pyarrow.RecordBatch]:
        """Stream the rows as Arrow, which has errors of its own for what DuckDB finds on the way."""
        from pyarrow import ArrowException

        complete()
        try:
            yield from self._beside.sql(sql).to_arrow_reader(rows)
        except (duckdb.Error, ArrowException, OSError) as error:
            raise engine_error(error, "", 0) from error

    def write_arrays(self, chunks: Iterable[Arrays], columns: Sequence[Column], path: Path) -> int:
        """COPY the chunks as they come: nested in it run the SELECTs that they are made of."""
        from warehouse.engine.arrow_batches import Stream

        with pandas_left_out():
            stream = Stream(chunks, [column.name for column in columns])
            reader = stream.reader()
            if reader is None:
                return self._write_nothing(columns, path)
            complete()
            self._cursor.register("kernel_rows", reader)
            try:
                return _copy(self._cursor, f"SELECT {casts(columns)} FROM kernel_rows", path, 0, "", _types(columns))
            except EngineError:
                if stream.failure is not None:
                    raise stream.failure from None
                raise
            finally:
                self._cursor.unregister("kernel_rows")

    def table(self, relation: str, order: Sequence[str]) -> pyarrow.Table:
        """All rows of a relation in this order, which one part of a model lies in already."""
        bound = self._bound.get(relation)
        lies_so = isinstance(bound, Parts) and len(bound.paths) == 1 and order
        by = "" if lies_so else f" ORDER BY {', '.join(map(identifier, order)) or 'ALL'}"
        complete()
        try:
            return self._cursor.sql(f"SELECT * FROM {qualified(relation)}{by}").to_arrow_table()
        except duckdb.Error as error:
            raise engine_error(error, "", 0) from error

    def write_arrow(self, rows: pyarrow.Table, columns: Sequence[Column], path: Path, order: Sequence[str]) -> int:
        """COPY the rows, cast and sorted as those of a SELECT are."""
        by = ", ".join(identifier(name) for name in order)
        complete()
        self._cursor.register("python_rows", rows)
        try:
            select = f"SELECT {casts(columns)} FROM python_rows ORDER BY {by}"
            return _copy(self._cursor, select, path, 0, "", _types(columns))
        finally:
            self._cursor.unregister("python_rows")

    def rows(self, sql: str, limit: int | None = None) -> list[tuple[object, ...]]:
        """Run a SELECT and fetch."""
        try:
            self._cursor.execute(sql)
            return self._cursor.fetchall() if limit is None else self._cursor.fetchmany(limit)
        except duckdb.Error as error:
            raise engine_error(error, sql, 0) from error


def copy_rows(cursor: duckdb.DuckDBPyConnection, select: str, path: Path, types: Iterable[str]) -> int:
    """Write the rows of a SELECT as a part; their number. Raises duckdb.Error."""
    cursor.execute(f"COPY ({select}) TO {literal(str(path))} ({_parquet(types)})")
    row = cursor.fetchone()
    assert row is not None
    return int(row[0])


def _copy(
    cursor: duckdb.DuckDBPyConnection, select: str, path: Path, prefix: int, sql: str, types: Iterable[str]
) -> int:
    """The same, with errors at their place in the author's SELECT, which starts after a prefix."""
    try:
        return copy_rows(cursor, select, path, types)
    except duckdb.Error as error:
        raise engine_error(error, sql, len("COPY (") + prefix) from error


def _parquet(types: Iterable[str]) -> str:
    """How parts are written; without dictionaries where no column is text: of numbers they save nothing.

    zstd at level 1 takes a third less time than at 3, DuckDB's own, for files of the same size.
    """
    has_text = any(kind.startswith("VARCHAR") for kind in types)
    dictionaries = "" if has_text else ", DICTIONARY_SIZE_LIMIT 1"
    return f"FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1{dictionaries}"


def _types(columns: Iterable[Column]) -> list[str]:
    return [column.type for column in columns]


def engine_error(error: Exception, sql: str, prefix: int) -> EngineError:
    """Return DuckDB's error as the engine's, with its place in `sql`, before which `prefix` bytes were sent."""
    said = duckdb_errors.read(error)
    offset = None if said.position is None else said.position - prefix
    if offset is not None and not 0 <= offset <= len(sql.encode()):
        offset = None
    return EngineError(
        said.message, offset=offset, name=said.name, candidates=said.candidates, kind=said.kind, table=said.table
    )
