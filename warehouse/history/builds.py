"""Kept builds of a target: list, find by id, roll back, clean.

A build is a folder of `builds/` with a manifest and a catalog. Builds share parts. A rollback checks that all parts
of the build exist, then publishes it with one atomic rename.

Only these kinds of files are ever removed. Parts of models are in use if a kept manifest lists them. Names of repaired
copies, unpacked archives and parts of raw files contain a hash; it is in use if it occurs in a view or in `raw.files`
of a kept catalog.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from warehouse.base.errors import QueryError, WarehouseError
from warehouse.base.settings import KEPT_BUILDS
from warehouse.base.sql_text import literal, qualified
from warehouse.base.startup import regex
from warehouse.base.text import few, plural, size
from warehouse.engine.duckdb_errors import sentence
from warehouse.formats.base import is_raw
from warehouse.reader.connection import connect
from warehouse.reader.result import Column
from warehouse.reader.text_table import print_rows
from warehouse.runner.publish import make_current
from warehouse.store.atomic import hold, leftovers, remove
from warehouse.store.manifest import (
    PUBLISHED,
    Manifest,
    build_folders,
    catalog_of,
    current_build,
    kept_manifests,
    last_manifest,
)
from warehouse.store.parts import Store
from warehouse.store.up_to_date import forget, outputs_of


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
        # A part that another kept build shares would stay.
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
        # First: if the process dies now, the next build compares again and does not trust what it remembers.
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
            name = f"the catalog of build {build[:8]}" if build else "the published catalog"
            raise QueryError(
                f"{name} is damaged: {sentence(error)}", hint="warehouse build writes a new one"
            ) from error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


BUILD, PART, CACHE, LEFTOVER = "build", "part", "cache", "leftover"
_HASH = regex(r"[0-9a-f]{32}")
_PART = regex(r"^([0-9a-f]{32})\.parquet$")


@dataclass(frozen=True)
class Item:
    """File or folder to remove."""

    kind: str
    """`build`, `part`, `cache` or `leftover`."""
    path: Path
    bytes: int


@dataclass(frozen=True)
class Cleaning:
    """Result of a cleanup or of its dry run."""

    target: Path
    items: tuple[Item, ...]
    kept: tuple[str, ...]
    """Ids of the builds to keep, the newest first."""
    removed: bool

    @property
    def bytes(self) -> int:
        """Total size of all items."""
        return sum(item.bytes for item in self.items)


def clean(target: Path, keep: int = KEPT_BUILDS, *, dry_run: bool = True, wait: bool = False) -> Cleaning:
    """Find the files that no kept build needs, and remove them unless `dry_run`.

    Parameters
    ----------
    target
        The folder of the warehouse.
    keep
        The number of newest builds to keep. The published build is always kept.
    dry_run
        True to remove nothing.
    wait
        True to wait while a build of this target runs. The target is locked meanwhile.

    Raises
    ------
    WarehouseError
        When the parts of the published build are unknown. Nothing is removed then.
    """
    target = target.absolute()
    kept_builds(target)
    # A dry run also works in a target that the user may not write to.
    with hold(target, wait=wait, reads=dry_run):
        kept = _kept(target, max(1, keep))
        items = tuple(_items(target, kept))
        if not dry_run:
            for item in items:
                remove(item.path)
            _drop_empty(target / "parts")
            _forget_missing(target)
    return Cleaning(target, items, tuple(manifest.build for manifest in kept), not dry_run)


def _kept(target: Path, keep: int) -> list[Manifest]:
    """Return the newest builds and the published ones."""
    manifests = kept_manifests(target)
    published = _published(target)
    unknown = published - {manifest.build for manifest in manifests}
    if unknown:
        raise WarehouseError(
            f"the published build {min(unknown)[:8]} has no manifest that can be read, so that its parts are not known",
            hint="Nothing was removed. warehouse build publishes one that has.",
        )
    return [one for number, one in enumerate(manifests) if number < keep or one.build in published]


def _published(target: Path) -> set[str]:
    """Return the published build by `builds/current` and by `warehouse.duckdb`; two ids if these differ."""
    last_manifest(target)
    # Both, as a process may have died between the rename and the note in `builds/current`.
    build_ids = _query_catalog(target / PUBLISHED, "SELECT build_id FROM {}.meta.build")
    return {build for build in (current_build(target), *(build_ids or ())) if build}


def _items(target: Path, kept: Sequence[Manifest]) -> Iterator[Item]:
    builds = {manifest.build for manifest in kept}
    yield from (_item(BUILD, folder) for folder in build_folders(target) if folder.name not in builds)
    used = {target / path for manifest in kept for path in part_sizes(manifest)} | _needed(target)
    cached = [*(target / "cache" / "clean").glob("*"), *(target / "cache" / "unpacked").glob("*")]
    for path in sorted((target / "parts").glob("**/*.parquet")):
        # A file with another name is a user's: only names of the store are ever removed.
        if not _PART.match(path.name) or path in used:
            continue
        if is_raw(path.relative_to(target / "parts").parts[0]):
            cached.append(path)
        else:
            yield _item(PART, path)
    hashes = _hashes(target, kept)
    for path in sorted(cached):
        # If one catalog cannot be read, nobody knows what it needs: no cache is removed.
        found = None if path.name.startswith(".") or hashes is None else _HASH.search(path.name)
        if found and found[0] not in (hashes or ()):
            yield _item(CACHE, path)
    left = [path for path in (target / "damaged").glob("*") if not path.name.startswith(".")]
    yield from (_item(LEFTOVER, path) for path in (*sorted(left), *leftovers(target)))


def _needed(target: Path) -> set[Path]:
    """Return the files that the target needs to be up to date."""
    with closing(Store(target)) as store:
        return set(map(Path, outputs_of(store.state)))


def _forget_missing(target: Path) -> None:
    with closing(Store(target, on_damage=lambda _: None)) as store:
        store.forget_missing()


def _hashes(target: Path, kept: Sequence[Manifest]) -> set[str] | None:
    """Return all hashes in the views and `raw.files` of kept catalogs; None if one of them is unreadable."""
    found: set[str] = set()
    for manifest in kept:
        texts = _query_catalog(
            catalog_of(target, manifest.build),
            "SELECT sql FROM duckdb_views() WHERE database_name = '{0}' "
            "UNION ALL SELECT path FROM {0}.raw.files UNION ALL SELECT read_path FROM {0}.raw.files",
        )
        if texts is None:
            return None
        found.update(one for text in texts for one in _HASH.findall(text))
    return found


def _query_catalog(file: Path, sql: str) -> list[str] | None:
    """Return the first column of a query on a catalog; None if the catalog is unreadable."""
    from warehouse.base.startup import duckdb

    if not file.is_file():
        return None
    with duckdb.connect(":memory:") as connection:
        try:
            connection.execute(f"ATTACH {literal(str(file))} AS asked (READ_ONLY)")
            return [str(row[0]) for row in connection.execute(sql.format("asked")).fetchall()]
        except duckdb.Error:
            return None


def _item(kind: str, path: Path) -> Item:
    if path.is_symlink() or not path.is_dir():
        # `lstat`, as the target of a link is not removed and frees nothing.
        return Item(kind, path, path.lstat().st_size)
    return Item(kind, path, sum(below.lstat().st_size for below in path.rglob("*") if not below.is_dir()))


def _drop_empty(parts: Path) -> None:
    """Remove empty folders of partitions and models."""
    # In reverse, so that folders come before those that hold them.
    for folder in sorted(parts.rglob("*"), reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
