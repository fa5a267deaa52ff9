"""Raw files for bench.acceptance, read by polars, csv and openpyxl, independent of warehouse.formats.

Tables of flows and links are read as the release's document describes them: its names of columns, its times.
"""

from __future__ import annotations

import csv
import gzip
import random
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO, StringIO
from pathlib import Path
from typing import NamedTuple

import polars
import zstandard

from bench.acceptance_rules import (
    Cells,
    Load,
    Plug,
    Poll,
    Port,
    Series,
    Sheets,
    corrected,
    kind,
    line_rate,
    minutes,
    seconds,
    server_number,
)

HEADER = b"SaveTime,SaveTimeUTC,DeviceName,PortName,InPkts,InOctets,OutPkts,OutOctets,InRatio,OutRatio"
_NAME = re.compile(r"[Ll]eaf-\d+_\d+(_\d+)?\.csv(\.gz|\.zst)?")
_SWITCH = re.compile(r"-((?:ST-leaf|Leaf|spine)-\d+)(?:\.|$)")
_HOUR_TABLE = re.compile(r"(\d{10})_(flow|link)\.csv(\.gz|\.zst)?")
_TIME = re.compile(r"(\d+)/(\d+)/(\d+) (上午|下午)(\d+):(\d+):(\d+)")
_LINE = re.compile(
    rb"\d{4}/\d\d/\d\d [^ ,]+ \d\d:\d\d:\d\d\.\d{3},\d{13},[^,]+,[^,]+(,-?\d{1,15}){4}(,-?\d+(\.\d*)?){2}\r?"
)
_COLUMNS = {"SaveTimeUTC": polars.Int64, "DeviceName": polars.String, "PortName": polars.String} | dict.fromkeys(
    ("InPkts", "InOctets", "OutPkts", "OutOctets"), polars.Int64
)
_HOUR_MS = 3_600_000


class Job(NamedTuple):
    """Group of servers that pulse together in an hour."""

    cluster: str
    hour: str
    job_id: int
    servers: Sequence[str]
    period_seconds: float | None


class Flow(NamedTuple):
    """Samples of one flow between two leaves in an hour."""

    source_switch: str
    dest_switch: str
    first_minute: int
    """Minute of its first sample, since 1970."""
    last_minute: int
    packets: int


@dataclass
class Release:
    """Content of the raw files of a release. Hours are written `2024-05-23 16:00:00`."""

    hours: dict[Port, dict[str, Load]] = field(default_factory=dict)
    """Loads by port and hour."""
    polls: dict[tuple[Port, str], list[Poll]] = field(default_factory=dict)
    """Polls of the sampled ports."""
    refreshed: dict[tuple[str, str, str], Counter[int]] = field(default_factory=dict)
    """Access ports with bytes at each poll of a switch, by cluster, switch and hour."""
    arrived: dict[tuple[str, str, str], Counter[int]] = field(default_factory=dict)
    """Bytes that entered at each poll of a switch, likewise."""
    series: dict[tuple[Port, str], Series] = field(default_factory=dict)
    """Bytes by second of access ports."""
    minutes: dict[tuple[Port, str], Mapping[int, Cells]] = field(default_factory=dict)
    """Bytes by minute of access ports and uplinks, also those of storage leaves."""
    ends: dict[tuple[Port, str], set[tuple[str, str]]] = field(default_factory=dict)
    """Spine and its port at the other end of uplinks, as the link table of the hour says."""
    flows: dict[tuple[str, str], list[Flow]] = field(default_factory=dict)
    """Flows between leaves by cluster and hour, as the flow table of the hour says."""
    sheets: dict[str, Sheets] = field(default_factory=dict)
    jobs: Sequence[Job] = ()
    """Groups of servers as published: signals have tests and nulls of their own."""
    quantities: Mapping[str, float] = field(default_factory=dict)
    """Quantities that figures are compared with, as published: those of jobs have tests of their own."""
    left_out: int = 0
    """Number of malformed lines."""


