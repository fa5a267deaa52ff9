"""Interfaces of raw formats, and the records of the inventory of raw files.

A format is one module with one object. It knows the names and headers of its files, the relations of schema `raw` that
they feed, and how to repair a damaged file. It knows nothing of models, engines or targets.

Three kinds:

- `CsvFormat`: the engine reads the files, with declared columns;
- `TableFormat`: Python reads the files (workbooks, logs, pickles) and yields rows;
- `ArchiveFormat`: the members of an archive are files of the other kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol, runtime_checkable

READ, PARTIAL, SKIPPED, IGNORED, UNKNOWN = "read", "partial", "skipped", "ignored", "unknown"

#: File suffix -> compression.
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}

_RAW = "raw."


def is_raw(relation: str) -> bool:
    """Return True if a relation is of schema `raw`: its rows come from raw files."""
    return relation.startswith(_RAW)


class RawFile(NamedTuple):
    """One file of a data folder: a row of `raw.files`."""

    path: Path
    """Absolute path of the file."""
    release_path: str
    """Path within the release: begins with the cluster's folder, `/` between parts."""
    bytes: int
    mtime_ns: int
    format: str | None = None
    """Name of the format, `zhejiang.port_counters`; None when not recognized."""
    cluster: str | None = None
    hour_utc: datetime | None = None
    """Hour of the rows, UTC without zone, for formats with one file per hour."""
    switch: str | None = None
    """Short name of the switch (`Leaf-1`, `ST-leaf-1`), for formats with one switch per file."""
    device: str | None = None
    """DeviceName of the switch, from the file's first row."""
    port: str | None = None
    """Full name of the port, from the file's first row, for formats with one port per file."""
    file_group: str | None = None
    """Group of files that are read together, for formats without hours and switches: `seren.GPU_UTIL`."""
    status: str = UNKNOWN
    reason: str | None = None
    """Why the file is not read in full: one clause, with the line number where there is one."""
    digest: str | None = None
    """xxh3-128 hash of the content, hexadecimal; set during the build."""
    header: tuple[str, ...] | None = None
    """Columns in file order, for formats that find columns by name. None if they are the declared columns."""
    clean_path: Path | None = None
    """Repaired copy of a `partial` file; it is read instead of the file."""
    seen: Sequence[int] = ()
    """Signature of the file before it was opened: size, mtime, ctime, inode."""
    is_odd: bool = False
    """True if a line may be bad although the file looks intact, so that each line is checked before it is read."""

    @property
    def read_path(self) -> Path:
        """Path that the engine reads: the repaired copy if there is one, else the file."""
        return self.clean_path or self.path

    @property
    def is_read(self) -> bool:
        """True if the rows of the file are in the warehouse."""
        return self.status in (READ, PARTIAL)

    def but(self, **changes: object) -> RawFile:
        """Return a copy with these fields changed."""
        return self._replace(**changes)  # type: ignore[arg-type]


class Rejected(NamedTuple):
    """Line that could not be read: a row of `staging.rejected_rows`."""

    file: str
    """Release path of the file."""
    line: int
    """Line number in the file; the header is line 1. For a workbook, the row number in the sheet."""
    reason: str
    text: str
    """Text of the line, unchanged, at most 500 characters."""


class RawRelation(NamedTuple):
    """Relation of schema `raw`, with its columns and their constraints."""

    name: str
    """Name without the schema: `port_counters`."""
    about: str
    columns: Mapping[str, str]
    """Published column name -> DuckDB type, in file order.

    Every relation also has `filename` VARCHAR as its last column. For CSV files it is the path that was read
    (`raw.files.read_path`), for rows read in Python the release path.
    """
    quote: str = ""
    """Quote character of fields in the CSV files; empty if fields are never quoted."""
    limited: bool = False
    """True if the build stops when the share of unreadable lines in one file exceeds `--max-rejected`."""
    forms: Mapping[str, str] = MappingProxyType({})
    """Column -> regular expression that each field must match in full, where the engine alone would accept more."""
    whole_lines: bool = False
    """True if a row is one unparsed line in a single column, header included: for files whose columns vary."""
    required: frozenset[str] = frozenset()
    """Columns of `forms` whose fields may not be blank."""
    uniform: bool = False
    """True if the lines of a file differ in their numbers alone, so that odd ones are found while it is hashed."""
    delimiter: str = ","
    encoding: str = "utf-8"
    has_header: bool = True
    """False if the first line of the CSV files is a row."""
    meanings: Mapping[str, tuple[str | None, str]] = MappingProxyType({})
    """Column -> unit and meaning, where the format states them."""

    @property
    def full_name(self) -> str:
        """Name with the schema: `raw.port_counters`."""
        return _RAW + self.name


class Format(Protocol):
    """Members that all kinds of format have."""

    name: str
    """Name of the format: `zhejiang.port_counters`."""
    version: int
    """Increased when the same file would yield different rows. Part of every fingerprint."""
    relations: Sequence[RawRelation]

    def claims(self, path: Path) -> bool:
        """Return True if the name and folder of a file fit this format. The file is not opened."""

    def inspect(self, file: RawFile) -> RawFile:
        """Open the file, compare its header and fill in the fields of the inventory.

        Returns the file with `status` set: `read`, `partial` (damaged, to be repaired) or `skipped`, the latter two
        with a reason. Reads a few kB of a plain file. A compressed file is read in full, since only its end shows
        whether it is complete.
        """


@runtime_checkable
class CsvFormat(Format, Protocol):
    """Comma-separated files with a header line that the engine reads: one relation, declared columns.

    If a file sets `header`, columns are found by name, and missing columns are NULL.
    """

    def repair(self, file: RawFile, clean: Path) -> Iterator[Rejected]:
        """Write the good lines of a file to `clean` (plain text, same header) and yield the others."""


@runtime_checkable
class TableFormat(Format, Protocol):
    """Files that Python reads."""

    def read(self, files: Sequence[RawFile], relation: str, reject: list[Rejected]) -> Iterator[Mapping[str, object]]:
        """Yield the rows of `relation` (a name from `relations`) from these files, in order, as dictionaries.

        Each row has every declared column and `filename`. A row that cannot be read is appended to `reject` instead.

        Raises
        ------
        warehouse.base.errors.DataError
            If the whole file is unusable; the message names it.
        """


@runtime_checkable
class ArchiveFormat(Format, Protocol):
    """Archives among the raw files, without a relation: the members are read like files in the archive's folder."""

    max_bytes: int
    max_members: int
    """Upper limits for the total size and number of members."""


class Inventory:
    """All files of the data folders, recognized or not, in order of release path."""

    def __init__(self, roots: Iterable[Path], files: Iterable[RawFile] = (), rejected: Iterable[Rejected] = ()) -> None:
        self.roots = tuple(roots)
        self.files = tuple(files)
        self.rejected = tuple(rejected)

    def statuses(self) -> dict[str, int]:
        """Return the number of files by status."""
        return dict(Counter(file.status for file in self.files))

    @property
    def count(self) -> int:
        """Number of files."""
        return len(self.files)

    @property
    def is_readable(self) -> bool:
        """True if any file is read."""
        return any(file.is_read for file in self.files)
