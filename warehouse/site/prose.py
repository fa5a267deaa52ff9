"""Pages of docs/ as HTML, with links to pages of the site."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from warehouse.base.startup import regex

FOLDER = "docs"
GROUPS = {
    "recipes": "With other tools",
    "formats": "Raw formats and their traps",
    "metrics": "Metrics and their formulas",
    "adr": "Decisions",
}
"""Folders of docs/ and their titles."""
_CODE = regex(r"`([^`]+)`")


@dataclass(frozen=True)
class Section:
    """A heading and its text, or a word of the glossary and its meaning, for the search."""

    title: str
    place: str
    text: str


@dataclass(frozen=True)
class Page:
    """A page of docs/."""

    source: str
    """Source file, such as `docs/formats/port_counters.md`."""
    title: str
    group: str
    """A key of `GROUPS`, or empty."""
    html: Markup
    sections: Sequence[Section]

    @property
    def path(self) -> str:
        """Path in the site."""
        return page_path(self.source)


def page_path(source: str) -> str:
    """Return the path of a docs page in the site."""
    return f"{source.removesuffix('.md')}.html"


def sources(folders: Sequence[Path]) -> dict[str, Path]:
    """Return the pages below these folders; a later folder overrides an earlier one."""
    return {
        f"{FOLDER}/{path.relative_to(folder).as_posix()}": path
        for folder in folders
        for path in sorted(folder.rglob("*.md"))
    }


def inline_code(text: str) -> Markup:
    """Return a text with what stands between backticks as code.

    >>> inline_code("`a < b` of `tasks.csv")
    Markup('<code>a &lt; b</code> of `tasks.csv')
    """
    html, end = Markup(""), 0
    for found in _CODE.finditer(text):
        html += escape(text[end : found.start()]) + Markup("<code>{}</code>").format(found[1])
        end = found.end()
    return html + escape(text[end:])


def without_marks(text: str) -> str:
    """Return a text without the backticks around code."""
    return _CODE.sub(r"\1", text)


def render(source: str, text: str, known: Mapping[str, str]) -> Page:
    """Render one page.

    Parameters
    ----------
    source
        Source file, such as `docs/formats/port_counters.md`.
    known
        Paths in the site of other files (`models/metrics/jobs.sql`, `docs/glossary.md`), of tables
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
        # Links are addresses, which have slashes on every system.
        found = known.get(posixpath.normpath(posixpath.join(posixpath.dirname(source), path)))
        return f"{up}{found}{'#' if place else ''}{place}" if found else None

    for token in tokens:
        if token.children:
            token.children = _linked(token.children, place_of, known, up)
    sections = list(_sections(tokens))
    if source == "docs/glossary.md":
        sections += _words(tokens)
    title = sections[0].title if sections else posixpath.basename(source)
    html = parser.renderer.render(tokens, parser.options, {})
    parts = source.split("/")
    return Page(source, title, parts[1] if len(parts) > 2 else "", Markup(html), sections)  # noqa: S704 - no HTML is let through


def _parser() -> MarkdownIt:
    # HTML of a page is shown as text, so the result may be marked as safe.
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule(
        "table_open", lambda *_: '<div class="table" tabindex="0" role="group" aria-label="Table"><table>\n'
    )
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    for kind in ("fence", "code_block"):
        parser.add_render_rule(kind, _code)
    return parser


def _code(_: object, tokens: Sequence[Token], at: int, *__: object) -> str:
    """Render a code block that the keyboard can scroll, since it may be wider than a phone."""
    return f'<pre tabindex="0" role="group" aria-label="Code"><code>{escape(tokens[at].content)}</code></pre>\n'


def _sections(tokens: Sequence[Token]) -> Iterator[Section]:
    """Give each heading an anchor, and yield it with the text below it."""
    starts = [at for at, token in enumerate(tokens) if token.type == "heading_open"]
    given: set[str] = set()
    for at, end in pairwise([*starts, len(tokens)]):
        title = _plain(tokens[at + 1])
        place = _anchored(tokens[at], slug(title), given)
        texts = [_plain(one) for one in tokens[at + 2 : end] if one.type in ("inline", "fence", "code_block")]
        yield Section(title, place, " ".join(texts))


def _words(tokens: Sequence[Token]) -> Iterator[Section]:
    """Give table rows anchors named after their first cells; yield each word with its meaning."""
    given: set[str] = set()
    for at, token in enumerate(tokens):
        if token.type == "tr_open" and tokens[at - 1].type != "thead_open":
            word, meaning = _plain(tokens[at + 2]), _plain(tokens[at + 5])
            yield Section(word, _anchored(token, f"word-{slug(word)}", given), meaning)


def _anchored(token: Token, anchor: str, given: set[str]) -> str:
    """Give an element an anchor unlike all others, and return it."""
    while anchor in given:
        anchor += "-1"
    given.add(anchor)
    token.attrSet("id", anchor)
    return anchor


def slug(heading: str) -> str:
    """Return the anchor of a heading, as code hosts name it.

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
    """Resolve links: those outside of the site become plain text, table names in `code` become links."""
    linked_tokens: list[Token] = []
    dropped: list[bool] = []
    for one in children:
        if one.type == "link_open":
            place = place_of(str(one.attrGet("href") or ""))
            dropped.append(place is None)
            if place is not None:
                one.attrSet("href", place)
                linked_tokens.append(one)
        elif one.type == "link_close":
            if not dropped.pop():
                linked_tokens.append(one)
        elif one.type == "image":  # the site has no pictures
            linked_tokens.append(Token("text", "", 0, content=f"[picture: {one.content}]"))
        elif one.type == "code_inline" and not dropped and one.content in known:
            linked_tokens += [
                Token("link_open", "a", 1, attrs={"href": up + known[one.content]}),
                one,
                Token("link_close", "a", -1),
            ]
        else:
            linked_tokens.append(one)
    return linked_tokens
