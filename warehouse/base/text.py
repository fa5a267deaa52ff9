"""Numbers and names as text for messages, and items in groups."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TypeVar

Key = TypeVar("Key")
Item = TypeVar("Item")
STEP = 1000
"""Ratio of a unit of bytes to the one below it."""
_NARROW = 10
"""Least width of a line."""


def plural(count: int, noun: str) -> str:
    """Return a count with its noun, such as `1 hour` or `2 hours`.

    >>> plural(1, "hour"), plural(1200, "part")
    ('1 hour', '1,200 parts')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def few(names: Iterable[str], most: int = 4) -> str:
    """Return the first names of a list, and the number of other names.

    >>> few(["a", "b"]), few("abcdef")
    ('a, b', 'a, b, c, d and 2 more')
    """
    listed = list(names)
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that orders numbers in names by value.

    >>> sorted(["Leaf-10", "Leaf-9", "spine-1"], key=natural)
    ['Leaf-9', 'Leaf-10', 'spine-1']
    """
    # Pairs, since Python compares no number with a text; not isdigit, which is true of ² while int() refuses it.
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name) if part]


def grouped(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, list[Item]]:
    """Return the items of each key; keys and items keep their order.

    >>> grouped([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    found: dict[Key, list[Item]] = {}
    for key, item in pairs:
        found.setdefault(key, []).append(item)
    return found


def size(count: float) -> str:
    """Return a number of bytes with a unit, as the macro `bytes_text` does in SQL.

    >>> size(999), size(41_000_000), size(6_785_715_334_821)
    ('999 B', '41.0 MB', '6.8 TB')
    """
    amount = float(count)
    if abs(amount) < STEP:
        return f"{amount:.0f} B"
    for unit in ("kB", "MB", "GB", "TB"):
        amount /= STEP
        if abs(amount) < STEP:
            return f"{amount:.1f} {unit}"
    return f"{amount / STEP:.1f} PB"


def wrapped(text: str, width: int | None, *, indent: str = "  ") -> list[str]:
    """Break a text into lines with line ends; indent all but the first. Nothing breaks without a width.

    A word that is longer than a line stays whole: a terminal breaks it, and a path or command can be copied.

    >>> wrapped("6 links carry no data", 14)
    ['6 links carry\\n', '  no data\\n']
    """
    import textwrap

    if width is None:
        return [f"{text}\n"]
    # Options and names have hyphens, which are no place to break a line.
    lines = textwrap.wrap(
        text, max(width, _NARROW), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return [f"{line}\n" for line in lines or [""]]


def on_one_line(text: str) -> str:
    """Return text with escaped control characters, so that names cannot break a line or move the cursor.

    >>> on_one_line("a\\nb \\x1b[31m")
    'a\\\\nb \\\\x1b[31m'
    """
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def now_utc() -> str:
    """Return the current time in UTC for display. Must not be part of any hash."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
