"""Index of raw files by relation and partition; the rows of a folder are decoded when they are asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from warehouse.base import hashing
from warehouse.engine.globs import escape_glob
from warehouse.formats.base import PARTIAL, READ, Format, Group, Inventory, RawFile, Rejected
from warehouse.ingest.file_list import FileList, line_of
from warehouse.ingest.known_folders import Record, RowGroup, decoded, groups_of
from warehouse.ingest.partitions import column_of, named, partition_of
from warehouse.ingest.scan import in_order
from warehouse.store.layout import ALL

_IN_MEMORY = 50_000
"""Number of decoded rows that are kept."""
_OF_FILES = ("port", "device")
"""Columns of `raw.files` that groups do not have."""
Chosen = frozenset[str] | None
"""Formats of files that are read; None for all files, read or not."""


class Section:
    """Files of one folder: encoded, or as a later step changed them.

    Parameters
    ----------
    record
        The encoded files; None if `files` are given.
    files, odd
        The files, in place of the record's, and those in which a line may be bad.
    """

    def __init__(self, record: Record | None, files: Sequence[RawFile] = (), odd: Iterable[Path] = ()) -> None:
        self.record = record
        self._odd = set(odd)
        self.changed: list[RawFile] | None = None
        self.is_asked = False
        """True if somebody asked for the files, and so may have read them."""
        self.groups: Sequence[RowGroup] = record.groups if record else ()
        if record is None:
            self.change(files, odd)

    def change(self, files: Iterable[RawFile], odd: Iterable[Path]) -> None:
        """Replace the files."""
        self.changed = list(files)
        self.groups = groups_of(self.changed, odd)

    def files(self) -> list[RawFile]:
        """Return the files."""
        self.is_asked = True
        if self.changed is not None:
            return self.changed
        return decoded(self.record) if self.record else []

    def odd(self) -> set[Path]:
        """Return the files in which a line may be bad."""
        if self.record is None:
            return self._odd
        folder = self.record.folder().path
        return {Path(folder, name) for name in self.record.odd_names()}

    def damaged(self, formats: Collection[str]) -> list[RawFile]:
        """Return the files of these formats that may have bad lines."""
        if not any(group.format in formats and (group.status == PARTIAL or group.odd) for group in self.groups):
            return []
        odd = self.odd()
        return [
            file
            for file in self.files()
            if file.format in formats and (file.status == PARTIAL or (file.is_read and file.path in odd))
        ]

    def line(self, formats: Sequence[Format]) -> bytes:
        """Return the files as they stand in the file list of a build."""
        if self.changed is not None or self.record is None:
            return line_of(self.files(), formats)
        return self.record.listed

    def pattern(self) -> str | None:
        """Return the pattern that matches exactly the files, if they are alike and as the folder's record has them."""
        if self.changed is not None or self.record is None or not self.record.suffix:
            return None
        folder = self.record.folder().path
        return None if "\\" in folder else f"{escape_glob(folder)}/*{self.record.suffix}"


