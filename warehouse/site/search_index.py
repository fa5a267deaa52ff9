"""What the search knows: tables, columns, queries, sections of pages, words of the glossary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from warehouse.base.startup import regex
from warehouse.site.prose import GLOSSARY
from warehouse.site.table_pages import table_path

if TYPE_CHECKING:
    from warehouse.reader.named_queries import Query
    from warehouse.site.prose import Page
    from warehouse.site.table_pages import TableView

_WORD = regex(r'<tr id="(?P<place>[^"]+)">\s*<td>(?P<word>.*?)</td>\s*<td>(?P<meaning>.*?)</td>', re.DOTALL)


class Entry(NamedTuple):
    """Something to find."""

    kind: str
    title: str
    text: str
    href: str


def entries(tables: Iterable[TableView], queries: Iterable[Query], pages: Sequence[Page]) -> Iterator[Entry]:
    """Everything that can be found, tables first."""
    columns = set[str]()
    for table in tables:
        place = table_path(table.name)
        yield Entry("table", table.name, table.about, place)
        for column in table.columns:
            said = f"{column.about} {column.unit or ''} {column.type}"
            columns.add(column.name)
            yield Entry("column", f"{table.name}.{column.name}", said, f"{place}#{column.name}")
    for query in queries:
        yield Entry("query", query.name, query.about, f"queries.html#{query.name}")
    for page in pages:
        for section in page.sections:
            title = section.title if section.title == page.title else f"{page.title}: {section.title}"
            yield Entry("page", title, " ".join(section.text.split()), f"{page.path}#{section.place}")
        if page.source == GLOSSARY:
            for found in _WORD.finditer(page.html):
                word = _text(found["word"])
                if word not in columns:  # a metric of the glossary is found as its column
                    yield Entry("word", word, _text(found["meaning"]), f"{page.path}#{found['place']}")


def _text(html: str) -> str:
    from html import unescape

    return unescape(re.sub(r"<[^>]+>", "", html))
