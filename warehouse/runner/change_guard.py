"""Detect files that change during a build."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.base import hashing
from warehouse.base.errors import DataError, WarehouseError
from warehouse.base.text import plural
from warehouse.store import signatures

if TYPE_CHECKING:
    from warehouse.base.settings import Settings
    from warehouse.ingest.inventory import RawFiles
    from warehouse.project.project import Project

_SHOWN = 3


class ChangeGuard:
    """Guard against inputs that change during a build: raw files that are read, and the CSV files of `data/`.

    The scan of models and modules, `code`, is only for the snapshot.

    Must be created before the build reads any file.
    """

    def __init__(self, settings: Settings, project: Project) -> None:
        self.data = signatures.scan_data(settings.data, settings.target.absolute(), follow_links=settings.follow_links)
        self.code = signatures.scan_code(project.folders)
        self._table_digests = {str(path): hashing.of_file(path) for path in project.tables()}
        self.digests: dict[str, str] = {}

    @contextlib.contextmanager
    def watching(self, raw_files: RawFiles) -> Iterator[Callable[[], None]]:
        """Yield a function that raises an error if a file has changed. The block must call it after its last read.

        Raises
        ------
        DataError
            When a file has changed at that call, since the block may have read a mix of old and new rows. Also when the
            block fails and a file has changed, since the change may be the cause.
        """
        self.digests = {
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
            _, gone, moved = self.data.changes(self.data.rescan(), lambda _: False, times_count=True)
            changed = [*gone, *(path for path in moved if self._has_new_signature(path))]
            if changed:
                raise _changed_meanwhile(changed) from error
            raise

    def _has_new_signature(self, path: str) -> bool:
        """Return True if the signature of a raw file differs from the one before the build."""
        with contextlib.suppress(OSError):
            return signatures.stamp(Path(path).stat()) != self.data.files[path]
        return True

    def _refuse_changes(self, error: WarehouseError | None = None) -> None:
        changed = [*_changed(self.data, self.digests), *_changed(self.code, self._table_digests)]
        if changed:
            raise _changed_meanwhile(changed) from error


def _changed_meanwhile(changed: Sequence[str]) -> DataError:
    return DataError(
        f"{plural(len(changed), 'file')} changed while the build ran",
        details=[f"  {path}" for path in sorted(changed)[:_SHOWN]],
        hint="Nothing of this build is published. Build again when nothing writes there.",
    )


def _changed(scan: signatures.FileStates, digests: Mapping[str, str]) -> list[str]:
    """Return the files with a known hash that are missing or have other content."""
    _, gone, moved = scan.changes(scan.rescan(), lambda path: signatures.same_content(path, digests.get(path)))
    return [path for path in (*gone, *moved) if path in digests]
