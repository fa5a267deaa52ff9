"""The four tables of an hour (`flow`, `nic`, `link`, `port`) as CSV files, `<hour>_<table>.csv`.

Docs: docs/formats/hour_tables.md. Columns are found by the headers that `data/hour_columns.csv` accepts. Values keep
their text; the models of `staging` cast them. A file in which more than 1 % of a column has another form is skipped:
the other values would be in another unit, too.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from warehouse.base.errors import DataError, Place
from warehouse.base.startup import regex
from warehouse.formats import compressed, csv_headers, named_csv, torn_lines
from warehouse.formats.base import PARTIAL, READ, SKIPPED, RawFile, RawRelation, Rejected
from warehouse.formats.zhejiang.hour_columns import BOUNDS, FORMS, TIME, UNITS, HourColumn, HourTable, read_tables
from warehouse.formats.zhejiang.values import CHINA_SECONDS, parse_hour, parse_hour_time

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

_ABOUT = {
    "flow": "Samples of queue pairs between servers, with round-trip times and packets, as published.",
    "nic": "Cumulative counters of the servers' NICs, as published.",
    "link": "Both ends of each link, with its counters, as published. A link without DstPort leads to a server's NIC.",
    "port": "Bytes and lost packets of switch ports per minute, as published.",
}
_MOST_MISFITS = 0.01
"""Largest part of a column whose values may have another form."""
_BLANKS = frozenset(("", "-", "--", "na", "n/a", "nan", "null", "none", "nil", "\\n"))
"""Texts for no value, without blanks around and in lower case."""
_NUMBER = regex(r"\+?[0-9]{1,40}(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,3})?")
_KNOWN = 500_000
"""Number of texts of a column that are not parsed again."""
_SHOWN = 400
"""Characters of a header in a reason."""
_FIRST = 500
"""Rows whose units are checked."""
_ROUND_TRIP_NS = (200, 10**9)
"""Bounds of the median round-trip time. One switch and its cables take longer than 200 ns, and no queue lasts 1 s."""
_BUSY = 100_000
"""Least speed that is compared, in bytes a second: on an idle port, a few packets decide."""
_MOST_RATIO = 4
"""Largest ratio of a minute's bytes to its mean speed times 60 s, or the reverse; the document's example has 0.99,
and bits would be 8."""

Values = dict[str, object]


class MisfitError(ValueError):
    """Value of a column in another form than it should have."""

    def __init__(self, column: str, text: str, problem: str) -> None:
        super().__init__(f"{column}: {text[:60]!r} {problem}")
        self.column, self.text, self.problem = column, text, problem


class Line(NamedTuple):
    """Line below the header: its values, or the problem."""

    number: int
    text: bytes
    values: Values | None = None
    problem: ValueError | None = None


@dataclass(frozen=True)
class Header:
    """Place of each column in a line."""

    names: Sequence[str]
    places: Mapping[str, int]
    factors: Mapping[str, int]
    others: Sequence[int]
    """Places of columns that are not read."""
    clauses: Sequence[str]
    """What was needed to read the header, and what follows from missing columns."""


class HourCsv:
    """Formats `zhejiang.flow`, `zhejiang.nic`, `zhejiang.link` and `zhejiang.port`."""

    def __init__(self, table: HourTable, tables: Iterable[HourTable], checksum: int) -> None:
        self._table = table
        self._tables = tuple(tables)
        self._file_name = regex(rf"[0-9]{{10}}_{table.name}\.csv(\.gz|\.zst)?", re.IGNORECASE)
        self.name = f"zhejiang.{table.name}"
        self.version = 2**34 + checksum
        types = dict.fromkeys(table.columns, "VARCHAR") | {"time_utc": "TIMESTAMP", "line": "INTEGER"}
        self.relations: Sequence[RawRelation] = (RawRelation(table.name, _ABOUT[table.name], types),)

    def claims(self, path: Path) -> bool:
        """Return True if the file is named like this table of some hour."""
        return self._file_name.fullmatch(path.name) is not None

    def inspect(self, file: RawFile) -> RawFile:
        """Read the whole file: its header, and whether its values have the forms of their columns."""
        try:
            found = file.but(hour_utc=_hour_of(file.path))
            header, damage = self._checked(found)
        except compressed.STREAM_ERRORS as error:
            return file.but(status=SKIPPED, reason=f"cannot be decompressed: {error}")
        except ValueError as error:
            return file.but(status=SKIPPED, reason=str(error))
        reason = "; ".join(filter(None, (damage, *header.clauses)))
        return found.but(status=PARTIAL if damage else READ, reason=reason or None)

    def read(self, files: Sequence[RawFile], relation: str, reject: list[Rejected]) -> Iterator[Mapping[str, object]]:
        """Yield the rows of the files, line by line.

        Raises
        ------
        DataError
            If a file cannot be opened, or its header changed since it was inspected.
        """
        for file in files:
            try:
                for line in self._lines(file, self._header(file.path)):
                    if line.values is not None:
                        yield {**line.values, "line": line.number, "filename": str(file.read_path)}
                    else:
                        text = line.text.decode("utf-8", "backslashreplace")[:500]
                        reject.append(Rejected(file.release_path, line.number, str(line.problem), text))
            except OSError as error:
                raise DataError(f"cannot be read: {error.strerror}", place=Place(file.path)) from error
            except ValueError as error:
                raise DataError(f"changed while it was read: {error}", place=Place(file.path)) from error

    # header -----------------------------------------------------------------------------------------

    def _header(self, path: Path) -> Header:
        """Return the header of a file. Raise ValueError if it is not that of this table."""
        head = compressed.head(path, csv_headers.HEAD_BYTES)
        if not head:
            raise ValueError("empty file")
        first, *lines = head.split(b"\n")
        rows = list(_split(lines[:-1]))  # the last one may be cut
        names = csv_headers.fitted(self._names(first), rows)
        return self._matched(names, rows[0] if rows else ())

    def _names(self, line: bytes) -> list[str]:
        try:
            names = [name.strip() for name in named_csv.split(line.removeprefix(b"\xef\xbb\xbf"))]
        except ValueError as error:
            raise ValueError(f"the header: {error}") from None
        if problem := csv_headers.foreign_header(line, self._table.spellings):
            raise ValueError(problem)
        counts = {one.name: len(one.columns.keys() & set(names)) for one in self._tables}
        most = max(counts, key=lambda name: counts[name])
        if counts[most] > counts[self._table.name]:
            raise ValueError(f"has the columns of the {most} table: {csv_headers.listed(names, _SHOWN)}")
        return names

    def _matched(self, names: Sequence[str], row: Sequence[str]) -> Header:
        """Return the places of the columns. A published name takes precedence over another name of its column."""
        table = self._table
        found: dict[str, tuple[int, int]] = {}
        clauses, ignored = [], []
        numbered = [name if names.index(name) == at else f"{name}_2" for at, name in enumerate(names)]
        for at, name in sorted(enumerate(numbered), key=lambda one: one[1] not in table.columns):
            column, factor = table.match(name) or (None, 1)
            if name != names[at] and column is None and table.match(names[at]):
                shown = csv_headers.listed(names, _SHOWN)
                raise ValueError(f"column {names[at]} stands twice in the header {shown}")
            if column is None or column.name in found:
                ignored.append((at, name))
                continue
            found[column.name] = at, factor
            if name != column.name:
                times = f" in {name} times {factor:,}" if factor != 1 and column.value in BOUNDS else ""
                clauses.append(f"{name} is read as {column.name}{times}")
        missing = [c for c in table.columns.values() if c.required and not found.keys() & {c.name, c.required}]
        if missing:
            raise ValueError(self._missing(missing[0], names, [at for at, _ in sorted(ignored)], row))
        if ignored:
            shown = ", ".join(csv_headers.shown_name(at + 1, names[at]) for at, _ in sorted(ignored))
            clauses.append(f"{csv_headers.COLUMNS_IGNORED}{shown[:200]}")
        lacking = (c.lacking for c in table.columns.values() if c.name not in found and c.lacking)
        return Header(
            names,
            {name: at for name, (at, _) in found.items()},
            {name: factor for name, (_, factor) in found.items()},
            [at for at, name in ignored if not csv_headers.is_unnamed(name.removesuffix("_2"))],
            [*clauses, *dict.fromkeys(lacking)],
        )

    def _missing(self, column: HourColumn, names: Sequence[str], unknown: Sequence[int], row: Sequence[str]) -> str:
        """Return the reason to skip a file without a needed column, with the line that accepts one of its own."""
        place = next((at for at in unknown if at < len(row) and _looks_like(column, row[at])), None)
        shown = names[place] if place is not None else "HEADER"
        value = f" (first value {row[place][:60]!r})" if place is not None else ""
        line = self._table.line(column.name, shown, CHINA_SECONDS if column.value == TIME else None)
        return (
            f"no column {column.name} in the header {csv_headers.listed(names, _SHOWN)}: if it is {shown}{value},"
            f" add this line to data/hour_columns.csv of your project: {line}"
        )

    # lines ------------------------------------------------------------------------------------------

    def _checked(self, file: RawFile) -> tuple[Header, str | None]:
        """Return the header, and the damage at the end of the file. Raise ValueError for another form or unit."""
        header = self._header(file.path)
        damage: str | None = None
        first: list[Values] = []
        misfits: dict[str, tuple[int, MisfitError]] = {}
        counts = Counter[str]()
        for line in self._lines(file, header):
            damage = str(line.problem) if type(line.problem) is ValueError else None
            counts["rows"] += 1
            if isinstance(line.problem, MisfitError):
                counts[line.problem.column] += 1
                misfits.setdefault(line.problem.column, (line.number, line.problem))
            elif line.values and len(first) < _FIRST:
                first.append(line.values)
        for name, (number, misfit) in misfits.items():
            if counts[name] > _MOST_MISFITS * counts["rows"]:
                shown = header.names[header.places[name]]
                raise ValueError(
                    f"column {name} (header {shown}): {counts[name]:,} of {counts['rows']:,} values are refused, the"
                    f" first in line {number}: {misfit.text[:60]!r} {misfit.problem}{self._unit_line(name, shown)}"
                )
        self._check_units(header, first)
        is_end = damage and damage.startswith(("torn", "the compressed stream"))
        return header, damage if is_end else None

    def _unit_line(self, name: str, shown: str) -> str:
        """Return the line that accepts a column in another unit."""
        unit, factor = UNITS.get(self._table.columns[name].value, ("", None))
        line = self._table.line(name, shown, factor)
        return f"; if it is in {unit}, add this line to data/hour_columns.csv of your project: {line}" if unit else ""

    def _lines(self, file: RawFile, header: Header) -> Iterator[Line]:
        """Yield the lines below the header that are not blank."""
        reader = _LineReader(self._table, header, file.hour_utc or _hour_of(file.path))
        for number, line, damage in torn_lines.numbered_lines(file.read_path):
            if number == 1 or not (line.strip() or damage):
                continue
            try:
                yield Line(number, line, reader.values(line, damage))
            except ValueError as error:
                yield Line(number, line, problem=error)

    # units ------------------------------------------------------------------------------------------

    def _check_units(self, header: Header, rows: Sequence[Values]) -> None:
        """Raise ValueError if the first rows cannot be in the unit that the header states."""
        if trips := [number for row in rows if (number := _number(row, "Rtt"))]:
            middle = statistics.median(trips)
            if not _ROUND_TRIP_NS[0] <= middle <= _ROUND_TRIP_NS[1]:
                problem = f"the median of the first rows is {middle:g} ns, which is no round-trip time"
                self._refuse(header, "Rtt", rows, problem)
        for way in ("In", "Out") if self._table.name == "port" else ():
            both = [(_number(row, f"{way}Bytes"), _number(row, f"{way}Speed")) for row in rows]
            ratios = [moved / (speed * 60) for moved, speed in both if moved and speed and speed >= _BUSY]
            if ratios and not 1 / _MOST_RATIO <= statistics.median(ratios) <= _MOST_RATIO:
                middle = statistics.median(ratios)
                problem = f"the bytes of a minute are {middle:.3g} times 60 s at {way}Speed, in bytes a second"
                self._refuse(header, f"{way}Bytes", rows, problem)

    def _refuse(self, header: Header, name: str, rows: Sequence[Values], problem: str) -> None:
        shown = header.names[header.places[name]]
        first = next(row[name] for row in rows if row[name])
        raise ValueError(
            f"column {name} (header {shown}): {problem}, the first value is {first}{self._unit_line(name, shown)}"
        )


class _BadLineError(ValueError):
    """Problem of a line that is no damage of the file's end."""


