"""Raw files for bench.acceptance, read by polars, csv and openpyxl into tables, independent of warehouse.formats.

Tables of flows and links are read as the release's document describes them: its names of columns, its times.
"""

from __future__ import annotations

import csv
import gzip
import random
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from io import BytesIO, StringIO
from pathlib import Path

import duckdb
import polars
import zstandard

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
TABLES = """
CREATE TABLE loads (cluster VARCHAR, switch VARCHAR, port VARCHAR, hour_utc TIMESTAMP, polls BIGINT, in_bytes BIGINT,
    out_bytes BIGINT, in_packets BIGINT, out_packets BIGINT, wraps BIGINT, resets BIGINT, drawn BOOLEAN);
CREATE TABLE seconds (cluster VARCHAR, switch VARCHAR, port VARCHAR, hour_utc TIMESTAMP, second BIGINT, in_bytes BIGINT,
    out_bytes BIGINT, covered_ms BIGINT, quality VARCHAR);
CREATE TABLE polls (cluster VARCHAR, switch VARCHAR, port VARCHAR, hour_utc TIMESTAMP, time BIGINT, arrived BIGINT,
    moved BOOLEAN);
CREATE TABLE plugs (cluster VARCHAR, switch VARCHAR, port VARCHAR, nic VARCHAR, server BIGINT, slot BIGINT);
CREATE TABLE nic_sheet (cluster VARCHAR, server BIGINT);
CREATE TABLE ends (cluster VARCHAR, switch VARCHAR, port VARCHAR, hour_utc TIMESTAMP, spine VARCHAR,
    spine_port VARCHAR);
CREATE TABLE flows (cluster VARCHAR, hour_utc TIMESTAMP, source VARCHAR, dest VARCHAR, first BIGINT, last BIGINT,
    packets BIGINT);
"""
Frames = dict[str, list[polars.DataFrame]]
"""Rows of each table, by file: they are inserted at once."""


def read(connection: duckdb.DuckDBPyConnection, root: Path, ports: int, seed: int) -> int:
    """Write the files of a fabric below a folder to `TABLES`, `ports` sampled ports as drawn; count malformed lines."""
    connection.execute(TABLES)
    frames: Frames = defaultdict(list)
    files = sorted(path for path in root.rglob("*") if _NAME.fullmatch(path.name) and path.is_file())
    drawn = set(random.Random(seed).sample(files, min(ports, len(files))))
    left_out = 0
    for path in files:
        rows, bad = _rows(path)
        left_out += bad
        switch = None if rows.is_empty() else _SWITCH.search(rows["DeviceName"][0])
        if switch:
            _add_port(frames, path, switch[1], rows, is_drawn=path in drawn)
    for path in sorted(root.absolute().rglob("*.xlsx")):
        if path.stem == path.parent.name and not path.stem.isdigit():
            _add_sheets(frames, path)
    for path in sorted(root.rglob("*")):
        table = _HOUR_TABLE.fullmatch(path.name)
        if table and path.is_file():
            hour = datetime.strptime(f"{table[1]}+0800", "%Y%m%d%H%z").astimezone(UTC).replace(tzinfo=None)
            lines = list(csv.DictReader(StringIO(_content(path).decode())))
            if table[2] == "link":
                _add(frames, "ends", [(*near, hour, *far) for near, far in _ends(lines)], _cluster(path))
            else:
                _add(frames, "flows", list(_flows(lines)), _cluster(path), hour)
    for name, several in frames.items():
        connection.register("frame", polars.concat(several, how="vertical_relaxed").to_arrow())
        connection.execute(f"INSERT INTO {name} FROM frame")
    return left_out


def _add(frames: Frames, name: str, rows: Sequence[tuple[object, ...]] | polars.DataFrame, *keys: object) -> None:
    """Add rows to a table; `keys` stand before the columns of each row."""
    frame = (
        rows if isinstance(rows, polars.DataFrame) else polars.DataFrame(rows, orient="row", infer_schema_length=None)
    )
    if len(frame):
        fixed = [polars.lit(key).alias(f"key_{at}") for at, key in enumerate(keys)]
        frames[name].append(frame.select(*fixed, polars.all()))


