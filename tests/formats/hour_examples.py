"""Example values of the hour tables, and the rows that are read of a file."""

from __future__ import annotations

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
OUTSIDE = ", not in the hour from 2024-05-23 16:00:00 UTC"
LONG = "longer than 262,144 bytes"
TORN = "torn: the file ends without a final newline"

#: Example values of the release's document, by column.
EXAMPLES: Mapping[str, Mapping[str, str]] = {
    "flow": {
        "SourceServer": "NH-DC-NM129-I04-20U-GPU-239",
        "DestServer": "NH-DC-NM129-H10-28U-GPU-226",
        "SourceSwitch": "NH-DC-NM129-H04-ROCE-Leaf-14.GPU.S9825",
        "DestSwitch": "NH-DC-NM129-H04-ROCE-Leaf-14.GPU.S9825",
        "Time": "2024/5/24 上午12:00:00",
        "SourceIp": "10.107.235.59",
        "DestIp": "10.107.235.46",
        "SourceQp": "15952        ",
        "DestQp": "9662         ",
        "Rtt": "5887         ",
        "ReadPkts": "0            ",
        "WritePkts": "20           ",
        "SendPkts": "0            ",
        "NakPkts": "0            ",
    },
    "nic": {
        "SaveTime": "2024/5/24 上午00:00:04",
        "DeviceName": "NH-DC-NM129-A01-28U-GPU-1",
        "Ip": "10.107.254.1",
        "PortName": "mlx5_3",
        "ReceivedBytes": "1.826184052268872e+16",
        "TransmittedBytes": "1.825375677039005e+16",
        "ReceivedPacketsByPort": "496472930239.0",
        "ReceiveddPacketsByUnicast": "496472930239.0",
        "TransmittedPacketsByPort": "390430116240.0",
        "TransmitteddPacketsByUnicast": "390430116240.0",
    },
    "link": {
        "DeviceName": "NH-DC-NM129-E09-ROCE-spine-9.GPU.S9825",
        "IfAbbreviatedName": "400GE1/0/8",
        "DstDevice": "NH-DC-NM129-B05-ROCE-Leaf-3.GPU.S9825",
        "DstPort": "FourHundredGigE1/0/58",
        "StartTime": "2024/5/24 上午00:00:04",
        "InUcastPkts": "22422882",
        "Ip": "10.107.208.109",
        "IfOperStatus": "up",
        "InOctets": "93553320477",
        "InPkts": "24459395",
        "InMuticastPkts": "90",
        "InBrdcastPkts": "0",
        "InSpeed": "435554397",
        "InPktSpeed": "175947",
        "InUseRatio": "0.87",
        "InErrorRatio": "0.0",
        "OutOctets": "79529075414",
        "OutPkts": "21247872",
        "OutMuticastPkts": "90",
        "OutBrdcastPkts": "21701613",
        "OutSpeed": "272457691",
        "OutPktSpeed": "60614",
        "OutUseRatio": "0.54",
        "EcnMarkedCount": "0",
    },
    "port": {
        "DeviceName": "NH-DC-NM129-F05-ROCE-Leaf-12.GPU.S9825",
        "PortName": "FourHundredGigE1/0/48",
        "Time": "2024/5/24 上午00:00:00",
        "InBytes": "99356705029",
        "InUseRatio": "3.33",
        "InSpeed": "1667114752",
        "InPktsLoss": "38",
        "OutBytes": "99479968333",
        "OutUseRatio": "3.34",
        "OutSpeed": "1669182998",
        "OutPktsLoss": "0",
    },
}
TYPED = {
    "flow": {
        "time_utc": HOUR_UTC,
        "rtt_ns": 5887,
        "read_packets": 0,
        "write_packets": 20,
        "send_packets": 0,
        "nak_packets": 0,
    },
    "nic": {
        "time_utc": HOUR_UTC + timedelta(seconds=4),
        "received_bytes": 18_261_840_522_688_720,
        "transmitted_bytes": 18_253_756_770_390_050,
    },
    "link": {
        "time_utc": HOUR_UTC + timedelta(seconds=4),
        "in_octets": 93_553_320_477,
        "out_octets": 79_529_075_414,
        "ecn_marked": 0,
    },
    "port": {
        "time_utc": HOUR_UTC,
        "in_bytes": 99_356_705_029,
        "in_loss_packets": 38,
        "out_bytes": 99_479_968_333,
        "out_loss_packets": 0,
    },
}
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