class _LineReader:
    """Values of the lines of one file."""

    def __init__(self, table: HourTable, header: Header, hour: datetime) -> None:
        self._time = table.time
        self._header = header
        self._parsers = {
            name: _Parser(column, header.factors[name], hour, table.name)
            for name, column in table.columns.items()
            if name in header.places
        }
        self._absent = dict.fromkeys(table.columns.keys() - header.places.keys())
        self._has_identity = all(c.name in header.places for c in table.columns.values() if c.value == "queue_pair")
        self._seen: set[int] = set()

    def values(self, line: bytes, damage: str | None) -> Values:
        """Return the values of a line. Raise ValueError if one has another form, or if the line repeats one."""
        if damage:
            raise ValueError(damage)
        fields, places = named_csv.split(line), self._header.places
        width = len(self._header.names)
        if len(fields) != width and not csv_headers.is_longer(fields, width):
            raise _BadLineError(f"{len(fields)} fields instead of {width}")
        values = {name: parser.parse(fields[places[name]]) for name, parser in self._parsers.items()}
        if self._has_identity:  # flows without queue pairs may be equal
            key = hash((*values.values(), *(fields[at] for at in self._header.others)))
            if key in self._seen:
                raise _BadLineError("repeats an earlier row")
            self._seen.add(key)
        return {**values, **self._absent, "time_utc": values[self._time], self._time: fields[places[self._time]]}


