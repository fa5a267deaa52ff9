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
    cursor = connection.execute("SELECT m.*, b.build_id FROM meta.models AS m, meta.build AS b")
    columns = [column[0] for column in cursor.description]
    models = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
    known = {str(one["model"]).lower(): one for one in models}
    relations, waiting = set(), [name.lower() for name in wanted]
    while waiting:
        one = known.pop(waiting.pop(), {"kind": None})
        if one["kind"] == "view":
            waiting += [str(read).lower() for read in one.get("reads") or ()]  # not there in builds of old
        elif one["kind"] in ("partitioned", "raw") or (one["kind"] == "table" and digests):
            relations.add(str(one["model"]))
    if not relations:
        return
    from warehouse.stamps import damages

    found = list(damages(target.absolute(), str(models[0]["build_id"]), sorted(relations), digests=digests))
    if found:
        raise QueryError(
            f"{plural(len(found), 'part')} that would be read {'is' if len(found) == 1 else 'are'} damaged",
            details=[f"  {path}: {problem}" for path, problem in found[:_SHOWN]],
            hint="warehouse build makes damaged parts again",
        )
