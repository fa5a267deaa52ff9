"""Headers of the hour tables: which field of a row is which column, and in which unit.

Docs: docs/formats/hour_tables.md. Each rule that was needed is a clause of `HourHeader.applied`, which `doctor` shows.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from warehouse.base.startup import regex
from warehouse.formats.zhejiang.headers import fold
from warehouse.formats.zhejiang.hour_columns import OTHERS, TIME, HourColumn, HourTable
from warehouse.formats.zhejiang.values import CHINA_SECONDS, is_blank, parse_local_time

_UNIT = regex(r"(.*?)[\s_]*[(\[{]\s*([^()\[\]{}]*?)\s*[)\]}]\s*")
"""Name with a unit in brackets."""
_SUFFIX = regex(r"(.*[^\s_./-])[\s_./-]+([^\s_./-]+)\s*")
"""Name with a unit as its last word."""
_FUSED = regex(r"(.*[A-Za-z])([nuµμm]s|[KMGT]i?B)", re.IGNORECASE)
"""Name with a unit as its last letters."""


@dataclass(frozen=True)
class HourHeader:
    """Positions of the columns in the rows of one file or sheet."""

    positions: Mapping[str, int]
    factors: Mapping[str, int]
    """Measure -> factor to the typed column, if it is not 1. The time -> seconds ahead of UTC, if not China's."""
    others: Mapping[str, int]
    """Names that match no column -> position."""
    width: int
    """Number of fields in a row."""
    applied: tuple[str, ...] = ()
    """Clauses on the rules that were needed to read the header, and on what it lacks."""
    problem: str | None = None
    stated: frozenset[str] = frozenset()
    """Text columns with a unit in the header."""
    separator: str = ","
    line: int = 1
    """Line of the file, or row of the sheet, with the header."""

    def pick(self, cells: Sequence[str | None]) -> dict[str, str | None]:
        """Return the value of each column; None if it is blank or missing from a short row."""
        values = {name: _filled(cells, at) for name, at in self.positions.items()}
        others = {name: value for name, at in self.others.items() if (value := _filled(cells, at)) is not None}
        values[OTHERS] = json.dumps(others, ensure_ascii=False, separators=(",", ":")) if others else None
        return values

    def shifted(self) -> HourHeader:
        """Return the header of rows that begin with a field more than the header has: a number of the row."""
        return replace(
            self,
            positions={name: at + 1 for name, at in self.positions.items()},
            others={name: at + 1 for name, at in self.others.items()},
            width=self.width + 1,
            applied=(*self.applied, "a first field without a name is left out"),
        )

    def widened(self, width: int) -> HourHeader:
        """Return the header of rows that end with fields without a name, which are not blank."""
        clause = "the last fields, which have no name, are left out"
        return replace(self, width=width, applied=(*self.applied, clause))


def _filled(cells: Sequence[str | None], at: int) -> str | None:
    value = cells[at] if at < len(cells) else None
    return None if value is None or is_blank(value) else value


def read_header(names: Sequence[str | None], table: HourTable) -> HourHeader:
    """Return the positions of a table's columns. A missing, repeated or ambiguous column is a `problem`."""
    trimmed = [(name or "").strip("\ufeff \t") for name in names]
    while trimmed and not trimmed[-1]:
        trimmed.pop()
    found = _Matches(table)
    for exact in (True, False):  # a published name takes precedence over another name for the same column
        for at, name in enumerate(trimmed):
            found.match(at, name, exact=exact)
    missing = [c.name for c in table.columns.values() if not table.is_satisfied(c, found.positions)]
    problems = [f"no column {', '.join(missing)}"] if missing else []
    problems += [f"column {', '.join(found.repeated)} stands twice"] if found.repeated else []
    problems += found.problems
    unnamed = sum(1 for name in trimmed if not name)
    applied = [
        *found.applied,
        *([f"columns kept as text: {', '.join(found.others)[:200]}"] if found.others else []),
        *(["a first field without a name is left out"] if unnamed else []),
        *(["a comma at the end of the header"] if len(trimmed) < len(names) else []),
        *_lacking(table, found.positions),
    ]
    return HourHeader(
        found.positions,
        found.factors,
        found.others,
        len(trimmed),
        tuple(applied),
        " and ".join(problems) or None,
        frozenset(found.stated),
    )


