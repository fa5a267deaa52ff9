"""Rows of the hour tables: published columns as text, and typed columns that the models compute with.

Docs: docs/formats/hour_tables.md. Every published column keeps its text, so that a wrong guess of its type loses
nothing. The typed columns are validated here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from warehouse.formats.base import RawFile, RawRelation, Rejected
from warehouse.formats.zhejiang.values import ADDRESS, parse_counter, parse_local_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from warehouse.formats.zhejiang.headers import Columns, Row

_SERVER = r".*GPU-\d{1,6}"
_SWITCH = r".*(ST-leaf|Leaf|spine)-\d{1,4}(\..*)?"
HOUR = timedelta(hours=1)
MOST, MOST_BYTES = 10**15, 10**18
"""Upper bounds of counters; a larger value is damage, and sums over an hour would not fit 64 bits.

Bytes may be counted since the machine was started: the document's example is 1.8e16.
"""
TOLERANCE = timedelta(seconds=60)
"""Maximum distance of a row's time from the file's hour: the pollers' clocks and the folders disagree."""


_time_of = lru_cache(maxsize=1024)(parse_local_time)
"""Cached `parse_local_time`: the rows of one poll share their time."""


@dataclass(frozen=True)
class HourTable:
    """Contract of one of the four tables."""

    relation: RawRelation
    columns: Columns
    """Published column -> its spellings in headers."""
    optional: tuple[str, ...]
    time: str
    """Column with the time of the row."""
    counters: Mapping[str, str]
    """Typed column -> published column."""
    forms: Mapping[str, str]
    """Column -> regular expression that the whole value must match, for columns that identify the row."""

    @property
    def name(self) -> str:
        """Name of the table in file names and sheet titles."""
        return self.relation.name

    def rows(
        self, rows: Iterable[Row], file: RawFile, hour: datetime, reject: list[Rejected], sheet: str = ""
    ) -> Iterator[dict[str, object]]:
        """Yield each row with its typed columns; append bad rows to `reject`, with the sheet's name if there is one."""
        for row in rows:
            try:
                typed = self._typed(row, hour)
            except ValueError as error:
                reason = f"{error} (sheet {sheet!r})" if sheet else str(error)
                reject.append(Rejected(file.release_path, row.number, reason, row.text))
            else:
                written = {column: row.values.get(column) for column in self.columns}
                yield {**written, **typed, "line": row.number, "filename": str(file.read_path)}

    def _typed(self, row: Row, hour: datetime) -> dict[str, object]:
        """Parse time and counters; a blank counter is NULL, not zero."""
        if row.problem:
            raise ValueError(row.problem)
        try:
            time = _time_of(row.values[self.time] or "")
        except ValueError as error:
            raise ValueError(f"{self.time}: {error}") from None
        if not hour - TOLERANCE <= time <= hour + HOUR + TOLERANCE:
            raise ValueError(f"{self.time} is {time} UTC, not in the hour from {hour} UTC")
        for column, form in self.forms.items():
            value = (row.values[column] or "").strip()
            if not re.fullmatch(form, value, re.ASCII):
                raise ValueError(f"{column} is {value!r}" if value else f"{column} is blank")
        typed: dict[str, object] = {"time_utc": time}
        for column, published in self.counters.items():
            written = row.values[published]
            try:
                count = None if written is None else parse_counter(written.strip())
            except ValueError as error:
                raise ValueError(f"{published}: {error}") from None
            if count is not None and count < 0:
                raise ValueError(f"{published}: {written} is negative")
            if count is not None and count >= (MOST_BYTES if column.endswith(("bytes", "octets")) else MOST):
                raise ValueError(f"{published}: {written} is beyond all bounds")
            typed[column] = count
        return typed


def _table(
    name: str,
    about: str,
    published: str,
    *,
    time: str,
    counters: Mapping[str, str],
    forms: Mapping[str, str],
    spellings: Columns | None = None,
    optional: tuple[str, ...] = (),
) -> HourTable:
    names = published.split()
    types = {
        **dict.fromkeys(names, "VARCHAR"),
        "time_utc": "TIMESTAMP",
        **dict.fromkeys(counters, "BIGINT"),
        "line": "INTEGER",
    }
    columns = {column: (column, *(spellings or {}).get(column, ())) for column in names}
    return HourTable(RawRelation(name, about, types), columns, optional, time, counters, forms)


FLOW_TABLE = _table(
    "flow",
    "Samples of queue pairs between servers, with round-trip times and packets, as published.",
    "SourceServer DestServer SourceSwitch DestSwitch Time SourceIp DestIp SourceQp DestQp Rtt"
    " ReadPkts WritePkts SendPkts NakPkts",
    time="Time",
    counters={
        "rtt_ns": "Rtt",
        "read_packets": "ReadPkts",
        "write_packets": "WritePkts",
        "send_packets": "SendPkts",
        "nak_packets": "NakPkts",
    },
    forms={
        **dict.fromkeys(("SourceServer", "DestServer"), _SERVER),
        **dict.fromkeys(("SourceSwitch", "DestSwitch"), _SWITCH),
        **dict.fromkeys(("SourceIp", "DestIp"), ADDRESS),
        **dict.fromkeys(("SourceQp", "DestQp"), r"\d{1,10}"),
    },
    spellings={"Rtt": ("Rtt (ns)",)},
)
NIC_TABLE = _table(
    "nic",
    "Cumulative counters of the servers' NICs, as published.",
    "SaveTime DeviceName Ip PortName ReceivedBytes TransmittedBytes ReceivedPacketsByPort"
    " ReceiveddPacketsByUnicast TransmittedPacketsByPort TransmitteddPacketsByUnicast",
    time="SaveTime",
    counters={"received_bytes": "ReceivedBytes", "transmitted_bytes": "TransmittedBytes"},
    forms={"DeviceName": _SERVER, "PortName": r"\S+"},
)
LINK_TABLE = _table(
    "link",
    "Both ends of each link, with its counters, as published. A link without DstPort leads to a server's NIC.",
    "DeviceName IfAbbreviatedName DstDevice DstPort StartTime InUcastPkts Ip IfOperStatus InOctets InPkts"
    " InMuticastPkts InBrdcastPkts InSpeed InPktSpeed InUseRatio InErrorRatio OutOctets OutPkts"
    " OutMuticastPkts OutBrdcastPkts OutSpeed OutPktSpeed OutUseRatio EcnMarkedCount OutBrdcastPkts_2",
    time="StartTime",
    counters={"ecn_marked": "EcnMarkedCount", "in_octets": "InOctets", "out_octets": "OutOctets"},
    forms={"DeviceName": _SWITCH, "IfAbbreviatedName": r"\S+"},
    spellings={"OutBrdcastPkts_2": ("OutBrdcastPkts.1",)},
    optional=("OutBrdcastPkts_2",),
)
PORT_TABLE = _table(
    "port",
    "Bytes and lost packets of switch ports per minute, as published.",
    "DeviceName PortName Time InBytes InUseRatio InSpeed InPktsLoss OutBytes OutUseRatio OutSpeed OutPktsLoss",
    time="Time",
    counters={
        "in_bytes": "InBytes",
        "out_bytes": "OutBytes",
        "in_loss_packets": "InPktsLoss",
        "out_loss_packets": "OutPktsLoss",
    },
    forms={"DeviceName": _SWITCH, "PortName": r"\S+"},
)
TABLES = {table.name: table for table in (FLOW_TABLE, NIC_TABLE, LINK_TABLE, PORT_TABLE)}
