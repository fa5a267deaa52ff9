"""Kernel of models/staging/port_readings.sql: every stored poll of every port, for files in their published form.

In such a file, all lines begin with the same date, device and port, and with two clocks. Each line is compared with
the first one byte by byte, and its two clocks with each other. Six numbers follow. For any other form of file the
build falls back to the SELECT, which reports invalid rows. So all rows of the kernel have `fits` = true.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from warehouse.formats.zhejiang.port_counters import HEADER, UTC_OFFSET, WRAP
from warehouse.kernels import Arrays, Reader, UnsupportedError
from warehouse.kernels.csv_bytes import ZEROS, Ints, Text, Words, word

FILES = """
    SELECT p.file_key, p.hour_utc, p.device_name, p.port, p.is_management, p.file, coalesce(f.read_path, '') AS path,
        coalesce(f.bytes, 0) AS bytes
    FROM staging.port_files AS p
    LEFT JOIN raw.files AS f ON f.release_path = p.file AND f.hour_utc = p.hour_utc AND f.status IN ('read', 'partial')
    ORDER BY p.file_key
"""
HOUR_MS = 3_600_000
COUNTERS = ("in_packets", "in_bytes_raw", "out_packets", "out_bytes_raw")
_CLOCK, _UTC = len("HH:MM:SS.mmm"), len("1716480000622")
IDLE = b"0,0,0,0,0,0"
"""Six zeros, the shortest text of six numbers."""


BLOCK_BYTES = 16_000_000
"""Bytes of the files of a block: a fraction of a second of work, so that blocks spread evenly."""
PARTS = ()


class PortHour(NamedTuple):
    """Hour and port that every line of a file must have."""

    hour: datetime
    device: str
    port: str
    is_management: bool


class PortFile(NamedTuple):
    """File of a port."""

    key: int
    of: PortHour
    file: str
    """Path in the release."""
    path: str


def blocks(reader: Reader) -> Iterator[list[PortFile]]:
    """Yield the files of all ports in blocks of about equal size. Raises UnsupportedError for a missing file."""
    files = reader.arrays(FILES)
    block: list[PortFile] = []
    size = 0
    for key, hour, device, port, is_management, file, path, count in zip(*files.values(), strict=True):
        if not path:
            raise UnsupportedError(f"{file} (not among raw.files)")
        if block and size + count > BLOCK_BYTES:
            yield block
            block, size = [], 0
        block.append(PortFile(int(key), PortHour(hour.item(), device, port, bool(is_management)), file, path))
        size += count
    if block:
        yield block


def rows(block: list[PortFile], _reader: Reader) -> Iterator[Arrays]:
    """Yield the readings of the ports of a block, one chunk for each file."""
    text = Text()
    for key, of, file, path in block:
        try:
            text.load(Path(path))
            found = readings(text, of)
        except (OSError, UnsupportedError) as error:
            raise UnsupportedError(f"{file} ({getattr(error, 'strerror', None) or error})") from error
        count = len(found["offset_ms"])
        yield {
            "file_key": np.full(count, key),
            "hour_utc": np.full(count, of.hour, "datetime64[us]"),
            **found,
            "fits": np.ones(count, bool),
        }


def readings(text: Text, of: PortHour) -> Arrays:
    """Return times and counters of a file's lines. Raises UnsupportedError for a line of another port, hour or form."""
    ends = text.newlines()
    header = f"{HEADER}\n".encode()
    if len(ends) < 2 or bytes(text.octets[: len(header)]) != header or ends[-1] != len(text.octets) - 1:
        raise UnsupportedError("another header, no lines, or no newline at the end")
    starts, ends = ends[:-1] + 1, ends[1:]
    beginning = _beginning(bytes(text.octets[starts[0] : ends[0]]), of)
    fields = starts + len(beginning)
    if (ends - fields).min() < len(IDLE):
        raise UnsupportedError("a line that is too short")
    found: Arrays = {"offset_ms": _times(text, starts, beginning, of.hour).astype(np.int32)}
    shows = np.flatnonzero(~_are_idle(text, fields, ends))
    for name, values in _numbers(text, fields[shows], ends[shows]):
        found[name] = np.zeros(len(starts), values.dtype)
        found[name][shows] = values
    if text.is_odd:
        raise UnsupportedError("a character that no number has")
    if of.is_management and any(found[name].min() < -WRAP for name in ("in_bytes_raw", "out_bytes_raw")):
        raise UnsupportedError("fewer bytes than a counter can fall by")
    return found


