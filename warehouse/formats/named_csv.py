"""CSV files whose columns are found by name, in any order: the files of job traces, as `data/traces/` describes them.

`Cell` declares the texts that a column may hold. The engine reads the files. If a model fails on a file, the file is
read line by line with the same rules, to name each bad line.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import re
import zlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from warehouse.base.startup import regex
from warehouse.formats import compressed, csv_headers, torn_lines
from warehouse.formats.base import PARTIAL, READ, SKIPPED, RawFile, RawRelation, Rejected

_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d"
_TIME = rf"[12]\d{{3}}-\d\d-\d\d {_CLOCK}:[0-5]\d(?:\.\d{{1,9}})?[+-]{_CLOCK}"
_NAIVE = rf"[12]\d{{3}}-\d\d-\d\d[ T]{_CLOCK}(?::[0-5]\d(?:\.\d{{1,6}})?)?"


@dataclass(frozen=True)
class Cell:
    """Type of a column's cells for the engine, and the texts that are valid."""

    type: str
    what: str
    """Description of a valid cell, for the reason of a rejected one: `a whole number`."""
    pattern: re.Pattern[str]
    required: bool = False
    """True if a line with a blank cell is rejected."""


def _cell(kind: str, what: str, pattern: str) -> Cell:
    return Cell(kind, what, regex(pattern, re.ASCII))


