"""Lines of an hour table as rows: each line is split on its own, so that damage affects one row."""

from __future__ import annotations

import codecs
import io
from typing import TYPE_CHECKING, cast

from warehouse.formats import compressed, named_csv, torn_lines
from warehouse.formats.zhejiang.headers import Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from warehouse.formats.zhejiang.hour_header import HourHeader

LONGEST_LINE = 2**16
"""Length of a line that is too long, in bytes, with its end."""


def row_of(header: HourHeader, number: int, line: bytes, damage: str | None) -> Row:
    """Return a line as a row; a comma at its end is no field."""
    values: Mapping[str, str | None] = {}
    problem = damage
    if not damage:
        try:
            fields = fields_of(line)
            values = header.pick(fields)
            while len(fields) > header.width and not fields[-1].strip():
                fields.pop()
            if len(fields) != header.width:
                problem = f"{len(fields)} fields instead of {header.width}"
        except ValueError as error:
            problem = str(error)
    return Row(number, values, problem, line.decode("utf-8", "backslashreplace")[:500])


def damage_of(line: bytes) -> str | None:
    """Return why a complete line is not looked at, or None."""
    return f"longer than {LONGEST_LINE:,} bytes" if len(line) >= LONGEST_LINE else None


def fields_of(line: bytes) -> list[str]:
    """Split one line into fields. Lines are independent, so that a stray quote only affects its own row."""
    return named_csv.split(line.removeprefix(codecs.BOM_UTF8))


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes, str | None]]:
    """Yield (line number, line, damage or None); bound memory for a file without line ends."""
    number = 0
    with compressed.open_bytes(path) as raw:
        stream = io.BufferedReader(cast("io.RawIOBase", raw))
        try:
            while line := stream.readline(LONGEST_LINE):
                number += 1
                problem = None
                if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                    problem = f"longer than {LONGEST_LINE:,} bytes"
                    while (rest := stream.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                        pass
                elif not line.endswith(b"\n"):
                    problem = torn_lines.TORN
                yield number, line.removesuffix(b"\n"), problem
        except compressed.STREAM_ERRORS as error:
            yield number + 1, b"", f"the compressed stream is damaged here: {error}"
