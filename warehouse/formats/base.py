"""What a raw format says of its files, and what the inventory holds about each.

A format is one module with one object. It knows how its files are named, what their header is, which
relation of schema `raw` they join, and how a damaged file is mended. It knows nothing of models,
engines or targets.

Three kinds:

- `CsvFormat`: the engine reads the files itself, with declared columns;
- `TableFormat`: Python reads them (workbooks, logs, pickles) and hands over rows;
- `ArchiveFormat`: their members are files of the other kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol, runtime_checkable

READ, PARTIAL, SKIPPED, IGNORED, UNKNOWN = "read", "partial", "skipped", "ignored", "unknown"

#: How files may be compressed, by suffix.
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


class RawFile(NamedTuple):
    """One file of a data folder: a row of `raw.files`."""

    path: Path
    """Where it lies, absolute."""
    release_path: str
    """Its path in its release: starts with the cluster's folder, `/` between parts."""
    bytes: int
    mtime_ns: int
    format: str | None = None
    """`zhejiang.port_counters`; None when not recognised."""
    cluster: str | None = None
    hour_utc: datetime | None = None
    """The hour whose rows it holds, UTC without zone, for formats that come by the hour."""
    switch: str | None = None
    """Short name (`Leaf-1`, `ST-leaf-1`) where one file holds one switch."""
    device: str | None = None
    """The switch's own DeviceName, as in the file's first row."""
    port: str | None = None
    """The port's full name where one file holds one port, as in the file's first row."""
    file_group: str | None = None
    """The files that are read together, for formats that come by neither hour nor switch: `seren.GPU_UTIL`."""
    status: str = UNKNOWN
    reason: str | None = None
    """Why it is not simply read: one clause, with the line where there is one."""
    digest: str | None = None
    """xxh3-128 of the content, hexadecimal; set while building."""
    header: tuple[str, ...] | None = None
    """Its columns in their order, where a format finds columns by name and these are not just the declared ones."""
    clean_path: Path | None = None
    """The mended copy that is read instead, for a `partial` file."""

    @property
    def read_path(self) -> Path:
        """The path that an engine reads: the file itself or its mended copy."""
        return self.clean_path or self.path

    @property
    def is_read(self) -> bool:
        """Whether its rows are in the warehouse."""
        return self.status in (READ, PARTIAL)

    def but(self, **changes: object) -> RawFile:
        """A copy with these fields changed."""
        return self._replace(**changes)  # type: ignore[arg-type]


class Rejected(NamedTuple):
    """A line that could not be read: a row of `staging.rejected_rows`."""

    file: str
    """The file's release path."""
    line: int
    """Line number in the file, the header being line 1 (for a workbook: the sheet's row)."""
    reason: str
    text: str
    """The line as it stands, at most 500 characters."""


class RawRelation(NamedTuple):
    """A relation of schema `raw` and what is promised about it."""

    name: str
    """`port_counters`, without the schema."""
    about: str
    columns: Mapping[str, str]
    """Published column name -> DuckDB type, in file order. Every relation also has `filename` VARCHAR, last:
    for CSV files the path that was read (`raw.files.read_path`), for rows that Python read the release path."""
    quote: str = ""
    """The character that fields of its CSV files may be quoted with."""
    limited: bool = False
    """Whether a file stops the build when a larger share of its lines than `--max-rejected` cannot be read."""
    forms: Mapping[str, str] = MappingProxyType({})
    """Column -> regular expression that its fields match as a whole, where the engine would read other texts too."""
    whole_lines: bool = False
    """Whether a row is a line as it stands, the header among them, in one column: for files whose columns differ."""


class Format(Protocol):
    """What both kinds of format have."""

    name: str
    """`zhejiang.port_counters`"""
    version: int
    """Raised when the same file would give other rows: it is part of every fingerprint."""
    relations: Sequence[RawRelation]

    def claims(self, path: Path) -> bool:
        """Whether a file of this name, in this folder, would be one of ours (nothing is opened)."""
        ...

    def inspect(self, file: RawFile) -> RawFile:
        """Open the file, compare its header, fill in what the inventory needs.

        Returns the file with `status` `read`, or `partial` (torn, to be mended), or `skipped` with the reason.
        Reads a few kB, except of a compressed file, whose end is only known by reading all of it.
        """
        ...


@runtime_checkable
class CsvFormat(Format, Protocol):
    """Files that the engine reads: one relation, declared columns, comma separated, header line.

    A file may set its `header`: then columns are found by name, and those that it lacks are NULL.
    """

    def repair(self, file: RawFile, clean: Path) -> Iterator[Rejected]:
        """Write the file's good lines to `clean` (plain text, same header), yield the others."""
        ...


class Watch(Protocol):
    """Is shown the bytes of a file while it is hashed."""

    def __call__(self, chunk: bytes) -> None:
        """Take the next bytes."""
        ...

    def is_odd(self) -> bool:
        """Whether the file should be looked through line by line, though the engine may well read it."""
        ...


@runtime_checkable
class WatchedFormat(CsvFormat, Protocol):
    """Files of which something is worth knowing that can be seen while they are hashed."""

    def watch(self) -> Watch:
        """What looks on while one file is hashed."""
        ...


@runtime_checkable
class TableFormat(Format, Protocol):
    """Files that Python reads."""

    def read(self, files: Sequence[RawFile], relation: str, reject: list[Rejected]) -> Iterator[Mapping[str, object]]:
        """Rows of `relation` (a name from `relations`) from these files, in order, as dictionaries.

        Each row has every declared column and `filename`. A row that cannot be read is appended to
        `reject` and left out.

        Raises
        ------
        warehouse.base.errors.DataError
            When the file as a whole cannot be used; the sentence names it.
        """
        ...


@runtime_checkable
class ArchiveFormat(Format, Protocol):
    """Archives that lie among other files: their members are read as if they lay there; no relation of its own."""

    max_bytes: int
    max_members: int
    """What the members may add up to."""


@dataclass(frozen=True)
class Inventory:
    """All files of the data folders, recognised or not, in order of release path."""

    roots: tuple[Path, ...]
    files: tuple[RawFile, ...]
    rejected: tuple[Rejected, ...] = ()

    @cached_property
    def _of(self) -> dict[frozenset[str], tuple[RawFile, ...]]:
        """What was asked already: models ask for the same again and again."""
        return {}

    def of(self, relation_formats: Iterable[str]) -> tuple[RawFile, ...]:
        """The files that are read for these formats."""
        names = frozenset(relation_formats)
        if names not in self._of:
            self._of[names] = tuple(file for file in self.files if file.is_read and file.format in names)
        return self._of[names]