def read(root: Path, ports: int, seed: int) -> Release:
    """Read the files of a fabric below a folder; keep the polls of `ports` sampled ports."""
    found = Release()
    files = sorted(path for path in root.rglob("*") if _NAME.fullmatch(path.name) and path.is_file())
    drawn = set(random.Random(seed).sample(files, min(ports, len(files))))
    for path in files:
        rows, bad = _rows(path)
        found.left_out += bad
        if rows.is_empty():
            continue
        (device, name), hour = rows.row(0)[1:3], rows["SaveTimeUTC"][0] // _HOUR_MS
        switch = _SWITCH.search(device)
        if switch is None:
            continue
        port = Port(_cluster(path), switch[1], name)
        start = _hour(datetime.fromtimestamp(hour * 3600, UTC))
        load, moved = _load(rows, hour * _HOUR_MS, is_management=name.startswith("M-"))
        polls = [Poll(*row) for row in moved.rows()]
        shown = found.refreshed.setdefault((port.cluster, port.switch, start), Counter())
        shown.update(dict.fromkeys(moved["SaveTimeUTC"].to_list(), 0))
        if kind(port.switch, port.port).endswith("access"):
            shown.update(moved.filter((rows["InOctets"] != 0) | (rows["OutOctets"] != 0))["SaveTimeUTC"].to_list())
        arrived = found.arrived.setdefault((port.cluster, port.switch, start), Counter())
        arrived.update(dict(zip(moved["SaveTimeUTC"].to_list(), rows["InOctets"].clip(0).to_list(), strict=True)))
        port_class, full = kind(port.switch, port.port), line_rate(name) * 9 // 80
        if port_class.endswith(("access", "uplink")) or max(load.in_bytes, load.out_bytes) > full:
            of_seconds = seconds(polls)
            series = Series.of(of_seconds)
            load = load._replace(full_seconds=series.above(full))
            if port_class == "access":
                found.series[port, start] = series
            if port_class.endswith(("access", "uplink")):
                found.minutes[port, start] = minutes(of_seconds)
        found.hours.setdefault(port, {})[start] = load
        if path in drawn:
            found.polls[port, start] = polls
    for cluster, path in _workbooks(root):
        found.sheets[cluster] = sheets(path)
    for path in sorted(root.rglob("*")):
        table = _HOUR_TABLE.fullmatch(path.name)
        if table and path.is_file():
            hour_utc = _hour(datetime.strptime(f"{table[1]}+0800", "%Y%m%d%H%z").astimezone(UTC))
            rows_of_table = list(csv.DictReader(StringIO(_content(path).decode())))
            if table[2] == "link":
                _add_ends(found, _cluster(path), hour_utc, rows_of_table)
            else:
                found.flows[_cluster(path), hour_utc] = list(_flows(rows_of_table))
    return found


def _sheets(path: Path) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield title and rows of each sheet of a workbook."""
    from openpyxl import load_workbook

    warnings.filterwarnings("ignore", module=r"openpyxl\.")
    with path.open("rb") as stream:
        for sheet in load_workbook(stream, read_only=True, data_only=True).worksheets:
            lines = sheet.iter_rows(values_only=True)
            yield sheet.title, [[str(cell or "").strip() for cell in line] for line in lines]


def _hour(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def _add_ends(found: Release, cluster: str, hour: str, rows: list[dict[str, str]]) -> None:
    """Add the two ends of each link between a leaf and a spine."""
    for row in rows:
        sides = []
        for device, port in (("DeviceName", "IfAbbreviatedName"), ("DstDevice", "DstPort")):
            switch = _SWITCH.search(row[device])
            sides.append((switch[1] if switch else "", row[port].replace("400GE", "FourHundredGigE")))
        near, far = sorted(sides, key=lambda side: side[0].startswith("spine"))
        if near[0] and not near[0].startswith("spine") and far[0].startswith("spine") and near[1] and far[1]:
            found.ends.setdefault((Port(cluster, *near), hour), set()).add(far)


def _flows(rows: list[dict[str, str]]) -> Iterator[Flow]:
    """Yield the flows whose ends are on two leaves."""
    samples: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        leaves = [_SWITCH.search(row[name]) for name in ("SourceSwitch", "DestSwitch")]
        names = [leaf[1] for leaf in leaves if leaf]
        if len(names) == 2 and names[0] != names[1]:
            packets = sum(int(row[name] or 0) for name in ("ReadPkts", "WritePkts", "SendPkts"))
            ends = (row[name].strip() for name in ("SourceIp", "SourceQp", "DestIp", "DestQp"))
            samples[(*names, *ends)].append((_minute(row["Time"]), packets))
    for (source, dest, *_), seen in samples.items():
        times = [minute for minute, _ in seen]
        yield Flow(source, dest, min(times), max(times), sum(packets for _, packets in seen))


def _minute(text: str) -> int:
    """Return the minute since 1970 of a local time such as 2024/5/24 上午00:00:04."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no time of the release's document, which bench.acceptance reads alone.")
    year, month, day, hour, minute, _ = (int(found[group]) for group in (1, 2, 3, 5, 6, 7))
    local = datetime(year, month, day, hour % 12 + (12 if found[4] == "下午" else 0), minute, tzinfo=UTC)
    return int((local - timedelta(hours=8)).timestamp()) // 60


def _cluster(path: Path) -> str:
    """Return the name of the folder that holds `trafficinfo`."""
    above = [folder.parent.name for folder in path.absolute().parents if folder.name == "trafficinfo"]
    return above[-1] if above else "unknown"


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(content)
    if path.suffix == ".zst":
        return zstandard.ZstdDecompressor().stream_reader(BytesIO(content)).read()
    return content


