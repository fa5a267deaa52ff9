"""The pages of docs/, as HTML: links lead to pages of the site, names of tables to their pages."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

FOLDER = "docs"
GROUPS = {
    "recipes": "With other tools",
    "formats": "Raw formats and their traps",
    "metrics": "Metrics and their formulas",
    "adr": "Decisions",
}
"""Folders of docs/, and what they are called."""
GLOSSARY = "docs/glossary.md"
_LEFT_OUT = ("docs/queries.md",)
"""Pages that the site has in a form of its own."""


@dataclass(frozen=True)
class Section:
    """A heading and the text below it, for the search."""

    title: str
    place: str
    text: str


@dataclass(frozen=True)
class Page:
    """A page of docs/."""

    source: str
    """`docs/formats/port_counters.md`"""
    title: str
    group: str
    """A key of `GROUPS`, or empty."""
    html: Markup
    sections: Sequence[Section]

    @property
    def path(self) -> str:
        """Its place in the site."""
        return page_path(self.source)


def page_path(source: str) -> str:
    """Where a page of docs/ stands in the site."""
    return f"{source.removesuffix('.md')}.html"


def sources(folders: Sequence[Path]) -> dict[str, Path]:
    """The pages below these folders (`docs/glossary.md`), a later folder's in the place of an earlier one's."""
    return {
        f"{FOLDER}/{path.relative_to(folder).as_posix()}": path
        for folder in folders
        for path in sorted(folder.rglob("*.md"))
        if f"{FOLDER}/{path.relative_to(folder).as_posix()}" not in _LEFT_OUT
    }


def render(source: str, text: str, known: Mapping[str, str]) -> Page:
    """One page.

    Parameters
    ----------
    source
        Its name: `docs/formats/port_counters.md`.
    known
        Places in the site of other files (`models/metrics/jobs.sql`, `docs/glossary.md`), of tables
        (`metrics.jobs`) and of columns (`metrics.jobs.gpus`).
    """
    parser = _parser()
    tokens = parser.parse(text)
    up = "../" * source.count("/")

    def place_of(link: str) -> str | None:
        if re.match(r"[a-z]+:", link):
            return link
        path, _, place = link.partition("#")
        if not path:
            return f"#{place}"
        found = known.get(posixpath.normpath(posixpath.join(posixpath.dirname(source), path)))
        return f"{up}{found}{'#' if place else ''}{place}" if found else None

    for token in tokens:
        if token.children:
            token.children = _linked(token.children, place_of, known, up)
    sections = list(_sections(tokens))
    if source == GLOSSARY:
        _place_rows(tokens)
    title = sections[0].title if sections else posixpath.basename(source)
    html = parser.renderer.render(tokens, parser.options, {})
    parts = source.split("/")
    return Page(source, title, parts[1] if len(parts) > 2 else "", Markup(html), sections)  # noqa: S704 - no HTML is let through


def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule(
        "table_open", lambda *_: '<div class="table" tabindex="0" role="group" aria-label="Table"><table>\n'
    )
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    for kind in ("fence", "code_block"):
        parser.add_render_rule(kind, _code)
    return parser


def _code(_: object, tokens: Sequence[Token], at: int, *__: object) -> str:
    """Render a block of code, which may be wider than a phone: the keyboard can scroll it."""
    return f'<pre tabindex="0" role="group" aria-label="Code"><code>{escape(tokens[at].content)}</code></pre>\n'


def _sections(tokens: Sequence[Token]) -> Any:
    """Give each heading a place, and collect what stands below it."""
    title, place = "", ""
    said: list[str] = []
    taken: set[str] = set()
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            if title:
                yield Section(title, place, " ".join(said))
            title = _plain(tokens[at + 1])
            place = slug(title)
            while place in taken:
                place += "-1"
            taken.add(place)
            token.attrSet("id", place)
            said = []
        elif token.type in ("inline", "fence", "code_block") and (not at or tokens[at - 1].type != "heading_open"):
            said.append(_plain(token))
    if title:
        yield Section(title, place, " ".join(said))


def _place_rows(tokens: Sequence[Token]) -> None:
    """Give the rows of tables places, named by their first cells."""
    taken: set[str] = set()
    in_body = False
    for at, token in enumerate(tokens):
        if token.type in ("tbody_open", "tbody_close"):
            in_body = token.type == "tbody_open"
        elif token.type == "tr_open" and in_body:
            place = f"word-{slug(_plain(tokens[at + 2]))}"
            while place in taken:
                place += "-1"
            taken.add(place)
            token.attrSet("id", place)


def slug(heading: str) -> str:
    """The place of a heading, as code hosts name it.

    >>> slug("Uplinks: `metrics.uplink_balance`")
    'uplinks-metricsuplink_balance'
    """
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _plain(token: Token) -> str:
    if token.children is None:
        return token.content
    return "".join(" " if one.type == "softbreak" else one.content for one in token.children)


def _linked(
    children: Sequence[Token], place_of: Callable[[str], str | None], known: Mapping[str, str], up: str
) -> list[Token]:
    """Set links right; those that lead out of the site are plain text, names of tables in `code` are links."""
    from markdown_it.token import Token

    made: list[Token] = []
    dropped: list[bool] = []
    for one in children:
        if one.type == "link_open":
            place = place_of(str(one.attrGet("href") or ""))
            dropped.append(place is None)
            if place is not None:
                one.attrSet("href", place)
                made.append(one)
        elif one.type == "link_close":
            if not dropped.pop():
                made.append(one)
        elif one.type == "image":  # pictures are not part of the site
            made.append(Token("text", "", 0, content=f"[picture: {one.content}]"))
        elif one.type == "code_inline" and not dropped and one.content in known:
            made += [
                Token("link_open", "a", 1, attrs={"href": up + known[one.content]}),
                one,
                Token("link_close", "a", -1),
            ]
        else:
            made.append(one)
    return made
