"""Refuse answers from damaged parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError
from warehouse.base.text import plural
from warehouse.store.manifest import damages

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_SHOWN = 3


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