NAME = _cell("VARCHAR", "a name of letters, digits and . _ : -", r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")
WORD = _cell("VARCHAR", "a word", r"[A-Za-z][A-Za-z0-9 ._-]{0,49}")
WHOLE = _cell("DOUBLE", "a whole number, 0 or more", r"\d{1,12}(?:\.0{1,9})?")
NUMBER = _cell("DOUBLE", "a number, 0 or more", r"\d{1,15}(?:\.\d{1,25})?(?:[eE][+-]?\d{1,2})?")
COUNT = _cell("DOUBLE", "a whole number below 1,000,000", r"\d{1,6}(?:\.0{1,9})?")
HUNDREDTHS = _cell("DOUBLE", "a number from 0 to 99,999,999, without an exponent", r"\d{1,8}(?:\.\d{1,9})?")
DEVICES = _cell("BIGINT", "a whole number below 1,000,000", r"\d{1,6}")
INTEGER = _cell("BIGINT", "a whole number, 0 or more", r"\d{1,12}")
TIME = _cell("VARCHAR", "a time with its offset, as 2023-03-01 00:18:22+08:00", _TIME)
CLOCK = _cell("TIMESTAMP", "a time without an offset, as 2023-03-01 00:18:22", _NAIVE)
TEXT = _cell("VARCHAR", "plain text", r"[^\x00-\x1f\x7f\"]{0,200}")


CELLS = {
    "name": NAME,
    "word": WORD,
    "text": TEXT,
    "whole": WHOLE,
    "number": NUMBER,
    "signed": _cell("DOUBLE", "a number", f"-?{NUMBER.pattern.pattern}"),
    "count": COUNT,
    "hundredths": HUNDREDTHS,
    "devices": DEVICES,
    "integer": INTEGER,
    "time": TIME,
    "clock": CLOCK,
}
"""Kinds of cells by the names that mappings use."""


@dataclass
class NamedCsv:
    """Format of CSV files with one relation.

    Parameters
    ----------
    name
        See `Format`.
    relation, about
        Name and description of the relation of `raw` that the files feed.
    cells
        Columns of the relation.
    file_name
        Pattern of file names. Its groups fill `cluster`, `place` and `group`, in lower case, as does the file's `name`.
    cluster, place, group
        Cluster, release path and file group of a file, with `{group}` of the pattern.
    optional
        Columns that may be missing from a file.
    one_of
        Groups of columns, of each of which a file has at least one.
    without
        Columns that tell a file of another format, with equal names otherwise.
    only
        Columns that the files of one cluster have, and those of no other.
    key
        Column whose values are unique in a file.
    repeats
        Columns of which the first that is filled names a row, which may not be there twice with equal values.
    order
        Columns of times, each of which may not be before the one in front of it.
    """

    name: str
    relation: str
    about: str
    cells: Mapping[str, Cell]
    file_name: re.Pattern[str]
    cluster: str
    place: str
    group: str = ""
    optional: frozenset[str] = frozenset()
    one_of: Sequence[Sequence[str]] = ()
    without: frozenset[str] = frozenset()
    only: Mapping[str, frozenset[str]] = field(default_factory=dict)
    key: str | None = None
    repeats: Sequence[str] = ()
    order: Sequence[str] = ()
    delimiter: str = ","
    encoding: str = "utf-8"
    has_header: bool = True
    """False for files whose columns are those of `cells`, in their order."""
    ends_with_newline: bool = True
    """True if published files end with a newline, so that a file without one was truncated."""
    meanings: Mapping[str, tuple[str | None, str]] = field(default_factory=dict)
    """Unit and meaning of each column."""

    version: int = field(init=False)
    relations: Sequence[RawRelation] = field(init=False)

    def __post_init__(self) -> None:
        columns = {name: cell.type for name, cell in self.cells.items()}
        forms = {name: cell.pattern.pattern for name, cell in self.cells.items() if cell.what != TEXT.what}
        required = frozenset(name for name, cell in self.cells.items() if cell.required)
        self.relations = (
            RawRelation(
                *(self.relation, self.about, columns, '"', True, forms),
                required=required,
                delimiter=self.delimiter,
                encoding=self.encoding,
                has_header=self.has_header,
                meanings=self.meanings,
            ),
        )
        fields = [self.file_name.pattern, self.cluster, self.place, self.group, sorted(self.optional)]
        fields += [self.delimiter, self.encoding, str(self.has_header)]
        rules = [sorted(self.without), sorted((name, sorted(one)) for name, one in self.only.items()), self.one_of]
        rows = [columns, forms, sorted(required), self.key, self.repeats, self.order, self.ends_with_newline]
        self.version = zlib.crc32(repr([5, fields, rules, rows]).encode())  # another one where rows may differ

    def claims(self, path: Path) -> bool:
        """Return True if the file name fits this format."""
        return self._match(path) is not None

    def _match(self, path: Path) -> re.Match[str] | None:
        """Match the name, and as many folders above it as the pattern has slashes."""
        slashes = re.sub(r"\[[^\]]*\]", "", self.file_name.pattern).count("/")
        return self.file_name.fullmatch("/".join(path.parts[-1 - slashes :]))

    def placed(self, file: RawFile, header: Sequence[str]) -> RawFile:
        """Return the file with its cluster and release path. Raise ValueError if the file is not of this format."""
        if self.without & set(header):
            raise ValueError(f"{csv_headers.NOT_THAT}{self.name}")
        for names in self.one_of:
            if not set(names) & set(header):
                raise ValueError(f"the columns differ from the published ones: without {' or '.join(names)}")
        found = self._match(file.path)
        assert found is not None
        groups = {name: (text or "").lower() for name, text in found.groupdict().items()}
        groups |= {"name": file.path.name.lower()}
        cluster = self.cluster.format_map(groups)
        for other, columns in self.only.items():
            here = columns & set(header)
            if other == cluster and here < columns:
                lacking = ", ".join(sorted(columns - here))
                raise ValueError(f"named after {cluster.title()}, but without its {lacking}")
            if other != cluster and here:
                foreign = f"columns of {other.title()}: {', '.join(sorted(here))}"
                raise ValueError(f"named after {cluster.title()}, but with {foreign}")
        group = self.group.format_map(groups) or None
        return file.but(cluster=cluster, release_path=self.place.format_map(groups), file_group=group)

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
            names = csv_headers.fitted(written, first_rows(head, self.delimiter)) if self.has_header else written
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
            names = split(line, self.delimiter, self.encoding)
        except ValueError as error:
            raise ValueError(csv_headers.foreign_header(line, self.cells) or f"the header: {error}") from None
        if not self.has_header:
            if len(names) != len(self.cells):
                raise ValueError(f"{len(names)} fields in the first line instead of {len(self.cells)}")
            return list(self.cells)
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
                if number == 1 and self.has_header:
                    out.write(line.rstrip(b"\r") + end)
                    continue
                torn = damage == torn_lines.TORN
                problem = None if torn and not self.ends_with_newline else damage
                problem = problem or self._problem(line, names, seen, number)
                if problem:
                    yield Rejected(file.release_path, number, problem, line.decode(self.encoding, "replace")[:500])
                else:
                    out.write(line.rstrip(b"\r") + (b"" if torn else end))  # the engine needs uniform line ends

    def _problem(self, line: bytes, names: Sequence[str], seen: dict[Hashable, int], number: int) -> str | None:
        if not line.rstrip(b"\r"):
            return "blank line"
        try:
            values = fields(line, len(names), separator=self.delimiter, encoding=self.encoding)
        except ValueError as error:
            return str(error)
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
        """Return the name of the key of a row, and a value that no other row has; None if equal rows are valid.

        Ids of several clusters, and tasks of one job, repeat a name alone: with `repeats`, all values count, numbers as
        numbers.
        """
        if self.key is not None:
            return self.key, row[self.key]
        name = next((one for one in self.repeats if row.get(one)), None)
        values = (float(text) if text and self.cells[name].type != "VARCHAR" else text for name, text in row.items())
        return None if name is None else (name, hash(tuple(values)))

    def misfit(self, row: Mapping[str, str]) -> str | None:
        """Return the problem of a row whose cells are all valid: a time that does not exist, an end before a start."""
        times = {name: text for name, text in row.items() if text and self.cells[name].what in (TIME.what, CLOCK.what)}
        for name, text in times.items():
            if parse_time(text) is None:
                return f"{name} is not a time that exists: {text!r}"
        written = [(name, row[name]) for name in self.order if row.get(name)]
        for (first, begin), (second, end) in pairwise(written):
            read: Callable[[str], float] = _epoch if first in times else float
            if read(end) < read(begin):
                return f"{second} {end} is before {first} {begin}"
        return None


def first_rows(head: bytes, delimiter: str = ",") -> list[list[str]]:
    """Return the fields of the first whole lines below the header."""
    rows = []
    for line in head.split(b"\n")[1:-1]:  # the last one may be cut
        with contextlib.suppress(ValueError):
            rows.append(split(line, delimiter))
    return [row for row in rows if any(row)]


def fields(
    line: bytes, width: int, damage: str | None = None, separator: str = ",", encoding: str = "utf-8"
) -> list[str]:
    """Return the fields of a line. Raise ValueError if it is damaged, or has another number of fields."""
    if damage:
        raise ValueError(damage)
    found = split(line, separator, encoding)
    if len(found) != width and not csv_headers.is_longer(found, width):
        raise ValueError(f"{len(found)} fields instead of {width}")
    return found


def columns(lines: Sequence[bytes], width: int) -> list[Sequence[str]] | None:
    """Return the columns of plain lines, ten times as fast as line by line; None if a line needs `fields`."""
    text = b",".join(lines)
    if any(mark in text for mark in (b'"', b"\r", b"\0")) or {line.count(b",") for line in lines} != {width - 1}:
        return None
    try:
        found = text.decode("utf-8").split(",")
    except UnicodeDecodeError:
        return None
    return [found[at::width] for at in range(width)]


def split(line: bytes, separator: str = ",", encoding: str = "utf-8") -> list[str]:
    """Split one line into its fields. A quoted field may not span lines.

    Raises
    ------
    ValueError
        If the text is not a line of a CSV file; the message is one sentence.
    """
    try:
        written = line.decode(encoding).rstrip("\r")
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


def _epoch(written: str) -> float:
    """Return a time that exists as seconds since 1970; one without an offset as UTC."""
    found = datetime.fromisoformat(written)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def parse_time(written: str) -> datetime | None:
    """Parse a time; return None if the calendar has no such time."""
    try:
        return datetime.fromisoformat(written)
    except ValueError:
        return None
