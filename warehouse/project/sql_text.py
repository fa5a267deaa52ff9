"""SQL as text: what of it counts."""

from __future__ import annotations

import re

from warehouse.base.startup import regex

_TOKEN = regex(
    r"""(?P<ignored>\s+|--[^\n]*|/\*.*?\*/)          # formatting and comments
    |(?P<token>'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+|.)  # a text, a quoted name, a word or number, a sign""",
    re.DOTALL | re.VERBOSE,
)


def canonical_text(sql: str) -> str:
    """Return SQL without comments and formatting: equal for two texts that differ in nothing else.

    >>> canonical_text("SELECT a,  -- why\\n  'x -- y' AS b")
    "SELECT a , 'x -- y' AS b"
    """
    return " ".join(found["token"] for found in _TOKEN.finditer(sql) if found["token"])
