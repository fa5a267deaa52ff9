"""Free what a target no longer needs: builds beyond those to keep, parts that none of these use, leftovers, caches.

Only what is listed here is ever removed, and of that only what no kept catalog and no kept manifest names. Parts,
mended copies and unpacked archives are named by a hash: one that stands anywhere in the views of a kept catalog, or
among the files that it lists, is in use.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from warehouse.base.errors import WarehouseError
from warehouse.base.sql_text import literal
from warehouse.base.startup import regex
from warehouse.history.builds import builds, catalog_of, part_sizes
from warehouse.store import signatures, snapshot
from warehouse.store.atomic import left_behind, remove
from warehouse.store.lock import hold
from warehouse.store.manifest import Manifest, build_folders, current_build, kept_manifests, last_manifest

KEEP = 3
BUILD, PART, CACHE, LEFTOVER = "build", "part", "cache", "leftover"
_HASH = regex(r"[0-9a-f]{32}")
_PART = regex(r"^([0-9a-f]{32})\.(?:parquet|json)$")


@dataclass(frozen=True)
class Item:
    """A file or folder that can go."""

    kind: str
    """`build`, `part`, `cache` or `leftover`."""
    path: Path
    bytes: int


@dataclass(frozen=True)
class Cleaning:
    """What can go from a target, or went."""

    target: Path
    items: tuple[Item, ...]
    kept: tuple[str, ...]
    """The builds that stay, the newest first."""
    removed: bool

    @property
    def bytes(self) -> int:
        """All of it."""
        return sum(item.bytes for item in self.items)


def clean(target: Path, keep: int = KEEP, *, dry_run: bool = True, wait: bool = False) -> Cleaning:
    """Find, and unless `dry_run` remove, what no kept build needs.

    Parameters
    ----------
    target
        The folder of the warehouse.
    keep
        How many of the newest builds stay; the published one does in any case.
    dry_run
        Whether to remove nothing.
    wait
        Whether to wait for a build of this target to end. None can run meanwhile.

    Raises
    ------
    WarehouseError
        When it cannot be told what the published build needs; then nothing is removed.
    """
    target = target.absolute()
    builds(target)
    with hold(target, wait=wait, reads=dry_run):
        kept = _kept(target, max(1, keep))
        items = tuple(_items(target, kept))
        if not dry_run:
            for item in items:
                remove(item.path)
            _drop_empty(target / "parts")
    return Cleaning(target, items, tuple(manifest.build for manifest in kept), not dry_run)


def _kept(target: Path, keep: int) -> list[Manifest]:
    """The newest builds and those that readers may be reading."""
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
    """The build that is published: by the target's own record, and by what the file says that readers open."""
    last_manifest(target)
    said = _ask(target / "warehouse.duckdb", "SELECT build_id FROM {}.meta.build")
    return {build for build in (current_build(target), *(said or ())) if build}


def _items(target: Path, kept: Sequence[Manifest]) -> Iterator[Item]:
    builds = {manifest.build for manifest in kept}
    hashes = _hashes(target, kept)
    for folder in build_folders(target):
        if folder.name not in builds:
            yield _item(BUILD, folder)
    used = {path for manifest in kept for path in part_sizes(manifest)}
    awaited = _awaited(target)
    for path in _below(target / "parts", "*/*/*"):
        name = _PART.match(path.name)
        part = path.with_suffix(".parquet")
        if name is None or part.relative_to(target).as_posix() in used or str(part) in awaited:
            continue
        relation = path.parent.parent.name
        if name[1] not in (hashes or ()) and (hashes is not None or not relation.startswith("raw.")):
            yield _item(CACHE if relation.startswith("raw.") else PART, path)
    cache = target / "cache"
    if hashes is not None:
        for path in [*_below(cache / "clean", "*"), *_below(cache / "unpacked", "*")]:
            found = _HASH.search(path.name)
            if found and found[0] not in hashes:
                yield _item(CACHE, path)
    yield from (_item(LEFTOVER, path) for path in _below(target / "damaged", "*"))
    yield from (_item(LEFTOVER, path) for path in left_behind(target))


def _below(folder: Path, pattern: str) -> list[Path]:
    """Paths below a folder; those that are on their way are not there yet."""
    return [path for path in sorted(folder.glob(pattern)) if not path.name.startswith(".")]


def _hashes(target: Path, kept: Sequence[Manifest]) -> set[str] | None:
    """All hashes that the catalogs of kept builds name; None where one of them does not say."""
    found: set[str] = set()
    for manifest in kept:
        said = _ask(
            catalog_of(target, manifest.build),
            "SELECT sql FROM duckdb_views() WHERE database_name = '{0}' "
            "UNION ALL SELECT path FROM {0}.raw.files UNION ALL SELECT read_path FROM {0}.raw.files",
        )
        if said is None:
            return None
        found.update(one for text in said for one in _HASH.findall(text))
    return found


def _ask(file: Path, sql: str) -> list[str] | None:
    """The first column of what a catalog answers; None where it cannot be asked."""
    from warehouse.base.startup import duckdb

    if not file.is_file():
        return None
    with duckdb.connect(":memory:") as connection:
        try:
            connection.execute(f"ATTACH {literal(str(file))} AS asked (READ_ONLY)")
            return [str(row[0]) for row in connection.execute(sql.format("asked")).fetchall()]
        except duckdb.Error:
            return None


def _awaited(target: Path) -> set[str]:
    """What has to be there for a build to see that it has nothing to do."""
    try:
        return set(json.loads(signatures.read_text(target / snapshot.FILE))["left"])
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _item(kind: str, path: Path) -> Item:
    if path.is_symlink() or not path.is_dir():
        return Item(kind, path, path.lstat().st_size)
    return Item(kind, path, sum(below.lstat().st_size for below in path.rglob("*") if not below.is_dir()))


def _drop_empty(parts: Path) -> None:
    """Remove folders of partitions and models that hold nothing any more."""
    for folder in [*parts.glob("*/*"), *parts.glob("*")]:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
