"""Mutations of raw files, aware of the structure of each format."""

from __future__ import annotations

import gzip
import io
import os
import random
import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

Mutate = Callable[[bytes, random.Random], bytes]
NUMBERS = (b"1e9", b"-1", b"0x10", b"", b"NaN", b"9" * 25, b"1.5", b"\xe2\x88\x921", b"1_000", b" 7 ", b"24:00:00")
ODD_BYTES = (b"\x00", b"\xff", b"\x1b[2J", b'"', b"'", b"\r", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\x85", b",", b"\\")


def _in_lines(change: Callable[[list[bytes], random.Random], None]) -> Mutate:
    def mutate(content: bytes, chance: random.Random) -> bytes:
        lines = content.split(b"\n")
        change(lines, chance)
        return b"\n".join(lines)

    return mutate


def _cell(lines: list[bytes], chance: random.Random) -> None:
    at = chance.randrange(len(lines))
    cells = lines[at].split(b",")
    cells[chance.randrange(len(cells))] = chance.choice((*NUMBERS, *ODD_BYTES))
    lines[at] = b",".join(cells)


def _fewer_or_more_cells(lines: list[bytes], chance: random.Random) -> None:
    at = chance.randrange(len(lines))
    cells = lines[at].split(b",")
    if chance.random() < 0.5:
        cells.pop(chance.randrange(len(cells)))
    else:
        cells.insert(chance.randrange(len(cells) + 1), b"1")
    lines[at] = b",".join(cells)


def _swap_columns(lines: list[bytes], chance: random.Random) -> None:
    count = lines[0].count(b",") + 1
    one, other = chance.randrange(count), chance.randrange(count)
    for at, line in enumerate(lines):
        cells = line.split(b",")
        if len(cells) == count:
            cells[one], cells[other] = cells[other], cells[one]
            lines[at] = b",".join(cells)


def _repeat(lines: list[bytes], chance: random.Random) -> None:
    lines.insert(chance.randrange(len(lines)), chance.choice(lines))


def _drop(lines: list[bytes], chance: random.Random) -> None:
    lines.pop(chance.randrange(len(lines)))


def _shuffle(lines: list[bytes], chance: random.Random) -> None:
    chance.shuffle(lines)


def _long(lines: list[bytes], chance: random.Random) -> None:
    at = chance.randrange(len(lines))
    lines[at] += b"x" * 3_000_000


def flip(content: bytes, chance: random.Random) -> bytes:
    """Flip bits of one byte in a thousand, and of at least one byte."""
    changed = bytearray(content)
    for _ in range(len(changed) // 1000 + 1 if changed else 0):
        changed[chance.randrange(len(changed))] ^= chance.randrange(1, 256)
    return bytes(changed)


def cut(content: bytes, chance: random.Random) -> bytes:
    """Truncate the file anywhere, most often to nothing or in its last line."""
    return content[: chance.choice((0, 1, len(content) - 1, chance.randrange(len(content) + 1)))]


def insert(content: bytes, chance: random.Random) -> bytes:
    """Insert unusual bytes."""
    at = chance.randrange(len(content) + 1)
    return content[:at] + chance.choice(ODD_BYTES) * chance.choice((1, 1, 50)) + content[at:]


def double(content: bytes, _: random.Random) -> bytes:
    """Append the file to itself."""
    return content + content


TEXT: tuple[Mutate, ...] = (
    *map(_in_lines, (_cell, _cell, _fewer_or_more_cells, _swap_columns, _repeat, _drop, _shuffle, _long)),
    flip, cut, insert, double,
    lambda content, _: content.replace(b"\n", b"\r\n"),
    lambda content, _: content.replace(b"\n", b"\r"),
    lambda content, _: content.decode("utf-8", "replace").encode("utf-16"),
    lambda content, _: gzip.compress(content),
)  # fmt: skip
BINARY: tuple[Mutate, ...] = (flip, cut, insert, double)


def workbook(content: bytes, chance: random.Random) -> bytes:
    """Damage the XML of one part of a workbook and keep the archive valid."""
    result = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as source:
            parts = {name: source.read(name) for name in source.namelist()}
        chosen = chance.choice([name for name in parts if name.endswith(".xml")])
    except (OSError, ValueError, LookupError, NotImplementedError, EOFError, RuntimeError, zipfile.error, zlib.error):
        return flip(content, chance)  # an earlier mutation of this trial broke the archive
    with zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as package:
        for name, part in parts.items():
            package.writestr(name, _xml(part, chance) if name == chosen else part)
    return result.getvalue()


def _xml(part: bytes, chance: random.Random) -> bytes:
    cells = list(re.finditer(rb"<v>[^<]*</v>|<t[^>]*>[^<]*</t>", part))
    how = chance.randrange(4)
    if cells and how < 3:
        found = chance.choice(cells)
        other = (b"<f>1+1</f>", b"<v>" + chance.choice(NUMBERS) + b"</v>", b"<v>#N/A</v>")[how]
        return part[: found.start()] + other + part[found.end() :]
    return chance.choice((flip, cut, insert))(part, chance)


def special(path: Path, chance: random.Random) -> None:
    """Replace a file by a link, a set of links, a pipe or a folder."""
    path.unlink()
    how = chance.randrange(6)
    if how == 0:
        os.mkfifo(path)
    elif how == 1:
        path.mkdir()
    elif how == 2:
        path.mkdir()
        for number in range(50):
            (path / f"{number}.csv").symlink_to(
                chance.choice(("..", ".", "/", "/proc", "nowhere", f"{number - 1}.csv"))
            )
    else:
        path.symlink_to(chance.choice(("/proc/self/environ", "/", "/dev/zero", "nowhere", path.name, "..")))


def mutate(path: Path, chance: random.Random) -> None:
    """Apply one mutation to a file."""
    if chance.random() < 0.08:
        special(path, chance)
        return
    content = path.read_bytes()
    ways = TEXT if path.suffix in (".csv", ".log", ".txt") else BINARY
    if path.suffix == ".xlsx" and zipfile.is_zipfile(path) and chance.random() < 0.8:
        ways = (workbook,)
    path.write_bytes(chance.choice(ways)(content, chance))
