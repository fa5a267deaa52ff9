"""DuckDB as an embedded engine of one thread.

The model's SELECT runs as written, with a prefix only on its first line, so that DuckDB's error positions apply to
the file. With one thread, rows keep their order. Parts are made in parallel by several such engines.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from warehouse.base import hashing
from warehouse.base.startup import ASYNC_THREADS, duckdb, regex
from warehouse.engine.base import CsvFiles, EngineError, JsonLines, Parsed, Select, Source
from warehouse.engine.duckdb_scratch import DuckDBScratch, copy_rows, engine_error
from warehouse.engine.duckdb_sql import source_sql
from warehouse.engine.required_relations import needs
from warehouse.engine.volatile import volatile
from warehouse.project.contract import Column

if TYPE_CHECKING:
    from warehouse.engine.observed import Statement

_POSITION = regex(r',"query_location(?:_length)?":\d+')
"""Position of a node in the text, the only field of a serialized tree that depends on formatting."""
_NUMBERS = itertools.count(1)
_WRITES = regex(r'"type":"(?!SELECT|SET_OPERATION|RECURSIVE_CTE|CTE)(\w+)_NODE"')
"""Query nodes that write: DuckDB allows COPY, INSERT, UPDATE and DELETE inside WITH."""
_BASE_TABLE = regex(r'"schema_name":"(\w+)","table_name":"(\w+)"')


class DuckDBEngine:
    """In-process DuckDB instance of one thread."""

    name = "duckdb"
    version = duckdb.__version__

    def __init__(self, *, memory_bytes: int, spill: Path, observe: Callable[[Statement], None] | None = None) -> None:
        self._instance = duckdb.connect(
            config={
                "threads": 1,
                "memory_limit": f"{memory_bytes // 2**20}MiB",
                "temp_directory": str(spill),
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "errors_as_json": True,
                "async_threads": ASYNC_THREADS,
            }
        )
        self._observe = observe
        self._running: DuckDBScratch | None = None

    def parse(self, sql: str) -> Parsed:
        """Parse a SELECT with DuckDB's parser. Raises EngineError."""
        (parsed,) = self.parse_all([sql])
        if isinstance(parsed, EngineError):
            raise parsed
        return parsed

    def parse_all(self, selects: Sequence[str]) -> list[Parsed | EngineError]:
        """Parse SELECTs, all in one query, which costs more time than the parsing; an invalid one gives its error."""
        query = "SELECT json_serialize_sql(written) FROM (SELECT unnest(?::VARCHAR[]) AS written)"
        try:
            rows = self._instance.execute(query, [list(selects)]).fetchall()
        except duckdb.Error as error:
            if len(selects) == 1:
                return [engine_error(error, selects[0], 0)]
            return [parsed for sql in selects for parsed in self.parse_all([sql])]
        return [_parsed(str(row[0])) for row in rows]

    @contextmanager
    def scratch(self, sources: Mapping[str, Source]) -> Iterator[DuckDBScratch]:
        """Open an in-memory catalog with a view for each relation (`schema.name` -> source)."""
        catalog = f"scratch_{next(_NUMBERS)}"
        cursor = self._instance.cursor()
        cursor.execute(f"ATTACH ':memory:' AS {catalog}; USE {catalog}")
        if self._observe is not None:
            from warehouse.engine.observed import Observed

            cursor = cast("duckdb.DuckDBPyConnection", Observed(cursor, self._observe))
        raw = (source for source in sources.values() if isinstance(source, CsvFiles))
        scratch = self._running = DuckDBScratch(cursor, [path for source in raw for path in source.paths])
        try:
            scratch.bind(_views_last(sources))
            yield scratch
        finally:
            self._running = None
            scratch.close()
            self._instance.execute(f"DETACH {catalog}")

    def write_rows(self, columns: Sequence[Column], json_lines: Path, path: Path) -> int:
        """Write a part from a file with one JSON object per row; return the number of rows. Raises EngineError."""
        rows = source_sql(JsonLines(tuple(columns), json_lines))
        try:
            return copy_rows(self._instance.cursor(), rows, path, [column.type for column in columns])
        except duckdb.Error as error:
            raise engine_error(error, "", 0) from error

    def connection(self) -> duckdb.DuckDBPyConnection:
        """Return a new connection to the instance, to write a catalog with. The caller closes it."""
        return self._instance.cursor()

    def interrupt(self) -> None:
        """Interrupt the running statement, from another thread; it fails with EngineError."""
        running = self._running
        if running is not None:
            running.interrupt()

    def close(self) -> None:
        """Close the instance."""
        self._instance.close()


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
    reads = tuple(sorted({f"{match[1]}.{match[2]}" for match in _BASE_TABLE.finditer(canonical)}))
    return Parsed(reads, canonical, hashing.of(canonical), volatile(canonical, tree), needs(tree))


def _views_last(sources: Mapping[str, Source]) -> list[tuple[str, Source]]:
    """Return the sources in the given order, with SELECTs, which read other sources, last."""
    return sorted(sources.items(), key=lambda item: isinstance(item[1], Select))
