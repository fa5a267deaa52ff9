"""SQL and Python in colour, each line with a place that links can name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markupsafe import Markup

from warehouse.base.startup import regex

if TYPE_CHECKING:
    from collections.abc import Mapping

_TABLE = regex(r'<span class="(?:n|k)">(\w+)</span><span class="(?:p|o)">\.</span><span class="(?:n|k)">(\w+)</span>')


def highlighted(
    text: str, *, python: bool = False, links: Mapping[str, str] | None = None, places: bool = True
) -> Markup:
    """A file's text as HTML.

    Parameters
    ----------
    text
        With its lines as the file has them; empty ones at its start are counted and left out.
    python
        Whether it is Python and not SQL.
    links
        Pages of tables: their names in SQL become links.
    places
        Whether lines have ids: `L42`.
    """
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer, SqlLexer

    body = text.lstrip("\n")
    first = len(text) - len(body) + 1
    lexer = PythonLexer() if python else SqlLexer()
    coloured = highlight(body.rstrip() + "\n", lexer, HtmlFormatter(nowrap=True)).rstrip("\n")
    if links:
        coloured = _TABLE.sub(lambda found: _linked(found, links), coloured)
    lines = coloured.split("\n")
    if places:
        lines = [f'<span id="L{at}" class="line">{line}</span>' for at, line in enumerate(lines, start=first)]
    return Markup("\n".join(lines))  # noqa: S704 - escaped by Pygments


def _linked(found: re.Match[str], links: Mapping[str, str]) -> str:
    page = links.get(f"{found[1]}.{found[2]}")
    return f'<a href="{page}">{found[0]}</a>' if page else found[0]
