"""The builds that a target keeps: list them, find one by its id, publish one again.

A build is a folder of `builds/` with a manifest and a catalog; its parts are shared with the others. To go back is
one rename, after a look whether all that the build needs is still there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warehouse.base.errors import QueryError, WarehouseError
from warehouse.base.sql_text import qualified
from warehouse.base.text import plural
from warehouse.engine.duckdb_errors import sentence
from warehouse.reader.connection import connect
from warehouse.runner.publish import make_current
from warehouse.store import snapshot
from warehouse.store.lock import hold
from warehouse.store.manifest import Manifest, kept_manifests, last_manifest

_SHOWN = 3


@dataclass(frozen=True)
class Kept:
    """A build that a target keeps."""

    manifest: Manifest
    bytes: int
    """Its parts and its catalog; parts are shared with other builds."""
    own_bytes: int
    """What would be free without it."""
    current: bool
    """Whether it is the one that readers open."""

    @property
    def build(self) -> str:
        """Its id."""
        return self.manifest.build

    @property
    def published_utc(self) -> str:
        """When it was published first."""
        return self.manifest.published_utc

    def summary(self) -> dict[str, object]:
        """JSON-able values."""
        said = {"build": self.build, "published_utc": self.published_utc, "current": self.current}
        return said | {"parts": len(self.manifest.parts), "bytes": self.bytes, "own_bytes": self.own_bytes}


def is_target(folder: Path) -> bool:
    """Whether a folder looks like what `warehouse build -t` wrote."""
    return (folder / "builds").is_dir()


def builds(target: Path) -> list[Kept]:
    """The builds that a target keeps, the newest first.

    Raises
    ------
    WarehouseError
        When there is no target.
    """
    manifests = kept_builds(target)
    last = last_manifest(target)
    users: dict[str, int] = {}
    for manifest in manifests:
        for path in part_sizes(manifest):
            users[path] = users.get(path, 0) + 1
    found = []
    for manifest in manifests:
        parts = part_sizes(manifest)
        catalog = _size(catalog_of(target, manifest.build))
        own = sum(size for path, size in parts.items() if users[path] == 1)
        current = last is not None and last.build == manifest.build
        found.append(Kept(manifest, sum(parts.values()) + catalog, own + catalog, current))
    return found


def kept_builds(target: Path) -> list[Manifest]:
    """Return the manifests of the builds that a target keeps, the newest first. Raises WarehouseError."""
    if not is_target(target):
        raise WarehouseError(f"{target} holds no builds", hint=f"warehouse build -d DIR -t {target}")
    return kept_manifests(target)


def catalog_of(target: Path, build: str) -> Path:
    """The DuckDB file of a kept build."""
    return target / "builds" / build / "catalogue.duckdb"


def part_sizes(manifest: Manifest) -> dict[str, int]:
    """The size of each part, by its path below the target."""
    return {str(part["path"]): int(str(part["bytes"])) for part in manifest.parts}


def find_build(target: Path, name: str) -> Manifest:
    """The kept build of which `name` is the id, or the beginning of it.

    Raises
    ------
    WarehouseError
        When none is, or several are.
    """
    kept = kept_builds(target)
    found = [manifest for manifest in kept if name and manifest.build.startswith(name)]
    if len(found) == 1:
        return found[0]
    ids = ", ".join(manifest.build[:8] for manifest in kept) or "none"
    if found:
        several = ", ".join(manifest.build for manifest in found)
        raise WarehouseError(f"{name} may be one of {several}", hint="give more of the id")
    raise WarehouseError(f"{target} keeps no build {name}", hint=f"kept, the newest first: {ids}")


def rollback(target: Path, build: str | None = None, *, wait: bool = False) -> tuple[str | None, Manifest]:
    """Publish a kept build again; readers see the one or the other, never anything between.

    The next `warehouse build` publishes what data and models then say, as ever.

    Parameters
    ----------
    target
        The folder of the warehouse.
    build
        The build, by its id or the beginning of it; the one before the published one where left out.
    wait
        Whether to wait for a build of this target to end.

    Returns
    -------
    The build that was published before, and the manifest of the one that is now.

    Raises
    ------
    WarehouseError
        When there is no such build, or its catalog or parts are not whole; then nothing has changed.
    """
    kept_builds(target)
    with hold(target, wait=wait):
        last = last_manifest(target)
        chosen = find_build(target, build) if build else _before(target, last)
        refuse_gaps(target, chosen)
        snapshot.drop(target)
        make_current(target, chosen.build)
    return last.build if last else None, chosen


def _before(target: Path, last: Manifest | None) -> Manifest:
    """The kept build that was published before the current one."""
    kept = kept_manifests(target)
    ids = [manifest.build for manifest in kept]
    older = kept[ids.index(last.build) + 1 :] if last and last.build in ids else kept
    if not older:
        raise WarehouseError(
            f"{target} keeps no build before {last.build[:8] if last else 'the first'}",
            hint="warehouse builds lists what is kept; warehouse build --keep N keeps more",
        )
    return older[0]


def refuse_gaps(target: Path, manifest: Manifest) -> None:
    """Refuse a build of which something is missing, cut short, or written for another place. Raises WarehouseError."""
    refuse_missing_parts(target, manifest)
    try_catalog(target, manifest.build)


def refuse_missing_parts(target: Path, manifest: Manifest) -> None:
    """Refuse a build of which a part is missing or cut short.

    Raises
    ------
    WarehouseError
        Naming the first parts.
    """
    missing = [path for path, size in part_sizes(manifest).items() if _size(target / path) != size]
    if missing:
        more = f" and {len(missing) - _SHOWN:,} more" if len(missing) > _SHOWN else ""
        raise WarehouseError(
            f"{plural(len(missing), 'part')} of build {manifest.build[:8]} {'is' if len(missing) == 1 else 'are'}"
            " gone or cut short",
            details=[f"  {path}" for path in missing[:_SHOWN]] + ([f" {more}"] if more else []),
            hint="Nothing was changed. warehouse build makes what is missing from the raw files.",
        )


def try_catalog(target: Path, build: str | None) -> None:
    """Open the catalog of a build, the published one for None, and bind each of its tables.

    Raises
    ------
    QueryError
        When it is damaged, or its tables are not where it looks for them, as after the target was moved.
    """
    from warehouse.base.startup import duckdb

    with connect(target, build=build) as connection:
        try:
            names = connection.execute(
                "SELECT model FROM meta.models WHERE kind IN ('table', 'partitioned')"
            ).fetchall()
            for (name,) in names:
                connection.execute(f"FROM {qualified(name)} LIMIT 0")
        except duckdb.Error as error:
            said = sentence(error)
            name = f"the catalog of build {build[:8]}" if build else "the published catalog"
            elsewhere = isinstance(error, duckdb.PermissionException) or "No files found" in said
            wrong = f"does not fit {target}" if elsewhere else "is damaged"
            raise QueryError(f"{name} {wrong}: {said}", hint="warehouse build writes a new one") from error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
