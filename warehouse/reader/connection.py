"""Read-only, isolated connections to a published warehouse, damaged parts refused, queries that Ctrl-C ends.

Each connection is an in-memory engine of its own; the catalog is attached as `warehouse`. So connections of one process
share no settings and no file. A connection opened before a new build was published still reads the old build; a later
one reads the new build.
"""

from __future__ import annotations

import math
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from warehouse.base import startup
from warehouse.base.errors import QueryError
from warehouse.base.sql_text import literal
from warehouse.base.text import few, for_target, plural
from warehouse.engine.duckdb_errors import sentence
from warehouse.engine.sources import escape_glob
from warehouse.store.atomic import temporary_path
from warehouse.store.manifest import PUBLISHED, catalog_of, current_build, damages

CATALOG = "warehouse"
_TRIES = 20
_AGAIN_SECONDS, _WAIT_SECONDS = 0.02, 0.2
Given = TypeVar("Given")
_SHOWN = 3
"""Damaged parts that an error names."""


def connect(
    target: Path,
    data_folders: Sequence[Path] = (),
    *,
    build: str | None = None,
    memory: str | None = None,
    threads: int | None = None,
    outputs: Sequence[Path] = (),
    json_errors: bool = False,
    tell_moved: Callable[[str], object] | None = None,
) -> startup.duckdb.DuckDBPyConnection:
    """Open the warehouse in `target` read-only; only the target and its data folders are accessible.

    The engine can still write below these folders (`COPY ... TO`). SQL from others must pass `warehouse.reader.guard`
    first.

    Parameters
    ----------
    target
        Folder that `warehouse build -t` wrote.
    data_folders
        Readable folders in addition to those recorded by the build.
    build
        Kept build to open instead of the published one.
    memory, threads
        Limits of the engine (`4GB`, 2); the engine's defaults if left out.
    outputs
        Files or folders that our own `COPY` statements may write.
    json_errors
        Report engine errors as JSON, with position and candidates.
    tell_moved
        Callback that receives a sentence if the target was moved but is still readable.

    Raises
    ------
    QueryError
        If there is no warehouse, or its file is damaged or of another version of DuckDB.
    """
    path = _catalog(target, build)
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "allow_persistent_secrets": False,
        "async_threads": startup.ASYNC_THREADS,
        "python_enable_replacements": False,  # a table name must not resolve to a Python variable
        # Otherwise the engine spills to `.tmp` of the working folder, which may be read-only.
        "temp_directory": str(temporary_path(Path(tempfile.gettempdir()) / "warehouse-spill")),
    }
    if memory:
        config["memory_limit"] = memory
    if threads:
        config["threads"] = threads
    try:
        # In memory, since `duckdb.connect(path)` shares one instance, with its settings, for all connections of a
        # process.
        connection = startup.duckdb.connect(":memory:", config=config)
    except startup.duckdb.Error as error:
        raise QueryError(f"the engine does not start: {sentence(error)}") from error
    try:
        _attach(connection, path, target)
        folders = [*map(Path, _recorded_folders(connection, path, target, tell_moved)), *data_folders]
        readable = [target, *outputs, *folders, *map(Path, map(os.path.realpath, folders))]  # the engine compares these
        _restrict(connection, readable, json_errors=json_errors)
    except BaseException:  # also Ctrl-C, which would leave the file open
        connection.close()
        raise
    return connection


def _catalog(target: Path, build: str | None) -> Path:
    path = catalog_of(target.absolute(), build) if build else target.absolute() / PUBLISHED
    if path.is_file():
        return path
    hint = for_target("warehouse build -d DIR", target)
    # `exists` follows links, and would miss a dangling one.
    if os.path.lexists(path):
        raise QueryError(f"{path} is damaged: it is no file", hint=f"{hint} makes it again")
    if not target.is_dir():
        raise QueryError(f"no warehouse in {target}: there is no such folder", hint=hint)
    if build:
        raise QueryError(f"{target} keeps no build {build}", hint=f"see the folders of {target / 'builds'}")
    raise QueryError(f"no warehouse in {target}: it holds no {PUBLISHED}", hint=hint)


