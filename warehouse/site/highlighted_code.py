"""Highlighted SQL and Python, with an anchor per line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markupsafe import Markup

from warehouse.base.startup import regex

if TYPE_CHECKING:
    from collections.abc import Mapping

_TABLE = regex(r'<span class="(?:n|k)">(\w+)</span><span class="(?:p|o)">\.</span><span class="(?:n|k)">(\w+)</span>')


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
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer, SqlLexer

    body = text.lstrip("\n")
    first = len(text) - len(body) + 1
    lexer = PythonLexer() if python else SqlLexer()
    colored = highlight(body.rstrip() + "\n", lexer, HtmlFormatter(nowrap=True)).rstrip("\n")
    lines = _TABLE.sub(lambda found: _linked(found, links), colored).split("\n")
    lines = [f'<span id="L{at}" class="line">{line}</span>' for at, line in enumerate(lines, start=first)]
    return Markup("\n".join(lines))  # noqa: S704 - escaped by Pygments


def _linked(found: re.Match[str], links: Mapping[str, str]) -> str:
    page = links.get(f"{found[1]}.{found[2]}")
    return f'<a href="{page}">{found[0]}</a>' if page else found[0]
