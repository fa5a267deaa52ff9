"""CSV files whose columns are found by name, in any order: the job tables of several traces.

A subclass recognizes its files and gives them their release paths. `Cell` declares the texts that a column may hold.
The engine reads the files. If a model fails on a file, the file is read line by line with the same rules, to name each
bad line.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from warehouse.base.startup import regex
from warehouse.formats import compressed, csv_headers, torn_lines
from warehouse.formats.base import PARTIAL, READ, SKIPPED, RawFile, RawRelation, Rejected

_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d"
_TIME = rf"[12]\d{{3}}-\d\d-\d\d {_CLOCK}:[0-5]\d(?:\.\d{{1,9}})?[+-]{_CLOCK}"


@dataclass(frozen=True)
class Cell:
    """Type of a column's cells for the engine, and the texts that are valid."""

    type: str
    what: str
    """Description of a valid cell, for the reason of a rejected one: `a whole number`."""
    pattern: re.Pattern[str]
    is_measure: bool
    """True for numbers and times: the engine accepts only texts that match the pattern."""
    required: bool = False
    """True if a line with a blank cell is rejected."""

    def needed(self) -> Cell:
        """Return a copy that may not be blank."""
        return replace(self, required=True)


def _cell(kind: str, what: str, pattern: str, *, is_measure: bool = True) -> Cell:
    return Cell(kind, what, regex(pattern, re.ASCII), is_measure)


NAME = _cell("VARCHAR", "a name of letters, digits and . _ : -", r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}", is_measure=False)
WORD = _cell("VARCHAR", "a word", r"[A-Za-z][A-Za-z0-9 ._-]{0,49}", is_measure=False)
WHOLE = _cell("DOUBLE", "a whole number, 0 or more", r"\d{1,12}(?:\.0{1,9})?")
NUMBER = _cell("DOUBLE", "a number, 0 or more", r"\d{1,15}(?:\.\d{1,25})?(?:[eE][+-]?\d{1,2})?")
COUNT = _cell("DOUBLE", "a whole number below 1,000,000", r"\d{1,6}(?:\.0{1,9})?")
HUNDREDTHS = _cell("DOUBLE", "a number from 0 to 99,999,999, without an exponent", r"\d{1,8}(?:\.\d{1,9})?")
DEVICES = _cell("BIGINT", "a whole number below 1,000,000", r"\d{1,6}")
INTEGER = _cell("BIGINT", "a whole number, 0 or more", r"\d{1,12}")
TIME = _cell("VARCHAR", "a time with its offset, as 2023-03-01 00:18:22+08:00", _TIME)
TEXT = _cell("VARCHAR", "plain text", r"[^\x00-\x1f\x7f\"]{0,200}", is_measure=False)


def signed(cell: Cell) -> Cell:
    """Return a copy for numbers that may be negative."""
    pattern = regex(f"-?{cell.pattern.pattern}", re.ASCII)
    return replace(cell, what=cell.what.removesuffix(", 0 or more"), pattern=pattern)


