"""Rows of the files of data folders as a build lists them, without hashes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warehouse.formats.base import Format, Inventory
from warehouse.ingest.look import check_roots, in_order, others, recognize, with_places
from warehouse.store.signatures import walk


def scan(
    roots: Sequence[Path],
    formats: Sequence[Format],
    *,
    cluster: str | None = None,
    leave_out: Sequence[Path] = (),
    follow_links: bool = False,
) -> Inventory:
    """List every file below `roots` and recognize its format."""
    check_roots(roots)
    files = []
    for folder, place in with_places(walk(roots, leave_out, follow_links=follow_links).values(), cluster):
        files += [recognize(folder.path, name, seen, place, formats) for name, seen in folder.stamps.items()]
        files += others(folder, place)
    return Inventory((root.absolute() for root in roots), sorted(files, key=in_order))
