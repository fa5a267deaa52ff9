"""Lines of an hour table as rows: each line is split on its own, so that damage affects one row."""

from __future__ import annotations

import codecs
import io
import re
from typing import TYPE_CHECKING, NamedTuple, cast

from warehouse.base.startup import regex
from warehouse.formats import compressed, named_csv, torn_lines
from warehouse.formats.zhejiang.headers import Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from warehouse.formats.zhejiang.hour_header import HourHeader

LONGEST_LINE = 2**16
"""Length of a line that is too long, in bytes, with its end."""
SEPARATORS = ",;\t|"
_STATED = regex(rb"\s*\"?sep=([,;|\t])\"?\s*", re.IGNORECASE)
"""Line above the header by which spreadsheets state the separator."""
_QUOTED_FIELD = regex(rb'"[^"]*"')
_QUOTED = r'(?:"[^"]*"|[^"{0}]*)(?:{0}(?:"[^"]*"|[^"{0}]*))*\s*'
"""Line whose fields are quoted as a whole or not at all, without a quote inside."""


class Layout(NamedTuple):
    """Place of the header in a file, and the separator of the fields."""

    line: int
    """Number of the header's line."""
    separator: str
    header: bytes


def layout_of(head: bytes) -> Layout:
    """Return the layout of a file from its first lines. Blank lines, comments and `sep=;` may be above the header."""
    stated = None
    lines = head.removeprefix(codecs.BOM_UTF8).split(b"\n")
    for number, line in enumerate(lines, 1):
        if found := _STATED.fullmatch(line):
            stated = found[1].decode()
        elif line.strip() and not line.startswith(b"#"):
            bare = _QUOTED_FIELD.sub(b"", line)
            most = max(SEPARATORS, key=lambda one: bare.count(one.encode()))
            return Layout(number, stated or most, line)
    return Layout(1, ",", lines[0])


def row_of(header: HourHeader, number: int, line: bytes, damage: str | None) -> Row:
    """Return a line as a row; a comma at its end is no field."""
    values: Mapping[str, str | None] = {}
    problem = damage
    if not damage:
        try:
            fields = fields_of(line, header.separator)
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


def fields_of(line: bytes, separator: str = ",") -> list[str]:
    """Split one line into fields. Lines are independent, so that a stray quote only affects its own row."""
    return named_csv.split(line.removeprefix(codecs.BOM_UTF8), separator)


def write_level(path: Path, copy: Path, header: HourHeader) -> int:
    """Write a copy that DuckDB's scanner reads line by line; return the number of lines below the header.

    A line that is damaged, blank, not UTF-8 or has another number of fields is replaced by separators alone. So the
    other lines keep their numbers, and the scanner never fails.
    """
    separator = header.separator.encode()
    replaced = separator * (header.width - 1) + b"\n"
    widths = (header.width - 1, header.width)
    quoted = regex(_QUOTED.format(re.escape(header.separator)).encode())
    number = header.line
    with copy.open("wb") as out:
        for number, line, damage in numbered_lines(path):
            if number <= header.line:
                continue
            kept = line.removesuffix(b"\r")
            if b'"' in kept:
                is_regular = quoted.fullmatch(kept) is not None and len(fields_of(kept, header.separator)) - 1 in widths
            else:
                is_regular = kept.count(separator) in widths
            is_regular = is_regular and not damage and b"\r" not in kept and b"\0" not in kept and _is_utf8(kept)
            out.write(kept + b"\n" if is_regular else replaced)
    return max(number - header.line, 0)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


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
