"""State of a target, `state.sqlite`: what its builds know of raw files, parts and the last comparison; cache of models.

The file is an index and a cache, written by one process at a time, under the target's lock. Each row has a seal, a hash
of its content. Without an intact file, a build makes it again from the manifests of the kept builds and one pass of
hashing.

A build that is up to date imports this module, and little else. To keep that fast, it imports only light modules.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

import xxhash

from warehouse.base import hashing
from warehouse.store.signatures import code_files

NAME = "state.sqlite"
FORMAT = 2
"""Version of the rows. Increase it if they change: a state of another version is made again."""
FOLDER, PART, VIEW, FAILED, LAST, PARSED = "folder", "part", "view", "failed", "last", "parsed"
"""Kinds of rows: folder of raw files, part, check results of a view, check that stopped the last build, what the last
build was made from; parsed model in a file of its own (`ParseCache`)."""
_SCHEMA = f"""
    CREATE TABLE entry (kind TEXT, key TEXT, content TEXT, seal TEXT, PRIMARY KEY (kind, key)) WITHOUT ROWID;
    PRAGMA user_version = {FORMAT}
"""
_ERRORS = {"SQLITE_FULL": errno.ENOSPC, "SQLITE_IOERR_WRITE": errno.EFBIG}
"""Errors of SQLite for a full disk and for a file that would be larger than it may be."""


class DamagedStateError(Exception):
    """The file is no intact state of this version."""


class State:
    """Open state of a target.

    Parameters
    ----------
    path
        The file.
    create
        True to create it if it is missing.

    Raises
    ------
    DamagedStateError
        When the file is missing, damaged, of another version, or cannot be written although it is to.
    OSError
        When a new file cannot be written.
    """

    def __init__(self, path: Path | str, *, create: bool = False) -> None:
        self._path = str(path)
        is_there = os.path.lexists(path)
        try:
            if is_there and not stat.S_ISREG(os.stat(path).st_mode):  # SQLite could block at a pipe
                raise DamagedStateError("no regular file")
            mode = "rwc" if create else "ro"
            # A command that reads may meet a build that writes a row.
            uri = f"{Path(path).absolute().as_uri()}?mode={mode}"
            self._connection = sqlite3.connect(uri, uri=True, timeout=5)
            self._connection.execute("PRAGMA synchronous = OFF")  # a loss of power costs the file, which can be lost
            if create and not is_there:
                self._connection.executescript(_SCHEMA)
            if create:
                self._connection.execute("BEGIN IMMEDIATE")  # fails if the file cannot be written
                self._connection.rollback()
        except (sqlite3.Error, OSError) as error:
            if create and not is_there and isinstance(error, sqlite3.Error):
                raise _unwritable(self._path, error) from error
            raise DamagedStateError(str(error)) from error
        if self._rows("PRAGMA user_version") != [(FORMAT,)]:
            raise DamagedStateError("another version")
        self._rows("SELECT kind FROM entry LIMIT 0")  # fails without the table

    def check(self) -> None:
        """Raise DamagedStateError if the file is damaged, or one of its rows."""
        found = self._rows("PRAGMA quick_check(1)")
        if found != [("ok",)]:
            raise DamagedStateError(str(found))
        for kind, key, content, seal in self._rows("SELECT kind, key, content, seal FROM entry"):
            if seal != _seal(kind, key, content):
                raise DamagedStateError(f"row {kind} {key}")

    def get(self, kind: str, key: str) -> Any:
        """Return the content of a row; None if it is missing or damaged. Raises DamagedStateError."""
        rows = self._rows("SELECT content, seal FROM entry WHERE kind = ? AND key = ?", (kind, _text(key)))
        return next((json.loads(text) for text, seal in rows if seal == _seal(kind, _text(key), text)), None)

    def texts(self, kind: str) -> dict[str, str]:
        """Return the content of all rows of a kind, as JSON, by key; `check` finds damage. Raises DamagedStateError."""
        rows = self._rows("SELECT key, content FROM entry WHERE kind = ?", (kind,))
        return {json.loads(f'"{key}"'): text for key, text in rows}  # the inverse of _text

    def _rows(self, sql: str, values: Sequence[str] = ()) -> list[Any]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise DamagedStateError(str(error)) from error

    def put(self, kind: str, contents: Mapping[str, object], *, gone: Iterable[str] = ()) -> None:
        """Write rows, and remove others, in one transaction. Raises OSError if the file cannot be written."""
        texts = {_text(key): text_of(content) for key, content in contents.items()}
        new = [(kind, key, text, _seal(kind, key, text)) for key, text in texts.items()]
        old = [(kind, _text(key)) for key in gone]
        try:
            with self._connection:
                self._connection.executemany("DELETE FROM entry WHERE kind = ? AND key = ?", old)
                self._connection.executemany("INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?)", new)
        except sqlite3.Error as error:
            raise _unwritable(self._path, error) from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _unwritable(path: str, error: sqlite3.Error) -> OSError:
    number = _ERRORS.get(error.sqlite_errorname, errno.EIO)
    return OSError(number, os.strerror(number), path)


def text_of(content: object) -> str:
    """Return the content of a row as JSON."""
    return json.dumps(content, separators=(",", ":"))


def _text(key: str) -> str:
    """Return a key in ASCII: names of files may be no valid text."""
    return json.dumps(key)[1:-1]


def _seal(kind: str, key: str, content: str) -> str:
    """Return the hash of a row, its key as `_text` returns it."""
    return xxhash.xxh3_64_hexdigest(f"{kind}\0{key}\0{content}".encode())


# cache of models ------------------------------------------------------------------------------------
# Each project has a file of parsed and bound models in the user's cache folder. A change of the engine, of Python or of
# this package invalidates it.


@cache
def environment_hash(engine: str) -> str:
    """Return the hash of engine, Python and this package, which every cached result depends on."""
    return hashing.of([engine, sys.version, code_files(())])


def cache_of_models(folders: Sequence[Path], *, paranoid: bool = False) -> ParseCache:
    """Return the cache of a project, in the user's cache folder."""
    from warehouse.base.startup import duckdb

    project = hashing.of([str(folder.absolute()) for folder in folders])
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home folder
        return ParseCache(None)
    path = base / "warehouse" / f"models-{project}.sqlite"
    return ParseCache(path, f"duckdb {duckdb.__version__}", paranoid=paranoid)


