"""Facts that the pages show: of a published warehouse, and of the models with their lineage and raw formats."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, islice
from typing import NamedTuple

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer, SqlLexer

from warehouse.base.errors import QueryError
from warehouse.base.sql_text import identifier, qualified
from warehouse.base.startup import duckdb
from warehouse.base.text import grouped
from warehouse.engine.duckdb_errors import sentence
from warehouse.formats.base import is_raw
from warehouse.lineage.column_lineage import Columns
from warehouse.lineage.select_steps import KINDS, ROWS, Node, Step
from warehouse.project import contract
from warehouse.project.model import Model
from warehouse.project.project import Project
from warehouse.reader.guard import check_read_only
from warehouse.reader.named_queries import Query, bind, tables_of
from warehouse.reader.result import Column, Row, open_result, unit_of
from warehouse.reader.table_info import Check, Relation, describe, list_tables
from warehouse.reader.text_table import for_reading, readable
from warehouse.runner.reporter import Bar, with_progress
from warehouse.site.prose import Page

SHOWN = 10
"""Most rows shown."""
_COLUMNS = {"leaf": "switch"}
"""Column of the values of a parameter that has another name."""
MOST_ROWS = 1_000_000
"""Most rows of a table whose views are read for values: an hour of all switches has more."""
EXAMPLES = 3
"""Number of example rows."""
_OF_THIS_MACHINE = ("path", "read_path", "filename")
"""Columns of `raw` with local paths, which a shared site must not show."""
FABRIC_PAGE = "fabric.html"
LAYERS = ("metrics", "topology", "staging", "reference", "raw")
"""Layers, most useful first."""
_NUMBERS = ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "HUGEINT", "DOUBLE", "FLOAT")


TextRow = Mapping[str, str | None]
"""A row by column, as readable text."""


class Rows(NamedTuple):
    """Columns with their units, and rows with readable numbers."""

    columns: Sequence[Column] = ()
    rows: Sequence[Row] = ()

    def by_name(self) -> list[TextRow]:
        """Return the rows by column."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, (text and text.strip() for text in row), strict=True)) for row in self.rows]


def run(
    connection: duckdb.DuckDBPyConnection, query: Query, given: Mapping[str, str], most: int | None = None
) -> tuple[Rows, bool]:
    """Return the first `most` rows of a query with these values of its parameters, and True if it has more."""
    [statement] = check_read_only(connection, query.sql.strip())
    result = open_result(connection, statement, bind(query, given))
    rows = list(islice(result.rows, most))
    return Rows(*for_reading(result.columns, result.units(), rows)), next(result.rows, None) is not None


def ask(connection: duckdb.DuckDBPyConnection | None, query: Query) -> Rows:
    """Return the rows of a site query; empty without a build, or if it lacks a table or column of the query."""
    if connection is None:
        return Rows()
    try:
        return run(connection, query, {})[0]
    except (duckdb.CatalogException, duckdb.BinderException):  # a project without the shipped models, or with its own
        return Rows()


@dataclass(frozen=True)
class Answer:
    """Result of a query."""

    command: str
    found: Rows
    has_more: bool = False
    """True if rows are left out."""
    problem: str = ""
    """Reason why there is no answer."""


def answer(connection: duckdb.DuckDBPyConnection, query: Query) -> Answer:
    """Run a query; each parameter gets the first value that its tables have of that name."""
    given: Mapping[str, str] = {}
    command = f"warehouse sql -q {query.name}"
    try:
        given = {one.name: _example(connection, query, one.name) for one in query.parameters.values() if one.required}
        command += "".join(f" --{name.replace('_', '-')} {shlex.quote(text)}" for name, text in given.items())
        return Answer(command, *run(connection, query, given, SHOWN))
    except duckdb.InterruptException:
        raise
    except (QueryError, duckdb.Error) as error:
        return Answer(command, Rows(), problem=str(error).splitlines()[0])


