"""The four tables of an hour (`flow`, `nic`, `link`, `port`) as CSV files, `<hour>_<table>.csv`.

Docs: docs/formats/hour_tables.md. The release's document describes the tables. The public repository has the tables of
one hour, which were not available when this reader was written. So it assumes little about their form. Columns are
found by name (`hour_header`), and values keep their text. DuckDB's scanner reads the rows of the usual forms
(`hour_scan`), Python all others (`hour_rows`). An invalid row is rejected with its line number, and the read goes on.
"""

from __future__ import annotations

import codecs
import contextlib
import itertools
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from warehouse.base.errors import DataError, Place
from warehouse.base.startup import regex
from warehouse.formats import compressed, torn_lines
from warehouse.formats.base import PARTIAL, READ, SKIPPED, RawFile, RawRelation, Rejected, Scan
from warehouse.formats.zhejiang import hour_scan
from warehouse.formats.zhejiang.hour_header import HourHeader, fits_shifted, other_table, read_header
from warehouse.formats.zhejiang.hour_lines import fields_of, layout_of, numbered_lines, row_of, write_level
from warehouse.formats.zhejiang.hour_rows import REPEATED, TABLES, VERSION, hour_of, typed_rows
from warehouse.formats.zhejiang.hour_units import check_units
from warehouse.formats.zhejiang.hour_workbook import HOUR_WORKBOOK

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from warehouse.formats.zhejiang.hour_columns import HourTable


_MARKS = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd", "zip": b"PK\x03\x04"}
"""First bytes of packed files."""


_SAMPLE_BYTES = 64 * 1024
"""Size of the first rows whose units are checked: the first minute of a table may have zeros alone."""


class HourCsv:
    """Formats `zhejiang.flow`, `zhejiang.nic`, `zhejiang.link` and `zhejiang.port`."""

    def __init__(self, table: HourTable) -> None:
        self._table = table
        self._file_name = regex(rf"[0-9]{{10}}_{table.name}\.csv(\.gz|\.zst)?", re.IGNORECASE)
        self.name = f"zhejiang.{table.name}"
        self.version = VERSION + table.version
        self.relations: Sequence[RawRelation] = (table.relation,)

    def claims(self, path: Path) -> bool:
        """Return True if the file is named like this table of some hour."""
        return self._file_name.fullmatch(path.name) is not None

    def inspect(self, file: RawFile) -> RawFile:
        """Compare the header; take the hour (local time) from the file name."""
        try:
            found = file.but(hour_utc=hour_of(file.path))
            head = compressed.head(file.path)
            if not head:
                return file.but(status=SKIPPED, reason="empty file")
            if problem := _wrong_kind(head):
                return file.but(status=SKIPPED, reason=problem)
            header, _ = self._header(head)
            check_units(self._table, header, _picked(header, _split(header, compressed.head(file.path, _SAMPLE_BYTES))))
        except compressed.STREAM_ERRORS as error:
            return file.but(status=SKIPPED, reason=f"cannot be decompressed: {error}")
        except ValueError as error:
            return file.but(status=SKIPPED, reason=str(error))
        damage = _end_damage(file.path)
        return found.but(status=PARTIAL if damage else READ, reason=_reason(damage, *header.applied))

    def read(self, files: Sequence[RawFile], relation: str, reject: list[Rejected]) -> Iterator[Mapping[str, object]]:
        """Yield the rows of the files, line by line.

        Raises
        ------
        DataError
            If a file cannot be opened, or its header changed since it was inspected.
        """
        for file in files:
            header, _ = self._header_of(file)
            try:
                lines = itertools.islice(numbered_lines(file.read_path), header.line, None)
                yield from self._typed(file, header, lines, reject)
            except OSError as error:
                raise DataError(f"cannot be read: {error.strerror}", place=Place(file.path)) from error

    def scan(self, file: RawFile, copy: Path | None = None) -> Scan | None:
        """Return the SELECTs of one file, or of its level copy, which is written; None if only a copy can be read.

        Raises
        ------
        DataError
            If the file cannot be opened, or its header changed since it was inspected.
        """
        if file.status != READ and copy is None:
            return None
        header, rows = self._header_of(file)
        lines = write_level(file.read_path, copy, header) if copy else hour_scan.count_lines(file.read_path)
        if lines is None:
            return None
        lines -= 0 if copy else header.line
        has_quotes = b'"' in compressed.head(file.read_path)
        source = hour_scan.Source(file, copy, header, file.hour_utc or hour_of(file.path), rows, has_quotes)
        return hour_scan.scan(source, self._table, lines)

    def read_lines(
        self, file: RawFile, numbers: Collection[int], repeated: Collection[int], reject: list[Rejected]
    ) -> Iterator[Mapping[str, object]]:
        """Yield the rows of single lines, by their numbers; reject those that repeat an earlier line."""
        header, _ = self._header_of(file)
        lines = (
            (number, line, REPEATED if number in repeated and number not in numbers else damage)
            for number, line, damage in numbered_lines(file.read_path)
            if number in numbers or number in repeated
        )
        yield from self._typed(file, header, lines, reject)

    def _header_of(self, file: RawFile) -> tuple[HourHeader, list[dict[str, str | None]]]:
        try:
            return self._header(compressed.head(file.read_path))
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", place=Place(file.path)) from error
        except ValueError as error:
            raise DataError(f"changed while it was read: {error}", place=Place(file.path)) from error

    def _header(self, head: bytes) -> tuple[HourHeader, list[dict[str, str | None]]]:
        """Return the header and the first rows. Raise ValueError if the header is not that of this table."""
        layout = layout_of(head)
        names = fields_of(layout.header, layout.separator)
        if other := other_table(names, self._table, TABLES.values()):
            raise ValueError(f"has the columns of the {other} table")
        header = read_header(names, self._table)
        if header.problem:
            raise ValueError(header.problem)
        words = [
            *([f"fields are separated by {layout.separator!r}"] if layout.separator != "," else []),
            *([f"the header is line {layout.line}"] if layout.line != 1 else []),
        ]
        header = replace(header, separator=layout.separator, line=layout.line, applied=(*words, *header.applied))
        rows = _split(header, head)
        if rows and all(fits_shifted(header, row, self._table) for row in rows):
            header = header.shifted()
        elif any(len(row) == len(names) and any(row[header.width :]) for row in rows):
            header = header.widened(len(names))
        return header, _picked(header, rows)

    def _typed(
        self,
        file: RawFile,
        header: HourHeader,
        lines: Iterable[tuple[int, bytes, str | None]],
        reject: list[Rejected],
    ) -> Iterator[dict[str, object]]:
        rows = (row_of(header, *line) for line in lines if line[1].strip() or line[2])
        hour = file.hour_utc or hour_of(file.path)
        yield from typed_rows(self._table, rows, file, hour, reject, header)


