"""Raw text, plain or compressed: the same bytes and lines, an error if it is truncated, and odd bytes are seen."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from warehouse.formats.streams import (
    HEAD_BYTES,
    LINE_BYTES,
    STREAM_ERRORS,
    TORN,
    UniformLines,
    ends_with_newline,
    head,
    numbered_lines,
    open_bytes,
)

PACK: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}
COMPRESSED = [suffix for suffix in PACK if suffix]
LINES = b"".join(b"line %d\n" % number for number in range(1, 20_001))


@pytest.mark.parametrize("suffix", PACK)
def test_content_is_the_same_in_every_compression(tmp_path: Path, suffix: str) -> None:
    """`pigz`, `pzstd` and `cat a.gz b.gz` write several frames; an empty frame is not the end."""
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(b"".join(PACK[suffix](piece) for piece in (LINES[:7], b"", LINES[7:])))
    with open_bytes(path) as stream:
        assert stream.read() == LINES
    assert head(path) == LINES[:HEAD_BYTES]
    assert ends_with_newline(path)


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_a_stream_that_is_truncated_or_not_compressed_is_an_error(tmp_path: Path, suffix: str) -> None:
    """Even if the remaining content ends with a newline: DuckDB reads such a .zst as a shorter file."""
    path = tmp_path / f"a.csv{suffix}"
    for content in (PACK[suffix](LINES)[:-1], PACK[suffix](LINES)[:-100], LINES):
        path.write_bytes(content)
        with pytest.raises(STREAM_ERRORS):
            ends_with_newline(path)


@pytest.mark.parametrize("suffix", PACK)
def test_lines_come_with_their_number_and_a_torn_one_with_its_reason(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(PACK[suffix](b"a\n\nb\r\nc"))
    assert list(numbered_lines(path)) == [(1, b"a", None), (2, b"", None), (3, b"b\r", None), (4, b"c", TORN)]
    for content in (b"", b"a\nb", b"a\nb\r"):
        path.write_bytes(PACK[suffix](content))
        assert not ends_with_newline(path)


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_lines_before_the_damage_of_a_stream_are_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(PACK[suffix](LINES) + PACK[suffix](LINES)[:-1])
    *good, (number, line, reason) = numbered_lines(path)
    assert len(good) >= 20_000
    assert all(problem is None for _, _, problem in good)
    assert (number, line) == (len(good) + 1, b"")
    assert str(reason).startswith("the compressed stream is damaged here: ")


def test_a_line_that_never_ends_is_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a\n" + b"x" * (3 * LINE_BYTES) + b"\nb\n")
    first, long, last = numbered_lines(path)
    assert (first, last) == ((1, b"a", None), (3, b"b", None))
    assert (long[0], len(long[1]), long[2]) == (2, LINE_BYTES, f"longer than {LINE_BYTES:,} bytes")


# uniform lines

HEADER = "time,port,bytes,ratio"


def is_odd(content: bytes, chunk: int = 1 << 20) -> bool:
    lines = UniformLines()
    for start in range(0, len(content), chunk):
        lines(content[start : start + chunk])
    return lines.is_odd()


def make_lines(end: str = "\n", rows: int = 500) -> list[str]:
    numbers = random.Random(7)
    line = "2024/05/24 星期五 00:00:00,Leaf-1 1/0/1:1,{},{}"
    lines = [line.format(numbers.randint(-9, 10**15), numbers.choice(["0", "1.5", "-10.6"])) for _ in range(rows)]
    return [text + end for text in (HEADER, *lines)]


@pytest.mark.parametrize("chunk", [7, 1 << 20])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("rows", [0, 1, 500])
def test_uniform_lines_are_not_odd(end: str, chunk: int, rows: int) -> None:
    assert is_odd("".join(make_lines(end, rows)).encode(), chunk) == (rows == 0)


@pytest.mark.parametrize("odd", ["e", "_", "+", " ", "n", '"', "\r", "\0", "\n", ",", "１", "x" * 80])
def test_an_extra_character_is_odd(odd: str) -> None:
    for times in (1, 2, 400):
        lines = make_lines()
        for at in range(2, 2 + times):
            lines[at] = lines[at][:-2] + odd + lines[at][-2:]
        assert is_odd("".join(lines).encode(), 1000)
        assert is_odd("".join(lines).encode(), 1 << 20)


def test_a_line_without_its_end_or_a_part_of_its_text_is_odd() -> None:
    assert not UniformLines().is_odd()  # nothing was read
    lines = make_lines()
    assert is_odd("".join(lines)[:-1].encode())
    assert is_odd("".join([*lines[:9], lines[9].replace("星期五 ", ""), *lines[10:]]).encode())