def _add_port(frames: Frames, path: Path, switch: str, rows: polars.DataFrame, *, is_drawn: bool) -> None:
    name, start = rows["PortName"][0], rows["SaveTimeUTC"][0] // _HOUR_MS * _HOUR_MS
    key = _cluster(path), switch, name, datetime.fromtimestamp(start // 1000, UTC).replace(tzinfo=None)
    moved, wraps, resets = corrected(rows)
    times = rows["SaveTimeUTC"] - start
    sums = (*moved.sum().row(0), *rows.select("InPkts", "OutPkts").sum().row(0))
    _add(frames, "loads", [(len(rows), *sums, wraps, resets, is_drawn)], *key)
    spread = seconds(moved.insert_column(0, times).rows())
    _add(frames, "seconds", [(second, *cells) for second, cells in spread.items()], *key)
    shown = (rows["InOctets"] != 0) | (rows["OutOctets"] != 0)
    arrived = rows["InOctets"].clip(0)
    _add(frames, "polls", polars.DataFrame({"time": times, "arrived": arrived, "moved": shown}), *key)


def corrected(rows: polars.DataFrame) -> tuple[polars.DataFrame, int, int]:
    """Return the bytes of a port's rows with negative deltas corrected, and the rows with wraps and with resets."""
    raw = polars.col("InOctets", "OutOctets")
    most = polars.col("SaveTimeUTC").diff() * MANAGEMENT_BYTES_PER_MS
    is_wrap = (raw < 0) & (raw + WRAP <= most).fill_null(value=False) & polars.col("PortName").str.starts_with("M-")
    moved = polars.when(raw >= 0).then(raw).when(is_wrap).then(raw + WRAP).otherwise(0)
    wraps, resets = (rows.select(one).sum_horizontal().to_list() for one in (is_wrap, (raw < 0) & ~is_wrap))
    return rows.select(moved), sum(map(bool, wraps)), sum(map(bool, resets))


def _ends(rows: list[dict[str, str]]) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield the two ends of each link between a leaf and a spine."""
    for row in rows:
        sides = []
        for device, port in (("DeviceName", "IfAbbreviatedName"), ("DstDevice", "DstPort")):
            switch = _SWITCH.search(row[device])
            sides.append((switch[1] if switch else "", row[port].replace("400GE", "FourHundredGigE")))
        near, far = sorted(sides, key=lambda side: side[0].startswith("spine"))
        if near[0] and not near[0].startswith("spine") and far[0].startswith("spine") and near[1] and far[1]:
            yield near, far


def _flows(rows: list[dict[str, str]]) -> Iterator[tuple[object, ...]]:
    """Yield leaves, first and last minute since 1970 and packets of the flows whose ends are on two leaves."""
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
        yield source, dest, min(times), max(times), sum(packets for _, packets in seen)


def _minute(text: str) -> int:
    """Return the minute since 1970 of a local time such as 2024/5/24 上午00:00:04."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no time of the release's document, which bench.acceptance reads alone.")
    year, month, day, hour, minute = (int(found[group]) for group in (1, 2, 3, 5, 6))
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
    head, *lines = _content(path).split(b"\n")
    if head.rstrip(b"\r") != HEADER:
        return polars.DataFrame(schema=_COLUMNS), 0
    good = [line.rstrip(b"\r") for line in lines[:-1] if _LINE.fullmatch(line)]
    content = BytesIO(b"\n".join([HEADER, *good, b""]))
    rows = polars.read_csv(content, columns=list(_COLUMNS), schema_overrides=_COLUMNS, quote_char=None)
    if not rows.is_empty():
        hour = (rows["SaveTimeUTC"] // _HOUR_MS).mode().sort()[0]
        rows = rows.filter(polars.col("SaveTimeUTC") // _HOUR_MS == hour)
        rows = rows.filter(polars.col("PortName") == rows["PortName"].mode().sort()[0])
        rows = rows.unique("SaveTimeUTC", keep="first", maintain_order=True)
    return rows.sort("SaveTimeUTC"), len([line for line in lines if line]) - len(rows)


def _add_sheets(frames: Frames, path: Path) -> None:
    """Add the two sheets of a workbook; a missing sheet is empty."""
    from openpyxl import load_workbook

    # it warns of styles that the published workbook lacks
    warnings.filterwarnings("ignore", module=r"openpyxl\.")
    tables: dict[str, list[dict[str, str]]] = defaultdict(list)
    with path.open("rb") as stream:
        for sheet in load_workbook(stream, read_only=True, data_only=True).worksheets:
            lines = ([str(cell or "").strip() for cell in line] for line in sheet.iter_rows(values_only=True))
            header = [_fold(name) for name in next((line for line in lines if any(line)), [])]
            tables[_fold(sheet.title)] = [dict(zip(header, line, strict=False)) for line in lines]
    nics = [*tables["gpunicinfo"], *tables["servernicinfo"]]
    numbers = {_of_address(row.get("gpuip") or row.get("serverip") or "") for row in nics} - {None}
    _add(frames, "nic_sheet", [(number,) for number in numbers], path.stem)
    _add(frames, "plugs", list(_plugs(tables["clustertopology"])), path.stem)


def _fold(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _plugs(rows: list[dict[str, str]]) -> Iterator[tuple[object, ...]]:
    """Yield switch, port, NIC, server and slot; duplicates of a port or a NIC are dropped."""
    seen: set[object] = set()
    for row in rows:
        server, switch = re.search(r"GPU-([1-9]\d{0,5})$", row["sysname"]), _SWITCH.search(f"-{row['switchname']}")
        port, nic = row["accessport"], row["nicname"] or None
        if server is None or switch is None or not re.fullmatch(r"[A-Za-z-]+\d+/\d+/\d+(:\d+)?", port):
            continue
        if row.get("portname", port) not in ("", port):
            continue
        keys = {(switch[1], port), *([(server[1], nic)] if nic else [])}
        if not keys & seen:
            address = row["serverip"].rpartition(".")[2]
            yield switch[1], port, nic, int(server[1]), int(address) if address.isdigit() else None
            seen |= keys


def _of_address(address: str) -> int | None:
    """Return the server number of an address: 10.107.254.n is GPU-n, 10.107.255.n GPU-(240 + n)."""
    found = re.fullmatch(r"10\.107\.(254|255)\.(\d{1,3})", address)
    return int(found[2]) + (240 if found[1] == "255" else 0) if found else None


# Bytes of a port in seconds, by the rule of docs/metrics/rates.md in plain Python.

WRAP = 2**32
MANAGEMENT_BYTES_PER_MS = 125_000
Cells = tuple[int, int, int, str]
"""Bytes in, bytes out, covered ms and quality of a second of a port."""
Poll = tuple[int, int, int]
"""Stored row: milliseconds of the hour, bytes in and out with wraps corrected."""


def seconds(polls: Sequence[Poll]) -> dict[int, Cells]:
    """Return bytes in, bytes out, covered ms and quality of each second that a poll's interval touches."""
    found: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    anchor = previous = None
    for time, in_bytes, out_bytes in polls:
        moves = in_bytes > 0 or out_bytes > 0
        if moves:
            start = at = 0 if previous is None or anchor is None else max(anchor, previous - 1000, 1)
            end = max(time, start + 1)
            length, done_in, done_out = end - start, 0, 0
            while at < end:
                second = at // 1000
                until = min(second * 1000 + 1000, end)
                up_to_in, up_to_out = in_bytes * (until - start) // length, out_bytes * (until - start) // length
                row = found[second]
                row[0] += up_to_in - done_in
                row[1] += up_to_out - done_out
                row[2] += until - at
                if length > row[3]:
                    row[3] = length
                at, done_in, done_out = until, up_to_in, up_to_out
        if moves or anchor is None:
            anchor = time
        previous = time
    return {
        second: (row[0], row[1], row[2], "fine" if row[3] <= 2000 else "coarse" if row[3] <= 10_000 else "gap")
        for second, row in found.items()
    }