class ParseCache:
    """Cache of JSON-able values in one file.

    Parameters
    ----------
    path
        The file; it may be missing or damaged. None for a cache in memory.
    engine
        Name and version of the engine.
    paranoid
        True to ignore the cached values.
    """

    def __init__(self, path: Path | None, engine: str = "", *, paranoid: bool = False) -> None:
        self._path = path
        self._used: dict[str, Any] = {}
        self._rows: dict[str, str] = {}
        self._environment = environment_hash(engine) if path else ""
        if path and not paranoid:
            with suppress(DamagedStateError), closing(State(path)) as state:
                state.check()
                self._rows = state.texts(PARSED)

    def get(self, inputs: object, compute: Callable[[], Any]) -> Any:
        """Return the cached value for some inputs; compute and cache it if it is missing. Exceptions are not cached.

        `inputs` must contain everything that the value depends on.
        """
        key = self._key(inputs)
        if key not in self._used:
            self._used[key] = json.loads(self._rows[key]) if key in self._rows else compute()
        return self._used[key]

    def contains(self, inputs: object) -> bool:
        """Return True if the value for these inputs is cached."""
        key = self._key(inputs)
        return key in self._used or key in self._rows

    def _key(self, inputs: object) -> str:
        return hashing.of([self._environment, inputs])

    def save(self) -> None:
        """Write the values used since the cache was opened; drop all others."""
        new = {key: value for key, value in self._used.items() if key not in self._rows}
        gone = self._rows.keys() - self._used.keys()
        if self._path is None or not (new or gone):
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(State(self._path, create=True)) as state:
                state.put(PARSED, new, gone=gone)
        except (DamagedStateError, OSError):  # without the cache, builds are only slower
            with suppress(OSError):
                self._path.unlink()
