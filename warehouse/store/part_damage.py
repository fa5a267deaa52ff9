"""Detect damaged parts of a build by their file signatures, without reading them.

A build writes `stamps.json` to its folder: a line of JSON about all tables, then a line for each relation, its name and
the size, times and inode of its parts by path. A part with a different signature is hashed once. If its hash is equal,
the new signature is stored; if not, the part is damaged. In builds of earlier releases, all is one line, or there is no
such file: then parts are compared by size and mtime.

Modules needed only for damaged parts are imported inside functions, since every query imports this module.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from warehouse.store.layout import MANIFEST, STAMPS, build_folder, current_file, with_tables_of_views
from warehouse.store.signatures import read_text, stamp

Stamp = list[int]


class Indirect(NamedTuple):
    """Tables of a build whose rows are not read from their own parts: views and copies."""

    views: Mapping[str, Sequence[str]]
    """Relations that each view reads."""
    copied: Sequence[str]
    """Tables that are copied into the catalog."""


_NO_FILE = "it is not a file"


def write_stamps(folder: Path, target: Path, signatures: Mapping[str, Stamp], indirect: Indirect) -> None:
    """Write the signatures of parts by path, and which tables are indirect, to the folder of their build."""
    from warehouse.store.atomic import write_text

    below = len(f"{target}/")
    write_text(folder / STAMPS, _as_text(indirect, {path[below:]: seen for path, seen in signatures.items()}))


def damages(
    target: Path, tables: Iterable[str] | None, indirect: Callable[[], Indirect], *, digests: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield the damaged parts of tables: path relative to the target, and the problem.

    Missing parts are not reported here: the target may have been moved, and a query that reads the part fails.

    Parameters
    ----------
    target
        The target; its published build is examined.
    tables
        Full names; unknown names are ignored. None for all tables.
    indirect
        Returns the indirect tables of a build of an earlier release, which did not store them.
    digests
        True to hash every part, even if its signature is unchanged.
    """
    try:
        build = read_text(current_file(target)).strip()
    except (OSError, ValueError):  # a catalog copied without its builds
        return
    known_indirect, kept = _stamps(target, build, indirect)
    wanted = {path.split("/")[1] for path in kept} if tables is None else tables
    folders = tuple(f"parts/{name}/" for name in _relations(known_indirect, wanted, copies=digests))
    user_stamps: dict[str, Stamp] | None = None
    new_stamps: dict[str, Stamp] = {}
    for path, stored in kept.items():
        if not path.lower().startswith(folders):
            continue
        try:
            seen = stamp(about := (target / path).stat())
        except OSError:
            if (target / path).is_symlink():
                yield path, "it is a broken link"
            continue
        if not stat.S_ISREG(about.st_mode):
            yield path, _NO_FILE
            continue
        if seen[: len(stored)] == stored and not digests:
            continue
        user_stamps = _user_stamps(target, build) if user_stamps is None else user_stamps
        if user_stamps.get(path) == seen and not digests:
            continue
        problem = problem_of(target / path, stored[0], _digest(target, build, path))
        if problem:
            yield path, problem
        elif seen[: len(stored)] != stored:
            new_stamps[path] = seen
    if new_stamps:
        _keep(target, build, _as_text(known_indirect, {**kept, **new_stamps}), {**(user_stamps or {}), **new_stamps})


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


def _relations(indirect: Indirect, tables: Iterable[str], *, copies: bool) -> set[str]:
    """Return the tables and those below views, in lower case. Copied tables only if `copies` is true."""
    copied = set() if copies else {name.lower() for name in indirect.copied}
    return with_tables_of_views(tables, indirect.views) - copied


def _as_text(indirect: Indirect, stamps: Mapping[str, Stamp]) -> str:
    import msgspec

    relations: dict[str, dict[str, Stamp]] = {}
    for path, seen in stamps.items():
        relations.setdefault(path.split("/")[1], {})[path] = seen
    lines = [f"{name}\t{msgspec.json.encode(relations[name]).decode()}" for name in sorted(relations)]
    return "\n".join([msgspec.json.encode(indirect).decode(), *lines])


def _stamps(target: Path, build: str, indirect: Callable[[], Indirect]) -> tuple[Indirect, Mapping[str, Stamp]]:
    with contextlib.suppress(OSError, ValueError, TypeError):
        head, *lines = read_text(build_folder(target, build) / STAMPS).split("\n")
        views, copied, *earlier = json.loads(head)
        listed = earlier or [json.loads(line.partition("\t")[2]) for line in lines]
        return Indirect(dict(views), list(copied)), {path: seen for one in listed for path, seen in one.items()}
    found: dict[str, Stamp] = {}
    for part in _parts(target, build):
        path = str(part["path"])
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            notes = _notes(target, path)
            found[path] = list(notes.get("stamp") or [part["bytes"], notes["mtime_ns"]])
    return indirect(), found


def _digest(target: Path, build: str, path: str) -> str | None:
    """Return the content hash of a part as written by its build; for parts of `raw`, from their notes."""
    for part in _parts(target, build):
        if part["path"] == path:
            return str(part["digest"])
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return str(_notes(target, path)["digest"])
    return None


def _parts(target: Path, build: str) -> Iterable[Mapping[str, object]]:
    """Return the parts in the manifest; none for a catalog copied without its manifest."""
    from warehouse.base.errors import WarehouseError
    from warehouse.store.manifest import read_manifest

    try:
        return read_manifest(build_folder(target, build) / MANIFEST).parts
    except WarehouseError:
        return ()


def _notes(target: Path, path: str) -> dict[str, Any]:
    return dict(json.loads(read_text((target / path).with_suffix(".json"))))


def _user_file(target: Path) -> Path:
    """Return the path in the user's state folder for signatures of a read-only target."""
    from warehouse.base import hashing

    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "warehouse" / "stamps" / f"{hashing.of(str(target.absolute()))}.json"


def _user_stamps(target: Path, build: str) -> dict[str, Stamp]:
    try:
        content = json.loads(read_text(_user_file(target)))
        return dict(content["stamps"]) if content["build"] == build else {}
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        return {}


def _keep(target: Path, build: str, text: str, own: Mapping[str, Stamp]) -> None:
    """Store new signatures with the build, or else in the user's state folder. If both fail, parts are hashed again."""
    from warehouse.store.atomic import write_text

    try:
        write_text(build_folder(target, build) / STAMPS, text)
    except OSError:
        with contextlib.suppress(OSError, RuntimeError):
            path = _user_file(target)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps({"build": build, "stamps": own}))
