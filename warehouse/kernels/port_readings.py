"""Every stored poll of every port: models/staging/port_readings.sql in numpy, for files as they are published.

In such a file all lines begin alike but for two clocks: the same date, device and port. So each line is compared with
the first, byte by byte, the clocks with each other, and what follows are six numbers. Where a file is of any other form
the SELECT makes the rows, and says what is wrong with them; here every row fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from warehouse.formats.zhejiang.port_counters import HEADER, UTC_OFFSET, WRAP
from warehouse.kernels import Arrays, DeclinedError, Reader
from warehouse.kernels.csv_bytes import ZEROS, Ints, Text, Words, word

FILES = """
    SELECT p.file_key, p.hour_utc, p.device_name, p.port, p.is_management, p.file, coalesce(f.read_path, '') AS path
    FROM staging.port_files AS p
    LEFT JOIN raw.files AS f ON f.release_path = p.file AND f.hour_utc = p.hour_utc AND f.status IN ('read', 'partial')
    ORDER BY p.file_key
"""
HOUR_MS = 3_600_000
COUNTERS = ("in_packets", "in_bytes_raw", "out_packets", "out_bytes_raw")
_CLOCK, _UTC = len("HH:MM:SS.mmm"), len("1716480000622")
IDLE = b"0,0,0,0,0,0"
"""The shortest that six numbers can be."""


class PortHour(NamedTuple):
    """What every line of a file must say."""

    hour: datetime
    device: str
    port: str
    is_management: bool


def rows(reader: Reader) -> Iterator[Arrays]:
    """The readings of all ports, a file at a time."""
    files = reader.arrays(FILES)
    text = Text()
    for key, hour, device, port, is_management, file, path in zip(*(files[name] for name in files), strict=True):
        if not path:
            raise DeclinedError(f"{file} (not among raw.files)")
        try:
            text.load(Path(path))
            found = readings(text, PortHour(hour.item(), device, port, is_management))
        except (OSError, DeclinedError) as error:
            raise DeclinedError(f"{file} ({getattr(error, 'strerror', None) or error})") from error
        count = len(found["offset_ms"])
        yield {
            "file_key": np.full(count, key),
            "hour_utc": np.full(count, hour),
            **found,
            "fits": np.ones(count, bool),
        }


def readings(text: Text, of: PortHour) -> Arrays:
    """Times and counters of a file's lines; raises DeclinedError where one is not of this port, hour and form."""
    ends = text.newlines()
    header = f"{HEADER}\n".encode()
    if len(ends) < 2 or bytes(text.octets[: len(header)]) != header or ends[-1] != len(text.octets) - 1:
        raise DeclinedError("another header, no lines, or no newline at the end")
    starts, ends = ends[:-1] + 1, ends[1:]
    beginning = _beginning(bytes(text.octets[starts[0] : ends[0]]), of)
    fields = starts + len(beginning)
    if (ends - fields).min() < len(IDLE):
        raise DeclinedError("a line that is too short")
    found: Arrays = {"offset_ms": _times(text, starts, beginning, of.hour).astype(np.int32)}
    shows = np.flatnonzero(~_are_idle(text, fields, ends))
    for name, values in _numbers(text, fields[shows], ends[shows]):
        found[name] = np.zeros(len(starts), values.dtype)
        found[name][shows] = values
    if text.is_odd:
        raise DeclinedError("a character that no number has")
    if of.is_management and any(found[name].min() < -WRAP for name in ("in_bytes_raw", "out_bytes_raw")):
        raise DeclinedError("fewer bytes than a counter can fall by")
    return found


def _are_idle(text: Text, fields: Ints, ends: Ints) -> NDArray[np.bool_]:
    """Which lines say that nothing moved: half of all, since counters are refreshed about every second poll."""
    is_idle: NDArray[np.bool_] = ends - fields == len(IDLE)
    for at in (0, len(IDLE) - 8):
        is_idle &= text.words(fields + at) == word(IDLE[at : at + 8])
    return is_idle


def _numbers(text: Text, fields: Ints, ends: Ints) -> Iterator[tuple[str, NDArray[np.int64] | NDArray[np.float64]]]:
    """The six numbers of each line, column by column."""
    for name in COUNTERS:
        counts, fields = text.whole(fields)
        yield name, counts
    ratios, fields = text.decimal(fields)
    yield "published_in_ratio", ratios
    yield "published_out_ratio", text.decimal(fields, ends)[0]


def _beginning(line: bytes, of: PortHour) -> bytes:
    """What the lines of a file begin with, up to the counters; of the first line, whose clocks stand for all."""
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
        raise DeclinedError("a first line of another port or hour")
    return line[: utc + _UTC + len(rest)]


def _times(text: Text, starts: Ints, beginning: bytes, hour: datetime) -> Ints:
    """Milliseconds since the start of the hour, by both clocks, of lines that begin alike otherwise.

    Lines are laid side by side in words such that SaveTimeUTC begins one: before it come `??? HH:MM` and `:SS.mmm,`.
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
        raise DeclinedError("times of another hour, or out of order")
    if np.any(local != times + 40_000 * (times // 60_000)):  # a minute is 100,000 in one, 60,000 in the other
        raise DeclinedError("clocks that disagree")
    return times


def _fixed(shift: int, utc: int, length: int, words: int) -> Words:
    """All bits of the bytes that are the same in all lines: not of the digits of minute, second and UTC."""
    fixed = np.zeros(8 * words, np.uint8)
    fixed[shift : shift + length] = 0xFF
    for first, last in ((utc - 10, utc - 8), (utc - 7, utc - 5), (utc - 4, utc - 1), (utc, utc + _UTC)):
        fixed[shift + first : shift + last] = 0
    return fixed.view(np.uint64)


def _compare(lines: Words, fixed: Words) -> None:
    """Raises DeclinedError where lines differ in bits that are fixed."""
    for at, bits in enumerate(fixed):
        if np.bitwise_or.reduce(lines[:, at] ^ lines[0, at]) & bits:
            raise DeclinedError("a line of another port or date")
