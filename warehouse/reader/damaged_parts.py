"""Refuse answers from damaged parts."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError
from warehouse.store.layout import with_tables_of_views

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import duckdb

    from warehouse.store.part_damage import Indirect

_SHOWN = 3


def refuse_damage(
    connection: duckdb.DuckDBPyConnection, target: Path, tables: Iterable[str] | None = None, *, digests: bool = False
) -> None:
    """Compare the parts that a query reads with those that the build wrote.

    Parameters
    ----------
    connection
        Open warehouse.
    target
        Its folder.
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
    if wanted == set() or (not digests and _is_as_written(target, wanted)):
        return
    from warehouse.store.part_damage import damages

    found = list(damages(target.absolute(), wanted, lambda: _indirect(connection), digests=digests))
    if found:
        from warehouse.base.text import plural

        raise QueryError(
            f"{plural(len(found), 'part')} that would be read {'is' if len(found) == 1 else 'are'} damaged",
            details=[f"  {path}: {problem}" for path, problem in found[:_SHOWN]],
            hint="warehouse build makes damaged parts again",
        )


def _is_as_written(target: Path, wanted: set[str] | None) -> bool:
    """Return True if all parts have the file signatures recorded by the build.

    False means that a full check is needed. This is a fast version of `warehouse.store.part_damage` without its
    imports.
    """
    try:
        build = _text(f"{target}/builds/current").strip()
        head, *lines = _text(f"{target}/builds/{build}/stamps.json").split("\n")
        views, copied = json.loads(head)
        below = None if wanted is None else with_tables_of_views(wanted, views)
        left_out = {name.lower() for name in copied}
        handle = os.open(target, os.O_RDONLY | os.O_DIRECTORY)  # a stat below it does not look up the whole path
        try:
            for line in lines:
                relation, _, stamps = line.partition("\t")
                name = relation.lower()
                if name in left_out or (below is not None and name not in below):
                    continue
                for path, known in json.loads(stamps).items():
                    about = os.stat(path, dir_fd=handle)
                    seen = [about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino]
                    if seen != known or not stat.S_ISREG(about.st_mode):
                        return False
        finally:
            os.close(handle)
    except (OSError, ValueError, TypeError, AttributeError):
        return False
    return True


def _text(path: str) -> str:
    """Return the text of a regular file; do not block on a pipe."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, encoding="utf-8") as stream:
        return stream.read()


def _indirect(connection: duckdb.DuckDBPyConnection) -> Indirect:
    from warehouse.store.part_damage import Indirect

    rows = connection.execute("SELECT model, kind, reads FROM meta.models").fetchall()
    views = {str(name): list(reads or ()) for name, kind, reads in rows if kind == "view"}
    return Indirect(views, [str(name) for name, kind, _ in rows if kind in ("table", "reference")])
