"""The four tables of an hour (`flow`, `nic`, `link`, `port`), as CSV files or as sheets of one workbook.

Docs: docs/formats/hour_tables.md. The release's document describes the tables. The public repository has the tables of
one hour, which were not available when this reader was written. So it assumes little about their form. Columns are
found by name, and values keep their text. A row with an invalid value is rejected with its line number, and the read
goes on.

Five formats feed four relations. `FLOW`, `NIC`, `LINK` and `PORT` read `<hour>_<table>.csv` and feed one relation each.
`HOUR_WORKBOOK` reads `<hour>.xlsx` and feeds all four relations, one per sheet. It is a separate format because each
file has exactly one format.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, cast

from warehouse.base.errors import DataError, Place
from warehouse.base.startup import regex
from warehouse.formats import compressed, torn_lines
from warehouse.formats.base import COMPRESSIONS, PARTIAL, READ, SKIPPED, RawFile, RawRelation, Rejected
from warehouse.formats.zhejiang import xlsx
from warehouse.formats.zhejiang.headers import Header, Row, ignored_columns, match_header
from warehouse.formats.zhejiang.hour_rows import TABLES, HourTable
from warehouse.formats.zhejiang.values import parse_hour

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path


LONGEST_LINE = 2**16


class HourCsv:
    """Formats `zhejiang.flow`, `zhejiang.nic`, `zhejiang.link` and `zhejiang.port`."""

    version = 4

    def __init__(self, table: HourTable) -> None:
        self._table = table
        self._file_name = regex(rf"[0-9]{{10}}_{table.name}\.csv(\.gz|\.zst)?", re.IGNORECASE)
        self.name = f"zhejiang.{table.name}"
        self.relations: Sequence[RawRelation] = (table.relation,)

    def claims(self, path: Path) -> bool:
        """Return True if the file is named like this table of some hour."""
        return self._file_name.fullmatch(path.name) is not None

    def inspect(self, file: RawFile) -> RawFile:
        """Compare the header; take the hour (local time) from the file name."""
        try:
            found = file.but(hour_utc=_hour_of(file.path))
            head = compressed.head(file.path)
            if not head:
                return file.but(status=SKIPPED, reason="empty file")
            first, end, _ = head.partition(b"\n")
            if not end and len(head) >= compressed.HEAD_BYTES:
                return file.but(status=SKIPPED, reason=f"no end of a header in the first {len(head):,} bytes")
            header = self._header(_fields(first))
        except compressed.STREAM_ERRORS as error:
            return file.but(status=SKIPPED, reason=f"cannot be decompressed: {error}")
        except ValueError as error:
            return file.but(status=SKIPPED, reason=str(error))
        damage = _end_damage(file.path)
        reason = _reason(damage, *ignored_columns(header.ignored))
        return found.but(status=PARTIAL if damage else READ, reason=reason)

    def read(self, files: Sequence[RawFile], relation: str, reject: list[Rejected]) -> Iterator[Mapping[str, object]]:
        """Yield the rows of the files, line by line.

        Raises
        ------
        DataError
            If a file cannot be opened, or its header changed since it was inspected.
        """
        for file in files:
            hour = file.hour_utc or _hour_of(file.path)
            try:
                yield from self._table.rows(self._rows(file.read_path), file, hour, reject)
            except OSError as error:
                raise DataError(f"cannot be read: {error.strerror}", place=Place(file.path)) from error

    def _header(self, names: Sequence[str]) -> Header:
        header = match_header(names, self._table.columns, self._table.optional)
        if header.problem:
            raise ValueError(header.problem)
        return header

    def _rows(self, path: Path) -> Iterator[Row]:
        lines = _lines(path)
        try:
            names = _fields(next(lines, (1, b"", None))[1])
            header = self._header(names)
        except ValueError as error:
            raise DataError(f"changed while it was read: {error}", place=Place(path)) from error
        for number, line, damage in lines:
            if not line.strip() and not damage:
                continue
            values: Mapping[str, str | None] = {}
            problem = damage
            if not damage:
                try:
                    fields = _fields(line)
                    values = header.pick(fields)
                    if len(fields) != len(names):
                        problem = f"{len(fields)} fields instead of {len(names)}"
                except ValueError as error:
                    problem = str(error)
            yield Row(number, values, problem, line.decode("utf-8", "backslashreplace")[:500])


class HourWorkbook:
    """Format `zhejiang.hour_workbook`: `<hour>.xlsx` with one sheet per table, `flow` or `<hour>_flow`.

    The sheets feed the relations of the four CSV formats. If one of these tables is also a CSV file in the same folder,
    the workbook is skipped, so that no row counts twice.
    """

    name = "zhejiang.hour_workbook"
    version = 3
    relations: Sequence[RawRelation] = tuple(table.relation for table in TABLES.values())

    def claims(self, path: Path) -> bool:
        """Return True if the workbook is named like an hour."""
        return re.fullmatch(r"[0-9]{10}\.xlsx", path.name, re.IGNORECASE) is not None

    def inspect(self, file: RawFile) -> RawFile:
        """Compare the headers of the four sheets; an unreadable sheet makes the file `partial`."""
        try:
            found = file.but(hour_utc=_hour_of(file.path))
            with xlsx.opened(file.path) as book:
                sheets = {name: _sheet(book, file.path, table) for name, table in TABLES.items()}
                titles = book.titles
        except ValueError as error:
            return file.but(status=SKIPPED, reason=str(error))
        except DataError as error:
            return file.but(status=SKIPPED, reason=error.message)
        problems = [sheet.problem for sheet in sheets.values() if sheet.problem]
        good = {name: sheet for name, sheet in sheets.items() if not sheet.problem}
        if not good:
            return file.but(status=SKIPPED, reason=f"not a workbook of hour tables: {', '.join(problems)}")
        duplicates = [path.name for name in good for path in _csv_files(file.path, name)]
        if duplicates:
            return found.but(status=SKIPPED, reason=f"the same rows lie beside it: {', '.join(duplicates)}")
        known = {title for sheet in sheets.values() for title in sheet.titles}
        unknown = [title for title in titles if title not in known]
        reason = _reason(
            *problems,
            f"sheets ignored: {', '.join(unknown)[:200]}" if unknown else None,
            *ignored_columns([name for sheet in good.values() for name in sheet.header.ignored]),
        )
        is_partial = any(sheet.is_unreadable for sheet in sheets.values())
        return found.but(status=PARTIAL if is_partial else READ, reason=reason)

    def read(self, files: Sequence[RawFile], relation: str, reject: list[Rejected]) -> Iterator[Mapping[str, object]]:
        """Yield the rows of one sheet of each workbook; a workbook without that sheet yields none.

        Raises
        ------
        DataError
            If a file cannot be opened, or changed since it was inspected.
        """
        for file in files:
            hour = file.hour_utc or _hour_of(file.path)
            with xlsx.opened(file.read_path) as book:
                sheet = _sheet(book, file.path, TABLES[relation])
                if sheet.is_unreadable and file.status == READ:
                    raise DataError(f"changed while it was read: {sheet.problem}", place=Place(file.path))
                if not sheet.problem:
                    yield from TABLES[relation].rows(sheet.rows(), file, hour, reject, sheet.titles[0])


def _fields(line: bytes) -> list[str]:
    """Split one line into fields. Lines are independent, so that a stray quote only affects its own row."""
    try:
        written = line.decode("utf-8-sig").rstrip("\r")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None
    if "\0" in written:
        raise ValueError("holds NUL bytes")
    if "\r" in written:
        raise ValueError(torn_lines.LONE_CR)
    if '"' not in written:
        return written.split(",")
    try:
        return next(csv.reader([written], strict=True))
    except csv.Error as error:
        raise ValueError(f"its quotes do not match: {error}") from None


def _lines(path: Path) -> Iterator[tuple[int, bytes, str | None]]:
    """Yield (line number, line, damage or None); bound memory for a file without line ends."""
    number = 0
    with compressed.open_bytes(path) as raw:
        stream = io.BufferedReader(cast("io.RawIOBase", raw))
        try:
            while line := stream.readline(LONGEST_LINE):
                number += 1
                problem = None
                if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                    problem = f"longer than {LONGEST_LINE:,} bytes"
                    while (rest := stream.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                        pass
                elif not line.endswith(b"\n"):
                    problem = torn_lines.TORN
                yield number, line.removesuffix(b"\n"), problem
        except compressed.STREAM_ERRORS as error:
            yield number + 1, b"", f"the compressed stream is damaged here: {error}"


def _end_damage(path: Path) -> str | None:
    """Return the damage at the end of the file, or None."""
    try:
        return None if torn_lines.ends_with_newline(path) else torn_lines.TORN
    except compressed.STREAM_ERRORS as error:
        return f"the compressed stream is damaged: {error}"


def _hour_of(path: Path) -> datetime:
    """Parse the hour in the file name. Raise ValueError if the folder is named like another hour."""
    stated, folder = path.name[:10], path.parent.name
    if re.fullmatch(r"[0-9]{10}", folder) and folder != stated:
        raise ValueError(f"its name says hour {stated}, its folder {folder}")
    return parse_hour(stated)


def _sheet(book: xlsx.Book, path: Path, table: HourTable) -> xlsx.Table:
    titles = (table.name, f"{path.name[:10]}_{table.name}")
    return book.table(titles, table.columns, table.optional)


def _csv_files(path: Path, name: str) -> list[Path]:
    """Return the CSV files of the same table and hour in the workbook's folder."""
    paths = (path.with_name(f"{path.name[:10]}_{name}.csv{suffix}") for suffix in ("", *COMPRESSIONS))
    return [path for path in paths if path.exists()]


def _reason(*clauses: str | None) -> str | None:
    return "; ".join(clause for clause in clauses if clause) or None


FLOW, NIC, LINK, PORT = (HourCsv(table) for table in TABLES.values())
HOUR_WORKBOOK = HourWorkbook()
FORMATS = (FLOW, NIC, LINK, PORT, HOUR_WORKBOOK)
"""All five formats, in order of precedence."""