class _Parser:
    """Checks the values of one column, each different text once."""

    def __init__(self, column: HourColumn, factor: int, hour: datetime, table: str) -> None:
        self._column = column
        self._factor = factor
        self._hour = hour
        self._table = table
        self._form = regex(FORMS[column.value], re.ASCII) if column.value in FORMS else None
        self._known: dict[str, object] = {}

    def parse(self, text: str) -> object:
        """Return the text, or a time as UTC; None for a blank one. Raise MisfitError for another form."""
        if text not in self._known:
            if len(self._known) >= _KNOWN:
                self._known.clear()
            written = text.strip()
            try:
                self._known[text] = self._value(text, written)
            except ValueError as error:
                raise MisfitError(self._column.name, written, str(error)) from None
        return self._known[text]

    def _value(self, text: str, written: str) -> object:
        kind = self._column.value
        if kind == TIME:
            return parse_hour_time(written, self._factor, self._hour, needs_seconds=self._table == "nic")
        if written.lower() in _BLANKS:
            if self._form and kind != "far_port":
                raise ValueError("is blank")
            return None
        if self._form and not self._form.fullmatch(written):
            raise ValueError(f"is no {kind.replace('_', ' ')}")
        return _counter(text, written, self._factor, BOUNDS[kind]) if kind in BOUNDS else text


