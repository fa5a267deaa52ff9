"""Detect damaged parts of a build by their file signatures, without reading them.

A manifest has size, times and inode of each part. A part with another signature is hashed once. If its hash is equal,
the new signature is noted in the user's state folder; if not, the part is damaged.

Modules needed only for damaged parts are imported inside functions, since every query imports this module.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from warehouse.store.layout import MANIFEST, build_folder, with_tables_of_views
from warehouse.store.manifest import Entry, Manifest, current_build, read_manifest
from warehouse.store.signatures import read_text, stamp

_NO_FILE = "it is not a file"


def damages(target: Path, tables: Iterable[str] | None, *, digests: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the damaged parts of tables of the published build: path relative to the target, and the problem.

    Missing parts are not reported here: the target may have been moved, and a query that reads the part fails. Without
    a readable manifest, as of a catalog that was copied alone, nothing is known.

    Parameters
    ----------
    tables
        Full names; unknown names are ignored. None for all tables.
    digests
        True to hash every part, even if its signature is unchanged.
    """
    from warehouse.base.errors import WarehouseError

    try:
        manifest = read_manifest(build_folder(target, current_build(target) or "") / MANIFEST)
    except WarehouseError:
        return
    wanted = None if tables is None else with_tables_of_views(tables, manifest.views)
    left_out = set() if digests else {name.lower() for name in manifest.copied}
    other = []
    for part in manifest.parts:
        name = part["model"].lower()
        if name in left_out or (wanted is not None and name not in wanted):
            continue
        path = target / part["path"]
        try:
            seen = path.stat()
        except OSError:
            if path.is_symlink():
                yield part["path"], "it is a broken link"
            continue
        if not stat.S_ISREG(seen.st_mode):
            yield part["path"], _NO_FILE
        elif digests or stamp(seen) != part["stamp"]:
            other.append((part, stamp(seen)))
    yield from _damages_of(other, target, manifest, digests=digests)


def _damages_of(
    parts: list[tuple[Entry, list[int]]], target: Path, manifest: Manifest, *, digests: bool
) -> Iterator[tuple[str, str]]:
    """Yield the damages of parts with other signatures than those of the manifest, each with its signature now."""
    known = _noted(target, manifest.build) if parts else {}
    intact = dict(known)
    for part, seen in parts:
        path = part["path"]
        if known.get(path) == seen and not digests:
            continue
        problem = problem_of(target / path, part["bytes"], part["digest"])
        if problem:
            yield path, problem
        elif seen != part["stamp"]:
            intact[path] = seen
    if intact != known:
        _note(target, manifest.build, intact)


def problem_of(path: Path, size: int, digest: str | None) -> str | None:
    """Return the problem of a part by its file type, size and content hash; None for an intact part."""
    from warehouse.base import hashing

    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            return _NO_FILE
        if about.st_size != size:
            return f"{about.st_size:,} bytes, not {size:,}"
        if hashing.of_file(path) != digest:
            return "its content is not what was written"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return None


def _user_file(target: Path) -> Path:
    """Return the file in the user's state folder for signatures of this target's parts."""
    from warehouse.base import hashing

    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "warehouse" / "stamps" / f"{hashing.of(str(target.absolute()))}.json"


def _noted(target: Path, build: str) -> dict[str, list[int]]:
    with suppress(OSError, ValueError, KeyError, TypeError, RuntimeError):
        content = json.loads(read_text(_user_file(target)))
        return dict(content["stamps"]) if content["build"] == build else {}
    return {}


def _note(target: Path, build: str, stamps: Mapping[str, list[int]]) -> None:
    """Note signatures; if that fails, the parts are hashed again."""
    from warehouse.store.atomic import write_text

    with suppress(OSError, RuntimeError):
        path = _user_file(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps({"build": build, "stamps": stamps}))
