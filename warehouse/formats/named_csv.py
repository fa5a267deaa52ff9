"""CSV files with a header, and those whose columns are found by name: the files of job traces (`data/traces/`).

`Cell` declares the texts that a column may hold. The engine reads the files. If a model fails on a file, the file is
read line by line with the same rules, to name each bad line.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from warehouse.base import hashing
from warehouse.base.startup import regex
from warehouse.formats import streams
from warehouse.formats.base import PARTIAL, READ, SKIPPED, RawFile, RawRelation, Rejected

COLUMNS_IGNORED = "columns ignored: "
NOT_THAT = "the header is not that of "
HEAD_BYTES = 256 * 1024
"""Bytes of a file that hold its header and first rows."""
_UNNAMED = regex(r"\s*|Unnamed: \d+")
"""Name of a column without one; pandas writes it as `Unnamed: 0`."""
_SHOWN = 60
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d"
_NUMBER = r"\d{1,15}(?:\.\d{1,25})?(?:[eE][+-]?\d{1,2})?"
_A_TIME = "a time "


class Cell(NamedTuple):
    """Column: the type of its cells for the engine, and the texts that are valid."""

    type: str
    what: str
    """Description of a valid cell, for the reason of a rejected one: `a whole number`."""
    pattern: re.Pattern[str]
    required: bool = False
    """True if a line with a blank cell is rejected."""
    optional: bool = False
    """True if a file may lack the column."""
    unit: str | None = None
    about: str = ""

    @property
    def is_time(self) -> bool:
        """True for times, which must exist in the calendar."""
        return self.what.startswith(_A_TIME)


CELLS = {
    # The engine matches the same pattern with RE2, whose \d is ASCII, too.
    name: Cell(kind, what, regex(pattern, re.ASCII))
    for name, kind, what, pattern in (
        ("name", "VARCHAR", "a name of letters, digits and . _ : -", r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}"),
        ("word", "VARCHAR", "a word", r"[A-Za-z][A-Za-z0-9 ._-]{0,49}"),
        ("text", "VARCHAR", "text on one line", r"[^\x00\n\r]*"),
        ("integer", "BIGINT", "a whole number, 0 or more", r"\d{1,12}"),
        ("devices", "BIGINT", "a whole number below 1,000,000", r"\d{1,6}"),
        # AcmeTrace writes whole numbers as 10 in one cluster and as 10.0 in the other.
        ("count", "DOUBLE", "a whole number below 1,000,000", r"\d{1,6}(?:\.0{1,9})?"),
        ("whole", "DOUBLE", "a whole number, 0 or more", r"\d{1,12}(?:\.0{1,9})?"),
        ("number", "DOUBLE", "a number, 0 or more", _NUMBER),
        ("signed", "DOUBLE", "a number", f"-?{_NUMBER}"),
        (
            *("time", "VARCHAR", f"{_A_TIME}with its offset, as 2023-03-01 00:18:22+08:00"),
            rf"[12]\d{{3}}-\d\d-\d\d {_CLOCK}:[0-5]\d(?:\.\d{{1,9}})?[+-]{_CLOCK}",
        ),
        (
            *("clock", "TIMESTAMP", f"{_A_TIME}without an offset, as 2023-03-01 00:18:22"),
            rf"[12]\d{{3}}-\d\d-\d\d[ T]{_CLOCK}(?::[0-5]\d(?:\.\d{{1,6}})?)?",
        ),
    )
}
"""Kinds of cells by the names that mappings use."""


class Rest(NamedTuple):
    """Line whose bad cells are blank."""

    line: bytes
    problem: str


class HeadedFiles:
    """Base class of formats of CSV files with a header: one look at the first bytes, one way to name bad lines."""

    file_name: re.Pattern[str]
    """Pattern of file names; with a slash also of the folder above."""
    head_bytes: int = HEAD_BYTES
    """Bytes of a file that `looked` needs."""
    encoding: str = "utf-8"
    has_header: bool = True
    ends_with_newline: bool = True
    """True if published files end with a newline, so that a file without one was truncated."""

    def claims(self, path: Path) -> bool:
        """Return True if the file name fits this format."""
        return self.match(path) is not None

    def match(self, path: Path) -> re.Match[str] | None:
        """Match the name, and as many folders above it as the pattern has slashes."""
        slashes = re.sub(r"\[[^\]]*\]", "", self.file_name.pattern).count("/")  # `[^/]` is no folder
        return self.file_name.fullmatch("/".join(path.parts[-1 - slashes :]))

    def looked(self, file: RawFile, head: bytes) -> RawFile:
        """Return the file as its first bytes show it, with a reason for columns that are not read.

        A file whose first lines are damaged is returned as `partial`.

        Raises
        ------
        ValueError
            If the file is not of this format.
        """
        raise NotImplementedError

    def problems(self, file: RawFile) -> Callable[[int, bytes], str | Rest | None]:
        """Return a function of number and line for all lines in order: the problem of the line, or the rest of it."""
        raise NotImplementedError

    def inspect(self, file: RawFile) -> RawFile:
        """Look at the first bytes of the file, and at its last one."""
        try:
            found = self.looked(file, streams.head(file.path, self.head_bytes))
        except streams.STREAM_ERRORS as error:
            return file.but(status=SKIPPED, reason=f"cannot be decompressed: {error}")
        except ValueError as error:
            return file.but(status=SKIPPED, reason=str(error))
        try:
            whole = not self.ends_with_newline or streams.ends_with_newline(file.path)
            damage = "" if whole else streams.TORN
        except streams.STREAM_ERRORS as error:
            damage = f"the compressed stream is damaged: {error}"
        status = PARTIAL if damage or found.status == PARTIAL else READ
        return found.but(status=status, reason="; ".join(filter(None, (damage, found.reason))) or None)

    def repair(self, file: RawFile, clean: Path) -> Iterator[Rejected]:
        """Write the good lines to `clean`; yield the others, each with its problem."""
        problem_of = self.problems(file)
        ending = b"\n"
        with clean.open("wb") as out:
            for number, line, damage in streams.numbered_lines(file.path):
                plain = line.rstrip(b"\r")
                if number == 1 and plain != line:  # so the copy of an intact file has the hash of the file
                    ending = b"\r\n"
                torn = damage == streams.TORN
                found: str | Rest | None = None
                if number > 1 or not self.has_header:
                    found = damage if damage and (self.ends_with_newline or not torn) else problem_of(number, plain)
                if found:
                    problem = found.problem if isinstance(found, Rest) else found
                    yield Rejected(file.release_path, number, problem, line.decode(self.encoding, "replace")[:500])
                if not isinstance(found, str):
                    kept = found.line if found else plain
                    out.write(kept + (b"" if torn else ending))  # the engine needs uniform line ends


@dataclass
class NamedCsv(HeadedFiles):
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
    without
        Columns that tell a file of another format, with equal names otherwise.
    key
        Columns whose values together are unique in a file.
    ids
        Columns of ids that other jobs may have, too: of equal lines with an id, the first one counts.
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
    without: Sequence[str] = ()
    key: Sequence[str] = ()
    ids: Sequence[str] = ()
    order: Sequence[str] = ()
    delimiter: str = ","
    encoding: str = "utf-8"
    has_header: bool = True
    """False for files whose columns are those of `cells`, in their order."""
    ends_with_newline: bool = True

    version: int = field(init=False)
    relations: Sequence[RawRelation] = field(init=False)

    def __post_init__(self) -> None:
        columns = {name: cell.type for name, cell in self.cells.items()}
        forms = {name: cell.pattern.pattern for name, cell in self.cells.items()}
        self.relations = (
            RawRelation(
                *(self.relation, self.about, columns, '"', True, forms),
                required=frozenset(name for name, cell in self.cells.items() if cell.required),
                delimiter=self.delimiter,
                encoding=self.encoding,
                has_header=self.has_header,
                meanings={name: (cell.unit, cell.about) for name, cell in self.cells.items()},
            ),
        )
        places = (self.file_name.pattern, self.cluster, self.place, self.group)
        flags = [(cell.required, cell.optional) for cell in self.cells.values()]
        rules = (
            self.without,
            self.key,
            self.ids,
            self.order,
            self.delimiter,
            self.encoding,
            self.has_header,
            self.ends_with_newline,
        )
        self.version = zlib.crc32(repr([7, places, columns, forms, flags, rules]).encode())  # where rows may differ

    def looked(self, file: RawFile, head: bytes) -> RawFile:
        """Compare the header, by name."""
        if self.has_header:
            names = header_names(head, self.cells, self.name, self.delimiter, self.encoding)
            if set(self.without) & set(names):
                raise ValueError(f"{NOT_THAT}{self.name}")
            missing = [name for name, cell in self.cells.items() if name not in names and not cell.optional]
            repeated = [name for name in self.cells if names.count(name) > 1]
            if missing or repeated:
                problems = [f"without {', '.join(missing)}"] if missing else []
                problems += [f"with {', '.join(repeated)} twice"] if repeated else []
                raise ValueError(f"the columns differ from the published ones: {' and '.join(problems)}")
            columns = fitted(names, first_rows(head, self.delimiter, self.encoding))
        else:
            columns = names = list(self.cells)
            fields(head.partition(b"\n")[0], len(names), None, self.delimiter, self.encoding)
        match = self.match(file.path)
        assert match is not None
        groups = {name: (text or "").lower() for name, text in match.groupdict().items()}
        groups["name"] = file.path.name.lower()
        return file.but(
            cluster=self.cluster.format_map(groups),
            release_path=self.place.format_map(groups),
            file_group=self.group.format_map(groups) or None,
            header=None if columns == list(self.cells) else tuple(columns),
            reason=columns_ignored(names, self.cells),
        )

    def problems(self, file: RawFile) -> Callable[[int, bytes], str | None]:
        """Return the problem of a line: of its fields, of a cell, of the order of times, or a key that is there."""
        names = file.header or tuple(self.cells)
        seen: dict[str, int] = {}

        def problem(number: int, line: bytes) -> str | None:
            if not line:
                return "blank line"
            try:
                row = dict(zip(names, fields(line, len(names), None, self.delimiter, self.encoding), strict=False))
            except ValueError as error:
                return str(error)
            for name, cell in self.cells.items():
                text = row.get(name)
                if text and not cell.pattern.fullmatch(text):
                    return f"{name} is not {cell.what}: {text[:60]!r}"
                if text and cell.is_time and rank(text) is None:
                    return f"{name} is not a time that exists: {text!r}"
                if cell.required and not text:
                    return f"{name} is blank"
            ranks = [(name, text, rank(text)) for name in self.order if (text := row.get(name))]
            for (name, text, earlier), (after, late, later) in pairwise(ranks):
                if earlier is not None and later is not None and later < earlier:
                    return f"{after} {late} is before {name} {text}"
            equal = self.key or (self.cells if any(row.get(name) for name in self.ids) else ())
            # A hash, as a file may have millions of lines.
            first = seen.setdefault(hashing.of([row.get(name) for name in equal]), number) if equal else number
            return None if first == number else f"the same {' and '.join(self.key) or 'cells'} as in line {first}"

        return problem


def rank(text: str) -> float | None:
    """Return a number, or a time as seconds since 1970; one without an offset as UTC. None if no calendar has it."""
    with contextlib.suppress(ValueError):
        return float(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def header_names(
    head: bytes, known: Collection[str], name: str, separator: str = ",", encoding: str = "utf-8"
) -> list[str]:
    """Return the names in the first line of a file.

    Raises
    ------
    ValueError
        If the line is no header, or has none of the `known` names that a file of the format `name` has.
    """
    if not head:
        raise ValueError("empty file")
    line, end, _ = head.removeprefix(codecs.BOM_UTF8).partition(b"\n")
    if not end and len(head) == HEAD_BYTES:
        raise ValueError(f"no end of a header in the first {len(head):,} bytes")
    try:
        names = split(line, separator, encoding)
    except ValueError as error:
        raise ValueError(foreign_header(line, known) or f"the header: {error}") from None
    if set(known).isdisjoint(names):
        not_that = f"{NOT_THAT}{name}: {listed(names)}"
        raise ValueError(foreign_header(line, known) or not_that)
    return names


def first_rows(head: bytes, delimiter: str = ",", encoding: str = "utf-8", most: int = 20) -> list[list[str]]:
    """Return the fields of the first whole lines below the header; lines that are no rows are left out."""
    rows = []
    for line in head.split(b"\n", most + 1)[1:-1]:  # the last one may be cut
        with contextlib.suppress(ValueError):
            rows.append(split(line, delimiter, encoding))
    return [row for row in rows if any(row)]


def fields(
    line: bytes, width: int, damage: str | None = None, separator: str = ",", encoding: str = "utf-8"
) -> list[str]:
    """Return the fields of a line. Raise ValueError if it is damaged, or has another number of fields."""
    if damage:
        raise ValueError(damage)
    found = split(line, separator, encoding)
    if len(found) != width and not is_longer(found, width):
        raise ValueError(f"{len(found)} fields instead of {width}")
    return found


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
        raise ValueError(streams.LONE_CR)
    if '"' not in written:
        return written.split(separator)
    try:
        return next(csv.reader([written], strict=True, delimiter=separator))
    except csv.Error:
        raise ValueError("a quoted field is not closed on this line") from None


# headers that a person saved again: other separators, columns without a name, columns of their own


def is_unnamed(name: str) -> bool:
    """Return True if a column has no name: an index that pandas wrote, or a comma at the end of the header."""
    return _UNNAMED.fullmatch(name) is not None


def columns_ignored(names: Sequence[str], known: Collection[str]) -> str | None:
    """Return a clause that names the columns of a header that are not read, or None."""
    shown = [shown_name(at, name) for at, name in enumerate(names, 1) if name not in known]
    return f"{COLUMNS_IGNORED}{', '.join(shown)[:200]}" if shown else None


def shown_name(at: int, name: str) -> str:
    """Return the name of a column for a reason, or its place if it has none."""
    if not name.strip():
        return f"column {at} without a name"
    return name[:_SHOWN] if name.isprintable() else repr(name[:_SHOWN])


def listed(names: Sequence[str], longest: int = 100) -> str:
    """Return the names of a header for a reason, shortened."""
    return ",".join(name if name.isprintable() else repr(name) for name in names)[:longest]


def foreign_header(line: bytes, known: Collection[str]) -> str | None:
    """Return why a first line has no known column: it is blank, or not separated by commas. None for other reasons."""
    written = line.decode("utf-8", "replace").strip("\ufeff\r\n")
    if not written.strip(" ,"):
        return "the first line is blank, not the header"
    if written.strip('" ').lower().startswith("sep="):  # so spreadsheets state the separator
        return f"the first line is `{written.strip()}`, not the header: delete this line"
    for mark in ";\t|":
        names = {name.strip(' "') for name in written.split(mark)}
        if len(names) > 1 and not names.isdisjoint(known):
            shown = "a tab" if mark == "\t" else f"`{mark}`"
            return f"the separator is {shown}, not a comma: save the file with commas"
    return None


def fitted(names: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return the names of the fields of the first rows: names that are blank at the end may have no field.

    Raises
    ------
    ValueError
        If no row has a field for each name.
    """
    found = list(names)
    width = max(map(len, rows), default=len(found))
    while len(found) > width and not found[-1].strip():
        found.pop()
    refuse_other_width(found, [row[: len(found)] if is_longer(row, len(found)) else row for row in rows])
    return found


def refuse_other_width(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Raise ValueError if none of the first rows has a field for each name of the header."""
    if rows and all(len(row) != len(names) for row in rows):
        raise ValueError(f"the header has {len(names):,} columns, the row below it {len(rows[0]):,}")


def is_longer(row: Sequence[object], width: int) -> bool:
    """Return True if a row has more fields, all blank: commas at the end of a line, which the engine skips."""
    return len(row) > width and not any(row[width:])