def _attach(connection: startup.duckdb.DuckDBPyConnection, path: Path, target: Path) -> None:
    try:
        _attach_whole(connection, path)
    except startup.duckdb.Error as error:
        kept = _build_copy(path, target)
        if kept is None:
            raise _unreadable(error, path, target) from error
        connection.execute(f"ATTACH {literal(str(kept))} AS {CATALOG} (READ_ONLY)")
    # without the in-memory database, cursors start in the warehouse too, and nothing else is writable
    connection.execute(f"USE {CATALOG}")
    connection.execute("DETACH memory")


def _attach_whole(connection: startup.duckdb.DuckDBPyConnection, path: Path) -> None:
    """Attach a file that may be replaced during the call.

    DuckDB opens the file twice and would otherwise mix the old and the new file.
    """
    for _ in range(_TRIES):
        opened = _file_at(path)
        try:
            connection.execute(f"ATTACH {literal(str(path))} AS {CATALOG} (READ_ONLY)")
        except startup.duckdb.Error:
            # An error from a file that was replaced meanwhile says nothing about the new one.
            if _file_at(path) == opened:
                raise
        else:
            if _file_at(path) == opened:
                return
            connection.execute(f"DETACH {CATALOG}")
    connection.execute(f"ATTACH {literal(str(path))} AS {CATALOG} (READ_ONLY)")


def _file_at(path: Path) -> tuple[int, int, int] | None:
    """Return the identity of the file that a path leads to now."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _build_copy(path: Path, target: Path) -> Path | None:
    """Return the build's own copy of the published file if another process left a write-ahead log beside the file."""
    kept = catalog_of(target, current_build(target) or "")
    return kept if path.with_name(f"{path.name}.wal").exists() and kept.is_file() else None


def _unreadable(error: Exception, path: Path, target: Path) -> QueryError:
    message, hint = str(error), for_target("warehouse build -d DIR writes a new one", target)
    problem = "cannot be read"
    if "version number" in message or "Storage Version" in message:
        problem = f"is of another version of DuckDB than this one ({startup.duckdb.__version__})"
    elif "not a valid DuckDB database" in message:
        problem = "is not a warehouse: it is no DuckDB file"
    # "Corrupt" and "corrupt".
    elif any(word in message for word in ("orrupt", "checksum", "enough bytes")):
        problem = "is damaged"
    return QueryError(f"{path} {problem}", details=[sentence(error)], hint=hint)


def _recorded_folders(
    connection: startup.duckdb.DuckDBPyConnection, path: Path, target: Path, tell_moved: Callable[[str], object] | None
) -> list[str]:
    """Return the data folders of the build. Refuse a moved or copied target that reads tables from another folder."""
    try:
        # do not read the timestamp of the build: it would cost an import
        (folders, place), *_ = connection.execute("SELECT data_folders, target FROM meta.build").fetchall()
        moved = place and not _is_same(Path(place), target)
        # Only these are views over files, with their full paths; small tables are inside the catalog.
        parted = "SELECT model FROM meta.models WHERE kind = 'partitioned' ORDER BY 1"
        elsewhere = [model for (model,) in connection.execute(parted).fetchall()] if moved else []
    except (startup.duckdb.CatalogException, ValueError) as error:  # no table, or no row of it
        raise QueryError(f"{path} is a DuckDB file, but not a warehouse: it has no meta.build") from error
    except startup.duckdb.Error as error:
        raise QueryError(f"{path} is damaged", details=[sentence(error)]) from error
    again = for_target("warehouse relocate", target)
    if elsewhere:
        problem = f"{target} was moved or copied: it still reads {few(elsewhere, 3)} in {place}"
        raise QueryError(problem, hint=f"{again} has it read its own parts")
    if moved and tell_moved:
        tell_moved(f"{target} was published as {place}: `{again}` records its new place")
    return folders or []