def _counter(text: str, written: str, factor: int, bound: int) -> str:
    """Return a counter as written, or converted by a factor. Raise ValueError if it is none, or beyond all bounds.

    >>> _counter("5.887", "5.887", 1000, 10**15), _counter("1.2e3", "1.2e3", 1, 10**15)
    ('5887', '1.2e3')
    """
    if not _NUMBER.fullmatch(written):
        raise ValueError("is not a number of 0 or more")
    number = Decimal(written)
    if (number.adjusted() > 18 and number) or number * factor >= bound:
        raise ValueError("is beyond all bounds")
    if factor != 1:
        return str((number * factor).to_integral_value(ROUND_HALF_UP))
    if number != number.to_integral_value():
        raise ValueError("is not a whole number")
    return text


def _looks_like(column: HourColumn, value: str) -> bool:
    """Return True if a value may be one of a needed column: a time, or a name of its form."""
    if column.value == TIME:
        return value.count(":") >= 1 or re.fullmatch(r"\d{10,19}", value) is not None
    return re.fullmatch(FORMS.get(column.value, ""), value.strip(), re.ASCII) is not None


def _number(row: Values, name: str) -> float | None:
    try:
        return float(str(row.get(name) or ""))
    except ValueError:
        return None


def _split(lines: Iterable[bytes]) -> Iterator[list[str]]:
    for line in lines:
        try:
            fields = named_csv.split(line)
        except ValueError:
            continue
        if any(fields):
            yield fields


@lru_cache(maxsize=64)
def _hour_of(path: Path) -> datetime:
    """Parse the hour in the file name. Raise ValueError if the folder is named like another hour."""
    stated, folder = path.name[:10], path.parent.name
    if re.fullmatch(r"[0-9]{10}", folder) and folder != stated:
        raise ValueError(f"its name says hour {stated}, its folder {folder}")
    return parse_hour(stated)


def hour_formats(own: Sequence[Path] = ()) -> tuple[HourCsv, ...]:
    """Return the four formats; `own` are a project's files of accepted headers."""
    tables, checksum = read_tables(own)
    return tuple(HourCsv(table, tables.values(), checksum) for table in tables.values())
