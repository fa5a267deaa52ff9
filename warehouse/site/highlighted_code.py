"""Highlighted SQL and Python, with an anchor per line."""

from __future__ import annotations

import re
from keyword import kwlist
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from warehouse.base.startup import regex

if TYPE_CHECKING:
    from collections.abc import Mapping

_NUMBER = r"(?P<mi>\b\d[\d_]*(?:\.\d+)?(?:e-?\d+)?\b)"
_SQL = regex(
    rf"(?P<c1>--[^\n]*|/\*.*?\*/)|(?P<s1>'(?:[^']|'')*')|{_NUMBER}|(?P<k>\b[A-Z][A-Z_]+\b)|(?P<table>\b\w+\.\w+\b)",
    re.DOTALL,
)
"""Tokens by class of the style sheet. In the style of this project, keywords are in capitals."""
_PYTHON = regex(
    rf'(?P<sd>""".*?""")|(?P<s1>"[^"\n]*"|\'[^\'\n]*\')|(?P<c1>#[^\n]*)|{_NUMBER}|(?P<k>\b(?:{"|".join(kwlist)})\b)',
    re.DOTALL,
)


def highlighted(text: str, links: Mapping[str, str], *, python: bool = False) -> Markup:
    """Return a file's text as HTML.

    Parameters
    ----------
    text
        Text of the file. Leading empty lines are counted and left out.
    links
        Table pages by name; table names in SQL become links.
    python
        True for Python, False for SQL.
    """
    body = text.strip("\n").rstrip()
    first = len(text) - len(text.lstrip("\n")) + 1
    html, end = [], 0
    for found in (_PYTHON if python else _SQL).finditer(body):
        html += [escape(body[end : found.start()]), _token(str(found.lastgroup), found[0], links)]
        end = found.end()
    lines = "".join([*html, escape(body[end:])]).split("\n")
    return Markup("\n".join(f'<span id="L{at}" class="line">{line}</span>' for at, line in enumerate(lines, first)))  # noqa: S704 - escaped above


def _token(kind: str, text: str, links: Mapping[str, str]) -> str:
    """Return a token as HTML; one of several lines in a span for each line."""
    if kind == "table":
        page = links.get(text)
        return f'<a href="{page}">{escape(text)}</a>' if page else escape(text)
    return "\n".join(f'<span class="{kind}">{line}</span>' for line in escape(text).split("\n"))
