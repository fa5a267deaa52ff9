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
from warehouse.store.layout import MANIFEST, PUBLISHED, STAMPS, build_folder, catalog_of, current_file

_SMALL_BYTES = 2**24
"""Size up to which a recently modified raw file is hashed for the snapshot."""


def write_snapshot(
    settings: Settings,
    options: BuildOptions,
    project: Project,
    guard: ChangeGuard,
    result: Result,
    entries: Iterable[Entry],
) -> None:
    """Write the snapshot of a published build, from the scans that the guard made before the build."""
    summary = result.summary() | {"changed": False, "made": []}
    snapshot.take(
        snapshot.request_of(settings, keep=options.keep, kernels=options.kernels),
        guard.data,
        guard.code,
        guard.digests | _missing_digests(guard, project),
        [marker for root in settings.data for marker in cluster_markers_above(root)],
        _output_files(settings.target.absolute(), result, entries),
        {"files": len(result.inventory.files), "summary": summary},
    )


def _missing_digests(guard: ChangeGuard, project: Project) -> dict[str, str]:
    """Return the hashes of project files, and of raw files whose signature may not show another change."""
    own_folders = tuple(f"{folder}/" for folder in project.folders)
    digests = {}
    for scan in (guard.data, guard.code):
        after = scan.rescan().files
        for path, seen in scan.files.items():
            wanted = path.startswith(own_folders) if scan is guard.code else _is_small_and_racy(seen, scan.looked_ns)
            if wanted and seen and path not in guard.digests and after.get(path) == seen:
                with contextlib.suppress(OSError):  # unreadable: the next build tries again
                    digests[path] = of_content(Path(path))
    return digests


def _is_small_and_racy(seen: Sequence[int], looked_ns: int) -> bool:
    """Return True for a small file that was modified so recently that its times may not show another change."""
    return bool(seen) and signatures.is_racy(seen, looked_ns) and seen[0] <= _SMALL_BYTES


def _output_files(target: Path, result: Result, entries: Iterable[Entry]) -> set[Path]:
    """Return all files of the target that readers or the next build need."""
    build, inside = build_folder(target, result.build), f"{target}/"
    paths = {target / PUBLISHED, current_file(target), build / MANIFEST}
    paths |= {catalog_of(target, result.build), build / STAMPS}
    for part in result.outcome.parts.values():
        paths |= {part.path, part.path.with_suffix(".json")}
    for entry in entries:
        if isinstance(entry.source, Parts | CsvFiles):
            paths |= {path for path in entry.source.paths if str(path).startswith(inside)}
    return paths