def _are_idle(text: Text, fields: Ints, ends: Ints) -> NDArray[np.bool_]:
    """Return True for lines of six zeros: half of all lines, since counters are refreshed about every second poll."""
    is_idle: NDArray[np.bool_] = ends - fields == len(IDLE)
    for at in (0, len(IDLE) - 8):
        is_idle &= text.words(fields + at) == word(IDLE[at : at + 8])
    return is_idle


def _numbers(text: Text, fields: Ints, ends: Ints) -> Iterator[tuple[str, NDArray[np.int64] | NDArray[np.float64]]]:
    """Yield the six numbers of each line, column by column."""
    for name in COUNTERS:
        counts, fields = text.whole(fields)
        yield name, counts
    ratios, fields = text.decimal(fields)
    yield "published_in_ratio", ratios
    yield "published_out_ratio", text.decimal(fields, ends)[0]


def _beginning(line: bytes, of: PortHour) -> bytes:
    """Return the beginning of the first line, up to the counters. Raises UnsupportedError for another port or hour."""
    local = of.hour + UTC_OFFSET
    clock = line.find(b",") - _CLOCK
    rest = f",{of.device},{of.port},".encode()
    utc = clock + _CLOCK + 1
    if (
        not line.startswith(f"{local:%Y/%m/%d} ".encode())
        or line[clock - 1 : clock + 3] != f"{local: %H:}".encode()
        or line[clock + 5 : clock + 9 : 3] != b":."
        or line[utc + _UTC :][: len(rest)] != rest
    ):
        raise UnsupportedError("a first line of another port or hour")
    return line[: utc + _UTC + len(rest)]


def _times(text: Text, starts: Ints, beginning: bytes, hour: datetime) -> Ints:
    """Return milliseconds since the start of the hour. Raises UnsupportedError if clocks disagree or lines differ.

    Lines are aligned to words so that SaveTimeUTC starts a word. The two words before it are `DD HH:MM` and `:SS.mmm,`.
    """
    utc = beginning.index(b",") + 1
    shift = -utc % 8
    word = (shift + utc) // 8
    count = -(-(shift + len(beginning)) // 8)
    lines = text.rows(starts - shift, count)
    _compare(lines, _fixed(shift, utc, len(beginning), count))
    minutes, seconds = lines[:, word - 2] ^ ZEROS, lines[:, word - 1] ^ ZEROS
    local = text.number(  # 0MMSSmmm
        (minutes >> np.uint64(48)) << np.uint64(8)
        | ((seconds >> np.uint64(8)) & np.uint64(0xFFFF)) << np.uint64(24)
        | ((seconds >> np.uint64(32)) & np.uint64(0xFFFFFF)) << np.uint64(40)
    )
    high = text.number(lines[:, word] ^ ZEROS)
    low = text.number((lines[:, word + 1] ^ ZEROS) << np.uint64(24))
    start = int(np.datetime64(hour, "ms").astype(np.int64))
    times = high * 100_000 + low - start
    if times[0] < 0 or times[-1] >= HOUR_MS or not np.all(times[1:] > times[:-1]):
        raise UnsupportedError("times of another hour, or out of order")
    if np.any(local != times + 40_000 * (times // 60_000)):  # a minute is 100,000 in MMSSmmm, 60,000 in milliseconds
        raise UnsupportedError("clocks that disagree")
    return times


def _fixed(shift: int, utc: int, length: int, words: int) -> Words:
    """Return a mask of the bytes that must be equal in all lines: all but the digits of minute, second and UTC."""
    fixed = np.zeros(8 * words, np.uint8)
    fixed[shift : shift + length] = 0xFF
    for first, last in ((utc - 10, utc - 8), (utc - 7, utc - 5), (utc - 4, utc - 1), (utc, utc + _UTC)):
        fixed[shift + first : shift + last] = 0
    return fixed.view(np.uint64)


def _compare(lines: Words, fixed: Words) -> None:
    """Raise UnsupportedError if lines differ in fixed bits."""
    for at, bits in enumerate(fixed):
        if np.bitwise_or.reduce(lines[:, at] ^ lines[0, at]) & bits:
            raise UnsupportedError("a line of another port or date")