def _example(connection: duckdb.DuckDBPyConnection, query: Query, name: str) -> str:
    """Return a value for a parameter: the first of its column in a table of the query."""
    found = connection.execute(
        "SELECT model, column_name FROM meta.columns WHERE column_name IN ($1, $2) AND list_contains($3, model) "
        "ORDER BY column_name <> $1, model",
        [name, _COLUMNS.get(name, name), sorted(tables_of(query.sql))],
    ).fetchall()
    for model, column in found:
        of = identifier(column)
        row = connection.execute(
            f"SELECT CAST({of} AS VARCHAR) AS value FROM {qualified(model)} WHERE {of} IS NOT NULL "
            # The shortest first, so that GPU-2 comes before GPU-10.
            "ORDER BY length(value), value LIMIT 1"
        ).fetchone()
        if row:
            return str(row[0])
    raise QueryError(f"it needs a value for {name}, and no loaded table has one")


@dataclass(frozen=True)
class Values:
    """Values of a column, as text."""

    lowest: str | None
    highest: str | None
    missing: int
    """Number of NULL rows."""
    rows: int

    def ends(self, column: contract.Column) -> list[str]:
        """Return the lowest and highest value as readable text; the contract of the column has its unit."""
        ends = [self.lowest, self.highest]
        if column.type in _NUMBERS:
            unit = unit_of(column.name, column.type, column.unit)
            ends = readable(ends, unit, exact=column.type not in ("DOUBLE", "FLOAT"))
        return [(end or "").strip() for end in ends]


@dataclass(frozen=True)
class Facts:
    """Facts of a published table."""

    relation: Relation
    values: Mapping[str, Values] = field(default_factory=dict)
    unread: str = ""
    """Reason why the values are unknown."""
    examples: Rows = field(default_factory=Rows)

    @property
    def rows(self) -> int | None:
        """Number of rows, also of views."""
        counted = next((one.rows for one in self.values.values()), None)
        return counted if self.relation.rows is None else self.relation.rows


def facts_of(connection: duckdb.DuckDBPyConnection, bar: Bar | None = None) -> dict[str, Facts]:
    """Return the facts of each table of the build; values of raw files and of views over large tables are not read."""
    tables = list_tables(connection)
    large = {table.name for table in tables if (table.rows or 0) > MOST_ROWS}
    views = dict(connection.execute("SELECT model, reads FROM meta.models WHERE kind = 'view'").fetchall())

    def is_over_large(name: str) -> bool:
        return any(read in large or is_over_large(read) for read in views.get(name) or ())

    return {
        table.name: _facts(connection, describe(connection, table.name), is_large=is_over_large(table.name))
        for table in with_progress(tables, bar)
    }


def _facts(connection: duckdb.DuckDBPyConnection, relation: Relation, *, is_large: bool) -> Facts:
    name = relation.name
    shown = [one for one in relation.columns if not (is_raw(name) and one.name in _OF_THIS_MACHINE)]
    # Parts are stored in the order of the grain, and reading a few rows of them is cheaper than a sort.
    order = f"ORDER BY {', '.join(map(identifier, relation.grain))}" if relation.kind == "view" else ""
    listed = ", ".join(identifier(one.name) for one in shown)
    try:
        if is_large:
            why = f'it is a view over more than {MOST_ROWS:,} rows: warehouse sql "SUMMARIZE {name}"'
            return Facts(relation, unread=why)
        values = {} if relation.kind == "raw" else _values(connection, name, shown)
        sql = f"SELECT {listed} FROM {qualified(name)} {order} LIMIT {EXAMPLES:d}"
        result = open_result(connection, check_read_only(connection, sql)[0])
        units = [unit_of(one.name, one.type, one.unit) for one in shown]
        return Facts(relation, values, examples=Rows(*for_reading(result.columns, units, list(result.rows))))
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:  # moved raw files behind a view
        return Facts(relation, unread=sentence(error))


