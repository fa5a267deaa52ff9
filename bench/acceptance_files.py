"""Raw files for bench.acceptance, read by polars, csv and openpyxl into tables, independent of warehouse.formats.

Tables of flows and links are read as the release's document describes them: its names of columns, its times. Hours are
written `2024-05-23 16:00:00`.
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


Columns = dict[str, type[polars.DataType]]


def _columns(text: str = "", whole: str = "", flag: str = "") -> Columns:
    """Return columns of texts, of whole numbers and of flags."""
    found: Columns = {}
    for names, kind in ((text, polars.String), (whole, polars.Int64), (flag, polars.Boolean)):
        found |= dict.fromkeys(names.split(), kind)
    return found


_PORT = _columns("cluster switch port hour")
SCHEMAS: dict[str, Columns] = {
    "loads": _PORT | _columns("", "polls in_bytes out_bytes in_packets out_packets wraps resets", "drawn"),
    "seconds": _PORT | _columns("quality", "second in_bytes out_bytes covered_ms"),
    "polls": _PORT | _columns("", "time arrived", "moved"),
    "plugs": _columns("cluster switch port nic", "server slot"),
    "nic_sheet": _columns("cluster", "server"),
    "ends": _PORT | _columns("spine spine_port"),
    "flows": _columns("cluster hour source dest", "first last packets"),
}
"""Columns of the tables."""


class Tables:
    """Rows of each table, collected, then written to a database at once."""

    def __init__(self) -> None:
        self._frames: dict[str, list[polars.DataFrame]] = {name: [] for name in SCHEMAS}
        self.left_out = 0
        """Number of malformed lines."""

    def add(self, name: str, rows: list[tuple[object, ...]] | polars.DataFrame, *keys: object) -> None:
        """Add rows; `keys` stand before the columns of each row."""
        schema = SCHEMAS[name]
        names = list(schema)[len(keys) :]
        if isinstance(rows, list):
            rows = polars.DataFrame(rows, schema={one: schema[one] for one in names}, orient="row")
        fixed = [polars.lit(value, schema[one]).alias(one) for one, value in zip(schema, keys, strict=False)]
        self._frames[name].append(rows.select(*fixed, *names))

    def write(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Create the tables."""
        for name, schema in SCHEMAS.items():
            connection.register(
                "rows", polars.concat([polars.DataFrame(schema=schema), *self._frames[name]]).to_arrow()
            )
            connection.execute(f"CREATE TABLE {name} AS FROM rows")
            connection.unregister("rows")


def read(root: Path, ports: int, seed: int) -> Tables:
    """Read the files of a fabric below a folder; mark `ports` sampled ports as drawn."""
    found = Tables()
    files = sorted(path for path in root.rglob("*") if _NAME.fullmatch(path.name) and path.is_file())
    drawn = set(random.Random(seed).sample(files, min(ports, len(files))))
    for path in files:
        rows, bad = _rows(path)
        found.left_out += bad
        switch = None if rows.is_empty() else _SWITCH.search(rows["DeviceName"][0])
        if switch:
            _add_port(found, path, switch[1], rows, is_drawn=path in drawn)
    for path in sorted(root.absolute().rglob("*.xlsx")):
        if path.stem == path.parent.name and not path.stem.isdigit():
            _add_sheets(found, path)
    for path in sorted(root.rglob("*")):
        table = _HOUR_TABLE.fullmatch(path.name)
        if table and path.is_file():
            hour = _hour(datetime.strptime(f"{table[1]}+0800", "%Y%m%d%H%z").astimezone(UTC))
            lines = list(csv.DictReader(StringIO(_content(path).decode())))
            if table[2] == "link":
                found.add("ends", [(*near, hour, *far) for near, far in _ends(lines)], _cluster(path))
            else:
                found.add("flows", list(_flows(lines)), _cluster(path), hour)
    return found


def _add_port(found: Tables, path: Path, switch: str, rows: polars.DataFrame, *, is_drawn: bool) -> None:
    name, start = rows["PortName"][0], rows["SaveTimeUTC"][0] // _HOUR_MS * _HOUR_MS
    key = _cluster(path), switch, name, _hour(datetime.fromtimestamp(start // 1000, UTC))
    moved, wraps, resets = _corrected(rows, is_management=name.startswith("M-"))
    times = rows["SaveTimeUTC"] - start
    sums = (*moved.sum().row(0), *rows.select("InPkts", "OutPkts").sum().row(0))
    found.add("loads", [(len(rows), *sums, wraps, resets, is_drawn)], *key)
    spread = seconds(moved.insert_column(0, times).rows())
    cells = polars.DataFrame(list(spread.values()), ["in_bytes", "out_bytes", "covered_ms", "quality"], orient="row")
    found.add("seconds", cells.with_columns(second=polars.Series([*spread], dtype=polars.Int64)), *key)
    shown = (rows["InOctets"] != 0) | (rows["OutOctets"] != 0)
    arrived = rows["InOctets"].clip(0)
    found.add("polls", polars.DataFrame({"time": times, "moved": shown, "arrived": arrived}), *key)


def _corrected(rows: polars.DataFrame, *, is_management: bool) -> tuple[polars.DataFrame, int, int]:
    """Return the bytes of a port's rows with negative deltas corrected, and the rows with wraps and with resets."""
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
    return moved, marks["wrap"], marks["reset"]


def _hour(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"


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


def _add_sheets(found: Tables, path: Path) -> None:
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
    found.add("nic_sheet", [(number,) for number in numbers], path.stem)
    found.add("plugs", list(_plugs(tables["clustertopology"])), path.stem)


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


def corrected(raw: int, interval_ms: int | None, *, is_management: bool) -> tuple[int, str | None]:
    """Return the bytes of a stored delta, and `wrap` or `reset` if the delta is negative."""
    if raw >= 0:
        return raw, None
    if is_management and interval_ms is not None and raw + WRAP <= interval_ms * MANAGEMENT_BYTES_PER_MS:
        return raw + WRAP, "wrap"
    return 0, "reset"


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
