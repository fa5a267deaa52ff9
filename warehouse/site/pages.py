"""The pages of the site, from what is known to HTML.

Text of data and models is escaped by Jinja, in scripts by `for_script`. Scripts and styles are files of the site,
so that they work from disk, and a content security policy forbids all others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warehouse.formats import known_formats
from warehouse.ingest.schemas import abouts, source_columns
from warehouse.lineage.column_lineage import load
from warehouse.lineage.lineage_text import read_from
from warehouse.reader.named_queries import Query, load_queries
from warehouse.reader.table_info import size
from warehouse.site.column_origins import Origins, as_graph, origins_of
from warehouse.site.prose import GROUPS, Page, page_path, render, sources
from warehouse.site.query_answers import Answer, answer, tables_of
from warehouse.site.search_index import entries
from warehouse.site.table_facts import Build, Facts, build_of, facts_of
from warehouse.site.table_pages import LAYERS, TableView, table_path, view

if TYPE_CHECKING:
    import duckdb
    import jinja2

    from warehouse.project.contract import Column
    from warehouse.project.project import Project

SCRIPTS = ("site.js", "graph.js")
STYLE = "site.css"


@dataclass(frozen=True)
class Site:
    """All that the pages show."""

    build: Build | None
    tables: Mapping[str, TableView]
    queries: Mapping[str, tuple[Query, Answer | None]]
    pages: Sequence[Page]
    origins: Origins
    unknown: tuple[str, ...] = ()
    """Tables of the build that the project does not have."""

    @staticmethod
    def of(project: Project, target: Path, connection: duckdb.DuckDBPyConnection | None) -> Site:
        """Ask the models, and the warehouse where one is open."""
        columns: dict[str, Sequence[Column]] = {name: one.columns for name, one in project.models.items()}
        columns |= {name: one.columns for name, one in project.references.items()} | source_columns(known_formats())
        said = {name: one.about for name, one in (project.models | project.references).items()}
        said |= abouts(known_formats())
        columns = {name: columns[name] for name in sorted(columns, key=lambda one: (LAYERS.index(_layer(one)), one))}
        origins = origins_of(load(project, target), {name: [c.name for c in some] for name, some in columns.items()})
        facts: Mapping[str, Facts] = facts_of(connection) if connection else {}
        froms = read_from(project)
        tables = {
            name: view(project, name, said[name], some, origins, facts.get(name), read_from=froms.get(name, ""))
            for name, some in columns.items()
        }
        queries = {
            name: (one, answer(connection, one) if connection else None)
            for name, one in load_queries(project.query_folders).items()
        }
        known = _places(project, tables, queries)
        found = sources(project.doc_folders)
        known |= {source: page_path(source) for source in found}
        pages = [render(source, path.read_text(encoding="utf-8"), known) for source, path in found.items()]
        build = build_of(connection) if connection else None
        return Site(build, tables, queries, pages, origins, tuple(name for name in facts if name not in tables))

    def files(self) -> Iterator[tuple[str, str]]:
        """The files of the site: place and text."""
        for name in (*SCRIPTS, STYLE):
            yield f"assets/{name}", _text(name)
        found = [list(one) for one in entries(self.tables.values(), self._queries, self.pages)]
        yield "assets/search.js", f"window.SEARCH={for_script(found)};\n"
        names = {name: [column.name for column in table.columns] for name, table in self.tables.items()}
        graph = as_graph(self.origins, names, {name: table.about for name, table in self.tables.items()})
        yield "assets/lineage.js", f"window.LINEAGE={for_script(graph)};\n"
        yield "index.html", self._page("index.html.j2", "", layers=self._layers, groups=self._groups)
        yield "lineage.html", self._page("lineage.html.j2", "")
        yield "queries.html", self._page("queries.html.j2", "", queries=self.queries, tables_of=self._read_tables)
        for name, table in self.tables.items():
            yield table_path(name), self._page("table.html.j2", "../", table=table, **self._beside(name))
        for page in self.pages:
            yield page.path, self._page("prose.html.j2", "../" * page.path.count("/"), page=page, groups=self._groups)

    def _page(self, template: str, root: str, **values: object) -> str:
        made = self._environment.get_template(template).render(site=self, root=root, **values)
        return made.rstrip() + "\n"

    @cached_property
    def _environment(self) -> jinja2.Environment:
        import jinja2

        found = jinja2.Environment(
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
            loader=jinja2.FunctionLoader(lambda name: _text(f"templates/{name}")),
        )
        found.filters["short"] = _short
        found.filters["number"] = lambda count: f"{count:,}"
        found.filters["size"] = _size
        return found

    @property
    def _queries(self) -> list[Query]:
        return [query for query, _ in self.queries.values()]

    @property
    def _layers(self) -> dict[str, list[TableView]]:
        found = {layer: [one for one in self.tables.values() if one.layer == layer] for layer in LAYERS}
        return {layer: tables for layer, tables in found.items() if tables}

    @property
    def _groups(self) -> dict[str, list[Page]]:
        """Pages by what they are called together; those in no folder first."""
        named = {"": "Use and terms"} | GROUPS
        named |= {page.group: page.group for page in self.pages if page.group not in named}
        found = {said: [one for one in self.pages if one.group == group] for group, said in named.items()}
        return {said: pages for said, pages in found.items() if pages}

    @property
    def checked(self) -> dict[str, int]:
        """How many checks passed, warned and failed."""
        found: dict[str, int] = {}
        for table in self.tables.values():
            for check in table.checks:
                found[check.status] = found.get(check.status, 0) + 1
        return found

    @property
    def warned(self) -> list[tuple[TableView, Any]]:
        """The checks that did not pass, each with its table."""
        return [
            (table, check)
            for table in self.tables.values()
            for check in table.checks
            if check.status not in ("", "passed")
        ]

    def _read_tables(self, query: Query) -> list[str]:
        return sorted(name for name in tables_of(query.sql) if name in self.tables)

    def _beside(self, name: str) -> dict[str, object]:
        """What else is about a table: queries that read it, pages that name it."""
        model = self.tables[name].model
        sources = model.sources if model else ""
        return {
            "queries": [query.name for query in self._queries if name in tables_of(query.sql)],
            "mentions": [
                page
                for page in self.pages
                if page.group != "adr" and (page.source in sources or f"{name}.html" in page.html)
            ],
        }


def _layer(name: str) -> str:
    return name.partition(".")[0]


def _places(project: Project, tables: Mapping[str, TableView], queries: Mapping[str, object]) -> dict[str, str]:
    """Where tables, columns, models and queries stand in the site."""
    found = {"docs/queries.md": "queries.html", "sql/queries": "queries.html", "models": "index.html"}
    for name, table in tables.items():
        found[name] = table_path(name)
        found |= {f"{name}.{column.name}": f"{table_path(name)}#{column.name}" for column in table.columns}
    found |= {model.shown_path: table_path(name) for name, model in project.models.items()}
    return found | {f"sql/queries/{name}.sql": f"queries.html#{name}" for name in queries}


def for_script(value: object) -> str:
    """JSON that can stand in a script, also in one of a page."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _size(count: int | None) -> str:
    return size(count)


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