def _values(connection: duckdb.DuckDBPyConnection, table: str, columns: Sequence[contract.Column]) -> dict[str, Values]:
    """Return the values of the columns of a table."""
    asked = ["count(*)"]
    for of in (identifier(one.name) for one in columns):
        asked += [f"min({of})", f"max({of})", f"count({of})"]
    [statement] = check_read_only(connection, f"SELECT {', '.join(asked)} FROM {qualified(table)}")
    [(rows, *row)] = open_result(connection, statement).rows
    return {
        one.name: Values(low, high, int(rows or 0) - int(count or 0), int(rows or 0))
        for one, low, high, count in zip(columns, row[::3], row[1::3], row[2::3], strict=True)
    }


def anchor(cluster: str, name: str) -> str:
    """Return the anchor of a switch or server on its page: without spaces, and unlike those of other clusters."""
    return re.sub(r"\s+", "-", f"{cluster}/{name}")


class Fabric(NamedTuple):
    """All switches and servers of the build."""

    switches: Sequence[TextRow]
    servers: Sequence[TextRow]
    groups: Sequence[TextRow]
    """Servers with correlated traffic."""
    suspicions: Mapping[tuple[str, str], Sequence[TextRow]]
    """What to look at, each with the place that says more, by cluster and name."""

    def nodes(self) -> Iterator[tuple[str, str, str]]:
        """Yield the cluster, name and role of each switch and server."""
        for row in (*self.switches, *self.servers):
            yield row["cluster"] or "", row["name"] or "", row["role"] or ""

    def path(self, cluster: str, name: str) -> str | None:
        """Return the place of a switch or server; None if the page does not list it."""
        known = any((cluster, name) == (of, one) for of, one, _ in self.nodes())
        return f"{FABRIC_PAGE}#{anchor(cluster, name)}" if known else None


def fabric_of(connection: duckdb.DuckDBPyConnection | None, queries: Mapping[str, Query]) -> Fabric:
    """Return the switches and servers of the warehouse; empty if the build has none."""
    asked = ("switches", "servers", "suspects", "traffic-groups")
    switches, servers, suspects, groups = (ask(connection, queries[name]).by_name() for name in asked)
    suspicions = grouped(((row["cluster"] or "", row["name"] or ""), row) for row in suspects)
    return Fabric(switches, servers, groups, suspicions)


@dataclass(frozen=True)
class Origins:
    """Lineage of all relations and columns."""

    reads: Mapping[str, Sequence[str]]
    read_by: Mapping[str, Sequence[str]]
    made_of: Mapping[Node, Sequence[Node]]
    """Columns of other relations that a column derives from; `*` stands for rows."""
    used_by: Mapping[Node, Sequence[Node]]
    kinds: Mapping[Node, str]
    """Kind of each column: copied, computed, aggregated or literal; the most complex step counts."""
    clauses: Mapping[str, Sequence[Step]]
    """Clauses that decide the rows of a model."""
    decides: Mapping[Node, Sequence[str]]
    """Models whose rows a column decides."""


def origins_of(columns: Columns, tables: Mapping[str, Sequence[str]]) -> Origins:
    """Return the lineage of columns in both directions.

    Parameters
    ----------
    columns
        From `warehouse.lineage.column_lineage`.
    tables
        All relations with their columns.
    """
    reads = {name: columns.reads(name) for name in tables}
    clauses = {name: columns.clauses(name) for name in tables if columns.blocks(name)}
    made_of = {Node(name, "", one): columns.made_of(name, one) for name in clauses for one in tables[name]}
    return Origins(
        reads,
        grouped((read, name) for name, several in reads.items() for read in several),
        made_of,
        grouped((given, node) for node, several in made_of.items() for given in several),
        {node: columns.kind(node.relation, node.column) for node in made_of},
        clauses,
        grouped(
            (given, name)
            for name, some in clauses.items()
            for given in dict.fromkeys(one for clause in some for one in clause.inputs)
        ),
    )


