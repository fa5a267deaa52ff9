"""Detect files that change during a build, and save a snapshot for the next build's up-to-date check."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.base import hashing
from warehouse.base.errors import DataError, WarehouseError
from warehouse.base.text import plural
from warehouse.engine.base import CsvFiles, Parts
from warehouse.ingest.scan import cluster_markers_above
from warehouse.store import part_signatures, signatures, snapshot
from warehouse.store.content_hash import of_content

if TYPE_CHECKING:
    from warehouse.base.settings import Settings
    from warehouse.ingest.inventory import RawFiles
    from warehouse.project.project import Project
    from warehouse.runner.catalog import Entry
    from warehouse.runner.result import Result

_SHOWN = 3
_SMALL_BYTES = 2**24


class ChangeGuard:
    """Guard against files that change during a build: raw files, project files, modules of this package.

    Must be created before the build reads any file.
    """

    def __init__(self, settings: Settings, project: Project) -> None:
        self._settings = settings
        self._project = project
        self._target = settings.target.absolute()
        self._data = signatures.scan_data(settings.data, self._target, follow_links=settings.follow_links)
        self._sources = signatures.scan_sources(project.folders)
        self._tables = {str(path): hashing.of_file(path) for path in project.tables()}
        self._digests: dict[str, str] = {}

    @contextlib.contextmanager
    def watching(self, raw_files: RawFiles) -> Iterator[Callable[[], None]]:
        """Raise an error if one of the files changes while the block runs.

        The block gets a function that checks for changes, and must call it after it has read all files.

        Raises
        ------
        DataError
            When a file has changed at that call, since the block may have read a mix of old and new rows. Also when the
            block fails and a file has changed, since the change may be the cause.
        """
        self._digests = {
            str(file.path): file.digest for file in raw_files.inventory.files if file.is_read and file.digest
        }
        try:
            yield self._refuse_changes
        except WarehouseError as error:
            self._refuse_changes(error)
            raise

    @contextlib.contextmanager
    def explaining(self) -> Iterator[None]:
        """Replace the error of a failing block with a clearer one if a raw file changed meanwhile.

        Raises
        ------
        DataError
            With the names of the changed files.
        """
        try:
            yield
        except WarehouseError as error:
            _, gone, moved = self._data.changes(self._data.rescan(), lambda _: False, times_count=True)
            changed = [*gone, *(path for path in moved if self._has_new_signature(path))]
            if changed:
                raise _changed_meanwhile(changed) from error
            raise

    def _has_new_signature(self, path: str) -> bool:
        """Return True if the signature of a raw file differs from the one before the build."""
        with contextlib.suppress(OSError):
            return signatures.stamp(Path(path).stat()) != self._data.files[path]
        return True

    def _refuse_changes(self, error: WarehouseError | None = None) -> None:
        changed = [*_changed(self._data, self._digests), *_changed(self._sources, self._tables)]
        if changed:
            raise _changed_meanwhile(changed) from error

    def save_snapshot(self, result: Result, entries: Iterable[Entry], *, keep: int, kernels: bool) -> None:
        """Write the snapshot that the next build needs to detect an up-to-date target."""
        own_folders = tuple(f"{folder}/" for folder in self._project.folders)
        digests = dict(self._digests)
        for scan in (self._data, self._sources):
            after = scan.rescan().files
            for path, seen in scan.files.items():
                wanted = (
                    path.startswith(own_folders) if scan is self._sources else _is_small_and_racy(seen, scan.looked_ns)
                )
                if wanted and seen and path not in digests and after.get(path) == seen:
                    with contextlib.suppress(OSError):  # unreadable: the next build tries again
                        digests[path] = of_content(Path(path))
        summary = result.summary() | {"changed": False, "made": []}
        snapshot.take(
            snapshot.asked(self._settings, keep=keep, kernels=kernels),
            self._data,
            self._sources,
            digests,
            [marker for root in self._settings.data for marker in cluster_markers_above(root)],
            self._output_files(result, entries),
            {"files": len(result.inventory.files), "summary": summary},
        )

    def _output_files(self, result: Result, entries: Iterable[Entry]) -> set[Path]:
        """Return all files of the target that readers or the next build need."""
        build, inside = self._target / "builds" / result.build, f"{self._target}/"
        paths = {self._target / "warehouse.duckdb", build.parent / "current", build / "manifest.json"}
        paths |= {build / "catalogue.duckdb", build / part_signatures.FILE}
        for part in result.outcome.parts.values():
            paths |= {part.path, part.path.with_suffix(".json")}
        for entry in entries:
            if isinstance(entry.source, Parts | CsvFiles):
                paths |= {path for path in entry.source.paths if str(path).startswith(inside)}
        return paths


def _changed_meanwhile(changed: Sequence[str]) -> DataError:
    return DataError(
        f"{plural(len(changed), 'file')} changed while the build ran",
        details=[f"  {path}" for path in sorted(changed)[:_SHOWN]],
        hint="Nothing of this build is published. Build again when nothing writes there.",
    )


def _is_small_and_racy(seen: Sequence[int], looked_ns: int) -> bool:
    """Return True for a small file that was modified so recently that its times may not show another change."""
    return bool(seen) and signatures.is_racy(seen, looked_ns) and seen[0] <= _SMALL_BYTES


def _changed(scan: signatures.FileStates, digests: Mapping[str, str]) -> list[str]:
    """Return the files with a known hash that are missing or have other content."""
    _, gone, moved = scan.changes(scan.rescan(), lambda path: signatures.same_content(path, digests.get(path)))
    return [path for path in (*gone, *moved) if path in digests]