class FileIndex:
    """Index of the sections of a build.

    Parameters
    ----------
    sections
        All files of the data folders.
    formats
        Formats by name.
    """

    def __init__(self, sections: Iterable[Section], formats: Mapping[str, Format]) -> None:
        self.sections = list(sections)
        self.order: dict[Path, tuple[str, str]] = {}
        """Sort keys of members of archives: they follow their archive."""
        self._formats = formats
        self._decoded: dict[int, list[RawFile]] = {}
        self._in_memory = 0
        self._by_column: dict[tuple[Chosen, str | None, bool], dict[str, list[Section]]] = {}
        self._chosen: dict[tuple[Chosen, bool], list[Section]] = {}
        self._places: dict[tuple[str | None, bool], dict[int, None]] = {}
        """Places in `sections` of files of a format, read and unread."""
        self._groups: dict[str, dict[str, list[RowGroup]]] = {}
        self._digests: dict[str, str] = {}
        self._partitions: dict[tuple[Chosen, str | None], set[str]] = {}

    def refresh(self) -> None:
        """Forget derived values, after sections have changed."""
        derived = (self._by_column, self._chosen, self._places, self._groups, self._digests, self._partitions)
        for cached in (self._decoded, *derived):
            cached.clear()
        self._in_memory = 0

    def replace(self, changed: Mapping[Path, RawFile]) -> None:
        """Replace some files, given by path."""
        if not changed:
            return
        folders = {str(path.parent) for path in changed}
        for section in self.sections:
            if section.record is None or section.record.folder().path in folders:
                files = section.files()
                if any(file.path in changed for file in files):
                    section.change((changed.get(file.path, file) for file in files), section.odd())
        self.refresh()

    def groups(self) -> Iterator[RowGroup]:
        """Yield all groups of files."""
        return (group for section in self.sections for group in section.groups)

    def files_in(self, section: Section) -> list[RawFile]:
        """Return the files of a section; the last ones stay decoded."""
        if section.changed is not None:
            return section.changed
        found = self._decoded.get(id(section))
        if found is None:
            found = section.files()
            if self._in_memory > _IN_MEMORY:
                self._decoded.clear()
                self._in_memory = 0
            self._decoded[id(section)] = found
            self._in_memory += len(found)
        return found

    def files(self, chosen: Chosen, partition: str | None = None, *, unread: bool = False) -> tuple[RawFile, ...]:
        """Return the files of some formats, all or of one partition, in order; with `unread`, unread ones, too."""
        column = column_of(partition) if partition else None
        sections = self._by(chosen, column, unread).get(partition, []) if partition else self._having(chosen, unread)
        found = [
            file
            for section in sections
            for file in self.files_in(section)
            if (chosen is None or ((unread or file.is_read) and file.format in chosen))
            and (partition is None or partition_of(file, column) == partition)
        ]
        return tuple(sorted(found, key=self.place))

    def patterns(self, chosen: Chosen) -> tuple[list[str], list[RawFile]]:
        """Return patterns for folders whose files are alike, and all other files that are read, in order."""
        found: list[str] = []
        others: list[RawFile] = []
        for section in self._having(chosen):
            if pattern := section.pattern():
                found.append(pattern)
            else:
                others += (file for file in self.files_in(section) if file.is_read and file.format in (chosen or ()))
        return found, sorted(others, key=self.place)

    def place(self, file: RawFile) -> tuple[str, str, str, str]:
        """Return the sort key of a file."""
        own = in_order(file)
        return (*self.order[file.path], *own) if file.path in self.order else (*own, "", "")

    def partitions(self, chosen: Chosen, column: str | None) -> set[str]:
        """Return the partitions of files that are read; without a column, by hour or else by file group."""
        if column in _OF_FILES:
            read = (file for file in self.files(chosen) if file.is_read)
            return {name for file in read if (name := partition_of(file, column))}
        if (chosen, column) not in self._partitions:
            groups = (group for section in self._having(chosen) for group in section.groups if is_read(group))
            names = {partition_of_group(one, column) for one in groups if chosen is None or one.format in chosen}
            self._partitions[chosen, column] = {name for name in names if name}
        return self._partitions[chosen, column]

    def count(self) -> int:
        """Return the number of all files."""
        return sum(group.count for group in self.groups())

    def has(self, chosen: Chosen) -> bool:
        """Return True if there is a file of these formats."""
        return bool(self._having(chosen))

    def _having(self, chosen: Chosen, unread: bool = False) -> list[Section]:
        """Return the sections with a file of these formats."""
        if chosen is None:
            return self.sections
        if (chosen, unread) not in self._chosen:
            if not self._places:
                for place, section in enumerate(self.sections):
                    for group in section.groups:
                        self._places.setdefault((group.format, is_read(group)), {})[place] = None
            kinds = [(one, read) for one in chosen for read in ((True, False) if unread else (True,))]
            places = {place for kind in kinds for place in self._places.get(kind, ())}
            self._chosen[chosen, unread] = [self.sections[place] for place in sorted(places)]
        return self._chosen[chosen, unread]

    def _by(self, chosen: Chosen, column: str | None, unread: bool) -> dict[str, list[Section]]:
        """Return the sections by partition; each may have files of other partitions, too."""
        found = self._by_column.get((chosen, column, unread))
        if found is None:
            found = self._by_column[chosen, column, unread] = {}
            for section in self._having(chosen, unread):
                if column in _OF_FILES:
                    names = {partition_of(file, column) for file in self.files_in(section)}
                else:
                    names = {partition_of_group(group, column) for group in section.groups}
                for name in names:
                    if name:
                        found.setdefault(name, []).append(section)
        return found

    def partition_digest(self, partition: str) -> str:
        """Return the digest of names, statuses and content of all files of a partition, of every format."""
        if partition not in self._digests:
            groups = self._groups_of(partition)
            self._digests[partition] = hashing.of(sorted((one.digest, self.version(one.format)) for one in groups))
        return self._digests[partition]

    def _groups_of(self, partition: str) -> Iterable[RowGroup]:
        column = None if partition == ALL else column_of(partition)
        if column in _OF_FILES:
            return groups_of(self.files(None, partition))
        if column is None:
            return self.groups()
        if column not in self._groups:
            by_name = self._groups[column] = {}
            for group in self.groups():
                if name := partition_of_group(group, column):
                    by_name.setdefault(name, []).append(group)
        return self._groups[column].get(partition, [])

    def version(self, name: str | None) -> int:
        """Return the version of a format; 0 for no format."""
        return self._formats[name].version if name else 0

    def listing(self) -> FileList:
        """Return the file list of the build."""
        formats = list(self._formats.values())
        lines = (section.line(formats) for section in self.sections)
        return FileList(line for line in lines if line)


def is_read(group: RowGroup) -> bool:
    """Return True if the rows of the files are in the warehouse."""
    return group.status in (READ, PARTIAL)


def partition_of_group(group: RowGroup, column: str | None) -> str | None:
    """Return the partition of the files of a group by a column of `raw.files`, see `partition_of`."""
    if column is None:
        return partition_of_group(group, "hour_utc") or partition_of_group(group, "file_group")
    value = getattr(group, column)
    if value is None:
        return None
    return str(value)[:13] if column == "hour_utc" else named(column, value)


class LazyInventory(Inventory):
    """Inventory whose files are decoded when they are asked for."""

    def __init__(self, roots: Iterable[Path], index: FileIndex, rejected: Iterable[Rejected] = ()) -> None:
        super().__init__(roots, (), rejected)
        self._index = index

    @property
    def files(self) -> tuple[RawFile, ...]:
        """All files."""
        return self._index.files(None)

    def groups(self) -> Iterable[Group]:
        """Return counts of files."""
        return (Group(one.format, one.status, one.hour_utc, one.count) for one in self._index.groups())


def colliding(sections: Iterable[Section]) -> list[Section]:
    """Return the sections in which two files may be about the same; the others need no comparison of files."""
    first: dict[tuple[str | None, ...], Section] = {}
    found: dict[int, Section] = {}
    for section in sections:
        if section.record is None or section.record.repeats:
            found[id(section)] = section
        for group in section.groups:
            if not is_read(group):
                continue
            subject: tuple[str | None, ...] = (group.format, group.where)
            if group.hour_utc:
                subject = (group.format, group.cluster, group.hour_utc, group.switch)
            other = first.setdefault(subject, section)
            if other is not section:
                found |= {id(other): other, id(section): section}
    return list(found.values())
