"""Glossary words, and links to them from units, columns and descriptions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup, escape

from warehouse.base.startup import regex
from warehouse.site.prose import GLOSSARY, inline_code

if TYPE_CHECKING:
    from warehouse.site.prose import Page

_ROW = regex(r'<tr id="(?P<place>[^"]+)">\s*<td>(?P<word>.*?)</td>\s*<td>(?P<meaning>.*?)</td>', re.DOTALL)
_EVERYDAY = frozenset(
    {"group", "port", "other ports", "cluster", "sample", "part", "model", "check", "task", "kind", "target", "layer",
     "trace", "run", "duration", "base", "rank", "period", "strength", "depth", "event", "step", "outcome", "release",
     "segment", "catalog", "digest", "lineage", "reset"}
)  # fmt: skip
"""Words with an everyday meaning, never linked."""


class Word(NamedTuple):
    """A word of the glossary."""

    text: str
    meaning: str
    place: str
    is_code: bool
    """True if the word is a name in tables."""


@dataclass(frozen=True)
class Glossary:
    """Anchors of the words; empty if the project has no glossary."""

    words: Mapping[str, str]
    """Anchors by word."""
    spoken: Mapping[str, str]
    """Anchors of words in sentences, in lower case: no names, no everyday words."""

    def place(self, word: str | None) -> str:
        """Return the anchor of a word; empty if unknown."""
        return self.words.get(word or "", "")

    def linked(self, text: str, root: str) -> Markup:
        """Return a sentence with code as code, and each word linked at its first use."""
        seen = set[str]()
        return inline_code(text, lambda words: self._linked(words, root, seen))

    def _linked(self, text: str, root: str, seen: set[str]) -> Markup:
        if not self.spoken:
            return escape(text)
        html, end = Markup(""), 0
        for found in self._pattern.finditer(text):
            word = found[0].lower()
            place = self.spoken.get(word) or self.spoken.get(word.removesuffix("s"))
            if place and place not in seen:
                seen.add(place)
                html += escape(text[end : found.start()])
                html += Markup('<a class="term" href="{}">{}</a>').format(root + place, found[0])
                end = found.end()
        return html + escape(text[end:])

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest = sorted(self.spoken, key=len, reverse=True)
        return re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, longest))})s?(?![\w.]\w|\w)", re.IGNORECASE)


def words_of(pages: Iterable[Page]) -> list[Word]:
    """Return the words of the glossary, in order."""
    return [
        Word(_text(found["word"]), _text(found["meaning"]), f"{page.path}#{found['place']}", "<code>" in found["word"])
        for page in pages
        if page.source == GLOSSARY
        for found in _ROW.finditer(page.html)
    ]


def glossary_of(words: Iterable[Word]) -> Glossary:
    """Index the words; the first anchor of a word counts."""
    places: dict[str, str] = {}
    spoken: dict[str, str] = {}
    for word in words:
        for one in word.text.split(", "):
            places.setdefault(one, word.place)
            if not word.is_code and one.lower() not in _EVERYDAY:
                spoken.setdefault(one.lower(), word.place)
    return Glossary(places, spoken)


def _text(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", html))
