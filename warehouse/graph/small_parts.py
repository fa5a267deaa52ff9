"""Rows of the small parts of many hours, kept in one DuckDB file for what reads all hours.

Opening a small file costs as much as reading thousands of rows. The file `cache/small_parts.duckdb` is a cache: parts
stay as they are, and a table has their rows in the same order. A build adds the parts of a new hour, and replaces those
of a corrected one.

`cache/small_parts.json` tells which parts the tables hold. It is removed when the file is opened, and written when a
build has succeeded and all rows are in the file, not in its log. Without it, or if the file is not as it was then, the
file is made again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import msgspec

from warehouse.base.sql_text import identifier
from warehouse.base.startup import duckdb
from warehouse.engine.base import Engine, Parts
from warehouse.engine.duckdb_sql import source_sql
from warehouse.project.contract import Column
from warehouse.store.atomic import remove
from warehouse.store.part_records import Part
from warehouse.store.signatures import read_bytes, stamp

FILE, NAMES = "cache/small_parts.duckdb", "cache/small_parts.json"
FEWEST_PARTS = 4
"""Number of parts whose rows are worth keeping."""
SMALL_BYTES = 250_000
"""Mean size of parts up to which opening them is a large share of reading them."""
_SCHEMA = "_small_parts"
"""Name of the attached file. No schema of a project begins with an underscore."""


class _Table(NamedTuple):
    """What a table of the file holds."""

    columns: list[tuple[str, str]]
    parts: list[tuple[str, int]]
    """Content hash and number of rows of each part, in order."""


class _Names(msgspec.Struct, frozen=True):
    """Content of `small_parts.json`."""

    engine: str
    stamp: list[int]
    """Signature of the file."""
    tables: dict[str, _Table]


class SmallParts:
    """Tables of small parts in a target; each has the name of its relation.

    Parameters
    ----------
    engine
        Reader of the parts, and of the tables.
    target
        Folder of the target; None to keep nothing, as for a share of a build.
    fresh
        True to begin with an empty file.
    """

    def __init__(self, engine: Engine, target: Path | None, *, fresh: bool = False) -> None:
        self._engine = engine
        self._target = target
        self._fresh = fresh
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._tables: dict[str, _Table] = {}
        self._lock = threading.Lock()

    def hold(self, relation: str, columns: Sequence[Column], parts: Sequence[Part]) -> None:
        """Let the engine read these parts from their table, if they are many and small.

        If the file cannot be used, for example on a full disk, the parts themselves are read.
        """
        if len(parts) < FEWEST_PARTS or sum(part.bytes for part in parts) > SMALL_BYTES * len(parts):
            return
        source = Parts(tuple(columns), tuple(part.file for part in parts))
        with self._lock:
            if self._target is None:
                return
            try:
                connection = self._connection or self._open(self._target)
                self._update(connection, relation, source, [(part.digest, part.rows) for part in parts])
            except (OSError, duckdb.Error):
                self._target = None
            else:
                self._engine.hold(source, _name(relation))

    def _open(self, target: Path) -> duckdb.DuckDBPyConnection:
        """Attach the file, an empty one unless it is as the last build left it."""
        path, names = target / FILE, target / NAMES
        found = None if self._fresh else _read(names)
        is_same = found is not None and found.engine == self._engine.version and found.stamp == _stamp(path)
        remove(names)
        remove(_log(path))
        if found and is_same:
            self._tables = found.tables
        else:
            remove(path)
            remove(path.with_name("merged"))  # of an earlier release
        path.parent.mkdir(exist_ok=True)
        self._connection = self._engine.attached(path, _SCHEMA)
        return self._connection

    def _update(
        self,
        connection: duckdb.DuckDBPyConnection,
        relation: str,
        source: Parts,
        parts: list[tuple[str, int]],
    ) -> None:
        """Give a table the rows of these parts; only new parts are read."""
        columns = [(column.name, column.type) for column in source.columns]
        known = self._tables.get(relation)
        if known == (columns, parts):
            return
        old = known.parts if known and known.columns == columns else []
        before = _alike(old, parts)
        after = _alike(old[before:][::-1], parts[before:][::-1])
        table, new = _name(relation), source_sql(source._replace(paths=source.paths[before : len(parts) - after]))
        if old and before == len(old):
            connection.execute(f"INSERT INTO {table} {new}")
        elif before or after:
            end = len(old) - after
            kept = f"SELECT * FROM {table} WHERE rowid"
            rows = f"{kept} < {_rows(old[:before])} UNION ALL {new} UNION ALL {kept} >= {_rows(old[:end])}"
            later = _name(f"later {relation}")
            connection.execute(f"CREATE OR REPLACE TABLE {later} AS {rows}")
            connection.execute(f"DROP TABLE {table}")
            connection.execute(f"ALTER TABLE {later} RENAME TO {identifier(relation)}")
        else:
            connection.execute(f"CREATE OR REPLACE TABLE {table} AS {new}")
        self._tables[relation] = _Table(columns, parts)

    def keep(self) -> None:
        """Detach the file and note what it holds, after a successful build. No table can be read any more."""
        is_used = self._connection is not None
        self.close()
        if self._target is not None and is_used and not os.path.lexists(_log(self._target / FILE)):
            with suppress(OSError):
                names = _Names(self._engine.version, _stamp(self._target / FILE), self._tables)
                (self._target / NAMES).write_bytes(msgspec.json.encode(names))

    def close(self) -> None:
        """Detach the file."""
        if self._connection is not None:
            try:
                self._connection.execute(f"DETACH {_SCHEMA}")
            except duckdb.Error:
                self._target = None
            self._connection.close()
            self._connection = None


def _name(relation: str) -> str:
    return f"{_SCHEMA}.main.{identifier(relation)}"


def _log(path: Path) -> Path:
    """Return the write-ahead log of the file; it is left if rows could not be moved into the file."""
    return path.with_name(f"{path.name}.wal")


def _read(names: Path) -> _Names | None:
    try:
        return msgspec.json.decode(read_bytes(names), type=_Names)
    except (OSError, msgspec.MsgspecError):
        return None


def _stamp(path: Path) -> list[int]:
    """Return the signature of the file; empty if it is missing."""
    try:
        return stamp(path.lstat())
    except OSError:
        return []


def _alike(some: Sequence[object], others: Sequence[object]) -> int:
    """Return the number of first values that are equal."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(some, others, strict=False)))


def _rows(parts: Sequence[tuple[str, int]]) -> int:
    return sum(rows for _, rows in parts)
