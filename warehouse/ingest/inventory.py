"""Inventory of raw files with content hashes, and the sources of the relations of `raw`.

The formats of raw files are defined in `warehouse.formats`.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from warehouse.base import hashing
from warehouse.base.errors import DataError
from warehouse.base.text import plural
from warehouse.engine.base import CsvFiles, Engine, Parts, Source
from warehouse.formats.base import (
    PARTIAL,
    SKIPPED,
    ArchiveFormat,
    CsvFormat,
    Format,
    Inventory,
    RawFile,
    Rejected,
    TableFormat,
)
from warehouse.ingest.content_hashes import with_hashes
from warehouse.ingest.partitions import column_of, partition_of
from warehouse.ingest.python_tables import Tables
from warehouse.ingest.repair import LineRepair
from warehouse.ingest.scan import scan, settle_duplicates
from warehouse.ingest.schemas import (
    FILES,
    FILES_COLUMNS,
    REJECTED,
    REJECTED_COLUMNS,
    file_identity,
    file_row,
    source_columns,
)
from warehouse.store.hash_cache import HashCache
from warehouse.store.layout import ALL, partition_name
from warehouse.store.parse_cache import ParseCache
from warehouse.store.part_records import Part
from warehouse.store.parts import Store
from warehouse.store.signatures import is_racy, stamp


class RawFiles:
    """Raw files of one build."""

    def __init__(
        self,
        roots: Sequence[Path],
        formats: Sequence[Format],
        store: Store,
        *,
        cluster: str | None = None,
        leave_out: Sequence[Path] = (),
        paranoid: bool = False,
        max_rejected: float = 1,
        parse_cache: ParseCache | None = None,
        follow_links: bool = False,
        threads: int = 1,
    ) -> None:
        self.formats = {one.name: one for one in formats}
        self._of_csv = {one.name for one in formats if isinstance(one, CsvFormat)}
        self._archives = {one.name: one for one in formats if isinstance(one, ArchiveFormat)}
        self._paranoid = paranoid
        self._started_ns = time.time_ns()
        self._cache = store.target / "cache"
        self._cache.mkdir(parents=True, exist_ok=True)
        self._tables = Tables(store, self._cache, self.formats)
        self._line_repair = LineRepair(
            self._cache / "clean", self.formats, paranoid=paranoid, max_rejected=max_rejected
        )
        folders = [_folder(root, self._cache / "unpacked") for root in roots]
        self._parse_cache = parse_cache or ParseCache(None)
        self._beside: dict[Path, str] = {}
        self._groups: dict[tuple[str, str | None], dict[str | None, list[RawFile]]] = {}
        listed = scan(
            folders,
            formats,
            cluster=cluster,
            leave_out=[store.target, *leave_out],
            inspect=self._inspect,
            follow_links=follow_links,
        )
        files = tuple(itertools.chain.from_iterable(self._with_members(file) for file in listed.files))
        hash_cache = HashCache(self._cache / "digests.json", paranoid=paranoid)
        hashed, self._odd = with_hashes(files, formats, hash_cache, threads)
        settled = settle_duplicates(Inventory(listed.roots, tuple(hashed)))
        self.inventory = settled
        self.repair([file for file in settled.files if self._is_csv(file) and self._may_have_bad_lines(file)])
        self._repair_recorded()

    def _is_csv(self, file: RawFile) -> bool:
        return file.format in self._of_csv

    def _with_members(self, file: RawFile) -> list[RawFile]:
        """Return the file and, for an archive, its members."""
        one = self._archives.get(file.format or "")
        if one is None or not file.is_read:
            return [file]
        from warehouse.ingest.archive_reader import unpack_members

        try:
            members = unpack_members(
                file.path, self._cache / "unpacked", max_bytes=one.max_bytes, max_members=one.max_members
            )
        except DataError as error:
            return [file.but(status=SKIPPED, reason=error.message.removeprefix(f"{file.path}: "))]
        found = [file]
        for member in scan([members.folder], list(self.formats.values()), inspect=self._inspect).files:
            below = f"{file.release_path}/{member.path.relative_to(members.folder).as_posix()}"
            found.append(member if member.is_read else member.but(cluster=file.cluster, release_path=below))
        for name, why in members.refused:
            found.append(file.but(release_path=f"{file.release_path}/{name}", bytes=0, status=SKIPPED, reason=why))
        return found

    def _inspect(self, one: Format, file: RawFile) -> RawFile:
        """Inspect a file with a format; cached while the file and its directory listing are unchanged."""
        seen, folder = stamp(file.path.stat()), file.path.parent
        if is_racy(seen, self._started_ns):
            return one.inspect(file)
        beside = self._beside.get(folder) or hashing.of(sorted(os.listdir(folder)))
        self._beside[folder] = beside
        key = [one.name, one.version, str(file.path), file.release_path, file.cluster, seen, beside]

        def find_out() -> dict[str, object]:
            before, inspected = file._asdict(), one.inspect(file)._asdict()
            return {name: value for name, value in inspected.items() if value != before[name]}

        found = dict(self._parse_cache.get(key, find_out))
        hour = found.get("hour_utc")
        return file.but(**(found | {"hour_utc": datetime.fromisoformat(hour)} if isinstance(hour, str) else found))

    def _may_have_bad_lines(self, file: RawFile) -> bool:
        return file.status == PARTIAL or (file.is_read and file.path in self._odd)

    def unrepaired(self, relation: str, partition: str | None) -> list[RawFile]:
        """Return the files of a relation that were not repaired."""
        return [file for file in self.files_of(relation, partition) if file.clean_path is None]

    def _repair_recorded(self) -> None:
        """Repair the files that an earlier build had to repair after a model failed.

        Only if all files of that group are the same. Then the result depends on the current files, not on earlier ones.
        """
        if not self._line_repair.has_repaired():
            return
        for one in (one for one in self.formats.values() if isinstance(one, CsvFormat)):
            relation = one.relations[0].full_name
            for partition in (None, *sorted(self.partitions(relation))):
                files = self.unrepaired(relation, partition)
                if self._line_repair.is_recorded(files):
                    self.repair(files)

    def repair(self, files: Sequence[RawFile], *, record: bool = False) -> bool:
        """Scan CSV files line by line; read those with bad lines from a repaired copy.

        Return True if any file was repaired. With `record`, the next build repairs these files before it runs models.
        """
        repaired: dict[Path, RawFile] = {}
        rejected: list[Rejected] = []
        for file in files:
            found, lines = self._line_repair.repair(file)
            if found is not file:
                repaired[file.path] = found
                rejected += lines
        if repaired:
            if record:
                self._line_repair.record(files)
            kept = [
                one for one in self.inventory.rejected if one.file not in {f.release_path for f in repaired.values()}
            ]
            self._groups.clear()
            self.inventory = Inventory(
                self.inventory.roots,
                tuple(repaired.get(file.path, file) for file in self.inventory.files),
                tuple(sorted([*kept, *rejected], key=lambda one: (one.file, one.line))),
            )
        return bool(repaired)

    def formats_of(self, relation: str) -> list[Format]:
        """Return the formats whose files have rows for a relation of `raw`."""
        return [one for one in self.formats.values() if any(fed.full_name == relation for fed in one.relations)]

    def files_of(
        self, relation: str, partition: str | None, beside: frozenset[str] = frozenset()
    ) -> tuple[RawFile, ...]:
        """Return the files of a relation, all or of one partition.

        For `raw.files`, `beside` limits the files to those of the named relations.
        """
        if beside:
            formats = {one.name for other in beside for one in self.formats_of(other)}
            return tuple(file for file in self.files_of(relation, partition) if file.format in formats)
        if partition is not None:
            return tuple(self._by(relation, column_of(partition)).get(partition, ()))
        if relation == FILES:
            return self.inventory.files
        if relation == REJECTED:
            return ()
        return self.inventory.of(one.name for one in self.formats_of(relation))

    def _by(self, relation: str, column: str | None) -> Mapping[str | None, Sequence[RawFile]]:
        """Return the files of a relation by partition; cached, since each model that reads the relation needs it."""
        groups = self._groups.get((relation, column))
        if groups is None:
            groups = {}
            for file in self.files_of(relation, None):
                groups.setdefault(partition_of(file, column), []).append(file)
            self._groups[relation, column] = groups
        return groups

    def feeds(self, relation: str) -> bool:
        """Return True if a relation has files or is written by the runner."""
        return relation in (FILES, REJECTED) or bool(self.files_of(relation, None))

    def digest(self, relation: str, partition: str | None, beside: frozenset[str] = frozenset()) -> str:
        """Return the digest of a relation of `raw`: of content hashes and release paths, not of absolute paths."""
        if relation == REJECTED:
            return hashing.of([one._asdict() for one in self.rejected()])
        contents = [
            file_identity(f)
            if relation == FILES
            else (f.release_path, f.format, self.formats[f.format or ""].version, f.reason, f.digest)
            for f in self.files_of(relation, partition, beside)
        ]
        return hashing.of([relation, contents])

    def source(
        self, relation: str, partition: str | None, engine: Engine, beside: frozenset[str] = frozenset()
    ) -> Source:
        """Return the source of a relation of `raw`."""
        if relation == FILES:
            rows = (file_row(file) for file in self.files_of(relation, partition, beside))
            return self._tables.listing(relation, partition_name(partition), FILES_COLUMNS, rows, engine)
        if relation == REJECTED:
            return self._tables.listing(
                relation, ALL, REJECTED_COLUMNS, (one._asdict() for one in self.rejected()), engine
            )
        files = self.files_of(relation, partition)
        formats = self.formats_of(relation)
        if isinstance(formats[0], CsvFormat):
            known = formats[0].relations[0]
            ordered = sorted(files, key=_sort_key)
            headers = {file.read_path: file.header for file in ordered if file.header is not None}
            paths = tuple(file.read_path for file in ordered)
            return CsvFiles(known.columns, paths, known.quote, True, headers, known.forms, known.whole_lines)
        parts = self._table_parts(relation, partition, engine)
        return Parts(source_columns(formats[:1])[relation], tuple(part.path for part in parts))

    def read_tables(self, relations: Iterable[str], engine: Engine) -> None:
        """Read the files that need Python before any model runs, so that all rejected lines are known."""
        for relation in sorted(relations):
            formats = self.formats_of(relation)
            if formats and isinstance(formats[0], TableFormat):
                self._table_parts(relation, None, engine)

    def _table_parts(self, relation: str, partition: str | None, engine: Engine) -> list[Part]:
        """Return the parts of a relation that Python reads, one for each partition."""
        files_of: dict[str, list[RawFile]] = {}
        for file in self.files_of(relation, partition):
            files_of.setdefault(partition_name(partition_of(file)), []).append(file)
        return self._tables.parts(relation, files_of, engine)

    def rejected(self) -> list[Rejected]:
        """Return all rejected lines, sorted by file, line, reason and text."""
        return sorted({*self.inventory.rejected, *self._tables.rejected()})

    def partitions(self, relation: str, column: str | None = None) -> set[str]:
        """Return the partitions of a relation's files, by a column of `raw.files` or by hour or file group."""
        groups = self._by(relation, column)
        return {value for value, files in groups.items() if value and any(file.is_read for file in files)}


def _folder(root: Path, into: Path) -> Path:
    """Return a data folder; for an archive, the folder that it is unpacked to."""
    from warehouse.ingest.archive_reader import is_archive, unpack

    return unpack(root, into) if is_archive(root) else root


def _sort_key(file: RawFile) -> tuple[str, ...]:
    """Return the sort key of a file: the order of its rows, so that rows of consecutive files need no sorting."""
    return (
        file.cluster or "",
        str(file.hour_utc or file.file_group or ""),
        file.switch or "",
        file.port or "",
        file.release_path,
    )


def nothing_to_read(inventory: Inventory) -> DataError:
    """Return the error for data folders without a readable file."""
    where = ", ".join(str(root) for root in inventory.roots)
    seen = plural(len(inventory.files), "file")
    return DataError(
        f"nothing readable in {where}: {seen}, none recognised" if inventory.files else f"no files in {where}",
        hint="see what was found: warehouse doctor -d DIR",
    )
