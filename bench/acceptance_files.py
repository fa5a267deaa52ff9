"""Raw files for bench.acceptance, read by polars and openpyxl, independent of warehouse.formats."""

from __future__ import annotations

import csv
import gzip
import random
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import polars
import zstandard

from bench.acceptance_rules import (
    Load,
    Plug,
    Poll,
    Port,
    Series,
    Sheets,
    corrected,
    kind,
    line_rate,
    server_number,
)

HEADER = b"SaveTime,SaveTimeUTC,DeviceName,PortName,InPkts,InOctets,OutPkts,OutOctets,InRatio,OutRatio"
_NAME = re.compile(r"[Ll]eaf-\d+_\d+(_\d+)?\.csv(\.gz|\.zst)?")
_SWITCH = re.compile(r"-((?:ST-leaf|Leaf)-\d+)(?:\.|$)")
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


class Release(NamedTuple):
    """Content of the raw files of a release."""

    hours: dict[Port, dict[str, Load]]
    """Loads by port and hour, `2024-05-23 16:00:00`."""
    polls: dict[tuple[Port, str], list[Poll]]
    """Polls of the sampled ports, and of all ports of one switch in an hour."""
    refreshed: dict[tuple[str, str, str], Counter[int]]
    """Access ports with bytes at each poll of a switch, by cluster, switch and hour."""
    series: dict[tuple[Port, str], Series]
    """Bytes by second of access ports."""
    sheets: dict[str, Sheets]
    jobs: Sequence[Job]
    """Groups of servers as published: signals have tests and nulls of their own."""
    left_out: int
    """Number of malformed lines."""


def read(root: Path, ports: int, seed: int) -> Release:
    """Read the port counters and workbooks below a folder; keep the polls of `ports` ports and one switch, sampled."""
    found = Release({}, {}, {}, {}, {}, (), 0)
    files = sorted(path for path in root.rglob("*") if _NAME.fullmatch(path.name) and path.is_file())
    draw = random.Random(seed)
    drawn = set(draw.sample(files, min(ports, len(files))))
    if files:
        switch_folder = draw.choice(sorted({path.parent for path in files}))
        drawn |= {path for path in files if path.parent == switch_folder}
    left_out = 0
    for path in files:
        rows, bad = _rows(path)
        left_out += bad
        if rows.is_empty():
            continue
        (device, name), hour = rows.row(0)[1:3], rows["SaveTimeUTC"][0] // _HOUR_MS
        switch = _SWITCH.search(device)
        if switch is None:
            continue
        port = Port(_cluster(path), switch[1], name)
        start = f"{datetime.fromtimestamp(hour * 3600, UTC):%Y-%m-%d %H:%M:%S}"
        load, moved = _load(rows, hour * _HOUR_MS, is_management=name.startswith("M-"))
        polls = [Poll(*row) for row in moved.rows()]
        shown = found.refreshed.setdefault((port.cluster, port.switch, start), Counter())
        shown.update(dict.fromkeys(moved["SaveTimeUTC"].to_list(), 0))
        if kind(port.switch, port.port).endswith("access"):
            shown.update(moved.filter((rows["InOctets"] != 0) | (rows["OutOctets"] != 0))["SaveTimeUTC"].to_list())
        is_access, full = kind(port.switch, port.port) == "access", line_rate(name) * 9 // 80
        if is_access or max(load.in_bytes, load.out_bytes) > full:
            series = Series.of(polls)
            load = load._replace(full_seconds=series.above(full))
            if is_access:
                found.series[port, start] = series
        found.hours.setdefault(port, {})[start] = load
        if path in drawn:
            found.polls[port, start] = polls
    for cluster, path in _workbooks(root):
        found.sheets[cluster] = sheets(path)
    return found._replace(left_out=left_out)


def _cluster(path: Path) -> str:
    """Return the name of the folder that holds `trafficinfo`."""
    above = [folder.parent.name for folder in path.absolute().parents if folder.name == "trafficinfo"]
    return above[-1] if above else "unknown"


def _rows(path: Path) -> tuple[polars.DataFrame, int]:
    """Return the rows of a file in order of time, and the number of malformed lines."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    elif path.suffix == ".zst":
        content = zstandard.ZstdDecompressor().stream_reader(BytesIO(content)).read()
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
    from openpyxl import load_workbook

    warnings.filterwarnings("ignore", module=r"openpyxl\.")
    book = load_workbook(path, read_only=True, data_only=True)
    tables: dict[str, list[dict[str, str]]] = defaultdict(list)
    for sheet in book.worksheets:
        lines = ([str(cell or "").strip() for cell in line] for line in sheet.iter_rows(values_only=True))
        header = [_fold(name) for name in next((line for line in lines if any(line)), [])]
        tables[_fold(sheet.title)] = [dict(zip(header, line, strict=False)) for line in lines]
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
