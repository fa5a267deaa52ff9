"""Columns of the hour tables and the headers that are accepted, from `data/hour_columns.csv`.

Docs: docs/formats/hour_tables.md. A project's own `data/hour_columns.csv` adds lines to the shipped ones.
"""

from __future__ import annotations

import csv
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from warehouse.base.errors import DataError, Place
from warehouse.base.settings import shipped_root
from warehouse.formats.zhejiang.values import ADDRESS

_PORT = (
    r"(?i:(?:[a-z-]*(?:GigE|Ethernet)|[0-9]{1,3}GE?|M-?GE|FH|TH|[a-z]+-(?:Aggregation|interface)|LoopBack)"
    r" *[0-9]{1,4}(?:/[0-9]{1,4}){0,3}(?::[0-9]{1,3})?)"
)
FORMS = {
    "server": rf"(?:.*GPU-\d{{1,6}}|{ADDRESS})",
    "switch": rf"(?:.*(ST-leaf|Leaf|spine)-\d{{1,4}}(\..*)?|{ADDRESS})",
    "address": ADDRESS,
    "queue_pair": r"\d{1,10}",
    "adapter": r"\S*[0-9]\S*",
    "switch_port": _PORT,
    "far_port": rf"(?:{_PORT}|[^/]*)",
}
"""Kind of value -> pattern of the whole value without blanks around it, for columns that identify a row.

The port at the other end of a link may be blank, or a name of another kind if a server is there.
"""
BOUNDS = {"bytes": 10**18, "count": 10**15, "duration": 10**15}
"""Kind of number -> smallest value that is damage: sums over an hour would not fit 64 bits."""
TIME = "time"
UNITS = {TIME: ("UTC", 0), "bytes": ("KB", 1000), "duration": ("us", 1000)}
"""Kind of value -> a unit that a file may have, and its factor."""
Units = Mapping[str, Mapping[str, int]]
"""Kind of value -> unit in a header -> factor."""


class HourColumn(NamedTuple):
    """Column that the document names."""

    name: str
    value: str
    """Kind of value: time, server, count and so on."""
    required: str
    """`yes`, or the column that can take its place; empty for an optional column."""
    lacking: str
    """Consequence if a file has no such column."""


@dataclass
class HourTable:
    """Columns of one of the four tables."""

    name: str
    columns: dict[str, HourColumn] = field(default_factory=dict)
    spellings: dict[str, tuple[HourColumn, int]] = field(default_factory=dict)
    """Header, as written and folded -> column and factor; of a time, seconds ahead of UTC."""

    @property
    def time(self) -> str:
        """Column with the time of a row."""
        return next(column.name for column in self.columns.values() if column.value == TIME)

    def match(self, header: str) -> tuple[HourColumn, int] | None:
        """Return the column of a header, with its factor; None if no line of the CSV file accepts it."""
        found = self.spellings.get(header)
        if found is None and (found := self.spellings.get(folded(header))):
            column, factor = found
            if column.value == "bytes" and factor != 1 and header.rstrip(" )]}").endswith("b"):
                return None  # may be bits
        return found

    def accept(self, column: HourColumn, headers: Iterable[str], factor: int, units: Units) -> None:
        """Accept headers for a column, and each of them with a unit."""
        for header in headers:
            self.spellings |= {header: (column, factor), folded(header): (column, factor)}
            for unit, unit_factor in units[column.value].items():
                self.spellings.setdefault(folded(header + unit), (column, unit_factor))  # a line's own header wins

    def line(self, column: str, header: str, factor: int | None = None) -> str:
        """Return the line of the CSV file that accepts a header for a column."""
        shown = f'"{header}"' if "," in header else header
        return f"{self.name},{column},{shown},{'' if factor is None else factor}"


def folded(name: str) -> str:
    """Return a header without case, blanks and marks.

    >>> folded("Rtt (us)") == folded("rtt_us") == folded("RttUs")
    True
    """
    kept = (letter for letter in unicodedata.normalize("NFKC", name) if letter.isalnum() or letter == "+")
    return "".join(kept).casefold()


def read_tables(own: Sequence[Path] = ()) -> tuple[dict[str, HourTable], int]:
    """Return the four tables by name, in the order of the release's document, and a checksum of the CSV files.

    Raises
    ------
    DataError
        If an own file has a line of an unknown table or column.
    """
    lines: list[tuple[Place, dict[str, str]]] = []
    checksum = 0
    for path in (shipped_root() / "data" / "hour_columns.csv", *own):
        content = path.read_bytes()
        checksum = zlib.crc32(content, checksum)
        read = csv.DictReader(content.decode("utf-8-sig", "replace").splitlines())
        lines += ((Place(path, number), line) for number, line in enumerate(read, start=2))
    tables: dict[str, HourTable] = {}
    units: dict[str, dict[str, int]] = defaultdict(dict)
    for place, line in sorted(lines, key=lambda one: one[1].get("relation") != "*"):  # units first, in order
        try:
            headers, factor = line["headers"].split("|"), int(line["factor"] or 1)
            if line["relation"] == "*":
                units[line["published"]] |= dict.fromkeys(headers, factor)
                continue
            name = line["published"]
            if line.get("value"):
                table = tables.setdefault(line["relation"], HourTable(line["relation"]))
                table.columns[name] = HourColumn(name, line["value"], line["required"], line["lacking"])
            table = tables[line["relation"]]
            table.accept(table.columns[name], headers, factor, units)
        except (KeyError, ValueError, AttributeError) as error:
            raise DataError(
                f"{error} is no table, column or factor of the hour tables",
                place=place,
                hint="a line is relation,published,headers,factor, as in the shipped data/hour_columns.csv",
            ) from error
    return tables, checksum
