"""What a build has seen of the world, to notice that it changed under the build, or has not changed after it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.base import hashing
from warehouse.base.errors import DataError, WarehouseError
from warehouse.base.text import plural
from warehouse.engine.base import CsvFiles, Parts
from warehouse.ingest.scan import signs_above
from warehouse.store import part_signatures, signatures, snapshot
from warehouse.store.content_hash import of_content

if TYPE_CHECKING:
    from warehouse.base.settings import Settings
    from warehouse.ingest.inventory import RawFiles
    from warehouse.project.project import Project
    from warehouse.runner.catalog import Entry
    from warehouse.runner.result import Result

_SHOWN = 3
_SHORT = 2**24


class ChangeGuard:
    """Looks at data folders and sources before a build reads any of them."""

    def __init__(self, settings: Settings, project: Project) -> None:
        self._settings = settings
        self._project = project
        self._target = settings.target.absolute()
        self._data = signatures.look_at_data(settings.data, self._target, follow_links=settings.follow_links)
        self._sources = signatures.look_at_sources(project.folders)
        self._tables = {str(path): hashing.of_file(path) for path in project.tables()}
        self._digests: dict[str, str] = {}

    @contextlib.contextmanager
    def watching(self, raw_files: RawFiles) -> Iterator[Callable[[], None]]:
        """The block reads what `intake` lists, and calls what it is given when it has read: none of that may change.

        Raises
        ------
        DataError
            When a file did before that call, since the block may have seen some of the old and some of the new; and
            when the block failed and a file did, since it may have failed for no other reason.
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
        """The block lists and hashes raw files: if it fails and one of them changed meanwhile, that is why.

        Raises
        ------
        DataError
            Naming the files that changed.
        """
        try:
            yield
        except WarehouseError as error:
            _, gone, moved = self._data.changes(self._data.again(), lambda _: False, times_count=True)
            changed = [*gone, *(path for path in moved if self._is_another(path))]
            if changed:
                raise _changed_meanwhile(changed) from error
            raise

    def _is_another(self, path: str) -> bool:
        """Return True if the stamp of a raw file is another one than before the build."""
        with contextlib.suppress(OSError):
            return signatures.stamp(Path(path).stat()) != self._data.files[path]
        return True

    def _refuse_changes(self, error: WarehouseError | None = None) -> None:
        changed = [*_changed(self._data, self._digests), *_changed(self._sources, self._tables)]
        if changed:
            raise _changed_meanwhile(changed) from error

    def note(self, result: Result, entries: Iterable[Entry], *, keep: int, kernels: bool) -> None:
        """Leave a snapshot, so that the next build sees at a glance whether there is anything to do."""
        mine = tuple(f"{folder}/" for folder in self._project.folders)
        digests = dict(self._digests)
        for look in (self._data, self._sources):
            after = look.again().files
            for path, seen in look.files.items():
                wanted = path.startswith(mine) if look is self._sources else _is_short_and_racy(seen, look.looked_ns)
                if wanted and seen and path not in digests and after.get(path) == seen:
                    with contextlib.suppress(OSError):  # closed to us: the next build looks again
                        digests[path] = of_content(Path(path))
        summary = result.summary() | {"changed": False, "made": []}
        snapshot.take(
            snapshot.asked(self._settings, keep=keep, kernels=kernels),
            self._data,
            self._sources,
            digests,
            [sign for root in self._settings.data for sign in signs_above(root)],
            self._left(result, entries),
            {"files": len(result.inventory.files), "summary": summary},
        )

    def _left(self, result: Result, entries: Iterable[Entry]) -> set[Path]:
        """All files of the target that readers or the next build need."""
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


def _is_short_and_racy(seen: Sequence[int], looked_ns: int) -> bool:
    """Whether a raw file that is not read was written so shortly before the look that only its content tells."""
    return bool(seen) and signatures.is_racy(seen, looked_ns) and seen[0] <= _SHORT


def _changed(look: signatures.Look, digests: Mapping[str, str]) -> list[str]:
    """Of the files with a digest, those that are gone or hold something else."""
    _, gone, moved = look.changes(look.again(), lambda path: signatures.same_content(path, digests.get(path)))
    return [path for path in (*gone, *moved) if path in digests]
