"""HTML pages of the site.

Jinja escapes text of data and models, and `for_script` escapes it in scripts. Scripts and styles are files of the
site, so pages work from disk. A content security policy forbids all other sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from warehouse.formats import known_formats
from warehouse.ingest.schemas import abouts, source_columns
from warehouse.lineage.column_lineage import Columns
from warehouse.lineage.lineage_text import read_from
from warehouse.reader.finding import SYNONYMS, by_question
from warehouse.reader.findings import NOT_JUDGED, Card, cards, findings_of
from warehouse.reader.named_queries import Query, load_queries, tables_of
from warehouse.reader.query_errors import START
from warehouse.runner.reporter import Bar
from warehouse.site.column_origins import Origins, as_graph, origins_of
from warehouse.site.fabric import PAGE, Fabric, anchor, fabric_of
from warehouse.site.people_rows import NO_ROWS, Rows, ask
from warehouse.site.prose import GROUPS, Page, page_path, render, sources, without_marks
from warehouse.site.query_answers import Answer, answer
from warehouse.site.raw_formats import FormatView, format_views
from warehouse.site.rendering import asset, for_script, renderer
from warehouse.site.search_index import entries
from warehouse.site.table_facts import Build, Facts, build_of, facts_of
from warehouse.site.table_pages import LAYERS, TableView, table_path, view

if TYPE_CHECKING:
    import duckdb

    from warehouse.project.contract import Column
    from warehouse.project.project import Project

SCRIPTS = ("site.js", "graph.js")
STYLE = "site.css"
_OF_FORMATS = ("formats", "set-aside")
"""Queries of the site on raw files."""
OBSERVED = "observed"
"""Query of the report that says what was observed."""


@dataclass(frozen=True)
class Site:
    """All facts that the pages show."""

    build: Build | None
    tables: Mapping[str, TableView]
    queries: Mapping[str, tuple[Query, Answer | None]]
    figures: Mapping[str, Query]
    """Queries of the report, by figure."""
    pages: Sequence[Page]
    origins: Origins
    cards: Sequence[Card] | None
    """Findings by kind; None if the build has no findings table."""
    observed: Sequence[str]
    """What the loaded files observed, in a few lines."""
    fabric: Fabric
    formats: Sequence[FormatView]
    loaded: Rows
    """Files of each format."""
    rejected: Rows
    """Files and lines that were not read, with the reason."""
    unknown: tuple[str, ...] = ()
    """Tables of the build without a model in the project."""

    @staticmethod
    def of(project: Project, connection: duckdb.DuckDBPyConnection | None, bar: Bar | None = None) -> Site:
        """Read the models, and the warehouse if one is open."""
        columns: dict[str, Sequence[Column]] = {name: one.columns for name, one in project.models.items()}
        columns |= {name: one.columns for name, one in project.references.items()} | source_columns(
            known_formats(traces=project.traces)
        )
        descriptions = {name: one.about for name, one in (project.models | project.references).items()}
        descriptions |= abouts(known_formats(traces=project.traces))
        columns = {name: columns[name] for name in sorted(columns, key=lambda one: (LAYERS.index(_layer(one)), one))}
        origins = origins_of(Columns(project), {name: [c.name for c in some] for name, some in columns.items()})
        facts: Mapping[str, Facts] = facts_of(connection, bar) if connection else {}
        froms = read_from(project)
        tables = {
            name: view(project, name, descriptions[name], some, facts.get(name), froms.get(name, ""))
            for name, some in columns.items()
        }
        queries = {
            name: (one, answer(connection, one) if connection else None)
            for name, one in load_queries(project.query_folders).items()
        }
        pages = _pages(project, tables, queries)
        own, figures = load_queries(project.site_folders), load_queries(project.report_folders)
        loaded, rejected = (ask(connection, own[name]) if connection else NO_ROWS for name in _OF_FORMATS)
        build = build_of(connection) if connection else None
        found = findings_of(connection) if connection else None
        judged = [one for one in found or () if not (build and build.synthetic and one.kind in NOT_JUDGED)]
        return Site(
            build,
            tables,
            queries,
            figures,
            pages,
            origins,
            None if found is None else cards(judged),
            [row[0] or "" for row in ask(connection, figures[OBSERVED]).rows] if connection else [],
            fabric_of(connection, own) if connection else Fabric(),
            format_views(project, origins, pages),
            loaded,
            rejected,
            tuple(name for name in facts if name not in tables and not name.startswith(START)),
        )

    def files(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """Yield the files of the site: path, and a function that returns the text."""
        fill = renderer(self)

        def render(template: str, root: str, **values: object) -> Callable[[], str]:
            return partial(fill, template, root, **values)

        for name in (*SCRIPTS, STYLE):
            yield f"assets/{name}", partial(asset, name)
        yield "assets/search.js", self._search_index
        yield "assets/lineage.js", self._lineage
        yield "index.html", render("index.html.j2", "", layers=self._layers, groups=self._groups)
        yield "lineage.html", render("lineage.html.j2", "")
        questions = by_question({name: query for name, (query, _) in self.queries.items()})
        yield "queries.html", render("queries.html.j2", "", questions=questions, tables_of=self._read_tables)
        yield "formats.html", render("formats.html.j2", "")
        for name, table in self.tables.items():
            yield table_path(name), render("table.html.j2", "../", table=table, **self._beside(name))
        if self.fabric.switches:
            commands = [*self.fabric.commands(query for some in questions.values() for query in some)]
            yield PAGE, render("fabric.html.j2", "", commands=commands, anchor=anchor)
        for page in self.pages:
            root = "../" * page.path.count("/")
            formats = [one for one in self.formats if page in one.pages]
            yield page.path, render("prose.html.j2", root, page=page, groups=self._groups, formats=formats)

    def _lineage(self) -> str:
        names = {name: [column.name for column in table.columns] for name, table in self.tables.items()}
        graph = as_graph(self.origins, names, {name: without_marks(table.about) for name, table in self.tables.items()})
        return f"window.LINEAGE={for_script(graph)};\n"

    def _search_index(self) -> str:
        queries = [query for query, _ in self.queries.values()]
        found = entries(self.tables.values(), queries, self.pages, self.fabric, self.formats)
        listed = [[without_marks(text) for text in one] for one in found]
        return f"window.SEARCH={for_script({'synonyms': SYNONYMS, 'entries': listed})};\n"

    @property
    def _layers(self) -> dict[str, dict[str, list[TableView]]]:
        """Return the tables of each layer, those without rows apart."""
        found: dict[str, dict[str, list[TableView]]] = {layer: {"filled": [], "empty": []} for layer in LAYERS}
        for one in self.tables.values():
            found[one.layer]["empty" if one.facts and one.facts.rows == 0 else "filled"].append(one)
        return {layer: tables for layer, tables in found.items() if any(tables.values())}

    @property
    def _groups(self) -> dict[str, list[Page]]:
        """Return pages by group; those in no folder first."""
        named = {"": "Use and terms"} | GROUPS
        named |= {page.group: page.group for page in self.pages if page.group not in named}
        found = {title: [one for one in self.pages if one.group == group] for group, title in named.items()}
        return {title: pages for title, pages in found.items() if pages}

    @property
    def checked(self) -> dict[str, int]:
        """Return the number of checks by status."""
        return Counter(check.status for table in self.tables.values() for check in table.checks)

    @property
    def warned(self) -> list[tuple[TableView, Any]]:
        """Return the checks that did not pass, each with its table."""
        return [
            (table, check)
            for table in self.tables.values()
            for check in table.checks
            if check.status not in ("", "passed")
        ]

    def place(self, card: Card) -> list[tuple[str, str]]:
        """Return the links of a card: the switch or server that it names, and a query."""
        first = card.first
        names = [*first.where.split(), *first.sentence.replace(":", " ").split()]
        node = next(((name, path) for name in names if (path := self.fabric.path(first.cluster, name))), None)
        _, _, query = first.look_further.partition(" -q ")
        name = query.partition(" ")[0]
        more = [(f"query {name}", f"queries.html#{name}")] if name in self.queries else []
        return [*([node] if node else []), *more]

    def _read_tables(self, query: Query) -> list[str]:
        return sorted(name for name in tables_of(query.sql) if name in self.tables)

    def _beside(self, name: str) -> dict[str, object]:
        """Return further links of a table: queries and figures that read it, pages that mention it."""
        model = self.tables[name].model
        sources = model.sources if model else ""
        return {
            "queries": [query.name for query, _ in self.queries.values() if name in tables_of(query.sql)],
            "figures": [one for one, query in self.figures.items() if name in tables_of(query.sql)],
            "formats": [one for one in self.formats if name in dict(one.tables)],
            "mentions": [
                page
                for page in self.pages
                if page.group != "adr" and (page.source in sources or f"{name}.html" in page.html)
            ],
        }


def _layer(name: str) -> str:
    return name.partition(".")[0]


def _pages(project: Project, tables: Mapping[str, TableView], queries: Mapping[str, object]) -> list[Page]:
    """Render docs/, with links to the pages of tables, columns, models and queries."""
    known = {"sql/queries": "queries.html", "models": "index.html"}
    for name, table in tables.items():
        known[name] = table_path(name)
        known |= {f"{name}.{column.name}": f"{table_path(name)}#{column.name}" for column in table.columns}
    known |= {model.shown_path: table_path(name) for name, model in project.models.items()}
    known |= {f"sql/queries/{name}.sql": f"queries.html#{name}" for name in queries}
    found = sources(project.doc_folders)
    known |= {source: page_path(source) for source in found}
    return [render(source, path.read_text(encoding="utf-8"), known) for source, path in found.items()]
