"""Elements of a page of the site or the report, to look at in tests."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_EMPTY = {"meta", "link", "br", "input", "hr", "img"}
"""Elements without an end tag."""


class Element:
    """An element with its attributes, its texts and the elements below it."""

    def __init__(self, tag: str, attributes: dict[str, str], parent: Element | None = None) -> None:
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.parts: list[Element | str] = []

    def below(self) -> Iterator[Element]:
        """Yield the elements below this one, in order of the page."""
        waiting = self.parts[::-1]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Element):
                yield part
                waiting += part.parts[::-1]

    def all(self, name: str) -> list[Element]:
        """Return the elements below with this tag, id or class."""
        return [
            one
            for one in self.below()
            if name in (one.tag, one.attributes.get("id"), *one.attributes.get("class", "").split())
        ]

    @property
    def own(self) -> str:
        """Text that is in no element below."""
        return "".join(part for part in self.parts if isinstance(part, str))

    @property
    def text(self) -> str:
        """All text, as the page's source has it."""
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    @property
    def words(self) -> str:
        """All text on one line, a space between elements."""
        texts = (part if isinstance(part, str) else f" {part.words} " for part in self.parts)
        return " ".join("".join(texts).split())


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.at = self.root = Element("", {})

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = Element(tag, {name: value or "" for name, value in attrs}, self.at)
        self.at.parts.append(found)
        if tag not in _EMPTY:
            self.at = found

    def handle_endtag(self, tag: str) -> None:
        while tag not in _EMPTY and self.at.parent is not None:
            closed, self.at = self.at, self.at.parent
            if closed.tag == tag:
                break

    def handle_data(self, data: str) -> None:
        self.at.parts.append(data)


def parsed(text: str) -> Element:
    """Return the root element of a page."""
    parser = _Parser()
    parser.feed(text)
    return parser.root
