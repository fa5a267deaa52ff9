"""DuckDB as an embedded engine of one thread.

The model's SELECT runs as written, with a prefix only on its first line, so that DuckDB's error positions apply to
the file. With one thread, rows keep their order. Parts are made in parallel by several such engines.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.base.sql_text import identifier, literal, qualified
from warehouse.base.startup import ASYNC_THREADS, complete, duckdb
from warehouse.engine.duckdb_errors import EngineError, engine_error
from warehouse.engine.sources import CsvFiles, Empty, Select, Source, casts, refuse_irregular, source_sql
from warehouse.engine.tree import Parsed, parsed
from warehouse.project.contract import Column

if TYPE_CHECKING:
    import pyarrow

Observer = Callable[[int], None]
"""Receiver of the peak of a finished statement's buffers in bytes, for `build --profile`."""


class DuckDBScratch:
    """Scratch catalog with one cursor.

    Parameters
    ----------
    raw_paths
        Raw files of the sources.
    observe
        Receiver of the memory of each statement, if any.
    """

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, raw_paths: Sequence[Path], observe: Observer | None = None
    ) -> None:
        self._cursor = cursor
        self._raw_paths = raw_paths
        self._observe = observe
        if observe:
            cursor.execute("PRAGMA enable_profiling = 'no_output'")

    def bind(self, sources: Iterable[tuple[str, Source]]) -> None:
        """Bind relations as views, or as empty tables."""
        sources = list(sources)
        schemas = {relation.partition(".")[0] for relation, _ in sources}
        statements = [f"CREATE SCHEMA IF NOT EXISTS {identifier(schema)}" for schema in sorted(schemas)]
        for relation, source in sources:
            name = qualified(relation)
            statements.append(
                f"CREATE TABLE {name} ({', '.join(f'{identifier(one.name)} {one.type}' for one in source.columns)})"
                if isinstance(source, Empty)
                else f"CREATE VIEW {name} AS {source_sql(source)}"
            )
        try:
            self._cursor.execute(";".join(statements))
        except duckdb.Error as error:
            raise engine_error(error, "", 0) from error

    def describe(self, sql: str) -> list[tuple[str, str]]:
        """Return (name, type) of each column of a SELECT without running it. Raises EngineError."""
        prefix = "SELECT * FROM ("
        try:
            self._cursor.execute(f"{prefix}{sql}\n) LIMIT 0")  # a line break, since the SELECT may end in a comment
        except duckdb.Error as error:
            found = engine_error(error, sql, len(prefix))
            if found.parsed.kind == "function":  # DuckDB suggests one name, often not the nearest
                rows = self.rows("SELECT DISTINCT function_name FROM duckdb_functions() ORDER BY 1")
                found.parsed = found.parsed._replace(candidates=tuple(str(name) for (name,) in rows))
            raise found from error
        return [(str(column[0]), str(column[1])) for column in self._cursor.description or []]

    def write(self, select: Select, path: Path, order: Sequence[str]) -> int:
        """Write the rows, cast to their contract and sorted by `order`, to Parquet; return their number.

        The file's bytes depend on the rows alone: one thread writes them, in their order or sorted. DuckDB declares a
        column as required if its plan knows that there is no NULL; after a union with nothing it never does.

        A dictionary of over 1,000 values saves no space and takes time to write. zstd level 1 takes a third less time
        than DuckDB's default, level 3, for files of the same size.
        """
        refuse_irregular(self._raw_paths)
        prefix = f"SELECT {casts(select.columns)} FROM ("
        # Not WHERE false: the optimizer would remove that SELECT, and columns would be declared as required again.
        nothing = f"SELECT {', '.join(f'CAST(NULL AS {column.type})' for column in select.columns)} FROM range(0)"
        by = f" ORDER BY {', '.join(map(identifier, order))}" if order else ""
        rows = f"{prefix}{select.sql}\n) UNION ALL {nothing}{by}"
        options = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, DICTIONARY_SIZE_LIMIT 1000"
        try:
            written = self._cursor.execute(f"COPY ({rows}) TO {literal(str(path))} ({options})")
            ((count,),) = written.fetchall()
        except duckdb.Error as error:
            # Names of columns are ASCII, so these characters are bytes.
            raise engine_error(error, select.sql, len("COPY (") + len(prefix)) from error
        self._report()
        return int(count)

    def write_arrow(
        self,
        rows: pyarrow.Table | pyarrow.RecordBatchReader,
        columns: Sequence[Column],
        path: Path,
        order: Sequence[str],
    ) -> int:
        """Write the rows of a Python model, in the same way as `write`."""
        complete()
        self._cursor.register("python_rows", rows)
        try:
            return self.write(Select("FROM python_rows", tuple(columns)), path, order)
        finally:
            self._cursor.unregister("python_rows")

    def table(self, relation: str, order: Sequence[str]) -> pyarrow.Table:
        """Return all rows of a relation for a Python model, sorted by `order`, or by all columns if it is empty."""
        complete()
        try:
            by = ", ".join(map(identifier, order)) or "ALL"
            rows = self._cursor.sql(f"SELECT * FROM {qualified(relation)} ORDER BY {by}").to_arrow_table()
        except duckdb.Error as error:
            raise engine_error(error, "", 0) from error
        self._report()
        return rows

    def stream(self, relation: str, rows: int) -> Iterator[pyarrow.RecordBatch]:
        """Yield all rows of a relation in batches, unsorted. Errors of DuckDB may come as Arrow exceptions."""
        from pyarrow import ArrowException

        complete()
        try:
            yield from self._cursor.sql(f"FROM {qualified(relation)}").to_arrow_reader(rows)
        except (duckdb.Error, ArrowException, OSError) as error:
            raise engine_error(error, "", 0) from error
        self._report()

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """Return the rows of a SELECT of the runner, such as a check. Raises EngineError."""
        refuse_irregular(self._raw_paths)
        try:
            rows = self._cursor.execute(sql).fetchall()
        except duckdb.Error as error:
            raise engine_error(error, sql, 0) from error
        self._report()
        return rows

    def _report(self) -> None:
        """Report the memory of the last statement, whose rows have been fetched."""
        if self._observe:
            found = json.loads(self._cursor.get_profiling_information("json"))
            self._observe(int(found.get("system", {}).get("peak_buffer_memory") or 0))


