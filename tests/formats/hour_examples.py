"""Example values of the hour tables, and the rows that are read of a file."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import duckdb

from warehouse.formats.base import RawFile, Rejected
from warehouse.formats.zhejiang.hour_tables import HourCsv, hour_formats

Row = dict[str, object]
MakeFile = Callable[[Path], RawFile]
WriteCsv = Callable[..., RawFile]

HOUR_UTC = datetime(2024, 5, 23, 16)  # noqa: DTZ001 - UTC without zone
LONG = "longer than 262,144 bytes"
TORN = "torn: the file ends without a final newline"

TABLES = ("flow", "nic", "link", "port")
FILES = Path(__file__).parents[1] / "fixtures" / "hour_tables"
EXAMPLES: Mapping[str, Mapping[str, str]] = {
    table: next(csv.DictReader((FILES / f"{table}.csv").read_text(encoding="utf-8").splitlines())) for table in TABLES
}
"""Example values of the release's document, by column."""
TYPED = {
    "flow": {
        "time_utc": HOUR_UTC, "rtt_ns": 5887, "read_packets": 0, "write_packets": 20, "send_packets": 0,
        "nak_packets": 0,
    },
    "nic": {
        "time_utc": HOUR_UTC + timedelta(seconds=4),
        "received_bytes": 18_261_840_522_688_720, "transmitted_bytes": 18_253_756_770_390_050,
    },
    "link": {
        "time_utc": HOUR_UTC + timedelta(seconds=4),
        "in_octets": 93_553_320_477, "out_octets": 79_529_075_414, "ecn_marked": 0,
    },
    "port": {
        "time_utc": HOUR_UTC, "in_bytes": 99_356_705_029, "in_loss_packets": 38, "out_bytes": 99_479_968_333,
        "out_loss_packets": 0,
    },
}  # fmt: skip
COUNTERS = {
    "flow": ("Rtt", "ReadPkts", "WritePkts", "SendPkts", "NakPkts"),
    "nic": ("ReceivedBytes", "TransmittedBytes"),
    "link": ("InOctets", "OutOctets", "EcnMarkedCount"),
    "port": ("InBytes", "InPktsLoss", "OutBytes", "OutPktsLoss"),
}
CSV = {one.relations[0].name: one for one in hour_formats()}
PORT_HEADER = ",".join(EXAMPLES["port"])


def rows_of(file: RawFile) -> tuple[list[Row], list[Rejected]]:
    """Return the rows of a file and its rejected lines."""
    found, rejected = csv_format(file.path), list[Rejected]()
    return [dict(row) for row in found.read([file], found.relations[0].name, rejected)], rejected


def typed(table: str, row: Row) -> Row:
    """Return the time of a row, and its numbers as `staging` casts them."""
    numbers = zip(COUNTERS[table], list(TYPED[table])[1:], strict=True)
    cast = "SELECT try_cast(? AS BIGINT)"
    return {"time_utc": row["time_utc"]} | {
        name: duckdb.execute(cast, [row[column]]).fetchall()[0][0] for column, name in numbers
    }


def csv_format(path: Path) -> HourCsv:
    (found,) = (one for one in CSV.values() if one.claims(path))
    return found


def port_line(**changes: str) -> str:
    return ",".join({**EXAMPLES["port"], **changes}.values())