def _split(header: HourHeader, head: bytes) -> list[list[str]]:
    """Return the fields of the first rows that are not blank."""
    rows = []
    for line in head.split(b"\n")[header.line : -1]:  # the last one may be cut
        with contextlib.suppress(ValueError):
            rows.append(fields_of(line, header.separator))
    return [row for row in rows if any(row)]


def _picked(header: HourHeader, rows: Iterable[Sequence[str]]) -> list[dict[str, str | None]]:
    return [header.pick(row) for row in rows]


def _end_damage(path: Path) -> str | None:
    """Return the damage at the end of the file, or None."""
    try:
        return None if torn_lines.ends_with_newline(path) else torn_lines.TORN
    except compressed.STREAM_ERRORS as error:
        return f"the compressed stream is damaged: {error}"


def _wrong_kind(head: bytes) -> str | None:
    """Return why a file is no CSV file, from its first bytes, or None."""
    for kind, mark in _MARKS.items():
        if head.startswith(mark):
            return f"a {kind} file, not CSV text as its name says"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or head.count(b"\0") * 4 > len(head):
        return "UTF-16 text: convert it to UTF-8"
    if b"\n" not in head and b"\r" in head:
        return torn_lines.LONE_CR
    if b"\n" not in head and len(head) >= compressed.HEAD_BYTES:
        return f"no end of a header in the first {len(head):,} bytes"
    return None


def _reason(*clauses: str | None) -> str | None:
    return "; ".join(clause for clause in clauses if clause) or None


FLOW, NIC, LINK, PORT = (HourCsv(table) for table in TABLES.values())
FORMATS = (FLOW, NIC, LINK, PORT, HOUR_WORKBOOK)
"""All five formats, in order of precedence."""
