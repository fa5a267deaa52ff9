"""Kept builds of a target: list, find by id, roll back.

A build is a folder of `builds/` with a manifest and a catalog. Builds share parts. A rollback checks that all parts
of the build exist, then publishes it with one atomic rename.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from warehouse.base.errors import QueryError, WarehouseError
from warehouse.base.sql_text import qualified
from warehouse.base.text import few, plural, size
from warehouse.engine.duckdb_errors import sentence
from warehouse.reader.connection import connect
from warehouse.reader.text_table import print_rows
from warehouse.reader.value_text import Column
from warehouse.runner.publish import make_current
from warehouse.store.atomic import hold
from warehouse.store.layout import catalog_of
from warehouse.store.manifest import Manifest, kept_manifests, last_manifest
from warehouse.store.up_to_date import forget


@dataclass(frozen=True)
class Kept:
    """Kept build of a target."""

    build: str
    """Build id."""
    published_utc: str
    """Time of its first publication, UTC."""
    current: bool
    """True for the published build."""
    parts: int
    """Number of its parts."""
    bytes: int
    """Size of its parts and catalog in bytes; other builds may share the parts."""
    own_bytes: int
    """Bytes that its removal would free."""


def is_target(folder: Path) -> bool:
    """Return True if a folder contains builds."""
    return (folder / "builds").is_dir()


def builds(target: Path) -> list[Kept]:
    """Return the kept builds of a target, the newest first.

    Raises
    ------
    WarehouseError
        When there is no target.
    """
    manifests = kept_builds(target)
    last = last_manifest(target)
    users = Counter(path for manifest in manifests for path in part_sizes(manifest))
    found = []
    for manifest in manifests:
        parts = part_sizes(manifest)
        catalog = _size(catalog_of(target, manifest.build))
        own = sum(size for path, size in parts.items() if users[path] == 1)
        is_current = last is not None and last.build == manifest.build
        sizes = (sum(parts.values()) + catalog, own + catalog)
        found.append(Kept(manifest.build, manifest.published_utc, is_current, len(parts), *sizes))
    return found


def print_builds(kept: Sequence[Kept], stream: TextIO) -> None:
    """Print kept builds as a table."""
    texts, numbers = ("build", "published (UTC)"), ("parts", "size", "its own")
    columns = [*(Column(name, "text", "") for name in texts), *(Column(name, "number", "") for name in numbers)]
    rows = [
        (
            one.build,
            one.published_utc,
            f"{one.parts:,}",
            size(one.bytes),
            size(one.own_bytes),
            "published" * one.current,
        )
        for one in kept
    ]
    print_rows([*columns, Column("", "text", "")], rows, stream)


def kept_builds(target: Path) -> list[Manifest]:
    """Return the manifests of the kept builds, the newest first. Raises WarehouseError if there is no target."""
    if not is_target(target):
        raise WarehouseError(f"{target} holds no builds", hint="warehouse build -d DIR")
    return kept_manifests(target)


def part_sizes(manifest: Manifest) -> dict[str, int]:
    """Return the size of each part by its path relative to the target."""
    return {str(part["path"]): int(str(part["bytes"])) for part in manifest.parts}


def find_build(target: Path, name: str) -> Manifest:
    """Return the kept build whose id is or begins with `name`.

    Raises
    ------
    WarehouseError
        When no build or several builds match.
    """
    kept = kept_builds(target)
    found = [manifest for manifest in kept if name and manifest.build.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(manifest.build for manifest in found)
        raise WarehouseError(f"{name} may be one of {several}", hint="give more of the id")
    ids = ", ".join(manifest.build[:8] for manifest in kept) or "none"
    raise WarehouseError(f"{target} keeps no build {name}", hint=f"kept, the newest first: {ids}")


def rollback(target: Path, build: str | None = None, *, wait: bool = False) -> tuple[str | None, Manifest]:
    """Publish a kept build again, atomically.

    The next `warehouse build` publishes a build of the current data and models, as usual.

    Parameters
    ----------
    target
        The folder of the warehouse.
    build
        The id of the build or its beginning; default: the build before the published one.
    wait
        True to wait while a build of this target runs.

    Returns
    -------
    The id of the build published before, and the manifest of the build published now.

    Raises
    ------
    WarehouseError
        When there is no such build, or its catalog or parts are damaged or missing. Nothing has changed then.
    """
    kept_builds(target)
    with hold(target, wait=wait):
        last = last_manifest(target)
        chosen = find_build(target, build) if build else _before(target, last)
        refuse_missing_parts(target, chosen)
        try_catalog(target, chosen.build)
        forget(target)
        make_current(target, chosen.build)
    return last.build if last else None, chosen


def _before(target: Path, last: Manifest | None) -> Manifest:
    """Return the newest kept build older than the published one. Raises WarehouseError if there is none."""
    kept = kept_manifests(target)
    ids = [manifest.build for manifest in kept]
    older = kept[ids.index(last.build) + 1 :] if last and last.build in ids else kept
    if not older:
        raise WarehouseError(
            f"{target} keeps no build before {last.build[:8] if last else 'the first'}",
            hint="warehouse builds lists what is kept; warehouse build --keep N keeps more",
        )
    return older[0]


def refuse_missing_parts(target: Path, manifest: Manifest) -> None:
    """Check that all parts of a build exist and have their size.

    Raises
    ------
    WarehouseError
        With the first missing or truncated parts.
    """
    missing = [path for path, size in part_sizes(manifest).items() if _size(target / path) != size]
    if missing:
        raise WarehouseError(
            f"{plural(len(missing), 'part')} of build {manifest.build[:8]} {'is' if len(missing) == 1 else 'are'}"
            " gone or cut short",
            details=[f"  {few(missing)}"],
            hint="Nothing was changed. warehouse build rebuilds missing parts from the raw files.",
        )


def try_catalog(target: Path, build: str | None) -> None:
    """Check that all tables of a build's catalog can be bound; None means the published catalog.

    Raises
    ------
    QueryError
        When the catalog is damaged, or parts are not at their paths, for example after the target was moved.
    """
    from warehouse.base.startup import duckdb

    with connect(target, build=build) as connection:
        try:
            rows = connection.execute("SELECT model FROM meta.models WHERE kind IN ('table', 'partitioned')")
            for (name,) in rows.fetchall():
                connection.execute(f"FROM {qualified(name)} LIMIT 0")
        except duckdb.Error as error:
            message = sentence(error)
            name = f"the catalog of build {build[:8]}" if build else "the published catalog"
            elsewhere = isinstance(error, duckdb.PermissionException) or "No files found" in message
            wrong = f"does not fit {target}" if elsewhere else "is damaged"
            raise QueryError(f"{name} {wrong}: {message}", hint="warehouse build writes a new one") from error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
