"""Scratch catalog of DuckDB: binds relations, runs SELECTs, writes parts."""

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
from warehouse.engine.duckdb_sql import casts, declared, refuse_irregular, source_sql

if TYPE_CHECKING:
    import pyarrow

    from warehouse.kernels import Arrays
    from warehouse.project.contract import Column

_NUMBERS = itertools.count(1)
_HELD_ROWS = 1_000_000
"""Maximum number of rows of a part that is kept in memory."""


class DuckDBScratch:
    """Scratch catalog with one cursor, and a second one for kernels, which read and write at the same time."""

    def __init__(
        self,
        opened: Callable[[], duckdb.DuckDBPyConnection],
        held: dict[str, str] | None,
        gone: set[str],
        *,
        keeps: bool,
    ) -> None:
        self._cursor = opened()
        self._opened = opened
        self._held = held
        self._keeps = keeps
        self._gone = gone
        self._written = ""
        self._bound: dict[str, Source] = {}
        self._schemas: set[str] = set()
        self.raw_paths: tuple[Path, ...] = ()
        """Raw files of the sources in use."""
        self.is_whole = True
        """False after a failed binding: the bound relations are unknown, so the scratch is not reused."""

    def add(self, relation: str, source: Source) -> None:
        """Bind one more relation."""
        self.bind([(relation, source)])

    def bind(self, sources: Iterable[tuple[str, Source]]) -> None:
        """Bind relations as views (or as empty tables), except those already bound to the same source."""
        changed = {
            relation: source
            for relation, source in sources
            if self._bound.get(relation) != source
            or (isinstance(source, Parts) and not self._gone.isdisjoint(map(str, source.paths)))
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

    def report_last(self) -> None:
        """Report the last statement of each observed cursor."""
        for cursor in self._cursors():
            cursor.report_last()  # type: ignore[attr-defined]  # Observed, which stands in for a cursor

    def interrupt(self) -> None:
        """Interrupt running statements, from another thread."""
        for cursor in self._cursors():
            cursor.interrupt()

    def describe(self, sql: str) -> list[tuple[str, str]]:
        """Return the columns of a SELECT without running it."""
        prefix = "SELECT * FROM ("
        try:
            self._cursor.execute(f"{prefix}{sql}\n) LIMIT 0")
        except duckdb.Error as error:
            found = engine_error(error, sql, len(prefix))
            if found.kind == "function":  # DuckDB suggests one name, often not the nearest
                found.candidates = tuple(
                    str(row[0]) for row in self.rows("SELECT DISTINCT function_name FROM duckdb_functions() ORDER BY 1")
                )
            raise found from error
        return [(str(column[0]), str(column[1])) for column in self._cursor.description or []]

    def write(self, select: Select, path: Path, order: Sequence[str]) -> int:
        """COPY the SELECT to Parquet (zstd), sorted by `order`.

        The sort also cuts the rows into equal chunks, on which the bytes depend. So the file is byte-identical for any
        number of threads. Unsorted rows need one thread to be deterministic.
        """
        refuse_irregular(self.raw_paths)
        prefix = f"SELECT {casts(select.columns)} FROM ("
        by = f" ORDER BY {', '.join(identifier(name) for name in order)}" if order else ""
        if self._keeps:
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
        """Write an empty part."""
        return _copy(self._cursor, source_sql(Empty(tuple(columns))), path, 0, "", _types(columns))

    def hold(self, path: str) -> None:
        """Register the final path of the rows written last."""
        if self._held is not None and self._written:
            self._held[path], self._written = self._written, ""

    def arrays(self, sql: str) -> Arrays:
        """Fetch the columns as NumPy arrays."""
        try:
            return self._beside.execute(sql).fetchnumpy()
        except duckdb.Error as error:
            raise engine_error(error, sql, 0) from error

    def batches(self, sql: str, rows: int) -> Iterator[pyarrow.RecordBatch]:
        """Stream the rows as Arrow batches. Errors of DuckDB may come as Arrow exceptions."""
        from pyarrow import ArrowException

        complete()
        try:
            yield from self._beside.sql(sql).to_arrow_reader(rows)
        except (duckdb.Error, ArrowException, OSError) as error:
            raise engine_error(error, "", 0) from error

    def write_arrays(self, chunks: Iterable[Arrays], columns: Sequence[Column], path: Path) -> int:
        """COPY the chunks of a kernel while the kernel's own SELECTs run on the second cursor."""
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
        """Fetch all rows of a relation; a single part of a model is already sorted."""
        bound = self._bound.get(relation)
        lies_so = isinstance(bound, Parts) and len(bound.paths) == 1 and order
        by = "" if lies_so else f" ORDER BY {', '.join(map(identifier, order)) or 'ALL'}"
        complete()
        try:
            return self._cursor.sql(f"SELECT * FROM {qualified(relation)}{by}").to_arrow_table()
        except duckdb.Error as error:
            raise engine_error(error, "", 0) from error

    def write_arrow(self, rows: pyarrow.Table, columns: Sequence[Column], path: Path, order: Sequence[str]) -> int:
        """COPY the rows, cast and sorted like those of a SELECT."""
        by = ", ".join(identifier(name) for name in order)
        complete()
        self._cursor.register("python_rows", rows)
        try:
            select = f"SELECT {casts(columns)} FROM python_rows ORDER BY {by}"
            return _copy(self._cursor, select, path, 0, "", _types(columns))
        finally:
            self._cursor.unregister("python_rows")

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """Run a SELECT and fetch its rows."""
        refuse_irregular(self.raw_paths)
        try:
            self._cursor.execute(sql)
            return self._cursor.fetchall()
        except duckdb.Error as error:
            raise engine_error(error, sql, 0) from error


def copy_rows(cursor: duckdb.DuckDBPyConnection, select: str, path: Path, types: Iterable[str]) -> int:
    """Write the rows of a SELECT as a part; return their number. Raises duckdb.Error."""
    cursor.execute(f"COPY ({select}) TO {literal(str(path))} ({_parquet(types)})")
    row = cursor.fetchone()
    assert row is not None
    return int(row[0])


def _copy(
    cursor: duckdb.DuckDBPyConnection, select: str, path: Path, prefix: int, sql: str, types: Iterable[str]
) -> int:
    """Call `copy_rows`; map errors to their place in the model's SELECT, which starts after a prefix."""
    try:
        return copy_rows(cursor, select, path, types)
    except duckdb.Error as error:
        raise engine_error(error, sql, len("COPY (") + prefix) from error


def _parquet(types: Iterable[str]) -> str:
    """Return the Parquet options. Dictionaries are off without text columns: for numbers they save no space.

    zstd level 1 takes a third less time than DuckDB's default, level 3, for files of the same size.
    """
    has_text = any(kind.startswith("VARCHAR") for kind in types)
    dictionaries = "" if has_text else ", DICTIONARY_SIZE_LIMIT 1"
    return f"FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1{dictionaries}"


def _types(columns: Iterable[Column]) -> list[str]:
    return [column.type for column in columns]


def engine_error(error: Exception, sql: str, prefix: int) -> EngineError:
    """Return an EngineError for DuckDB's error, with its byte offset in `sql`, which was sent after `prefix` bytes."""
    found = duckdb_errors.read(error)
    offset = None if found.position is None else found.position - prefix
    if offset is not None and not 0 <= offset <= len(sql.encode()):
        offset = None
    return EngineError(
        found.message, offset=offset, name=found.name, candidates=found.candidates, kind=found.kind, table=found.table
    )
