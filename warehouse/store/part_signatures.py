"""Stamps of the parts that a build published: they show damage without reading a part.

A build leaves `stamps.json` in its folder: size, times and inode of each part, by path below the target. A part with
another stamp is digested once: an equal digest keeps the new stamp, another one is damage. Builds of earlier releases
have no such file: their parts are compared by size and time of the content.

Most queries find all stamps as they were: what only damage needs is imported where it is needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from warehouse.store.signatures import read_text, stamp

FILE = "stamps.json"
Stamp = list[int]


class Layout(NamedTuple):
    """Where the rows of a build's tables are, if not in parts of their own."""

    views: Mapping[str, Sequence[str]]
    """What each view reads."""
    copied: Sequence[str]
    """The tables that the catalog has a copy of."""


_NO_FILE = "it is no file"


def write_stamps(folder: Path, target: Path, paths: Iterable[Path], layout: Layout) -> None:
    """Write the stamps of parts into the folder of their build, and which views and copies stand on them."""
    from warehouse.store.atomic import write_text

    said = {path.relative_to(target).as_posix(): stamp(path.stat()) for path in paths}
    write_text(folder / FILE, _as_text(layout, said))


def damages(
    target: Path, tables: Iterable[str] | None, layout: Callable[[], Layout], *, digests: bool = False
) -> Iterator[tuple[str, str]]:
    """Find the parts of tables that are not as the build wrote them: path below the target, what is wrong.

    A part that is gone is left to whoever reads it: the target may have been moved.

    Parameters
    ----------
    target
        The target, whose published build is looked at.
    tables
        Full names; other names do no harm. None for all tables.
    layout
        Asked for the layout of a build of an earlier release, which did not note it.
    digests
        Digest every part, whatever its stamp says.
    """
    try:
        build = read_text(target / "builds" / "current").strip()
    except (OSError, ValueError):  # a catalog that was copied without its builds
        return
    known_layout, kept = _stamps(target, build, layout)
    wanted = {path.split("/")[1] for path in kept} if tables is None else tables
    folders = tuple(f"parts/{name}/" for name in _relations(known_layout, wanted, copies=digests))
    own: dict[str, Stamp] | None = None
    fresh: dict[str, Stamp] = {}
    for path, known in kept.items():
        if not path.lower().startswith(folders):
            continue
        try:
            seen = stamp(about := (target / path).stat())
        except OSError:
            if (target / path).is_symlink():
                yield path, "it is a link to nothing"
            continue
        if not stat.S_ISREG(about.st_mode):
            yield path, _NO_FILE
            continue
        if seen[: len(known)] == known and not digests:
            continue
        own = _own_stamps(target, build) if own is None else own
        if own.get(path) == seen and not digests:
            continue
        problem = problem_of(target / path, known[0], _digest(target, build, path))
        if problem:
            yield path, problem
        elif seen[: len(known)] != known:
            fresh[path] = seen
    if fresh:
        _keep(target, build, _as_text(known_layout, {**kept, **fresh}), {**(own or {}), **fresh})


def problem_of(path: Path, size: int, digest: str | None) -> str | None:
    """Say what is wrong with a part, by its kind, size and digest; None if nothing is."""
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


def _relations(layout: Layout, tables: Iterable[str], *, copies: bool) -> set[str]:
    """Return the tables, in small letters, with those behind views, and without copies, whose parts are not read."""
    reads = {name.lower(): below for name, below in layout.views.items()}
    copied = set() if copies else {name.lower() for name in layout.copied}
    found: set[str] = set()
    waiting = [name.lower() for name in tables]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [below.lower() for below in reads.get(name, ())]
    return found - copied


def _as_text(layout: Layout, stamps: Mapping[str, Stamp]) -> str:
    return json.dumps([layout.views, layout.copied, stamps], separators=(",", ":"))


def _stamps(target: Path, build: str, layout: Callable[[], Layout]) -> tuple[Layout, Mapping[str, Stamp]]:
    with contextlib.suppress(OSError, ValueError, TypeError):
        views, copied, stamps = json.loads(read_text(target / "builds" / build / FILE))
        return Layout(dict(views), list(copied)), dict(stamps)
    found: dict[str, Stamp] = {}
    for said in _parts(target, build):
        path = str(said["path"])
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            notes = _notes(target, path)
            found[path] = list(notes.get("stamp") or [said["bytes"], notes["mtime_ns"]])
    return layout(), found


def _digest(target: Path, build: str, path: str) -> str | None:
    """The digest of a part as its build wrote it; parts of `raw` have it in their notes alone."""
    for said in _parts(target, build):
        if said["path"] == path:
            return str(said["digest"])
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return str(_notes(target, path)["digest"])
    return None


def _parts(target: Path, build: str) -> Iterable[Mapping[str, object]]:
    """Return the parts that the manifest lists; none of a catalog that was copied without its manifest."""
    from warehouse.base.errors import WarehouseError
    from warehouse.store.manifest import read_manifest

    try:
        return read_manifest(target / "builds" / build / "manifest.json").parts
    except WarehouseError:
        return ()


def _notes(target: Path, path: str) -> dict[str, Any]:
    return dict(json.loads(read_text((target / path).with_suffix(".json"))))


def _own_file(target: Path) -> Path:
    """A file of the user's state folder, for a target that cannot be written."""
    from warehouse.base import hashing

    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "warehouse" / "stamps" / f"{hashing.of(str(target.absolute()))}.json"


def _own_stamps(target: Path, build: str) -> dict[str, Stamp]:
    try:
        said = json.loads(read_text(_own_file(target)))
        return dict(said["stamps"]) if said["build"] == build else {}
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        return {}


def _keep(target: Path, build: str, text: str, own: Mapping[str, Stamp]) -> None:
    """Keep new stamps with the build, or in the user's state folder; where both fail, parts are digested again."""
    from warehouse.store.atomic import write_text

    try:
        write_text(target / "builds" / build / FILE, text)
    except OSError:
        with contextlib.suppress(OSError, RuntimeError):
            path = _own_file(target)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps({"build": build, "stamps": own}))
