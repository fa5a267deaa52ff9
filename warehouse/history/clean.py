"""Removal of what no kept build of a target needs (`warehouse clean`).

Only these kinds of files are ever removed. Parts of models are in use if a kept manifest lists them. Names of repaired
copies, unpacked archives and parts of raw files contain a hash; it is in use if it occurs in a view or in `raw.files`
of a kept catalog.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from warehouse.base.errors import WarehouseError
from warehouse.base.settings import KEPT_BUILDS
from warehouse.base.sql_text import literal
from warehouse.base.startup import duckdb, regex
from warehouse.formats.base import is_raw
from warehouse.history.builds import kept_builds, part_sizes
from warehouse.store.atomic import hold, leftovers, remove
from warehouse.store.manifest import PUBLISHED, Manifest, build_folders, catalog_of, current_build, kept_manifests
from warehouse.store.parts import Store
from warehouse.store.state import outputs_of

_HASH = regex(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Item:
    """File or folder to remove."""

    kind: str
    """`build`, `part`, `cache` or `leftover`."""
    path: Path
    bytes: int


def clean(
    target: Path, keep: int = KEPT_BUILDS, *, dry_run: bool = True, wait: bool = False
) -> tuple[list[Item], list[str]]:
    """Find the files that no kept build needs, and remove them unless `dry_run`; return them, and the builds to keep.

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
        # Both, as a process may have died between the rename and the note in `builds/current`.
        build_ids = _query_catalog(target / PUBLISHED, "SELECT build_id FROM {}.meta.build")
        published = {build for build in (current_build(target), *(build_ids or ())) if build}
        manifests = kept_manifests(target)
        if unknown := published - {manifest.build for manifest in manifests}:
            raise WarehouseError(
                f"the published build {min(unknown)[:8]} has no manifest that can be read: its parts are not known",
                hint="Nothing was removed. warehouse build publishes one that has.",
            )
        kept = [one for number, one in enumerate(manifests) if number < max(1, keep) or one.build in published]
        items = list(_items(target, kept))
        if not dry_run:
            for item in items:
                remove(item.path)
            _drop_empty(target / "parts")
            with closing(Store(target, on_damage=lambda _: None)) as store:
                store.forget_missing()
    return items, [manifest.build for manifest in kept]


def _items(target: Path, kept: Sequence[Manifest]) -> Iterator[Item]:
    builds = {manifest.build for manifest in kept}
    yield from (_item("build", folder) for folder in build_folders(target) if folder.name not in builds)
    used = {target / path for manifest in kept for path in part_sizes(manifest)}
    with closing(Store(target)) as store:
        used.update(map(Path, outputs_of(store.state)))  # what the target needs to be up to date
    cached = [*(target / "cache" / "clean").glob("*"), *(target / "cache" / "unpacked").glob("*")]
    for path in sorted((target / "parts").glob("**/*.parquet")):
        # A file with another name is a user's: only names of the store are ever removed.
        if not _HASH.fullmatch(path.stem) or path in used:
            continue
        if is_raw(path.relative_to(target / "parts").parts[0]):
            cached.append(path)
        else:
            yield _item("part", path)
    hashes = _hashes(target, kept)
    for path in sorted(cached):
        # If one catalog cannot be read, nobody knows what it needs: no cache is removed.
        found = None if path.name.startswith(".") or hashes is None else _HASH.search(path.name)
        if found and found[0] not in (hashes or ()):
            yield _item("cache", path)
    left = [path for path in (target / "damaged").glob("*") if not path.name.startswith(".")]
    yield from (_item("leftover", path) for path in (*sorted(left), *leftovers(target)))


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
    """Return the first column of a query on a catalog; None if the catalog is missing or unreadable."""
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
