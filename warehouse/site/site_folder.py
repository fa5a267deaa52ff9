"""The site: static HTML pages on tables, columns, lineage, queries and formats; needs no server.

`facts` reads a published warehouse and the models; `prose` renders docs/. Jinja escapes text of data and models, and
`_for_script` escapes it in scripts. Scripts and styles are files of the site, so pages work from disk. A content
security policy forbids all other sources.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from warehouse.base.startup import duckdb
from warehouse.base.text import size
from warehouse.ingest.reading import abouts, source_columns
from warehouse.lineage.column_lineage import Columns, read_from
from warehouse.project.contract import Column
from warehouse.project.project import Project
from warehouse.publish.export import replaced, sha256, write_json
from warehouse.reader.connection import connect, interruptible, refuse_damage
from warehouse.reader.finding import SYNONYMS, by_question
from warehouse.reader.findings import Card, build_of, cards_of, is_synthetic
from warehouse.reader.named_queries import Query, load_queries, tables_of
from warehouse.reader.query_errors import START
from warehouse.runner.reporter import Bar, with_progress
from warehouse.site.facts import (
    FABRIC_PAGE,
    LAYERS,
    TableView,
    anchor,
    answer,
    as_graph,
    ask,
    fabric_of,
    facts_of,
    format_views,
    origins_of,
    table_path,
    view,
)
from warehouse.site.prose import GROUPS, Page, inline_code, page_path, render, sources, without_marks
from warehouse.store.manifest import MANIFEST, PUBLISHED, SITE

ASSETS = ("site.js", "graph.js", "site.css")


class Made(NamedTuple):
    """Result of writing the site."""

    pages: int
    bytes: int
    build: str | None
    unknown: tuple[str, ...]
    """Tables of the build without a model in the project, which get no page."""


def write_docs(
    directory: Path,
    project: Project,
    target: Path,
    *,
    memory: str | None = None,
    threads: int | None = None,
    bar: Bar | None = None,
) -> Made:
    """Write the site of a project.

    Parameters
    ----------
    directory
        A new or empty folder, or an earlier site, which is replaced completely.
    project
        The project with the models, queries and pages.
    target
        The folder of the warehouse that says rows, values, results of checks and answers; the site goes without
        them where nothing is published in it.
    memory, threads
        Limits of the engine.
    bar
        The progress bar, if any.

    Raises
    ------
    QueryError
        When the directory holds other files, or the warehouse cannot be read.
    ModelError
        When a model or a named query is wrong.
    """
    with replaced(directory, target, SITE) as temporary_path:
        # Not only if it can be opened: a damaged warehouse is an error, a missing one is none.
        if (target / PUBLISHED).exists():
            with connect(target, memory=memory, threads=threads) as connection:
                refuse_damage(target)
                site = interruptible(connection, lambda: Site(project, connection, bar))
        else:
            site = Site(project, None)
        files = dict(site.files())
        for path in with_progress(list(files), bar):
            place = temporary_path / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(files[path](), encoding="utf-8", newline="\n")
        paths = sorted(path for path in temporary_path.rglob("*") if path.is_file())
        build = site.build["id"] if site.build else None
        written = [{"path": path.relative_to(temporary_path).as_posix(), "sha256": sha256(path)} for path in paths]
        write_json(temporary_path / MANIFEST, {"kind": SITE, "build": build, "files": written})
        pages = sum(path.suffix == ".html" for path in paths)
        total = sum(path.stat().st_size for path in paths)
    return Made(pages, total, build, site.unknown)


class Site:
    """All facts that the pages show."""

    def __init__(self, project: Project, connection: duckdb.DuckDBPyConnection | None, bar: Bar | None = None) -> None:
        """Read the models, and the warehouse if one is open."""
        columns: dict[str, Sequence[Column]] = {name: one.columns for name, one in project.models.items()}
        columns |= {name: one.columns for name, one in project.references.items()} | source_columns(project.formats)
        descriptions = {name: one.about for name, one in (project.models | project.references).items()}
        descriptions |= abouts(project.formats)
        columns = {
            name: columns[name] for name in sorted(columns, key=lambda one: (LAYERS.index(one.partition(".")[0]), one))
        }
        self.origins = origins_of(Columns(project), {name: [c.name for c in some] for name, some in columns.items()})
        self.build = build_of(connection) if connection else None
        self.synthetic = connection is not None and is_synthetic(connection)
        facts = facts_of(connection, bar) if connection else {}
        froms = read_from(project)
        self.tables = {
            name: view(project, name, descriptions[name], some, facts.get(name), froms.get(name, ""))
            for name, some in columns.items()
        }
        self.unknown = tuple(name for name in facts if name not in self.tables and not name.startswith(START))
        """Tables of the build without a model in the project."""
        self.queries = {
            name: (one, answer(connection, one) if connection else None)
            for name, one in load_queries(project.query_folders).items()
        }
        self.figures = load_queries(project.report_folders)
        """Queries of the report, by figure."""
        own = load_queries([folder / "sql" / "site" for folder in project.with_shipped])
        self.loaded, self.rejected = (ask(connection, own[name]) for name in ("formats", "set-aside"))
        """Files of each format; files and lines that were not read, with the reason."""
        self.fabric = fabric_of(connection, own)
        self.observed = [row[0] or "" for row in ask(connection, self.figures["observed"]).rows]
        """What the loaded files observed, in a few lines."""
        self.cards = cards_of(connection) if connection else None
        """Findings by kind; None if the build has no findings table."""
        self.pages = _pages(project, self.tables, self.queries)
        self.formats = format_views(project, self.origins, self.pages)

    def files(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """Yield the files of the site: path, and a function that returns the text."""
        fill = _renderer(self)
        for name in ASSETS:
            yield f"assets/{name}", partial(_asset, name)
        yield "assets/search.js", self._search_index
        yield "assets/lineage.js", self._lineage
        yield "index.html", partial(fill, "index.html.j2", "", layers=self._layers, groups=self._groups)
        yield "lineage.html", partial(fill, "lineage.html.j2", "")
        questions = by_question({name: query for name, (query, _) in self.queries.items()})
        yield "queries.html", partial(fill, "queries.html.j2", "", questions=questions, tables_of=self._read_tables)
        yield "formats.html", partial(fill, "formats.html.j2", "")
        for name, table in self.tables.items():
            yield table_path(name), partial(fill, "table.html.j2", "../", table=table, **self._beside(name))
        if self.fabric.switches:
            nodes = {"leaf", "switch", "spine", "server"}
            asked = [query for some in questions.values() for query in some if nodes & query.parameters.keys()]
            yield FABRIC_PAGE, partial(fill, "fabric.html.j2", "", queries=asked, anchor=anchor)
        for page in self.pages:
            root = "../" * page.path.count("/")
            formats = [one for one in self.formats if page in one.pages]
            yield page.path, partial(fill, "prose.html.j2", root, page=page, groups=self._groups, formats=formats)

    def _lineage(self) -> str:
        names = {name: [column.name for column in table.columns] for name, table in self.tables.items()}
        graph = as_graph(self.origins, names, {name: without_marks(table.about) for name, table in self.tables.items()})
        return f"window.LINEAGE={_for_script(graph)};\n"

    def _search_index(self) -> str:
        listed = [[without_marks(text) for text in one] for one in self._entries()]
        return f"window.SEARCH={_for_script({'synonyms': SYNONYMS, 'entries': listed})};\n"

    def _entries(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield all search results, tables first: kind, title, text, and place in the site."""
        columns = set[str]()
        for table in self.tables.values():
            place = table_path(table.name)
            yield "table", table.name, table.about, place
            for column in table.columns:
                text = f"{column.about} {column.unit or ''} {column.type}"
                columns.add(column.name)
                yield "column", f"{table.name}.{column.name}", text, f"{place}#{column.name}"
        for query, _ in self.queries.values():
            yield "query", query.name, query.about, f"queries.html#{query.name}"
        for page in self.pages:
            for section in page.sections:
                if section.place.startswith("word-"):
                    if section.title not in columns:  # a metric of the glossary is found as its column
                        yield "word", section.title, section.text, f"{page.path}#{section.place}"
                    continue
                title = section.title if section.title == page.title else f"{page.title}: {section.title}"
                yield "page", title, " ".join(section.text.split()), f"{page.path}#{section.place}"
        for cluster, name, role in self.fabric.nodes():
            kind = "server" if role == "server" else "switch"
            yield kind, name, f"{role.replace('_', ' ')} of {cluster}", f"{FABRIC_PAGE}#{anchor(cluster, name)}"
        for one in self.formats:
            yield "format", one.name, " ".join(about for _, about in one.tables), one.path

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