def other_table(names: Sequence[str], table: HourTable, tables: Iterable[HourTable]) -> str | None:
    """Return another table of which a header has more published names than of this one, and all required ones."""
    folded = {_folded(name) for name in names}
    counts = {one.name: sum(_folded(name) in folded for name in one.columns) for one in tables}
    most = max(counts, key=lambda name: counts[name])
    return most if counts[most] > counts[table.name] else None


def _folded(name: str) -> str:
    return fold(name).replace(".", "")


def _lacking(table: HourTable, positions: Mapping[str, int]) -> list[str]:
    """Return what a file without some columns lacks, each consequence once."""
    return list(dict.fromkeys(c.lacking for c in table.columns.values() if c.name not in positions and c.lacking))


class _Matches:
    """Columns found so far in a header."""

    def __init__(self, table: HourTable) -> None:
        self.positions: dict[str, int] = {}
        self.factors: dict[str, int] = {}
        self.others: dict[str, int] = {}
        self.repeated: list[str] = []
        self.problems: list[str] = []
        self.applied: list[str] = []
        self.stated: list[str] = []
        self._published = {_folded(column.name): column for column in table.columns.values()}
        self._spelled = {_folded(name): column for column in table.columns.values() for name in column.spellings}
        self._seen: dict[str, int] = {}

    def match(self, at: int, name: str, *, exact: bool) -> None:
        """Match one name, exactly or by another name or unit."""
        if not name or at in self.positions.values():
            return
        if exact:
            self._match_published(at, name)
            return
        column, unit = self._named(name)
        if column is None or (column.name in self.positions and _folded(name) not in self._published):
            self.others[f"{name} {at + 1}" if name in self.others else name] = at
        elif column.name in self.positions:
            self.repeated.append(name)
        else:
            self.positions[column.name] = at
            self._note_unit(name, column, unit)

    def _match_published(self, at: int, name: str) -> None:
        """Match a published name; the second of two equal names is that name with `_2`, where there is one."""
        folded = _folded(name)
        self._seen[folded] = self._seen.get(folded, 0) + 1
        number = self._seen[folded]
        column = self._published.get(folded if number == 1 else f"{folded}{number}")
        if column is not None and column.name not in self.positions:
            self.positions[column.name] = at

    def _named(self, name: str) -> tuple[HourColumn | None, str]:
        """Return the column of a name and the unit in the name."""
        name = unicodedata.normalize("NFKC", name)
        if column := self._spelled.get(_folded(name)):
            return column, ""
        for pattern in (_UNIT, _SUFFIX, _FUSED):
            found = pattern.fullmatch(name)
            column = self._spelled.get(_folded(found[1])) if found else None
            if found and column and (pattern is _UNIT or fold(found[2]) in column.units):
                return column, found[2]
        return None, ""

    def _note_unit(self, name: str, column: HourColumn, unit: str) -> None:
        if _folded(name) != _folded(column.name) and not unit:
            self.applied.append(f"{name} is read as {column.name}")
        if unit and not column.units:
            self.stated.append(column.name)
        if not unit or not column.units:
            return
        factor = column.units.get(fold(unit))
        if factor is None:
            self.problems.append(f"column {name} has the unit {unit}, which is not one of {', '.join(column.units)}")
        elif column.value == "bytes" and unit.endswith("b"):
            self.problems.append(f"column {name} has the unit {unit}, which may be bits: write {unit[:-1].upper()}B")
        elif column.value == TIME and factor not in (0, CHINA_SECONDS):
            self.problems.append(f"column {name} has the zone {unit}")
        elif (column.value == TIME and factor != CHINA_SECONDS) or (column.is_measure and factor != 1):
            self.factors[column.name] = factor
            exactly = f" ({factor:,} B)" if column.value == "bytes" else ""
            self.applied.append(f"{column.name} is in {unit}{exactly}")


def fits_shifted(header: HourHeader, fields: Sequence[str], table: HourTable) -> bool:
    """Return True if a row has a field more than the header: a number in front, the columns after it."""
    if len(fields) != header.width + 1 or not fields[0].strip().isdigit():
        return False
    try:
        parse_local_time(fields[header.positions[table.time.name] + 1])
    except ValueError:
        return False
    return True