@dataclass
class NamedCsv:
    """Format of CSV files with one relation.

    Parameters
    ----------
    name, version
        See `Format`.
    relation, about
        Name and description of the relation of `raw` that the files feed.
    cells
        Columns of the relation.
    optional
        Columns that may be missing from a file.
    key
        Column whose values are unique in a file.
    """

    name: str
    relation: str
    about: str
    cells: Mapping[str, Cell]
    optional: frozenset[str] = frozenset()
    key: str | None = None
    version: int = 4
    relations: Sequence[RawRelation] = field(init=False)
    file_name: re.Pattern[str] = field(default_factory=lambda: regex(r"[^/]+\.csv(\.gz|\.zst)?", re.IGNORECASE))
    ends_with_newline: bool = True
    """True if published files end with a newline, so that a file without one was truncated."""

    def __post_init__(self) -> None:
        columns = {name: cell.type for name, cell in self.cells.items()}
        forms = {name: cell.pattern.pattern for name, cell in self.cells.items() if cell.is_measure}
        self.relations = (RawRelation(self.relation, self.about, columns, quote='"', limited=True, forms=forms),)

    def claims(self, path: Path) -> bool:
        """Return True if the file name fits this format."""
        return self.file_name.fullmatch(path.name) is not None

    def placed(self, file: RawFile, header: Sequence[str]) -> RawFile:
        """Return the file with its cluster and release path. Raise ValueError if the file is not of this format."""
        raise NotImplementedError

    def inspect(self, file: RawFile) -> RawFile:
        """Compare the header, by name."""
        try:
            head = compressed.head(file.path, csv_headers.HEAD_BYTES)
            whole = not self.ends_with_newline or torn_lines.ends_with_newline(file.path)
        except compressed.STREAM_ERRORS as error:
            return file.but(status=SKIPPED, reason=f"cannot be decompressed: {error}")
        if not head:
            return file.but(status=SKIPPED, reason="empty file")
        try:
            written = self._header(head)
            found = self.placed(file, written)
            names = csv_headers.fitted(written, _rows(head))
        except ValueError as error:
            return file.but(status=SKIPPED, reason=str(error))
        clauses = (None if whole else torn_lines.TORN, csv_headers.ignored(written, self.cells))
        return found.but(
            status=READ if whole else PARTIAL,
            reason="; ".join(filter(None, clauses)) or None,
            header=tuple(names) if names != list(self.cells) else None,
        )

    def _header(self, head: bytes) -> list[str]:
        """Return the names in the first line. Raise ValueError if they are not those of this format."""
        line, end, _ = head.removeprefix(codecs.BOM_UTF8).partition(b"\n")
        if not end and len(head) == csv_headers.HEAD_BYTES:
            raise ValueError(f"no end of a header in the first {len(head):,} bytes")
        try:
            names = split(line)
        except ValueError as error:
            raise ValueError(csv_headers.foreign_header(line, self.cells) or f"the header: {error}") from None
        if (self.cells.keys() - self.optional or self.cells.keys()).isdisjoint(names):
            not_that = f"{csv_headers.NOT_THAT}{self.name}: {csv_headers.listed(names)}"
            raise ValueError(csv_headers.foreign_header(line, self.cells) or not_that)
        self._check_columns(names)
        return names

    def _check_columns(self, names: Sequence[str]) -> None:
        missing = [name for name in self.cells if name not in names and name not in self.optional]
        repeated = [name for name in self.cells if names.count(name) > 1]
        if missing or repeated:
            problems = [f"without {', '.join(missing)}"] if missing else []
            problems += [f"with {', '.join(repeated)} twice"] if repeated else []
            raise ValueError(f"the columns differ from the published ones: {' and '.join(problems)}")

    def repair(self, file: RawFile, clean: Path) -> Iterator[Rejected]:
        """Write the good lines to `clean`; yield the others, each with its problem."""
        seen: dict[Hashable, int] = {}
        names = file.header or tuple(self.cells)
        end = b"\n"
        with clean.open("wb") as out:
            for number, line, damage in torn_lines.numbered_lines(file.path):
                if number == 1:
                    end = b"\r\n" if line.endswith(b"\r") else b"\n"
                    out.write(line.rstrip(b"\r") + end)
                    continue
                torn = damage is not None and damage.startswith("torn")
                problem = None if torn and not self.ends_with_newline else damage
                problem = problem or self._problem(line, names, seen, number)
                if problem:
                    yield Rejected(file.release_path, number, problem, line.decode("utf-8", "replace")[:500])
                else:
                    out.write(line.rstrip(b"\r") + (b"" if torn else end))  # the engine needs uniform line ends

    def _problem(self, line: bytes, names: Sequence[str], seen: dict[Hashable, int], number: int) -> str | None:
        try:
            values = split(line)
        except ValueError as error:
            return str(error)
        if values == [""]:
            return "blank line"
        if len(values) != len(names) and not csv_headers.is_longer(values, len(names)):
            return f"{len(values)} fields instead of {len(names)}"
        row = {name: value for name, value in zip(names, values, strict=False) if name in self.cells}
        for name, value in row.items():
            cell = self.cells[name]
            if value and not cell.pattern.fullmatch(value):
                return f"{name} is not {cell.what}: {value[:60]!r}"
            if cell.required and not value:
                return f"{name} is blank"
        problem = self.misfit(row)
        identity = None if problem else self.identity(row)
        if identity is None:
            return problem
        key, own = identity
        first = seen.setdefault(own, number)
        return None if first == number else f"the same {key} as in line {first}"

    def identity(self, row: Mapping[str, str]) -> tuple[str, Hashable] | None:
        """Return the name of the key of a row, and a value that no other row has; None if equal rows are valid."""
        return None if self.key is None else (self.key, row[self.key])

    def misfit(self, row: Mapping[str, str]) -> str | None:
        """Return the problem of a row whose cells are all valid, or None."""
        return None


def _rows(head: bytes) -> list[list[str]]:
    """Return the fields of the first whole lines below the header."""
    rows = []
    for line in head.split(b"\n")[1:-1]:  # the last one may be cut
        with contextlib.suppress(ValueError):
            rows.append(split(line))
    return [row for row in rows if any(row)]


def split(line: bytes, separator: str = ",") -> list[str]:
    """Split one line into its fields. A quoted field may not span lines.

    Raises
    ------
    ValueError
        If the text is not a line of a CSV file; the message is one sentence.
    """
    try:
        written = line.decode("utf-8").rstrip("\r")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None
    if "\0" in written:
        raise ValueError("holds NUL bytes")
    if "\r" in written:
        raise ValueError(torn_lines.LONE_CR)
    if '"' not in written:
        return written.split(separator)
    try:
        return next(csv.reader([written], strict=True, delimiter=separator))
    except csv.Error:
        raise ValueError("a quoted field is not closed on this line") from None


def parse_time(written: str) -> datetime | None:
    """Parse a time with its UTC offset; return None if the calendar has no such time."""
    try:
        return datetime.fromisoformat(written)
    except ValueError:
        return None