def _rows(path: Path) -> tuple[polars.DataFrame, int]:
    """Return the rows of a file in order of time, and the number of malformed lines."""
    content = _content(path)
    head, _, body = content.partition(b"\n")
    if head.rstrip(b"\r") != HEADER:
        return polars.DataFrame(schema=_COLUMNS), 0
    try:
        rows = _parse(content)
        if content.endswith(b"\n") and b"\r" not in content and _is_one_port_and_hour(rows):
            return rows.sort("SaveTimeUTC"), 0
    except polars.exceptions.PolarsError:
        pass  # some line is malformed: check line by line
    lines = body.split(b"\n")
    good = [line for line in lines[:-1] if _LINE.fullmatch(line)]
    rows = _parse(b"\n".join([HEADER, *(line.rstrip(b"\r") for line in good), b""]))
    if not rows.is_empty():
        hour = (rows["SaveTimeUTC"] // _HOUR_MS).mode().sort()[0]
        rows = rows.filter(polars.col("SaveTimeUTC") // _HOUR_MS == hour)
        rows = rows.filter(polars.col("PortName") == rows["PortName"].mode().sort()[0])
        rows = rows.unique("SaveTimeUTC", keep="first", maintain_order=True)
    return rows.sort("SaveTimeUTC"), len([line for line in lines if line]) - len(rows)


def _parse(content: bytes) -> polars.DataFrame:
    return polars.read_csv(BytesIO(content), columns=list(_COLUMNS), schema_overrides=_COLUMNS, quote_char=None)


def _is_one_port_and_hour(rows: polars.DataFrame) -> bool:
    times = rows["SaveTimeUTC"]
    named = rows.select(polars.col("DeviceName", "PortName").n_unique()).row(0)
    return (
        rows.null_count().sum_horizontal()[0] == 0
        and named == (1, 1)
        and times.n_unique() == len(rows)
        and (times // _HOUR_MS).n_unique() == 1
    )


def _load(rows: polars.DataFrame, start: int, *, is_management: bool) -> tuple[Load, polars.DataFrame]:
    """Return the sums of a port's rows, and its polls with negative deltas corrected."""
    marks = {"wrap": 0, "reset": 0}
    times, moved = rows["SaveTimeUTC"].to_list(), rows.select("InOctets", "OutOctets")
    if any(value < 0 for value in moved.min().row(0)):
        fixed = []
        for at, raw in enumerate(moved.rows()):
            interval = times[at] - times[at - 1] if at else None
            pair = [corrected(one, interval, is_management=is_management) for one in raw]
            for mark in {mark for _, mark in pair if mark}:
                marks[mark] += 1
            fixed.append([one for one, _ in pair])
        moved = polars.DataFrame(fixed, schema=moved.schema, orient="row")
    sums = [int(value) for value in moved.sum().row(0)]
    packets = [int(rows[name].sum()) for name in ("InPkts", "OutPkts")]
    load = Load(len(rows), sums[0], sums[1], packets[0], packets[1], marks["wrap"], marks["reset"], 0)
    return load, moved.insert_column(0, rows["SaveTimeUTC"] - start)


def _workbooks(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield each workbook whose folder has the same name."""
    for path in sorted(root.absolute().rglob("*.xlsx")):
        if path.stem == path.parent.name and not path.stem.isdigit():
            yield path.stem, path


def sheets(path: Path) -> Sheets:
    """Return the two sheets of a workbook; a missing sheet is empty."""
    tables: dict[str, list[dict[str, str]]] = defaultdict(list)
    for title, rows in _sheets(path):
        lines = iter(rows)
        header = [_fold(name) for name in next((line for line in lines if any(line)), [])]
        tables[_fold(title)] = [dict(zip(header, line, strict=False)) for line in lines]
    nics = [*tables["gpunicinfo"], *tables["servernicinfo"]]
    addresses = [row.get("gpuip") or row.get("serverip") or "" for row in nics]
    return Sheets(tuple(_plugs(tables["clustertopology"])), frozenset(filter(None, map(_of_address, addresses))))


def _fold(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _plugs(rows: list[dict[str, str]]) -> Iterator[Plug]:
    """Yield the rows that name a leaf, a port and a server; duplicates of a port or a NIC are dropped."""
    seen: set[object] = set()
    for row in rows:
        server, switch = server_number(row["sysname"]), _SWITCH.search(f"-{row['switchname']}")
        port, nic = row["accessport"], row["nicname"] or None
        if server is None or switch is None or not re.fullmatch(r"[A-Za-z-]+\d+/\d+/\d+(:\d+)?", port):
            continue
        if row.get("portname", port) not in ("", port):
            continue
        keys = {(switch[1], port), *([(server, nic)] if nic else [])}
        if not keys & seen:
            address = row["serverip"].rpartition(".")[2]
            yield Plug(switch[1], port, server, nic, int(address) if address.isdigit() else None)
            seen |= keys


def _of_address(address: str) -> int | None:
    """Return the server number of an address: 10.107.254.n is GPU-n, 10.107.255.n GPU-(240 + n)."""
    found = re.fullmatch(r"10\.107\.(254|255)\.(\d{1,3})", address)
    return int(found[2]) + (240 if found[1] == "255" else 0) if found else None


def reviewed(path: Path) -> dict[str, dict[tuple[str, str], str]]:
    """Return the reviewed owners of data/port_owners.csv: for each cluster, (switch, port) -> server."""
    found: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                found[row["cluster"]][row["switch"], row["port"]] = row["server"]
    return found