def _pages(project: Project, tables: Mapping[str, TableView], queries: Mapping[str, object]) -> list[Page]:
    """Render docs/, with links to the pages of tables, columns, models and queries."""
    known = {"sql/queries": "queries.html", "models": "index.html"}
    for name, table in tables.items():
        known[name] = table_path(name)
        known |= {f"{name}.{column.name}": f"{table_path(name)}#{column.name}" for column in table.columns}
    known |= {model.shown_path: table_path(name) for name, model in project.models.items()}
    known |= {f"sql/queries/{name}.sql": f"queries.html#{name}" for name in queries}
    found = sources([folder / "docs" for folder in project.folders])
    known |= {source: page_path(source) for source in found}
    return [render(source, path.read_text(encoding="utf-8"), known) for source, path in found.items()]


def _renderer(site: object) -> Callable[..., str]:
    """Return a function that renders a template of the site: `render("table.html.j2", root="../", table=...)`."""
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        # So that a misspelled name in a template is an error and no empty text.
        undefined=jinja2.StrictUndefined,
        loader=jinja2.PackageLoader(__package__),
    )
    environment.filters.update(number="{:,}".format, size=size, code=inline_code, from_json=json.loads)
    environment.globals |= {"site": site}

    def render(template: str, root: str, **values: Any) -> str:
        return environment.get_template(template).render(root=root, **values).rstrip() + "\n"

    return render


def _asset(name: str) -> str:
    """Return the text of a script, style or template of the package."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _for_script(value: object) -> str:
    """Return JSON that is safe inside a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # `</script>` in a text would end the element, and old JavaScript takes these separators for line ends.
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
