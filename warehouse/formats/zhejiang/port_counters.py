"""Switch-port counters: one CSV file per port and hour, `trafficinfo/<hour>/<switch>/<port>.csv`.

Docs: docs/formats/port_counters.md. A row counts the packets and bytes of the port since the previous stored row. Every
row names its port. The file name is never used for that: names of storage leaves and GPU leaves differ only in the case
of one letter.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from warehouse.base.startup import regex
from warehouse.formats import streams
from warehouse.formats.base import PARTIAL, RawFile, RawRelation
from warehouse.formats.named_csv import NOT_THAT, HeadedFiles, foreign_header, shown_name
from warehouse.formats.zhejiang import PORT_NAME, UTC_OFFSET, parse_hour

COLUMNS = {
    "SaveTime": "VARCHAR",
    "SaveTimeUTC": "BIGINT",
    "DeviceName": "VARCHAR",
    "PortName": "VARCHAR",
    "InPkts": "BIGINT",
    "InOctets": "BIGINT",
    "OutPkts": "BIGINT",
    "OutOctets": "BIGINT",
    "InRatio": "DOUBLE",
    "OutRatio": "DOUBLE",
}
HEADER = ",".join(COLUMNS)

_HOUR_FOLDER = regex(r"[0-9]{10}")
# GPU leaves and storage leaves have the same numbers.
_SWITCH = regex(r"-((?:ST-leaf|Leaf)-\d+)(?:\.|$)", re.ASCII)
_DEVICE = regex(r"[A-Za-z0-9._-]{1,100}")
_PORT = regex(PORT_NAME, re.ASCII)
_NUMBER = r"-?(?:\d{1,99}(?:\.\d*)?|\.\d+)"
"""Number that the engine and `UniformLines` accept as a ratio. Repair must not reject what they accept."""
_WHOLE = r"-?\d{1,99}"
"""Whole number of a time or counter: a fraction of a byte is impossible, and the engine would round it."""
_COUNTERS = ("InPkts", "InOctets", "OutPkts", "OutOctets")
_MOST = 10**15 - 1
"""Upper bound of a counter: more than a port can count in five hours. The largest published value is 2.25e12."""
WRAP = 2**32
"""Range of the 32-bit counters of management ports: a wrap lowers the counter by at most this."""
_ROW = regex(
    # Between date and clock is a weekday in Chinese.
    r"(?P<date>\d{4}/\d\d/\d\d) [^\s,]+ (?P<h>[01]\d|2[0-3]):(?P<m>[0-5]\d):(?P<s>[0-5]\d)\.(?P<ms>\d{3}),"
    rf"(?P<utc>{_WHOLE}),(?P<device>[^,]+),(?P<port>[^,]+),"
    + "".join(rf"(?P<{name}>{_WHOLE})," for name in _COUNTERS)
    + rf"{_NUMBER},{_NUMBER}",
    re.ASCII,
)
"""Pattern of a valid line; a line that does not match is checked field by field to name the problem."""
_LOOKED_AT = 30
"""Lines searched for the first good row."""
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - every time of the warehouse is UTC without zone
_HOUR_MS = 3_600_000


class _Row(NamedTuple):
    time_ms: int
    device: str
    port: str
    least: int
    """Smaller of the bytes in and bytes out."""


class PortCounters(HeadedFiles):
    """Format `zhejiang.port_counters`."""

    name = "zhejiang.port_counters"
    version = 3
    # Files of GPU leaves begin with `Leaf-`, those of storage leaves with `leaf-`, without `ST-`.
    head_bytes = streams.HEAD_BYTES
    file_name = regex(r"[Ll]eaf-\d+_\d+(_\d+)?\.csv(\.gz|\.zst)?")
    relations: Sequence[RawRelation] = (
        RawRelation(
            "port_counters",
            "Switch-port counters as published, one row per stored poll.",
            COLUMNS,
            forms=dict.fromkeys(("SaveTimeUTC", *_COUNTERS), _WHOLE),
            uniform=True,  # all rows of a file have the same device, port and date
        ),
    )

    def looked(self, file: RawFile, head: bytes) -> RawFile:
        """Compare the header; take switch, port and hour from the first two rows that agree."""
        lines = head.split(b"\n", _LOOKED_AT)
        if lines == [b""]:
            raise ValueError("empty file")
        if header_problem := _header_problem(lines[0]):
            raise ValueError(header_problem)
        first, problem = _first_row(lines[1:-1])  # the last line may be cut
        if first is None:
            raise ValueError(f"no readable row below the header: {problem or 'the file ends there'}")
        hour = _EPOCH + timedelta(hours=first.time_ms // _HOUR_MS)
        switch = _SWITCH.search(first.device)
        if not _DEVICE.fullmatch(first.device) or switch is None:
            raise ValueError(f"DeviceName {first.device[:100]!r} does not name a leaf")
        if not _PORT.fullmatch(first.port):
            raise ValueError(f"PortName {first.port[:100]!r} is not of the form TwoHundredGigE1/0/1:1")
        folder = _stated_hour(file.path)
        if folder is not None and folder != hour:
            raise ValueError(
                f"the folder is {folder:%Y-%m-%d %H:%M} UTC, its first row is of {hour:%Y-%m-%d %H:%M} UTC"
            )
        found = file.but(hour_utc=hour, switch=switch.group(1), device=first.device, port=first.port)
        return found.but(status=PARTIAL, reason=problem) if problem else found

    def problems(self, file: RawFile) -> Callable[[int, bytes], str | None]:
        """Return the problem of a line: of its fields, or that it is of another port, another hour or a known time."""
        assert file.hour_utc is not None
        hour = (file.hour_utc - _EPOCH) // timedelta(hours=1)
        seen: set[int] = set()

        def problem(_: int, line: bytes) -> str | None:
            row = _parse(line)
            return row if isinstance(row, str) else _row_problem(row, file, hour, seen)

        return problem


def _header_problem(line: bytes) -> str | None:
    """Return the problem of the header line, or None."""
    if line.startswith(codecs.BOM_UTF8):
        return "the header starts with a byte order mark: save the file as plain UTF-8"
    try:
        names = line.decode("utf-8").rstrip("\r").split(",")
    except UnicodeDecodeError:
        return "not a text file"
    if names == list(COLUMNS):
        return None
    if sorted(names) == sorted(COLUMNS):
        return f"the columns are re-ordered: {','.join(names)}"
    if any("\r" in name for name in names):
        return streams.LONE_CR
    missing = [name for name in COLUMNS if name not in names]
    if len(missing) == len(COLUMNS):
        return foreign_header(line, COLUMNS) or f"{NOT_THAT}port counters"
    extra = [shown_name(at, name) for at, name in enumerate(names, 1) if name not in COLUMNS]
    problems = [f"without {', '.join(missing)}"] if missing else []
    problems += [f"with {', '.join(extra)[:100]}"] if extra else []
    return f"the columns differ from the published ones: {' and '.join(problems) or 'a column stands twice'}"


def _parse(line: bytes) -> _Row | str:
    """Return the row, or the problem of the line."""
    try:
        decoded = line.decode("utf-8").rstrip("\r")
    except UnicodeDecodeError:
        return "not UTF-8 text"
    found = _ROW.fullmatch(decoded)
    if found is None:
        return _line_problem(decoded)
    midnight = _midnight_ms(found["date"])
    time_ms = int(found["utc"])
    clock_ms = (int(found["h"]) * 3600 + int(found["m"]) * 60 + int(found["s"])) * 1000 + int(found["ms"])
    if time_ms < 0:
        return "SaveTimeUTC is before 1970"
    if midnight is None or midnight + clock_ms != time_ms:
        return _CLOCKS_DISAGREE
    counted = {name: int(found[name]) for name in _COUNTERS}
    for name, count in counted.items():
        if abs(count) > _MOST:
            return f"{name} is beyond all bounds: {found[name][:40]!r}"
    return _Row(time_ms, found["device"], found["port"], min(counted["InOctets"], counted["OutOctets"]))


_CLOCKS_DISAGREE = "SaveTime is not SaveTimeUTC + 8 h"


@lru_cache(maxsize=100)
def _midnight_ms(date: str) -> int | None:
    """Return the start of a local day in UTC milliseconds; None if the calendar has no such day."""
    try:
        local = datetime.strptime(date, "%Y/%m/%d")  # noqa: DTZ007
    except ValueError:
        return None
    return (local - _EPOCH - UTC_OFFSET) // timedelta(milliseconds=1)


def _line_problem(line: str) -> str:
    """Return the problem of a line that is not a row."""
    fields = line.split(",")
    if fields == [""]:
        return "blank line"
    if len(fields) != len(COLUMNS):
        return f"{len(fields)} fields instead of {len(COLUMNS)}"
    for (name, kind), value in zip(COLUMNS.items(), fields, strict=True):
        if kind != "VARCHAR" and not re.fullmatch(_NUMBER, value, re.ASCII):
            return f"{name} is not a number: {value[:40]!r}"
        if kind == "BIGINT" and not re.fullmatch(_WHOLE, value, re.ASCII):
            return f"{name} is not a whole number: {value[:40]!r}"
        if not value:
            return f"{name} is blank"
    return _CLOCKS_DISAGREE


def _row_problem(row: _Row, file: RawFile, hour: int, seen: set[int]) -> str | None:
    """Return the reason why a well-formed row does not belong in this file, or None; record its time in `seen`."""
    if (row.device, row.port) != (file.device, file.port):
        return f"a row of {row.device[:100]} {row.port[:100]} in the file of {file.device} {file.port}"
    if row.time_ms // _HOUR_MS != hour:
        at = _EPOCH + timedelta(milliseconds=row.time_ms)
        return f"its time, {at:%Y-%m-%d %H:%M:%S} UTC, is outside the file's hour"
    # Other negative counts are kept, and flagged by the models.
    if row.least < -WRAP and row.port.startswith("M-"):
        return f"{row.least} bytes are no wrap of a 32-bit counter"
    if row.time_ms in seen:
        return "a second row of the same time"
    seen.add(row.time_ms)
    return None


def _stated_hour(path: Path) -> datetime | None:
    """Return the hour that a folder's name states (local time), as UTC; None if no folder is named like an hour."""
    for part in reversed(path.parts[:-1]):
        if _HOUR_FOLDER.fullmatch(part):
            with suppress(ValueError):  # there is no such hour
                return parse_hour(part)
            break
    return None


def _first_row(lines: list[bytes]) -> tuple[_Row | None, str | None]:
    """Return the first row that a second row confirms in port and hour, and the first problem above it.

    A single row could be a stray of another file. If no two rows agree, the first row is returned.
    """
    seen: dict[tuple[str, str, int], _Row] = {}
    problem = None
    for number, line in enumerate(lines, start=2):
        row = _parse(line)
        if not isinstance(row, _Row):
            problem = problem or f"line {number}: {row}"
            continue
        key = (row.device, row.port, row.time_ms // _HOUR_MS)
        if seen and key not in seen:
            problem = problem or f"line {number}: a row of another port or hour"
        if key in seen:
            return seen[key], problem
        seen[key] = row
    return next(iter(seen.values()), None), problem


PORT_COUNTERS = PortCounters()
