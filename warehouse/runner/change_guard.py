"""Detect files that change during a build."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from warehouse.base import hashing
from warehouse.base.errors import DataError, WarehouseError
from warehouse.base.text import plural
from warehouse.store import signatures, snapshot
from warehouse.store.folders import Folder

if TYPE_CHECKING:
    from warehouse.base.settings import Settings
    from warehouse.ingest.inventory import RawFiles
    from warehouse.project.project import Project

_SHOWN = 3


class ChangeGuard:
    """Guard against inputs that change during a build: raw files that are read, and the CSV files of `data/`.

    The scan of models and modules, `code`, is only for the snapshot.

    Must be created before the build reads any file. `skip` is True for the names of data folders to leave out.
    """

    def __init__(self, settings: Settings, project: Project, skip: Callable[[str], bool] | None = None) -> None:
        self.data = snapshot.recent_walk(settings)
        self.data.skip = skip or self.data.skip
        self.data.folders()
        self.code = signatures.scan_code(project.folders)
        self.table_digests = {str(path): hashing.of_file(path) for path in project.tables()}
        self._raw_files: RawFiles | None = None

    @contextlib.contextmanager
    def watching(self, raw_files: RawFiles) -> Iterator[Callable[[], None]]:
        """Yield a function that raises an error if a file has changed. The block must call it after its last read.

        Raises
        ------
        DataError
            When a file has changed at that call, since the block may have read a mix of old and new rows. Also when the
            block fails and a file has changed, since the change may be the cause.
        """
        self._raw_files = raw_files
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
            changed = []
            for before, after, _ in self._differing():
                changed += [path for path, seen in before.items() if after.get(path) != seen]
            if changed:
                raise _changed_meanwhile(changed) from error
            raise

    def packed_digests(self, folder: Folder) -> bytes:
        """Return the content hashes of a folder's files in order, 16 bytes each; zeros for files that are not read."""
        known = self._raw_files.content_digests(folder.key) if self._raw_files else b""
        return known or bytes(snapshot.DIGEST_BYTES * folder.count)

    def digests(self, folder: Folder) -> dict[str, str]:
        """Return the content hashes of the files that are read of a folder, by name."""
        return snapshot.digests_by_name(folder, self.packed_digests(folder))

    def _refuse_changes(self, error: WarehouseError | None = None) -> None:
        changed = self._changed_code()
        for before, after, folder in self._differing():
            digests = {f"{folder.path}/{name}": digest for name, digest in self.digests(folder).items()}
            read = {path: seen for path, seen in before.items() if path in digests}

            def same(path: str, digests: dict[str, str] = digests) -> bool:
                return signatures.same_content(path, digests[path])

            _, gone, moved = signatures.compare(read, after, folder.looked_ns, same)
            changed += [*gone, *moved]
        if changed:
            raise _changed_meanwhile(changed) from error

    def _changed_code(self) -> list[str]:
        """Return the CSV files of `data/` that are missing or have other content."""
        digests = self.table_digests
        _, gone, moved = self.code.changes(
            self.code.rescan(), lambda path: signatures.same_content(path, digests.get(path))
        )
        return [path for path in (*gone, *moved) if path in digests]

    def _differing(self) -> Iterator[tuple[dict[str, list[int]], dict[str, list[int]], Folder]]:
        """Look again at the folders that may have been read.

        Yield the signatures before and now of each with a possible change, and the folder.
        """
        folders = self.data.folders()
        read = self._raw_files.read_folders() if self._raw_files else folders
        for folder, now in self.data.again(key for key in folders if key in read):
            if now is None or now.packed != folder.packed or folder.is_racy:
                yield folder.signatures(), now.signatures() if now else {}, folder


def _changed_meanwhile(changed: Sequence[str]) -> DataError:
    return DataError(
        f"{plural(len(changed), 'file')} changed while the build ran",
        details=[f"  {path}" for path in sorted(changed)[:_SHOWN]],
        hint="Nothing of this build is published. Build again when nothing writes there.",
    )
