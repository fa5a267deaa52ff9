"""Text for people: numbers, names, lines, sentences of checks, commands, errors; and items in groups."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from warehouse.base.errors import WarehouseError
from warehouse.base.settings import usual_target
from warehouse.base.startup import regex

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


# sentences of checks ------------------------------------------------------------------------------
# Templates with `{column}` or `{column:format}`, filled from a failing row. Formats: `,`, `,.2f` and `.2f` for numbers,
# `.1%` for fractions of 1, `B` for bytes.

_FIELD = regex(r"\{(?P<name>[a-z][a-z0-9_]*)(?::(?P<format>,|,?\.\d[f%]|B))?\}")


def fields(text: str) -> list[str]:
    """Return the columns that a template names.

    Raises
    ------
    ValueError
        For a brace outside a field, or an unknown format.

    >>> fields("{switch} is uneven: {cov:.1%}")
    ['switch', 'cov']
    """
    rest = _FIELD.sub("", text)
    if "{" in rest or "}" in rest:
        raise ValueError("a field is {column} or {column:format}, the format one of `,`  `.2f`  `,.2f`  `.1%`  `B`")
    return [match["name"] for match in _FIELD.finditer(text)]


def filled(text: str, row: Mapping[str, object]) -> str:
    """Return the sentence with the values of a row; a missing value is `?`.

    >>> filled("{switch} sent {bytes:B}, {cov:.1%} off", {"switch": "Leaf-1", "bytes": 6785715334821, "cov": 0.186})
    'Leaf-1 sent 6.8 TB, 18.6 % off'
    """
    return _FIELD.sub(lambda match: _value(row.get(match["name"]), match["format"]), text)


def _value(value: object, form: str | None) -> str:
    if value is None:
        return "?"
    if not form or isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if form == "B":
        return size(value)
    text = format(value, form)
    return f"{text[:-1]} %" if form.endswith("%") else text


# commands in printed text --------------------------------------------------------------------------

WITH_TARGET = (
    "build", "plan", "sql", "findings", "cite", "ls", "show", "lineage", "doctor", "diff", "verify", "builds",
    "rollback", "relocate", "clean", "export", "publish", "report", "docs", "demo", "mcp",
)  # fmt: skip
"""Commands that have `--target`."""
# `?+` gives nothing back: else a command with -d and -t would match without its -d, and get a second -t.
_NAMED = regex(rf"\bwarehouse (?:{'|'.join(WITH_TARGET)})\b(?: -d DIR)?+(?! -t )")
_WHOLE = regex(
    r"""\bwarehouse [a-z]+(?: -{1,2}[a-z][a-z-]*(?: (?:"[^"]*"|'[^']*'|[^\s"'(-]\S*))?| "[^"]*"| '[^']*')*"""
)
JOINED = "\xa0"
"""Space that no line breaks at."""


def for_target(text: str, target: Path) -> str:
    """Return a text whose commands name the target, unless they would use it anyway.

    >>> for_target("Next:  warehouse findings  (1 note)", Path("my builds"))
    "Next:  warehouse findings -t 'my builds'  (1 note)"
    >>> for_target("Next:  warehouse findings", Path("build/warehouse"))
    'Next:  warehouse findings'
    """
    if target.absolute() == usual_target().absolute():
        return text
    import shlex

    option = f" -t {shlex.quote(str(target))}"
    return _NAMED.sub(lambda found: found[0] + option, text)


def joined(text: str) -> str:
    r"""Return a text whose commands have `JOINED` for spaces, so that no line breaks within a command.

    >>> joined("4 TB: warehouse sql -q nic --server GPU-1 (all)").split(" ")
    ['4', 'TB:', 'warehouse\xa0sql\xa0-q\xa0nic\xa0--server\xa0GPU-1', '(all)']
    """
    return _WHOLE.sub(lambda found: found[0].replace(" ", JOINED), text)


# errors -------------------------------------------------------------------------------------------

_BEFORE = 0.6
"""Share of the room for the text before the place, if the line is cut."""
_WIDTH, _LEAST = 80, 20
"""Width in cells without a terminal, and the minimum room for a source line on one."""


def error_text(error: WarehouseError, width: int | None = None) -> str:
    """Return an error as indented text: message, source line with carets, details, hint.

    Parameters
    ----------
    error
        The error.
    width
        The width of the terminal, for line breaks; None without a terminal.
    """
    indent = " " * 7
    head = f"{error.place}: {error.message}" if error.place else error.message
    below = (line.strip() for line in (*error.details, error.hint or "") if line)
    lines = wrapped(f"error: {on_one_line(head)}", width, indent=indent)
    if error.source:
        shown = excerpt(*error.source, max((width or _WIDTH) - len(indent), _LEAST))
        lines += [f"{indent}{line}\n" for line in shown]
    for line in below:
        lines += wrapped(f"{indent}{on_one_line(line)}", width, indent=indent)
    return "".join(lines).rstrip("\n")


def excerpt(text: str, offset: int, length: int, room: int) -> tuple[str, str]:
    r"""Return the line at a byte offset, cut to `room` cells, and carets below `length` bytes.

    Wide characters take two cells; control characters are escaped.

    >>> excerpt("SELECT '漢' AS a,\n  '漢字', swtch\nFROM x", 31, 5, 72)
    ("  '漢字', swtch", '          ^^^^^')
    >>> excerpt("SELECT one, two, three, four, five FROM x", 24, 4, 24)
    ('… two, three, four, fiv…', '              ^^^^')
    """
    from rich.cells import cell_len, set_cell_size

    source = text.encode()
    start, end = source.rfind(b"\n", 0, offset) + 1, source.find(b"\n", offset)
    end = len(source) if end < 0 else end
    middle = min(offset + length, end)
    before, word, after = (
        # A tab would be escaped as two characters.
        on_one_line(source[at:to].decode(errors="ignore").replace("\t", " "))
        for at, to in ((start, offset), (offset, middle), (middle, end))
    )
    left = int(room * _BEFORE)
    if cell_len(before + word + after) > room and cell_len(before) > left:
        # `set_cell_size` cuts at the right, and the text next to the error must stay.
        before = "…" + set_cell_size(before[::-1], left - 1)[::-1]
    line = before + word + after
    if cell_len(line) > room:
        line = set_cell_size(line, room - 1) + "…"
    return line, " " * cell_len(before) + "^" * max(min(cell_len(word), room - cell_len(before)), 1)