class DuckDBEngine:
    """In-process DuckDB instance of one thread."""

    name = "duckdb"
    version = duckdb.__version__

    def __init__(self, *, memory_bytes: int, spill: Path, observe: Observer | None = None) -> None:
        self._instance = duckdb.connect(
            config={
                "threads": 1,
                "memory_limit": f"{memory_bytes // 2**20}MiB",  # DuckDB refuses a number without a unit
                "temp_directory": str(spill),
                "autoinstall_known_extensions": False,  # a build uses no network
                "autoload_known_extensions": False,
                "errors_as_json": True,  # as text, an error has no byte offset
                "async_threads": ASYNC_THREADS,
            }
        )
        self._observe = observe
        self._running: duckdb.DuckDBPyConnection | None = None

    def parse_all(self, selects: Sequence[str]) -> list[Parsed | EngineError]:
        """Parse SELECTs, all in one query, which costs more time than the parsing; an invalid one gives its error."""
        query = "SELECT json_serialize_sql(written) FROM (SELECT unnest(?::VARCHAR[]) AS written)"
        try:
            rows = self._instance.execute(query, [list(selects)]).fetchall()
        except duckdb.Error as error:
            if len(selects) == 1:
                return [engine_error(error, selects[0], 0)]
            return [one for sql in selects for one in self.parse_all([sql])]
        return [parsed(str(row[0])) for row in rows]

    @contextmanager
    def scratch(self, sources: Mapping[str, Source]) -> Iterator[DuckDBScratch]:
        """Open an in-memory catalog with a view for each relation (`schema.name` -> source), one at a time."""
        cursor = self._running = self._instance.cursor()
        cursor.execute("ATTACH ':memory:' AS scratch; USE scratch")
        raw = (source for source in sources.values() if isinstance(source, CsvFiles))
        scratch = DuckDBScratch(cursor, [path for source in raw for path in source.paths], self._observe)
        try:
            scratch.bind(sorted(sources.items(), key=lambda item: isinstance(item[1], Select)))  # they read the others
            yield scratch
        finally:
            self._running = None
            cursor.close()
            self._instance.execute("DETACH scratch")

    def connection(self) -> duckdb.DuckDBPyConnection:
        """Return a new connection to the instance, to write a catalog with. The caller closes it."""
        return self._instance.cursor()

    def interrupt(self) -> None:
        """Interrupt the running statement, from another thread; it fails with EngineError."""
        running = self._running  # its own thread may unset it meanwhile
        if running is not None:
            running.interrupt()

    def close(self) -> None:
        """Close the instance."""
        self._instance.close()
