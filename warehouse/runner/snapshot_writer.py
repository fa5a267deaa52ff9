"""Write the snapshot of a build, with which the next build detects that the target is up to date."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from warehouse.base.settings import Settings
from warehouse.engine.base import CsvFiles, Parts
from warehouse.ingest.scan import cluster_markers_above
from warehouse.project.project import Project
from warehouse.runner.catalog import Entry
from warehouse.runner.change_guard import ChangeGuard
from warehouse.runner.options import BuildOptions
from warehouse.runner.result import Result
from warehouse.store import signatures, snapshot
from warehouse.store.content_hash import of_content
from warehouse.store.folders import Folder
from warehouse.store.layout import MANIFEST, PUBLISHED, STAMPS, build_folder, catalog_of, current_file
from warehouse.store.parts import Store

_SMALL_BYTES = 2**24
"""Size up to which a recently modified raw file is hashed for the snapshot."""


def write_snapshot(
    settings: Settings,
    options: BuildOptions,
    project: Project,
    guard: ChangeGuard,
    result: Result,
    entries: Iterable[Entry],
    store: Store,
) -> None:
    """Write the snapshot of a published build, from the scans that the guard made before the build."""
    summary = result.summary() | {"changed": False, "made": []}
    snapshot.take(
        snapshot.request_of(settings, keep=options.keep, kernels=options.kernels),
        guard.data,
        lambda folder: _content_digests(guard, folder),
        guard.code,
        guard.table_digests | _code_digests(guard, project),
        [marker for root in settings.data for marker in cluster_markers_above(root)],
        store.signatures(_output_files(settings.target.absolute(), result, entries)),
        {"files": result.inventory.count, "summary": summary},
    )


def _content_digests(guard: ChangeGuard, folder: Folder) -> bytes:
    """Return the hashes of a folder's files, also of unread ones whose signature may not show another change."""
    known = guard.packed_digests(folder)
    if not folder.is_racy:
        return known
    digests = guard.digests(folder)
    found = []
    for name, seen in folder.stamps().items():
        digest = digests.get(name)
        if digest is None and signatures.is_racy(seen, folder.looked_ns) and seen[0] <= _SMALL_BYTES:
            digest = _digest_if_same(Path(folder.path, name), seen)
        found.append(bytes.fromhex(digest) if digest else bytes(snapshot.DIGEST_BYTES))
    return b"".join(found)


def _code_digests(guard: ChangeGuard, project: Project) -> dict[str, str]:
    """Return the hashes of project files."""
    own_folders = tuple(f"{folder}/" for folder in project.folders)
    wanted = {path: seen for path, seen in guard.code.files.items() if seen and path.startswith(own_folders)}
    digests = {path: _digest_if_same(Path(path), seen) for path, seen in wanted.items()}
    return {path: digest for path, digest in digests.items() if digest}


def _digest_if_same(path: Path, seen: Sequence[int]) -> str | None:
    """Return the hash of a file; None if it has changed or is unreadable, so that the next build looks again."""
    with contextlib.suppress(OSError):
        digest = of_content(path)
        if signatures.stamp(path.stat()) == seen:
            return digest
    return None


def _output_files(target: Path, result: Result, entries: Iterable[Entry]) -> set[str]:
    """Return all files of the target that readers or the next build need."""
    build, inside = build_folder(target, result.build), f"{target}/"
    own = (target / PUBLISHED, current_file(target), build / MANIFEST, catalog_of(target, result.build), build / STAMPS)
    sources = (entry.source.paths for entry in entries if isinstance(entry.source, Parts | CsvFiles))
    read = {path for paths in sources for path in map(str, paths) if path.startswith(inside)}
    return read.union(map(str, own), (part.file for part in result.outcome.parts.values()))
