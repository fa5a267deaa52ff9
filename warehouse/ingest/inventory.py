"""Inventory of raw files with content hashes, and the sources of the relations of `raw`.

The formats of raw files are defined in `warehouse.formats`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from warehouse.base import hashing
from warehouse.base.errors import DataError
from warehouse.engine.base import Engine, Parts, Source
from warehouse.engine.workers import Workers
from warehouse.formats.base import (
    SKIPPED,
    ArchiveFormat,
    CsvFormat,
    Format,
    Inventory,
    RawFile,
    Rejected,
    TableFormat,
)
from warehouse.ingest.content_hashes import FolderReader
from warehouse.ingest.file_index import FileIndex, LazyInventory, Section, colliding
from warehouse.ingest.file_list import FileList
from warehouse.ingest.files_table import files_table
from warehouse.ingest.known_folders import NAME, KnownFolders, Record, environment_of
from warehouse.ingest.partitions import partition_of
from warehouse.ingest.python_tables import Tables
from warehouse.ingest.repair import Changed, LineRepair
from warehouse.ingest.scan import Places, check_roots, settle_duplicates
from warehouse.ingest.schemas import (
    FILES,
    FILES_COLUMNS,
    REJECTED,
    REJECTED_COLUMNS,
    csv_source,
    file_identity,
    file_row,
    source_columns,
)
from warehouse.store.folders import Walk, walk_data
from warehouse.store.layout import ALL, partition_name
from warehouse.store.part_records import Part
from warehouse.store.parts import Store


class RawFiles:
    """Raw files of one build.

    Parameters
    ----------
    roots
        Data folders, files and archives.
    formats
        Formats in order of precedence.
    store
        The target.
    environment
        Hash of the package and everything else that the rows of a file depend on.
    walk
        A walk over the same folders that has just ended.
    share, names_in_shares
        The share of a build. Names of folders where shares were made, each with the name of the same folder here.
    """

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
        environment: str = "",
        follow_links: bool = False,
        trust_folders: bool = False,
        threads: int = 1,
        workers: Workers | None = None,
        walk: Walk | None = None,
        share: str | None = None,
        names_in_shares: Mapping[str, str] | None = None,
    ) -> None:
        self.formats = {one.name: one for one in formats}
        self._of_csv = {one.name for one in formats if isinstance(one, CsvFormat)}
        self._archives = {one.name: one for one in formats if isinstance(one, ArchiveFormat)}
        self._cache = store.target / "cache"
        self._cache.mkdir(parents=True, exist_ok=True)
        self._store = store
        self._tables = Tables(store, self._cache, self.formats, max_rejected)
        self._all_files: Parts | None = None
        self._line_repair = LineRepair(
            self._cache / "clean", self.formats, paranoid=paranoid, max_rejected=max_rejected
        )
        environment = environment_of(formats, environment)
        self._known = KnownFolders(
            self._cache / NAME, environment, paranoid=paranoid, share=share, names=names_in_shares
        )
        self._reader = FolderReader(formats, self._known, threads, workers or Workers(1))
        from warehouse.ingest.archive_reader import data_folder

        folders = [data_folder(root, self._cache / "unpacked") for root in roots]
        check_roots(folders)
        self._looked_at = {str(root.absolute()) for root, folder in zip(roots, folders, strict=True) if root != folder}
        if walk is None or folders != list(roots):
            known, skipped = None if paranoid else self._known.folder, [store.target, *leave_out]
            walk = walk_data(folders, skipped, follow_links=follow_links, known=known, trust=trust_folders)
        records = self._records(walk, Places(cluster))
        self._index = FileIndex((Section(record) for record in records), self.formats)
        self._unpack_members(records)
        self._known.save(records)
        self._by_folder = {record.key: record for record in records}
        self.inventory: Inventory = LazyInventory((root.absolute() for root in folders), self._index)
        self._settle()
        self.repair([file for section in self._index.sections for file in section.damaged(self._of_csv)])
        self._repair_recorded()

    def _records(self, walk: Walk, places: Places) -> list[Record]:
        """Return the records of all folders in a walk; look at the files of changed folders."""
        found: list[Record | None] = []
        changed = []
        for folder in walk.folders().values():
            place = places.of(folder)
            record = self._known.unchanged(folder, place)
            if record is None:
                changed.append((folder, place))
                self._looked_at.add(folder.key)
            found.append(record)
        read = iter(self._reader.records(changed) if changed else ())
        return [record or next(read) for record in found]

    def _unpack_members(self, records: list[Record]) -> None:
        """Add the members of archives among the files, and the records of their folders."""
        for section in list(self._index.sections):
            if all(group.format not in self._archives for group in section.groups):
                continue
            files = section.files()
            for at, file in enumerate(files):
                one = self._archives.get(file.format or "")
                if one is None or not file.is_read:
                    continue
                try:
                    members = self._members(file, one, records)
                except DataError as error:
                    reason = error.message.removeprefix(f"{file.path}: ")
                    files[at] = file.but(status=SKIPPED, reason=reason, digest=None)
                    section.change(files, ())
                    continue
                self._index.sections.append(members)
        self._index.refresh()

    def _members(self, file: RawFile, one: ArchiveFormat, records: list[Record]) -> Section:
        """Return the members of an archive."""
        from warehouse.ingest.archive_reader import unpack_members

        members = unpack_members(
            file.path, self._cache / "unpacked", max_bytes=one.max_bytes, max_members=one.max_members
        )
        found = []
        inside = self._records(walk_data([members.folder], ()), Places(None))
        records += inside
        odd = set().union(*(Section(record).odd() for record in inside))
        for member in (member for record in inside for member in Section(record).files()):
            below = f"{file.release_path}/{member.path.relative_to(members.folder).as_posix()}"
            found.append(member if member.is_read else member.but(cluster=file.cluster, release_path=below))
            self._index.order[member.path] = (file.release_path, str(file.path))
        for name, why in members.refused:
            path = f"{file.release_path}/{name}"
            found.append(file.but(release_path=path, bytes=0, status=SKIPPED, reason=why, digest=None))
        return Section(None, found, odd)

    def _settle(self) -> None:
        """Ignore duplicates of files."""
        sections = colliding(self._index.sections)
        if not sections:
            return
        files = sorted((file for section in sections for file in section.files()), key=self._index.place)
        self._index.replace(
            {now.path: now for now, before in zip(settle_duplicates(files), files, strict=True) if now is not before}
        )

    def unrepaired(self, relation: str, partition: str | None) -> list[RawFile]:
        """Return the files of a relation that were not repaired."""
        return [file for file in self.files_of(relation, partition) if file.clean_path is None]

    def _repair_recorded(self) -> None:
        """Repair the files that an earlier build had to repair after a model failed.

        Only if all files of that group are the same. Then the result depends on the current files, not on earlier ones.
        """
        recorded = self._line_repair.recorded()
        for one in (self.formats[name] for name in self._of_csv) if recorded else ():
            relation = one.relations[0].full_name
            for partition in (None, *sorted(self.partitions(relation))):
                if recorded.isdisjoint({None, (one.name, partition)}):
                    continue
                files = self.unrepaired(relation, partition)
                if self._line_repair.is_recorded(files):
                    self.repair(files)

    def repair(self, files: Sequence[RawFile], *, record: bool = False) -> bool:
        """Scan CSV files line by line; read those with bad lines from a repaired copy. Return True if there are any.

        With `record`, the next build repairs these files before it runs models.
        """
        is_any = self._change(self._line_repair.repair, files)
        if is_any and record:
            partition, *others = {partition_of(file) for file in files}
            self._line_repair.record(files, None if others else partition)
        return is_any

    def refuse_unreadable(self, relation: str, partition: str | None, engine: Engine) -> bool:
        """Skip the CSV files of a relation that the engine refuses; return True if there are any."""
        return self._change(partial(self._line_repair.refuse, engine), self.files_of(relation, partition))

    def _change(self, change: Callable[[RawFile], Changed], files: Iterable[RawFile]) -> bool:
        """Replace the rows of the files that a function changes, and their rejected lines."""
        found = {file.path: seen for file in files if (seen := change(file))[0] is not file}
        if found:
            paths = {file.release_path for file, _ in found.values()}
            rejected = [one for one in self.inventory.rejected if one.file not in paths]
            rejected += (one for _, lines in found.values() for one in lines)
            self._index.replace({path: file for path, (file, _) in found.items()})
            self._all_files = None
            rejected.sort(key=lambda one: (one.file, one.line))
            self.inventory = LazyInventory(self.inventory.roots, self._index, rejected)
        return bool(found)

    def record(self, folder: str) -> Record | None:
        """Return the record of a folder; None for an archive, whose members are in another place."""
        return self._by_folder.get(os.fsencode(folder))

    def read_folders(self) -> set[str]:
        """Return folders and archives that this build may have read; all others are known from earlier builds alone."""
        asked = (section.record for section in self._index.sections if section.is_asked and section.record)
        return self._looked_at.union(os.fsdecode(record.key) for record in asked)

    def listing(self) -> FileList:
        """Return the list of the raw files, which is stored with a build."""
        return self._index.listing()

    def partition_digest(self, partition: str) -> str:
        """Return the digest of all raw files of a partition (`all`: of all raw files), of every relation.

        It covers release paths, status, reason and content of the files, read or not, and the versions of their
        formats. It does not cover absolute paths and times. For an unchanged hour, no file is decoded.
        """
        return self._index.partition_digest(partition)

    def formats_of(self, relation: str) -> list[Format]:
        """Return the formats whose files have rows for a relation of `raw`."""
        return [one for one in self.formats.values() if any(fed.full_name == relation for fed in one.relations)]

    def files_of(
        self, relation: str, partition: str | None, beside: frozenset[str] = frozenset()
    ) -> tuple[RawFile, ...]:
        """Return the files of a relation, all or of one partition.

        For `raw.files`, `beside` limits the files to those of the named relations.
        """
        if relation == REJECTED:
            return ()
        return self._index.files(self._formats_read(relation, beside), partition, unread=bool(beside))

    def _formats_read(self, relation: str, beside: frozenset[str] = frozenset()) -> frozenset[str] | None:
        if relation == FILES and not beside:
            return None
        return frozenset(one.name for other in beside or {relation} for one in self.formats_of(other))

    def feeds(self, relation: str) -> bool:
        """Return True if a relation has files or is written by the runner."""
        return relation in (FILES, REJECTED) or self._index.has(self._formats_read(relation))

    def digest(self, relation: str, partition: str | None, beside: frozenset[str] = frozenset()) -> str:
        """Return the digest of a relation of `raw`: of content hashes and release paths, not of absolute paths."""
        if relation == REJECTED:
            return hashing.of([one._asdict() for one in self.rejected()])
        if relation == FILES and partition is None and not beside:
            return self.partition_digest(ALL)
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
        if relation == FILES and partition is None and not beside:
            if self._all_files is None:
                self._all_files = files_table(self._index, self._store, self._tables, engine)
            return self._all_files
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
            return csv_source(formats[0], files)
        parts = self._table_parts(relation, partition, engine)
        return Parts(source_columns(formats[:1])[relation], tuple(part.file for part in parts))

    def source_of_view(self, relation: str, engine: Engine) -> Source:
        """Return the source of a relation for a view, whose rows have no order. Most folders are one pattern."""
        one = next(iter(self.formats_of(relation)), None)
        if relation == FILES or not isinstance(one, CsvFormat) or one.relations[0].whole_lines:
            return self.source(relation, None, engine)
        patterns, files = self._index.patterns(self._formats_read(relation))
        return csv_source(one, files)._replace(globs=tuple(patterns))

    def read_tables(self, relations: Iterable[str], engine: Engine, wanted: Collection[str] | None = None) -> None:
        """Read the files (of `wanted` partitions) that need Python before models run: rejected lines are known then."""
        for relation in sorted(relations):
            formats = self.formats_of(relation)
            if formats and isinstance(formats[0], TableFormat):
                self._table_parts(relation, None, engine, wanted)

    def _table_parts(
        self, relation: str, partition: str | None, engine: Engine, wanted: Collection[str] | None = None
    ) -> list[Part]:
        """Return the parts of a relation that Python reads, one for each partition."""
        files_of: dict[str, list[RawFile]] = {}
        for file in self.files_of(relation, partition):
            name = partition_name(partition_of(file))
            if wanted is None or name in wanted:
                files_of.setdefault(name, []).append(file)
        return self._tables.parts(relation, files_of, engine)

    def rejected(self) -> list[Rejected]:
        """Return all rejected lines, sorted by file, line, reason and text."""
        return sorted({*self.inventory.rejected, *self._tables.rejected()})

    def partitions(self, relation: str, column: str | None = None) -> set[str]:
        """Return the partitions of a relation's files, by a column of `raw.files` or by hour or file group."""
        return self._index.partitions(self._formats_read(relation), column)
