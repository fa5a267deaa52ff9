"""DuckDB as an embedded engine.

The model's SELECT runs as written, with a prefix only on its first line, so that DuckDB's error positions apply to
the file. Each scratch is an attached in-memory catalog. Independent parts run in parallel on cursors of one instance,
which has one limit of threads and memory for all of them.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from warehouse.base import hashing
from warehouse.base.sql_text import literal
from warehouse.base.startup import ASYNC_THREADS, duckdb, regex
from warehouse.engine.base import CsvFiles, EngineError, Parsed, Parts, Select, Source
from warehouse.engine.duckdb_scratch import DuckDBScratch, copy_rows, engine_error
from warehouse.engine.duckdb_sql import held_as
from warehouse.engine.globs import escape_glob
from warehouse.engine.required_relations import needs
from warehouse.engine.volatile import volatile

if TYPE_CHECKING:
    from warehouse.engine.observed import Statement

_POSITION = regex(r',"query_location(?:_length)?":\d+')
"""Position of a node in the text, the only field of a serialized tree that depends on formatting."""
_PART_MEMORY = 10**9
"""Memory per part, in bytes, that limits the number of parts built in parallel."""
_NUMBERS = itertools.count(1)
_WRITES = regex(r'"type":"(?!SELECT|SET_OPERATION|RECURSIVE_CTE|CTE)(\w+)_NODE"')
"""Query nodes that write: DuckDB allows COPY, INSERT, UPDATE and DELETE inside WITH."""
_BASE_TABLE = regex(r'"schema_name":"(\w+)","table_name":"(\w+)"')


class DuckDBEngine:
    """In-process DuckDB instance."""

    name = "duckdb"
    version = duckdb.__version__

    def __init__(
        self, *, threads: int, memory_bytes: int, spill: Path, observe: Callable[[Statement], None] | None = None
    ) -> None:
        self._config: dict[str, str | bool | int | float | list[str]] = {
            "threads": threads,
            "memory_limit": f"{memory_bytes // 2**20}MiB",
            "temp_directory": str(spill),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "errors_as_json": True,
            "async_threads": ASYNC_THREADS,
        }
        self.parallel_parts = max(1, min(threads, memory_bytes // _PART_MEMORY))
        self._instance = duckdb.connect(config=self._config)
        self._observe = observe
        self._on_one_thread: duckdb.DuckDBPyConnection | None = None
        self._open = threading.Lock()
        self._idle: dict[tuple[bool, bool], list[DuckDBScratch]] = {}
        self._lent: set[DuckDBScratch] = set()
        self.held: dict[str, str] = {}
        self._gone: set[str] = set()

    def parse(self, sql: str) -> Parsed:
        """Parse a SELECT with DuckDB's parser."""
        (parsed,) = self.parse_all([sql])
        if isinstance(parsed, EngineError):
            raise parsed
        return parsed

    def parse_all(self, selects: Sequence[str]) -> list[Parsed | EngineError]:
        """Parse SELECTs with DuckDB's parser, all in one query: a query costs more time than the parsing."""
        query = "SELECT json_serialize_sql(written) FROM (SELECT unnest(?::VARCHAR[]) AS written)"
        try:
            rows = self._instance.execute(query, [list(selects)]).fetchall()
        except duckdb.Error as error:
            if len(selects) == 1:
                return [engine_error(error, selects[0], 0)]
            return [parsed for sql in selects for parsed in self.parse_all([sql])]
        return [_parsed(str(row[0])) for row in rows]

    @contextmanager
    def scratch(
        self, sources: Mapping[str, Source], *, one_thread: bool = False, in_memory: bool = False
    ) -> Iterator[DuckDBScratch]:
        """Open an in-memory catalog with a view for each relation; reuse an idle one with its views if possible."""
        with self._open:  # DuckDB refuses two catalog changes at once
            idle = self._idle.setdefault((one_thread, in_memory), [])
            scratch = idle.pop() if idle else self._new_scratch(one_thread, in_memory)
        self._lent.add(scratch)
        try:
            raw = (source for source in sources.values() if isinstance(source, CsvFiles))
            scratch.raw_paths = tuple(path for source in raw for path in source.paths)
            scratch.bind(_views_last(sources))
            yield scratch
        finally:
            self._lent.discard(scratch)
            if self._observe is not None:
                scratch.report_last()
            if scratch.is_whole:
                idle.append(scratch)

    def _new_scratch(self, one_thread: bool, in_memory: bool) -> DuckDBScratch:
        catalog = f"scratch_{next(_NUMBERS)}"
        instance = self._single() if one_thread else self._instance
        instance.cursor().execute(f"ATTACH ':memory:' AS {catalog}")

        def opened() -> duckdb.DuckDBPyConnection:
            cursor = instance.cursor()
            cursor.execute(f"USE {catalog}")
            if self._observe is None:
                return cursor
            from warehouse.engine.observed import Observed

            return cast("duckdb.DuckDBPyConnection", Observed(cursor, self._observe))

        return DuckDBScratch(opened, None if one_thread else self.held, self._gone, keeps=in_memory)

    def _single(self) -> duckdb.DuckDBPyConnection:
        """Return the instance with one thread: DuckDB sets threads per instance, not per statement."""
        if self._on_one_thread is None:
            self._on_one_thread = duckdb.connect(config={**self._config, "threads": 1})
        return self._on_one_thread

    def write_rows(self, columns: Mapping[str, str], json_lines: Path, path: Path) -> int:
        """Write JSON lines with declared columns as a part, in their order."""
        types = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in columns.items())
        scan = (
            f"read_json({literal(escape_glob(str(json_lines)))}, format='newline_delimited', columns={{{types}}},"
            " maximum_object_size=67108864)"
        )
        try:
            return copy_rows(self._instance.cursor(), f"SELECT * FROM {scan}", path, columns.values())
        except duckdb.Error as error:
            raise engine_error(error, "", 0) from error

    def connection(self) -> duckdb.DuckDBPyConnection:
        """Return a new connection to the instance."""
        return self._instance.cursor()

    def attached(self, path: Path, name: str) -> duckdb.DuckDBPyConnection:
        """Attach a DuckDB file under a name; return a connection to write to it."""
        cursor = self._instance.cursor()
        with self._open:
            cursor.execute(f"ATTACH {literal(str(path))} AS {name}")
        return cursor

    def hold(self, source: Parts, table: str) -> None:
        """Let all scratches read the rows of these files from a table of `connection`."""
        for earlier in [name for name, known in self.held.items() if known == table]:
            del self.held[earlier]
        self.held[held_as(source.paths)] = table

    def release(self, path: str) -> None:
        """Drop the table that holds a part. Idle scratches rebind their views of it before the next use."""
        table = self.held.pop(path, None)
        if table is not None:
            self._gone.add(path)
            self._instance.cursor().execute(f"DROP TABLE {table}")

    def interrupt(self) -> None:
        """Interrupt the statements of all scratches in use."""
        for scratch in list(self._lent):
            scratch.interrupt()

    def close(self) -> None:
        """Close the instances."""
        self._instance.close()
        if self._on_one_thread is not None:
            self._on_one_thread.close()


def _parsed(serialized: str) -> Parsed | EngineError:
    """Return the parse result of a serialized statement."""
    tree = msgspec.json.decode(serialized)
    if tree["error"]:
        position = tree.get("position")
        return EngineError(str(tree["error_message"]), offset=int(position) if position else None)
    if len(tree["statements"]) != 1:
        return EngineError("a model is one SELECT, not several statements")
    canonical = _POSITION.sub("", serialized)
    if writes := _WRITES.search(canonical):
        return EngineError(f"{writes[1]} inside WITH is refused: a model only reads")
    reads = tuple(sorted(set(_relations(canonical))))
    return Parsed(reads, canonical, hashing.of(canonical), volatile(canonical, tree), needs(tree))


def _views_last(sources: Mapping[str, Source]) -> list[tuple[str, Source]]:
    """Return the sources in the given order, with SELECTs, which read other sources, last."""
    return sorted(sources.items(), key=lambda item: isinstance(item[1], Select))


def _relations(tree: str) -> Iterator[str]:
    """Yield every relation with a schema in the serialized tree; names without a schema are CTEs."""
    for match in _BASE_TABLE.finditer(tree):
        yield f"{match[1]}.{match[2]}"
