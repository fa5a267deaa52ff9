"""DuckDB, embedded.

The author's own text runs, wrapped on its first line only, so that DuckDB's positions are the author's. Each
scratch is an attached in-memory catalog of its own: independent parts run side by side on cursors of one
instance, which holds one limit of threads and memory for all of them.
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
from warehouse.base.startup import duckdb, regex
from warehouse.engine.base import EngineError, Parsed, Select, Source
from warehouse.engine.duckdb_scratch import DuckDBScratch, copy_rows, engine_error
from warehouse.engine.globs import escape_glob
from warehouse.engine.required_relations import needs
from warehouse.engine.volatile import volatile

if TYPE_CHECKING:
    from warehouse.engine.observed import Statement

_POSITION = regex(r',"query_location(?:_length)?":\d+')
"""Where in the text a node stood: the one thing in a serialized tree that formatting changes."""
_PART_MEMORY = 10**9
"""Parts are made side by side only while each can have about this much memory."""
_NUMBERS = itertools.count(1)
_WRITES = regex(r'"type":"(?!SELECT|SET_OPERATION|RECURSIVE_CTE|CTE)(\w+)_NODE"')
"""A query node that does more than read: DuckDB has COPY, INSERT, UPDATE and DELETE inside WITH."""
_BASE_TABLE = regex(r'"schema_name":"(\w+)","table_name":"(\w+)"')


class DuckDBEngine:
    """One in-process DuckDB instance."""

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
        }
        self.side_by_side = max(1, min(threads, memory_bytes // _PART_MEMORY))
        self._instance = duckdb.connect(config=self._config)
        self._observe = observe
        self._on_one_thread: duckdb.DuckDBPyConnection | None = None
        self._open = threading.Lock()
        self._idle: dict[tuple[bool, bool], list[DuckDBScratch]] = {}
        self._lent: set[DuckDBScratch] = set()
        self.held: dict[Path, str] = {}
        self._gone: set[Path] = set()

    def parse(self, sql: str) -> Parsed:
        """Read a SELECT with DuckDB's parser: its relations and its tree without positions."""
        (parsed,) = self.parse_all([sql])
        if isinstance(parsed, EngineError):
            raise parsed
        return parsed

    def parse_all(self, selects: Sequence[str]) -> list[Parsed | EngineError]:
        """Read SELECTs with DuckDB's parser, all in one query, which costs more than what it parses."""
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
        self, sources: Mapping[str, Source], *, one_thread: bool = False, few: bool = False
    ) -> Iterator[DuckDBScratch]:
        """A catalog in memory with a view a relation; one that is idle is lent, with what is bound in it."""
        with self._open:  # DuckDB refuses two catalog changes at once
            idle = self._idle.setdefault((one_thread, few), [])
            scratch = idle.pop() if idle else self._new_scratch(one_thread, few)
        self._lent.add(scratch)
        try:
            scratch.bind(_views_last(sources))
            yield scratch
        finally:
            self._lent.discard(scratch)
            if self._observe is not None:
                scratch.tell_last()
            if scratch.is_whole:
                idle.append(scratch)

    def _new_scratch(self, one_thread: bool, few: bool) -> DuckDBScratch:
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

        return DuckDBScratch(opened, self.held if few else None, self._gone)

    def _single(self) -> duckdb.DuckDBPyConnection:
        """A second instance, since DuckDB sets threads for an instance and not for a statement."""
        if self._on_one_thread is None:
            self._on_one_thread = duckdb.connect(config={**self._config, "threads": 1})
        return self._on_one_thread

    def write_rows(self, columns: Mapping[str, str], json_lines: Path, path: Path) -> int:
        """Read JSON lines with declared columns and write them as a part, in their order."""
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
        """One more connection to the instance."""
        return self._instance.cursor()

    def let_go(self, path: Path) -> None:
        """Drop the table that holds a part; views of it that idle scratches have are bound anew when asked for."""
        table = self.held.pop(path, None)
        if table is not None:
            self._gone.add(path)
            self._instance.cursor().execute(f"DROP TABLE {table}")

    def interrupt(self) -> None:
        """End what runs in scratches that are lent."""
        for scratch in list(self._lent):
            scratch.interrupt()

    def close(self) -> None:
        """Close the instances."""
        self._instance.close()
        if self._on_one_thread is not None:
            self._on_one_thread.close()


def _parsed(serialized: str) -> Parsed | EngineError:
    """A serialized statement: its relations, and its tree without positions."""
    tree = msgspec.json.decode(serialized)
    if tree["error"]:
        position = tree.get("position")
        return EngineError(str(tree["error_message"]), offset=int(position) if position else None)
    if len(tree["statements"]) != 1:
        return EngineError("a model is one SELECT, not several statements")
    said = _POSITION.sub("", serialized)
    if writes := _WRITES.search(said):
        return EngineError(f"{writes[1]} inside WITH is refused: a model only reads")
    reads = tuple(sorted(set(_relations(said))))
    return Parsed(reads, said, hashing.of(said), volatile(said, tree), needs(tree))


def _views_last(sources: Mapping[str, Source]) -> list[tuple[str, Source]]:
    """Sources in the given order, those that read other sources after them."""
    return sorted(sources.items(), key=lambda item: isinstance(item[1], Select))


def _relations(tree: str) -> Iterator[str]:
    """Every relation of the serialized tree that stands in a schema; names without one are CTEs."""
    for match in _BASE_TABLE.finditer(tree):
        yield f"{match[1]}.{match[2]}"