def _is_same(place: Path, target: Path) -> bool:
    """Return True if a recorded path is the target folder, by any path."""
    try:
        return place.samefile(target)
    except (OSError, ValueError):  # deleted, not accessible, or no path
        return False


def _restrict(connection: startup.duckdb.DuckDBPyConnection, readable: Sequence[Path], *, json_errors: bool) -> None:
    names = [str(path.absolute()) for path in readable if path.is_dir()]
    # a view's glob is compared in its stored form, with `[` written as `[[]`
    folders = ", ".join(literal(name) for name in {*names, *map(escape_glob, names)})
    files = ", ".join(literal(str(path.absolute())) for path in readable if not path.is_dir())
    for setting in (
        "enable_progress_bar = true",  # lets a shell poll query_progress()
        "enable_progress_bar_print = false",
        "GLOBAL TimeZone = 'UTC'",  # GLOBAL, since each cursor has session settings of its own
        f"errors_as_json = {'true' if json_errors else 'false'}",
        # Before access is switched off: afterwards the engine refuses to allow folders.
        f"allowed_directories = [{folders}]",
        f"allowed_paths = [{files}]",
        "enable_external_access = false",
        "lock_configuration = true",  # last, as it refuses each later SET
    ):
        connection.execute(f"SET {setting}")


def refuse_damage(target: Path, tables: Iterable[str] | None = None, *, digests: bool = False) -> None:
    """Compare the parts that a query reads with those that the build wrote.

    Parameters
    ----------
    target
        Folder of the warehouse.
    tables
        Full names of the tables that are read; unknown names are ignored. All tables if left out.
    digests
        Digest every part instead of comparing file signatures, for data that is sent elsewhere.

    Raises
    ------
    QueryError
        If parts are damaged; the message names them.
    """
    wanted = None if tables is None else {name for name in tables if not name.startswith(("meta.", "."))}
    if wanted == set():
        return
    found = list(damages(target.absolute(), wanted, digests=digests))
    if found:
        raise QueryError(
            f"{plural(len(found), 'part')} that would be read {'is' if len(found) == 1 else 'are'} damaged",
            details=[f"  {path}: {problem}" for path, problem in found[:_SHOWN]],
            hint="warehouse build makes damaged parts again",
        )


def interruptible(
    connection: startup.duckdb.DuckDBPyConnection,
    work: Callable[[], Given],
    timeout: float | None = None,
) -> Given:
    """Run `work` in a thread, so that the main thread receives Ctrl-C while the engine is busy.

    Parameters
    ----------
    connection
        Connection whose query Ctrl-C ends.
    work
        Function to run.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, once the work has ended; the connection stays usable.
    TimeoutError
        After `timeout` seconds, once the work has ended; the connection stays usable.
    """
    given: list[Given] = []
    errors: list[BaseException] = []
    began, ended, unwanted = threading.Event(), threading.Event(), threading.Event()

    def run() -> None:
        began.set()
        try:
            if not unwanted.is_set():
                given.append(work())
        except BaseException as error:  # raised again in the main thread
            errors.append(error)
        finally:
            ended.set()

    # Not joined: if Ctrl-C breaks a join, Python 3.11 reports the thread as ended. A daemon, as a query that does not
    # end must not keep Python from its exit.
    thread = threading.Thread(target=run, daemon=True)
    ends = math.inf if timeout is None else time.monotonic() + timeout
    try:
        thread.start()
        # In short steps, as a longer wait does not see Ctrl-C.
        while not ended.wait(min(_WAIT_SECONDS, max(ends - time.monotonic(), 0))) and time.monotonic() < ends:
            pass
        in_time = ended.is_set()
    finally:
        # First, as Ctrl-C may come between the start of the thread and its first line.
        unwanted.set()
        while began.is_set() and not ended.wait(_AGAIN_SECONDS):
            connection.interrupt()  # repeat: the work may be between two queries
    if not in_time:
        raise TimeoutError
    for error in errors:
        raise error
    return given[0]