def as_graph(origins: Origins, tables: Mapping[str, Sequence[str]], abouts: Mapping[str, str]) -> dict[str, object]:
    """Return the lineage as indexes, for the page that draws the graph.

    `tables` are [name, meaning, columns]; a column is a pair of numbers, of its table and of itself in that, -1
    for the rows; `made` has for each table and column [kind, pairs], `rows` for each table [how, place, pairs].
    """
    names = {name: at for at, name in enumerate(tables)}
    places = {Node(name, "", column): at for name, columns in tables.items() for at, column in enumerate(columns)}

    def pairs(nodes: Sequence[Node]) -> list[list[int]]:
        return [[names[node.relation], -1 if node.column == ROWS else places[node]] for node in nodes]

    return {
        "tables": [[name, abouts.get(name, ""), list(columns)] for name, columns in tables.items()],
        "reads": [[names[read] for read in origins.reads[name]] for name in tables],
        "made": [
            [
                [KINDS.index(origins.kinds.get(node, KINDS[0])), pairs(origins.made_of.get(node, ()))]
                for node in (Node(name, "", column) for column in columns)
            ]
            for name, columns in tables.items()
        ],
        "rows": [
            [[one.kind, one.place, pairs(one.inputs)] for one in origins.clauses.get(name, ())] for name in tables
        ],
    }


@dataclass(frozen=True)
class TableView:
    """A table: its contract, its facts in the build, and its file."""

    name: str
    about: str
    columns: Sequence[contract.Column]
    model: Model | None
    facts: Facts | None
    sums: Mapping[str, str]
    """How to sum each column that is a measure."""
    as_run: str
    """The SELECT with macros expanded, if it has any."""
    read_from: str

    @property
    def layer(self) -> str:
        """Layer of the table."""
        return self.name.partition(".")[0]

    @property
    def code(self) -> list[tuple[int, Markup]]:
        """Return the lines of the model below its contract as HTML, with their numbers in the file."""
        if self.model is None:
            return []
        # By default a lexer drops empty lines at the start, and the numbers would no longer be those of the file.
        lexer = PythonLexer(stripnl=False) if self.model.is_python else SqlLexer(stripnl=False)
        lines = Markup(highlight(self.model.sql.rstrip(), lexer, HtmlFormatter(nowrap=True))).split("\n")  # noqa: S704 - it is escaped
        return list(dropwhile(lambda one: not one[1], enumerate(lines, 1)))

    @property
    def checks(self) -> Sequence[Check]:
        """Return the checks with their results; without a build, the declared checks."""
        if self.facts is not None and self.facts.relation.checks:
            return self.facts.relation.checks
        declared = self.model.checks if self.model else ()
        return [Check(one.text, "warn" if one.warn else "error", "", 0) for one in declared]


def table_path(name: str) -> str:
    """Return the path of a table's page in the site."""
    return f"tables/{name}.html"


def view(
    project: Project, name: str, about: str, columns: Sequence[contract.Column], facts: Facts | None, read_from: str
) -> TableView:
    """Collect the facts of a table."""
    model = project.models.get(name)
    rendered = project.render(model) if model else ""
    as_run = rendered.strip() if model and rendered != model.sql else ""
    sums = {one.column: str(one) for one in model.semantics.measures} if model else {}
    return TableView(name, about, columns, model, facts, sums, as_run, read_from)


class FormatView(NamedTuple):
    """A format: its name, the relations of `raw` that it fills, each with its description, and the pages about it."""

    name: str
    tables: Sequence[tuple[str, str]]
    pages: Sequence[Page]

    @property
    def path(self) -> str:
        """Place in the site."""
        return f"formats.html#{self.name}"


def format_views(project: Project, origins: Origins, pages: Sequence[Page]) -> list[FormatView]:
    """Return the facts on each format, in the order of the formats' list."""
    of_formats = [page for page in pages if page.group == "formats"]
    found = []
    for one in project.formats:
        tables = [(relation.full_name, relation.about) for relation in one.relations]
        readers = {model for name, _ in tables for model in origins.read_by.get(name, ()) if model in project.models}
        sources = {project.models[model].sources for model in readers}
        mine = [page for page in of_formats if page.source in sources]
        found.append(FormatView(one.name, tables, mine or [page for page in of_formats if one.name in page.html]))
    return found
