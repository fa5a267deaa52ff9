"""Finish a build in a temporary folder, and publish it with one atomic rename.

Manifest, catalog and list of raw files are synced before the rename. A reader that has the old catalog open can go on
reading it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

from warehouse.base.text import now_utc
from warehouse.engine.sources import CsvFiles, Parts
from warehouse.graph.dag import contracts
from warehouse.ingest.look import cluster_markers_above
from warehouse.ingest.raw_files import list_files, write_listing
from warehouse.runner.catalog import catalog_entries, write_catalog
from warehouse.runner.reporter import Result
from warehouse.runner.work import Work
from warehouse.store.atomic import remove, sync, temporary_path
from warehouse.store.manifest import (
    CATALOG,
    MANIFEST,
    PUBLISHED,
    Manifest,
    build_folder,
    build_folders,
    build_id,
    catalog_of,
    current_build,
    current_file,
    entry_of,
    kept_manifests,
)
from warehouse.store.signatures import Stamp, is_within, stamp
from warehouse.store.state import LAST, note_last


class Finished(NamedTuple):
    """Build that is ready to be published."""

    work: Work
    manifest: Manifest
    folder: Path
    """Temporary folder with manifest, catalog and list of raw files."""
    outputs: dict[str, Stamp]
    """Signatures of the files that the catalog reads."""


def finish(work: Work) -> Finished:
    """Write catalog, manifest and list of raw files of a build to a temporary folder, and sync them."""
    session, store = work.session, work.session.store
    session.reporter.stage_started("catalog")
    entries = catalog_entries(work)
    parts = [work.plan.parts[key] for key in sorted(work.plan.parts)]
    manifest = Manifest(
        build=build_id(parts, contracts(work.graph), session.engine_label),
        engine=session.engine_label,
        parts=[entry_of(part, store.target) for part in parts],
        stale=sorted(work.stale),
        data=[str(root.absolute()) for root in session.settings.data],
        published_utc=now_utc(),
        linked=_linked(work),
        number=1 + max((one.number for one in kept_manifests(store.target)), default=0),
        views={entry.name: list(entry.reads) for entry in entries if entry.kind == "view"},
        copied=[entry.name for entry in entries if entry.kind in ("table", "reference")],
    )
    folder = store.temporary("build")
    folder.mkdir()
    for problem in write_catalog(folder / CATALOG, entries, manifest, session):
        session.reporter.note(problem)
    manifest.write(folder / MANIFEST)
    write_listing(folder, list_files(work.raw_files))
    # A client that opens the file to write would change a build that others read.
    (folder / CATALOG).chmod(0o444)
    published = {entry["path"] for entry in session.last_entries()}
    new = [part for part in parts if part.file.removeprefix(f"{store.target}/") not in published]
    # An earlier build has flushed the folders of its parts.
    above = {place for part in new for place in part.path.parents if place.is_relative_to(store.folder)}
    for path in (*folder.iterdir(), *above):
        sync(path)
    read = [path for entry in entries if isinstance(entry.source, Parts | CsvFiles) for path in entry.source.paths]
    # Repaired copies and members of archives.
    inside = {str(path) for path in read if str(path).startswith(f"{store.target}/")}
    outputs = {part.file: part.stamp for part in parts}
    outputs |= {path: stamp(Path(path).stat()) for path in inside - outputs.keys()}
    return Finished(work, manifest, folder, outputs)


def publish(finished: Finished) -> Result:
    """Publish a finished build; remove builds that are not kept; note what the build was made from."""
    work, manifest, folder, outputs = finished
    session, settings, target = work.session, work.session.settings, work.session.store.target
    place = build_folder(target, manifest.build)
    place.parent.mkdir(exist_ok=True)
    # Equal parts have an equal id, so the folder can be there.
    remove(place)
    folder.replace(place)
    sync(place.parent)
    make_current(target, manifest.build)
    session.reporter.stage_started("end")
    _keep_last(target, session.options.keep)
    result = Result(
        manifest.build,
        settings.target,
        work.raw_files.inventory,
        work.plan.parts,
        work.results,
        work.made,
        work.stale,
        bytes=sum(part.bytes for part in work.plan.parts.values()) + (target / PUBLISHED).stat().st_size,
        changed=session.last is None or session.last.build != manifest.build,
    )
    if work.stale or any(node.is_volatile for node in work.graph.nodes.values()):  # the next build has to run in full
        session.store.note(LAST, {}, gone=[""])
        return result
    assert session.store.state is not None
    own = (target / PUBLISHED, current_file(target), place / MANIFEST, catalog_of(target, manifest.build))
    # Last: after a kill before this line, the next build runs in full.
    note_last(
        session.store.state,
        settings,
        session.options.keep,
        session.project.folders,
        session.code,
        [marker for root in settings.data for marker in cluster_markers_above(root)],
        outputs | {str(path): stamp(path.stat()) for path in own} | work.raw_files.archives,
        {"files": work.raw_files.inventory.count, "summary": result.summary() | {"changed": False, "made": []}},
    )
    return result


def make_current(target: Path, build: str) -> None:
    """Publish a build whose folder is complete, with one atomic rename; remove a `.wal` that a reader left."""
    link = temporary_path(target / PUBLISHED)
    try:
        os.link(catalog_of(target, build), link)
    except OSError:  # the file system has no hard links
        shutil.copy2(catalog_of(target, build), link)
    # Beside the new file, DuckDB would take the log for its own.
    (target / f"{PUBLISHED}.wal").unlink(missing_ok=True)
    link.replace(target / PUBLISHED)
    link.unlink(missing_ok=True)  # rename(2) does nothing if both names are links to one file
    sync(target)
    named = temporary_path(current_file(target))
    named.write_text(f"{build}\n", encoding="utf-8")
    sync(named)
    named.replace(current_file(target))


def _keep_last(target: Path, keep: int) -> None:
    """Remove all builds except the newest `keep` and the published one."""
    # After a rollback, the published build may be an old one.
    kept = {current_build(target), *(one.build for one in kept_manifests(target)[:keep])}
    for folder in build_folders(target):
        if folder.name not in kept:
            remove(folder)


def _linked(work: Work) -> list[str]:
    """Return folders outside the data folders that links lead to; readers need access to them."""
    settings = work.session.settings
    if not settings.follow_links:
        return []
    roots = list(map(os.path.realpath, settings.data))
    real = (os.path.realpath(file.path) for file in work.raw_files.inventory.files if file.is_read)
    return sorted({os.path.dirname(path) for path in real if not is_within(path, roots)})  # noqa: PTH120
