"""Columns of the hour tables, from the reviewed table `data/hour_columns.csv`.

Docs: docs/formats/hour_tables.md. The table has the published columns, the other names and the units that a header may
use, and the form of the values. So another name in a header is a line there, not code here.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from warehouse.base.shipped import shipped_root
from warehouse.formats.base import RawRelation
from warehouse.formats.zhejiang.headers import fold
from warehouse.formats.zhejiang.values import ADDRESS

OTHERS = "other_columns"
"""Column of the raw relation with the columns that the document does not name."""
LINE = "line"
_SERVER = rf"(?:.*GPU-\d{{1,6}}|{ADDRESS})"
_SWITCH = rf"(?:.*(ST-leaf|Leaf|spine)-\d{{1,4}}(\..*)?|{ADDRESS})"
_PORT = (
    r"(?i:(?:[a-z-]*(?:GigE|Ethernet)|[0-9]{1,3}GE?|M-?GE|FH|TH|[a-z]+-(?:Aggregation|interface)|LoopBack)"
    r" *[0-9]{1,4}(?:/[0-9]{1,4}){0,3}(?::[0-9]{1,3})?)"
)
_FAR_PORT = "far_port"
_FORMS = {
    "server": _SERVER,
    "switch": _SWITCH,
    "address": ADDRESS,
    "queue_pair": r"\d{1,10}",
    "adapter": r"\S*[0-9]\S*",
    "switch_port": _PORT,
    _FAR_PORT: rf"(?:{_PORT}|[^/]*)",
}
"""Form of a value -> pattern of the whole value without blanks around it, for columns that identify a row.

The port at the other end of a link may be blank, or a name of another kind if a server is there.
"""
MEASURES = ("count", "bytes", "duration")
TIME = "time"
_ABOUT = {
    "flow": "Samples of queue pairs between servers, with round-trip times and packets, as published.",
    "nic": "Cumulative counters of the servers' NICs, as published.",
    "link": "Both ends of each link, with its counters, as published. A link without DstPort leads to a server's NIC.",
    "port": "Bytes and lost packets of switch ports per minute, as published.",
}


class HourColumn(NamedTuple):
    """One column: a row of `data/hour_columns.csv`."""

    name: str
    """Name in the document, and column of the raw relation."""
    spellings: tuple[str, ...]
    """Names in headers, the published one first."""
    value: str
    """Form of the values: time, server, count and so on."""
    units: Mapping[str, int]
    """Folded unit in a header -> factor to the typed column; of a time, seconds ahead of UTC."""
    required: str
    """`yes`, or the column that can take its place; empty for an optional column."""
    typed: str
    """Integer column of the raw relation; empty if there is none."""
    lacking: str
    """Consequence if a header has no such column."""

    @property
    def is_measure(self) -> bool:
        """True if the values are numbers that models compute with."""
        return self.value in MEASURES

    @property
    def form(self) -> str | None:
        """Pattern that each value must match; None if there is none."""
        return _FORMS.get(self.value)

    @property
    def may_be_blank(self) -> bool:
        """True if a blank value has the form, too."""
        return self.value == _FAR_PORT


@dataclass(frozen=True)
class HourTable:
    """Columns of one of the four tables."""

    name: str
    """Name of the table in file names and sheet titles."""
    columns: Mapping[str, HourColumn]
    version: int
    """Checksum of `data/hour_columns.csv`."""

    @cached_property
    def relation(self) -> RawRelation:
        """Relation of `raw`: published columns as text, then typed columns."""
        types = {
            **dict.fromkeys(self.columns, "VARCHAR"),
            OTHERS: "VARCHAR",
            "time_utc": "TIMESTAMP",
            **{column.typed: "BIGINT" for column in self.measures},
            LINE: "INTEGER",
        }
        return RawRelation(self.name, _ABOUT[self.name], types)

    @cached_property
    def time(self) -> HourColumn:
        """Column with the time of a row."""
        return next(column for column in self.columns.values() if column.value == TIME)

    @cached_property
    def measures(self) -> tuple[HourColumn, ...]:
        """Columns that are also typed, as integers."""
        return tuple(column for column in self.columns.values() if column.is_measure)

    def is_satisfied(self, column: HourColumn, names: Mapping[str, object]) -> bool:
        """Return True if a file with these columns may do without one of its own."""
        return not column.required or column.name in names or column.required in names


def read_tables() -> dict[str, HourTable]:
    """Return the four tables by name, in the order of the release's document."""
    content = (shipped_root() / "data" / "hour_columns.csv").read_bytes()
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    version = zlib.crc32(content)
    return {
        name: HourTable(name, {row["published"]: _column(row) for row in rows if row["relation"] == name}, version)
        for name in _ABOUT
    }


def _column(row: Mapping[str, str]) -> HourColumn:
    units = (unit.rpartition("=") for unit in row["units"].split("|") if unit)
    return HourColumn(
        row["published"],
        (row["published"], *filter(None, row["other_names"].split("|"))),
        row["value"],
        {fold(unit): int(factor) for unit, _, factor in units},
        row["required"],
        row["typed"],
        row["lacking"],
    )
