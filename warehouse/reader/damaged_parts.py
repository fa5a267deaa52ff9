"""Refuse answers from damaged parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import duckdb

    from warehouse.store.part_signatures import Layout

_SHOWN = 3


def refuse_damage(
    connection: duckdb.DuckDBPyConnection, target: Path, tables: Iterable[str], *, digests: bool = False
) -> None:
    """Compare the parts that a query reads with what the build wrote.

    Parameters
    ----------
    connection
        An open warehouse.
    target
        Its folder.
    tables
        Full names of the tables that are read; other names do no harm.
    digests
        Digest every part instead of comparing stamps: for what is sent elsewhere.

    Raises
    ------
    QueryError
        Naming the damaged parts.
    """
    from warehouse.store.part_signatures import damages

    wanted = {name for name in tables if not name.startswith(("meta.", "."))}
    found = list(damages(target.absolute(), wanted, lambda: _layout(connection), digests=digests)) if wanted else ()
    if found:
        from warehouse.base.text import plural

        raise QueryError(
            f"{plural(len(found), 'part')} that would be read {'is' if len(found) == 1 else 'are'} damaged",
            details=[f"  {path}: {problem}" for path, problem in found[:_SHOWN]],
            hint="warehouse build makes damaged parts again",
        )


def _layout(connection: duckdb.DuckDBPyConnection) -> Layout:
    from warehouse.store.part_signatures import Layout

    rows = connection.execute("SELECT model, kind, reads FROM meta.models").fetchall()
    views = {str(name): list(reads or ()) for name, kind, reads in rows if kind == "view"}
    return Layout(views, [str(name) for name, kind, _ in rows if kind in ("table", "reference")])
