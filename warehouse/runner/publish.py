"""Publish a build with one atomic rename.

Manifest, catalog and list of raw files are written to a temporary folder and synced before the rename. A reader that
has the old catalog open can go on reading it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.base.version import __version__
from warehouse.engine.base import Engine
from warehouse.ingest.file_list import FileList, write_listing
from warehouse.runner.catalog import Base, Entry, read_base, write_catalog
from warehouse.store.atomic import is_misplaced, quarantine, remove, sync, temporary_path, write_text
from warehouse.store.layout import CATALOG, MANIFEST, PUBLISHED, build_folder, catalog_of, current_file
from warehouse.store.manifest import Manifest, build_folders, current_build, kept_builds
from warehouse.store.part_damage import Indirect, write_stamps
from warehouse.store.part_records import Part

if TYPE_CHECKING:
    from warehouse.store.signatures import Stamp


def publish(
    target: Path,
    entries: Sequence[Entry],
    manifest: Manifest,
    parts: Sequence[Part],
    files: FileList,
    engine: Engine,
    stamps: Mapping[str, Stamp],
    confirm: Callable[[], None],
    *,
    new: Iterable[Part] = (),
    begun: Base | None = None,
    fresh: bool = False,
) -> None:
    """Write manifest, catalog and file list of a build, then publish it.

    Parameters
    ----------
    parts
        All parts of the build.
    stamps
        Signatures of all parts that readers open, by path.
    confirm
        Called when everything is written; it raises an error if the build must not be published.
    new
        The parts that no earlier build has published: the names of their files may not be on disk yet.
    begun
        Catalog to begin with, in a temporary file; None to begin with the last one.
    fresh
        True to write the catalog from scratch instead of updating a copy of the last one.
    """
    folder = build_folder(target, manifest.build)
    last = folder.with_name(current_build(target) or manifest.build)
    temporary = temporary_path(folder)
    with ExitStack() as stack:
        stack.callback(remove, temporary)  # unless it is renamed
        temporary.mkdir(parents=True)
        catalog = temporary / CATALOG
        write_catalog(
            catalog,
            entries,
            {
                "build_id": manifest.build,
                "published_utc": manifest.published_utc,
                "version": __version__,
                "engine": manifest.engine,
                "data_folders": [*manifest.data, *manifest.linked],
                "target": str(target.absolute()),
            },
            engine,
            None if fresh else begun or read_base(last),
        )
        manifest.write(temporary / MANIFEST, parts, last / MANIFEST)
        write_listing(temporary, files)
        write_stamps(temporary, target.absolute(), stamps, _indirect(entries))
        confirm()
        catalog.chmod(0o444)
        for path in temporary.iterdir():
            sync(path)
        for place in {above for part in new for above in list(part.path.parents)[:3]}:
            sync(place)
        remove(folder)
        temporary.replace(folder)
        sync(folder.parent)
    make_current(target, manifest.build)


def _indirect(entries: Sequence[Entry]) -> Indirect:
    views = {entry.name: entry.reads for entry in entries if entry.kind == "view"}
    return Indirect(views, [entry.name for entry in entries if entry.kind in ("table", "reference")])


def quarantine_misplaced(target: Path) -> Iterator[str]:
    """Move pipes, sockets and broken links in the target to `damaged/`; yield their paths relative to the target."""
    folders = [target / name for name in ("builds", "cache", "parts", "cache/clean", "cache/unpacked")]
    files = [target / PUBLISHED, current_file(target), *(target / "cache").glob("*.json")]
    files += [*(target / "cache").glob("*.msgpack"), *(target / "builds").glob("*.json")]
    files += (target / "builds").glob("*/*.*")
    folders += (target / "builds").glob("[0-9a-f]" * 16)
    for path, is_folder in [*((path, True) for path in folders), *((path, False) for path in files)]:
        if is_misplaced(path, folder=is_folder):
            quarantine(target, path)
            yield path.relative_to(target).as_posix()


def make_current(target: Path, build: str) -> None:
    """Publish a build whose folder is complete, with one atomic rename; remove a `.wal` that a reader left."""
    link = temporary_path(target / PUBLISHED)
    link.unlink(missing_ok=True)
    _link_or_copy(catalog_of(target, build), link)
    (target / f"{PUBLISHED}.wal").unlink(missing_ok=True)
    link.replace(target / PUBLISHED)
    link.unlink(missing_ok=True)  # rename(2) does nothing if both names are links to one file
    sync(target)
    write_text(current_file(target), build + "\n")


def keep_last(target: Path, keep: int) -> None:
    """Remove all builds except the newest `keep` and the published one."""
    kept = {current_build(target), *(build for _, build in kept_builds(target)[:keep])}
    for folder in build_folders(target):
        if folder.name not in kept:
            remove(folder)


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # the file system has no hard links
        shutil.copy2(source, target)
