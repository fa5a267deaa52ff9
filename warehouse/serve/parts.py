"""Refuse answers from damaged parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.errors import QueryError
from warehouse.report import plural

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import duckdb

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
    wanted = {name for name in tables if not name.startswith(("meta.", "."))}
    if not wanted:
        return
    rows = connection.execute(
        "SELECT b.build_id, m.model, m.kind, m.reads FROM meta.models AS m, meta.build AS b"
    ).fetchall()
    known = {str(name).lower(): (str(name), kind, reads or []) for _, name, kind, reads in rows}
    relations, waiting = set(), [name.lower() for name in wanted]
    while waiting:
        name, kind, reads = known.pop(waiting.pop(), ("", "", []))
        if kind == "view":
            waiting += [str(read).lower() for read in reads]
        elif kind in ("partitioned", "raw") or (kind == "table" and digests):
            relations.add(name)
    if not relations:
        return
    from warehouse.stamps import damages

    found = list(damages(target.absolute(), str(rows[0][0]), sorted(relations), digests=digests))
    if found:
        raise QueryError(
            f"{plural(len(found), 'part')} that would be read {'is' if len(found) == 1 else 'are'} damaged",
            details=[f"  {path}: {problem}" for path, problem in found[:_SHOWN]],
            hint="warehouse build makes damaged parts again",
        )
