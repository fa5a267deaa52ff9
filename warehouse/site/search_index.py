"""Search index: tables, columns, queries, page sections, words, switches, servers and formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from warehouse.site.fabric import PAGE, anchor
from warehouse.site.table_pages import table_path

if TYPE_CHECKING:
    from warehouse.reader.named_queries import Query
    from warehouse.site.fabric import Fabric
    from warehouse.site.prose import Page
    from warehouse.site.raw_formats import FormatView
    from warehouse.site.table_pages import TableView


def entries(
    tables: Iterable[TableView],
    queries: Iterable[Query],
    pages: Iterable[Page],
    fabric: Fabric,
    formats: Iterable[FormatView],
) -> Iterator[tuple[str, str, str, str]]:
    """Yield all search results, tables first: kind, title, text, and place in the site."""
    columns = set[str]()
    for table in tables:
        place = table_path(table.name)
        yield "table", table.name, table.about, place
        for column in table.columns:
            text = f"{column.about} {column.unit or ''} {column.type}"
            columns.add(column.name)
            yield "column", f"{table.name}.{column.name}", text, f"{place}#{column.name}"
    for query in queries:
        yield "query", query.name, query.about, f"queries.html#{query.name}"
    for page in pages:
        for section in page.sections:
            if section.place.startswith("word-"):
                if section.title not in columns:  # a metric of the glossary is found as its column
                    yield "word", section.title, section.text, f"{page.path}#{section.place}"
                continue
            title = section.title if section.title == page.title else f"{page.title}: {section.title}"
            yield "page", title, " ".join(section.text.split()), f"{page.path}#{section.place}"
    for cluster, name, role in fabric.nodes():
        kind = "server" if role == "server" else "switch"
        yield kind, name, f"{role.replace('_', ' ')} of {cluster}", f"{PAGE}#{anchor(cluster, name)}"
    for one in formats:
        yield "format", one.name, " ".join(about for _, about in one.tables), one.path
