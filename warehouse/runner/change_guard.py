"""Detect files that change during a build."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.base import hashing
from warehouse.base.errors import WarehouseError
from warehouse.engine.volatile import files_named
from warehouse.ingest.known_folders import decoded
from warehouse.store import signatures, snapshot
from warehouse.store.changed_files import changed, changed_meanwhile, look, settle

if TYPE_CHECKING:
    from warehouse.base.settings import Settings
    from warehouse.ingest.inventory import RawFiles
    from warehouse.project.project import Project
    from warehouse.runner.preparation import Prepared
    from warehouse.store.folders import Folder


class ChangeGuard:
    """Guard against inputs that change during a build: raw files, the CSV files of `data/`, files that models name.

    The scan of models and modules, `code`, is only for the snapshot.

    Must be created before the build reads any file. `skip` is True for the names of data folders to leave out.
    """

    def __init__(self, settings: Settings, project: Project, skip: Callable[[str], bool] | None = None) -> None:
        self.data = snapshot.recent_walk(settings)
        self.data.skip = skip or self.data.skip
        self.data.folders()
        self.code = signatures.scan_code(project.folders)
        self._seen = {path: look(path) for path in project.tables()}
        settle(self._seen.values())
        self.table_digests = {str(path): hashing.of_file(path) for path in self._seen}
        self._raw_files: RawFiles | None = None

    @contextlib.contextmanager
    def explaining(self) -> Iterator[None]:
        """Replace the error of a failing block with a clearer one if a file changed meanwhile. Raises DataError."""
        try:
            yield
        except WarehouseError as error:
            self.refuse_changes(error)
            raise

    def watch(self, ready: Prepared) -> None:
        """Take in what the build will read: until now, all files of the data folders counted."""
        self._raw_files = ready.raw_files
        for node in ready.graph.nodes.values():
            if node.volatile:
                self._seen |= {path: look(path) for path in map(Path, files_named(json.loads(node.canonical)))}
        settle(self._seen.values())

    def refuse_changes(self, error: WarehouseError | None = None) -> None:
        """Raise DataError if the signature of a file that may have been read has changed, even if its content has not.

        The last call must come after the last read.
        """
        paths = [*changed(self._seen), *self._changed_raw_files()]
        if paths:
            raise changed_meanwhile(paths) from error

    def packed_digests(self, folder: Folder) -> bytes:
        """Return the content hashes of a folder's files in order, 16 bytes each; zeros for files that are not read."""
        record = self._raw_files and self._raw_files.record(folder.key)
        return record.digests if record else bytes(snapshot.DIGEST_BYTES * folder.count)

    def digests(self, folder: Folder) -> dict[str, str]:
        """Return the content hashes of the files that are read of a folder, by name."""
        return snapshot.digests_by_name(folder, self.packed_digests(folder))

    def _changed_raw_files(self) -> Iterator[str]:
        """Look again at the folders that may have been read; yield the changed files that a format has opened."""
        folders = self.data.folders()
        read = self._raw_files.read_folders() if self._raw_files else folders
        for folder, now in self.data.again(key for key in folders if key in read):
            if now is not None and now.packed == folder.packed:
                continue
            record = self._raw_files and self._raw_files.record(folder.key)
            opened = {file.path.name for file in decoded(record) if file.format} if record else folder.stamps()
            after = now.stamps() if now else {}
            changes = (name for name, seen in folder.stamps().items() if name in opened and after.get(name) != seen)
            yield from (f"{folder.path}/{name}" for name in changes)
