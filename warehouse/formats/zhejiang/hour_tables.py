"""The four tables of an hour (`flow`, `nic`, `link`, `port`) as CSV files, `<hour>_<table>.csv`.

Docs: docs/formats/hour_tables.md. Columns are found by the headers that `data/hour_columns.csv` accepts. Values keep
their text, each different text is judged once; the models of `staging` cast them. A file in which more than 1 % of a
column has another form is skipped: the other values would be in another unit, too.
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from warehouse.base.startup import regex
from warehouse.formats import named_csv, streams
from warehouse.formats.base import PARTIAL, READ, RawFile, RawRelation
from warehouse.formats.zhejiang import parse_hour
from warehouse.formats.zhejiang.hour_columns import (
    BOUNDS,
    CHINA_SECONDS,
    FORMS,
    TIME,
    UNITS,
    HourColumn,
    HourTable,
    parse_hour_time,
    read_tables,
)

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
_HEAD_BYTES = 64 * 1024
"""Bytes that hold the header and first rows. A compressed file that breaks before is not read."""
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

Values = Mapping[str, Any]


class MisfitError(ValueError):
    """Value of a column in another form than it should have."""

    def __init__(self, column: str, text: str, problem: str) -> None:
        super().__init__(f"{column}: {text[:60]!r} {problem}")
        self.column = column


class Header(NamedTuple):
    """Place of each column in a line."""

    names: Sequence[str]
    places: Mapping[str, tuple[int, int]]
    """Column -> its place, and its factor."""
    others: Sequence[int]
    """Places of columns that are not read."""
    clauses: Sequence[str]
    """What was needed to read the header, and what follows from missing columns."""


class HourCsv(streams.LineTable):
    """Formats `zhejiang.flow`, `zhejiang.nic`, `zhejiang.link` and `zhejiang.port`."""

    def __init__(self, table: HourTable, tables: Iterable[HourTable], checksum: int) -> None:
        self._table = table
        self._tables = tuple(tables)
        self._file_name = regex(rf"[0-9]{{10}}_{table.name}\.csv(\.gz|\.zst)?", re.IGNORECASE)
        self.name = f"zhejiang.{table.name}"
        # The checksum has 32 bits; above them is the version of this code.
        self.version = (9 << 32) + checksum
        types = dict.fromkeys(table.columns, "VARCHAR") | {"time_utc": "TIMESTAMP", "line": "INTEGER"}
        self.relations: Sequence[RawRelation] = (RawRelation(table.name, _ABOUT[table.name], types),)

    def claims(self, path: Path) -> bool:
        """Return True if the file is named like this table of some hour."""
        return self._file_name.fullmatch(path.name) is not None

    def looked(self, file: RawFile) -> RawFile:
        """Read the whole file: its header, and whether its values have the forms of their columns."""
        found = file.but(hour_utc=_hour_of(file.path))
        header = self._header(found.path)
        damage = self._check(found, header)
        reason = "; ".join(filter(None, (damage, *header.clauses)))
        return found.but(status=PARTIAL if damage else READ, reason=reason or None)

    # header -----------------------------------------------------------------------------------------

    def _header(self, path: Path) -> Header:
        """Return the header of a file. Raise ValueError if it is not that of this table."""
        head = streams.head(path, _HEAD_BYTES)
        if not head:
            raise ValueError("empty file")
        line, rows = head.partition(b"\n")[0], named_csv.first_rows(head)
        try:
            names = [name.strip() for name in named_csv.split(line.removeprefix(b"\xef\xbb\xbf"))]
        except ValueError as error:
            raise ValueError(f"the header: {error}") from None
        if problem := named_csv.foreign_header(line, self._table.spellings):
            raise ValueError(problem)
        likeness = {one.name: len(one.columns.keys() & set(names)) for one in self._tables}
        most = max(likeness, key=lambda name: likeness[name])
        if likeness[most] > likeness[self._table.name]:
            raise ValueError(f"has the columns of the {most} table: {named_csv.listed(names, _SHOWN)}")
        return self._matched(named_csv.fitted(names, rows), rows[0] if rows else ())

    def _matched(self, names: Sequence[str], row: Sequence[str]) -> Header:
        """Return the places of the columns. A published name takes precedence over another name of its column."""
        table = self._table
        places: dict[str, tuple[int, int]] = {}
        clauses, ignored = [], []
        # The release has OutBrdcastPkts twice.
        numbered = [name if names.index(name) == at else f"{name}_2" for at, name in enumerate(names)]
        for at, name in sorted(enumerate(numbered), key=lambda one: one[1] not in table.columns):
            column, factor = table.match(name) or (None, 1)
            if name != names[at] and column is None and table.match(names[at]):
                shown = named_csv.listed(names, _SHOWN)
                raise ValueError(f"column {names[at]} stands twice in the header {shown}")
            if column is None or column.name in places:
                ignored.append(at)
                continue
            places[column.name] = at, factor
            if name != column.name:
                times = f" in {name} times {factor:,}" if factor != 1 and column.value in BOUNDS else ""
                clauses.append(f"{name} is read as {column.name}{times}")
        ignored.sort()
        for column in table.columns.values():
            if column.required and not places.keys() & {column.name, column.required}:
                raise ValueError(self._missing(column, names, ignored, row))
        if ignored:
            shown = ", ".join(named_csv.shown_name(at + 1, names[at]) for at in ignored)
            clauses.append(f"{named_csv.COLUMNS_IGNORED}{shown[:200]}")
        lacking = (c.lacking for c in table.columns.values() if c.name not in places and c.lacking)
        # With an index that pandas wrote, equal rows would differ.
        others = [at for at in ignored if not named_csv.is_unnamed(names[at])]
        places = {name: places[name] for name in table.columns if name in places}
        return Header(names, places, others, [*clauses, *dict.fromkeys(lacking)])

    def _missing(self, column: HourColumn, names: Sequence[str], unknown: Iterable[int], row: Sequence[str]) -> str:
        """Return the reason to skip a file without a needed column, with the line that accepts one of its own."""
        form = FORMS.get(column.value, r".*:.*|\d{10,19}")  # a time has no form of one line
        fits = (at for at in unknown if at < len(row) and re.fullmatch(form, row[at].strip(), re.ASCII))
        place = next(fits, None)
        shown = names[place] if place is not None else "HEADER"
        value = f" (first value {row[place][:60]!r})" if place is not None else ""
        line = self._table.line(column.name, shown, CHINA_SECONDS if column.value == TIME else None)
        return (
            f"no column {column.name} in the header {named_csv.listed(names, _SHOWN)}: if it is {shown}{value},"
            f" add this line to data/hour_columns.csv of your project: {line}"
        )

    # values -----------------------------------------------------------------------------------------

    def _check(self, file: RawFile, header: Header) -> str | None:
        """Return the damage at the end of a file. Raise ValueError for another form or unit of a column."""
        rows: list[Values] = []
        misfits: dict[str, list[str]] = defaultdict(list)
        count, damage = 0, ""
        for count, (number, _, row) in enumerate(self.rows(file), 1):  # noqa: B007 - counted
            if isinstance(row, MisfitError):
                misfits[row.column].append(f"line {number}: {str(row).removeprefix(f'{row.column}: ')}")
            elif isinstance(row, ValueError):
                damage = str(row)
            elif len(rows) < _FIRST:
                rows.append(row)
        for name, found in misfits.items():
            if len(found) > _MOST_MISFITS * count:
                refused = f"{len(found):,} of {count:,} values are refused"
                raise ValueError(self._refusal(header, name, f"{refused}, the first in {found[0]}"))
        self._check_units(header, rows)
        return damage if damage.startswith(("torn", "the compressed stream")) else None

    def _check_units(self, header: Header, rows: Sequence[Values]) -> None:
        """Raise ValueError if the first rows cannot be in the unit that the header states."""
        if trips := [trip for row in rows if (trip := _number(row.get("Rtt")))]:
            middle = statistics.median(trips)
            if not _ROUND_TRIP_NS[0] <= middle <= _ROUND_TRIP_NS[1]:
                problem = f"the median of the first rows is {middle:g} ns, which is no round-trip time"
                raise ValueError(self._refusal(header, "Rtt", f"{problem}, the first value is {trips[0]:.0f}"))
        for way in ("In", "Out") if self._table.name == "port" else ():
            both = [(_number(row[f"{way}Bytes"]), _number(row[f"{way}Speed"])) for row in rows]
            ratios = [moved / (speed * 60) for moved, speed in both if moved and speed >= _BUSY]
            if ratios and not 1 / _MOST_RATIO <= (middle := statistics.median(ratios)) <= _MOST_RATIO:
                problem = f"the bytes of a minute are {middle:.3g} times 60 s at {way}Speed, in bytes a second"
                value = next(moved for moved, _ in both if moved)
                raise ValueError(self._refusal(header, f"{way}Bytes", f"{problem}, the first value is {value:.0f}"))

    def _refusal(self, header: Header, name: str, problem: str) -> str:
        """Return the reason to skip a file for one of its columns, with the line that accepts another unit."""
        shown = header.names[header.places[name][0]]
        unit, factor = UNITS.get(self._table.columns[name].value, ("", None))
        line = self._table.line(name, shown, factor)
        accept = f"; if it is in {unit}, add this line to data/hour_columns.csv of your project: {line}" if unit else ""
        return f"column {name} (header {shown}): {problem}{accept}"

    def rows(self, file: RawFile) -> Iterator[tuple[int, bytes, Values | ValueError]]:
        """Yield number, text and row of each line that is not blank; a problem in place of a bad row."""
        header, hour = self._header(file.path), _hour_of(file.path)
        columns = self._table.columns
        blank = dict.fromkeys(columns)
        time = self._table.time
        parsers = [
            ("time_utc" if name == time else name, at, _parser(columns[name], factor, hour, self._table.name))
            for name, (at, factor) in header.places.items()
        ]
        has_identity = all(c.name in header.places for c in columns.values() if c.value == "queue_pair")
        seen: set[int] = set()
        for number, line, damage in streams.numbered_lines(file.read_path):
            if number == 1 or not (line.strip() or damage):
                continue
            try:
                cells = named_csv.fields(line, len(header.names), damage)
                row = {name: parse(cells[at]) for name, at, parse in parsers}
                # Rows that differ only in a column that is not read are no repeats.
                key = hash((*row.values(), *(cells[at] for at in header.others)))
                if key in seen and has_identity:  # flows without queue pairs may be equal
                    raise ValueError("repeats an earlier row")  # noqa: TRY301
                seen.add(key)
                yield number, line, blank | row | {time: cells[header.places[time][0]]}
            except ValueError as error:
                yield number, line, error


def _parser(column: HourColumn, factor: int, hour: datetime, table: str) -> Callable[[str], object]:
    """Return a function that returns a text, or a time as UTC, or None for a blank text; it knows texts seen before.

    The function raises MisfitError for a text of another form.
    """
    kind = column.value
    form = regex(FORMS[kind], re.ASCII) if kind in FORMS else None

    def value(text: str, written: str) -> object:
        if kind == TIME:
            return parse_hour_time(written, factor, hour, needs_seconds=table == "nic")
        if written.lower() in _BLANKS:
            if form and kind != "far_port":
                raise ValueError("is blank")
            return None
        if form and not form.fullmatch(written):
            raise ValueError(f"is no {kind.replace('_', ' ')}")
        return _counter(text, written, factor, BOUNDS[kind]) if kind in BOUNDS else text

    @lru_cache(maxsize=100_000)
    def parse(text: str) -> object:
        written = text.strip()
        try:
            return value(text, written)
        except ValueError as error:
            raise MisfitError(column.name, written, str(error)) from error

    return parse


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


def _number(text: str | None) -> float:
    """Return a number that is only compared; 0 for none."""
    try:
        return float(text or 0)
    except ValueError:
        return 0


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
