"""State of a target, `state.sqlite`: what its builds know of raw files and parts; comparison with the last build.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

import xxhash

from warehouse.base import hashing
from warehouse.base.settings import Settings
from warehouse.store.manifest import PUBLISHED, targets_above
from warehouse.store.signatures import Stamp, code_files, stamp, walk

NAME = "state.sqlite"
FORMAT = 2
"""Version of the rows. Increase it if they change: a state of another version is made again."""
FOLDER, PART, VIEW, LAST, PARSED = "folder", "part", "view", "last", "parsed"
"""Kinds of rows: folder of raw files, part, check results of a view, what the last build was made from; parsed model
in a file of its own (`ParseCache`)."""
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
        True to write it: it is created if it is missing, and checked.

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
            uri = f"{Path(path).absolute().as_uri()}?mode={'rwc' if create else 'ro'}"
            # A command that reads may meet a build that writes a row.
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
        if create:
            self.check()

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


# comparison with the last build -------------------------------------------------------------------
# The last build has left in the state what it was made from: settings, environment, file signatures of raw files,
# project and package, and those of its own files. If nothing differs, there is nothing to build; else a build runs, and
# finds out if contents differ. A build waits before it reads a file until any later change has another time
# (`store/signatures.py`), so that an equal signature means equal content.

Json = dict[str, Any]

SETTINGS, PACKAGES, PLACES = "settings", "Python or its packages", "files beside data or target"
CODE, OUTPUTS, DATA = "files of the project", "files of the target", "files of the data folders"
"""What a build is made from, in words for people, in the order of the comparison: the cheapest first."""
_NOTHING = "the last build left no record"


def settings_of(settings: Settings, *, keep: int) -> Json:
    """Return the settings and options that affect the outputs of a build."""
    return {
        "data": [str(root.absolute()) for root in settings.data],
        "target": str(settings.target.absolute()),
        "project": str(settings.project.absolute()) if settings.project else None,
        "cluster": settings.cluster,
        "max_rejected": settings.max_rejected,
        "follow_links": settings.follow_links,
        "keep": keep,
    }


def packages() -> Json:
    """Return the Python version, its module paths, and the installed packages with their mtimes."""
    installed: dict[str, int] = {}
    # The first is the working folder or that of the script: `python -m` and the command differ in it.
    for folder in sys.path[1:]:
        with suppress(OSError), os.scandir(folder) as entries:
            installed |= {one.path: one.stat().st_mtime_ns for one in entries if one.name.endswith(".dist-info")}
    return {"version": sys.version, "path": sys.path[1:]} | installed


def note_last(
    state: State,
    settings: Settings,
    keep: int,
    folders: Iterable[Path],
    code: Mapping[str, Stamp],
    markers: Iterable[Path],
    outputs: Mapping[str, Stamp],
    answer: Json,
) -> None:
    """Note what a build was made from.

    Parameters
    ----------
    folders
        The project's folders.
    code
        Signatures of the files of package and project from before the build read any of them.
    markers
        Paths that decide, by existing or not, which cluster raw files belong to.
    outputs
        The files of the target that readers and the next build need, and archives that are data, with their signatures.
    answer
        The answer to return while everything is up to date.
    """
    own = f"{settings.target.absolute()}/"  # what was unpacked there
    rows = {key: json.loads(row) for key, row in state.texts(FOLDER).items() if not key.startswith(own)}
    last = {
        "folders": [str(folder) for folder in folders],
        "answer": answer,
        SETTINGS: settings_of(settings, keep=keep),
        PACKAGES: packages(),
        # A reader that opens the published file to write leaves a log, which only a build removes.
        PLACES: {str(path): os.path.exists(path) for path in markers} | {f"{own}{PUBLISHED}.wal": False},
        CODE: code,
        OUTPUTS: outputs,
        DATA: {key: row["signature"] for key, row in rows.items()},
    }
    state.put(LAST, {"": last})


def outputs_of(state: State | None) -> set[str]:
    """Return the files that the target needs to be up to date."""
    last = state and state.get(LAST, "")
    return set(last[OUTPUTS]) if last else set()


def unchanged(settings: Settings, *, keep: int) -> tuple[Json | None, str]:
    """Return the summary of the last build if everything is up to date; else None and the first difference."""
    try:
        with closing(State(settings.target / NAME)) as state:
            last = state.get(LAST, "")
        if not last:
            return None, _NOTHING
        for what, now in _now(settings, keep, last):
            if now != last[what]:
                names = [name for name in last[what] | now if last[what].get(name) != now.get(name)]
                return None, f"{what} differ from those of the last build: {min(names)}"
    except (DamagedStateError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return None, _NOTHING
    return last["answer"], ""


def _now(settings: Settings, keep: int, last: Json) -> Iterator[tuple[str, Json]]:
    """Yield what a build would be made from now."""
    yield SETTINGS, settings_of(settings, keep=keep)
    yield PACKAGES, packages()
    yield PLACES, {path: os.path.exists(path) for path in last[PLACES]}
    yield CODE, code_files(last["folders"])
    yield OUTPUTS, {path: stamp(os.stat(path)) for path in last[OUTPUTS] if os.path.exists(path)}
    folders = [root for root in settings.data if str(root.absolute()) not in last[OUTPUTS]]  # these are archives
    left_out = [settings.target.absolute(), *targets_above(settings.target)]
    walked = walk(folders, left_out, follow_links=settings.follow_links)
    yield DATA, {key: folder.signature for key, folder in walked.items()}


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
