"""Facts of a published warehouse: rows of queries, answers, values of tables, switches and servers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from warehouse.base.errors import QueryError
from warehouse.base.sql_text import identifier, qualified
from warehouse.base.startup import duckdb
from warehouse.base.text import grouped
from warehouse.engine.duckdb_errors import sentence
from warehouse.formats.base import is_raw
from warehouse.reader.findings import is_synthetic
from warehouse.reader.guard import check_read_only
from warehouse.reader.named_queries import Query, bind, tables_of
from warehouse.reader.result import Column, Row, for_people, open_result, text_of, unit_of
from warehouse.reader.table_info import Relation, describe, list_tables
from warehouse.reader.text_table import header_unit, people_values
from warehouse.runner.reporter import Bar, with_progress

TextRow = Mapping[str, str | None]
"""A row by column, as readable text."""
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
QUERIES = ("switches", "servers", "suspects", "traffic-groups")
"""Queries of the site on switches and servers."""
PAGE = "fabric.html"
_PARAMETERS = {"leaf": "leaf", "switch": "leaf", "spine": "spine", "server": "server"}
"""Parameters of queries on one switch or server, and the role of what they name."""


@dataclass(frozen=True)
class Rows:
    """Result of a SELECT as exact text, with its units."""

    columns: Sequence[Column] = ()
    units: Sequence[str | None] = ()
    rows: Sequence[Row] = ()

    def text_rows(self) -> list[TextRow]:
        """Return the rows by column with readable numbers, formatted alike within a column."""
        columns = people_values(self.columns, self.units, self.rows)
        texts = [[None if text is None else text.strip() for text in column] for column in columns]
        names = [column.name for column in self.columns]
        return [dict(zip(names, values, strict=True)) for values in zip(*texts, strict=True)]

    @property
    def heads(self) -> list[tuple[str, str, bool]]:
        """Return the columns: name, header with the unit (if cells lack it), and True for numbers."""
        return [
            (column.name, column.name + header_unit(unit), column.kind == "number")
            for column, unit in zip(self.columns, self.units, strict=True)
        ]


def run(connection: duckdb.DuckDBPyConnection, query: Query, given: Mapping[str, str], most: int | None = None) -> Rows:
    """Return the rows of a query with these values of its parameters, the first `most` of them."""
    [statement] = check_read_only(connection, query.sql.strip())
    result = for_people(open_result(connection, statement, bind(query, given)))
    return Rows(result.columns, result.units or (), list(islice(result.rows, most)))


def ask(connection: duckdb.DuckDBPyConnection | None, query: Query) -> Rows:
    """Return the rows of a site query; empty without a build, or if it lacks a table or column of the query."""
    if connection is None:
        return Rows()
    built = {model for (model,) in connection.execute("SELECT model FROM meta.models").fetchall()}
    if not tables_of(query.sql) <= built:
        return Rows()
    try:
        return run(connection, query, {})
    except duckdb.BinderException:  # a project's own model of that name has other columns
        return Rows()


@dataclass(frozen=True)
class Answer:
    """Result of a query."""

    command: str
    rows: Rows
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
        # One more row tells if rows are left out.
        found = run(connection, query, given, SHOWN + 1)
    except duckdb.InterruptException:
        raise
    except (QueryError, duckdb.Error) as error:
        return Answer(command, Rows(), problem=str(error).splitlines()[0])
    return Answer(command, replace(found, rows=found.rows[:SHOWN]), len(found.rows) > SHOWN)


def _example(connection: duckdb.DuckDBPyConnection, query: Query, name: str) -> str:
    """Return a value for a parameter: the first of its column in a table of the query."""
    found = connection.execute(
        "SELECT model, column_name FROM meta.columns WHERE column_name IN ($1, $2) AND list_contains($3, model) "
        "ORDER BY column_name <> $1, model",
        [name, _COLUMNS.get(name, name), sorted(tables_of(query.sql))],
    ).fetchall()
    for model, column in found:
        of, source = identifier(column), ".".join(map(identifier, str(model).split(".")))
        row = connection.execute(
            f"SELECT CAST({of} AS VARCHAR) AS value FROM {source} WHERE {of} IS NOT NULL "
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


@dataclass(frozen=True)
class Facts:
    """Facts of a published table."""

    relation: Relation
    values: Mapping[str, Values] = field(default_factory=dict)
    unread: str = ""
    """Reason why the values are unknown."""
    examples: Rows = Rows()

    @property
    def rows(self) -> int | None:
        """Number of rows, also of views."""
        counted = next((one.rows for one in self.values.values()), None)
        return counted if self.relation.table.rows is None else self.relation.table.rows


@dataclass(frozen=True)
class Build:
    """The build."""

    id: str
    published: str
    version: str
    engine: str
    synthetic: bool = False
    """True if the data is the synthetic sample."""


def build_of(connection: duckdb.DuckDBPyConnection) -> Build:
    """Return the facts of the open build."""
    row = connection.execute("SELECT build_id, published_utc, version, engine FROM meta.build").fetchall()[0]
    build_id, published, version, engine = map(str, row)
    return Build(build_id, published, version, engine, is_synthetic(connection))


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
    name = relation.table.name
    try:
        if is_large:
            why = f'it is a view over more than {MOST_ROWS:,} rows: warehouse sql "SUMMARIZE {name}"'
            return Facts(relation, unread=why)
        if relation.table.kind == "raw":
            return Facts(relation, examples=_first_rows(connection, relation))
        return Facts(relation, _values(connection, relation), examples=_first_rows(connection, relation))
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:  # moved raw files behind a view
        return Facts(relation, unread=sentence(error))


def _first_rows(connection: duckdb.DuckDBPyConnection, relation: Relation) -> Rows:
    """Return the first rows by the grain, in which tables and files are stored."""
    # Parts are stored in the order of the grain, and reading a few rows of them is cheaper than a sort.
    order = f"ORDER BY {', '.join(map(identifier, relation.grain))}" if relation.table.kind == "view" else ""
    [statement] = check_read_only(connection, f"FROM {qualified(relation.table.name)} {order} LIMIT {EXAMPLES:d}")
    result = open_result(connection, statement)
    shown = [at for at, one in enumerate(result.columns) if not _is_of_this_machine(relation, one.name)]
    units = {one.name: unit_of(one.name, one.type, one.unit) for one in relation.columns}
    return Rows(
        [result.columns[at] for at in shown],
        [units.get(result.columns[at].name) for at in shown],
        [tuple(row[at] for at in shown) for row in result.rows],
    )


def _is_of_this_machine(relation: Relation, column: str) -> bool:
    return is_raw(relation.table.name) and column in _OF_THIS_MACHINE


def _values(connection: duckdb.DuckDBPyConnection, relation: Relation) -> dict[str, Values]:
    """Return the values of the columns of a table."""
    source = qualified(relation.table.name)
    columns = [(name, kind) for name, kind, *_ in connection.execute(f"FROM {source} LIMIT 0").description]
    expressions = ["count(*)"]
    for name, kind in columns:
        of = identifier(name)
        expressions += [text_of(f"min({of})", kind), text_of(f"max({of})", kind), f"count({of})"]
    rows, *row = connection.execute(f"SELECT {', '.join(expressions)} FROM {source}").fetchall()[0]
    return {
        name: Values(low, high, rows - count, rows)
        for (name, _), low, high, count in zip(columns, row[::3], row[1::3], row[2::3], strict=True)
        if not _is_of_this_machine(relation, name)
    }


def anchor(cluster: str, name: str) -> str:
    """Return the anchor of a switch or server on the page: without spaces, and unlike those of other clusters."""
    return re.sub(r"\s+", "-", f"{cluster}/{name}")


@dataclass(frozen=True)
class Fabric:
    """All switches and servers of the build, as rows of readable text."""

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
        return f"{PAGE}#{anchor(cluster, name)}" if known else None

    def commands(self, queries: Iterable[Query]) -> Iterator[tuple[Query, str]]:
        """Yield the queries on one switch or server, each with options that name one to look at, else any."""
        for query in queries:
            wanted = next((one for one in _PARAMETERS if one in query.parameters), None)
            named = [(cluster, name) for cluster, name, role in self.nodes() if wanted and role == _PARAMETERS[wanted]]
            if named:
                # An example is worth more on a switch that has something to look at.
                _, name = next((one for one in named if one in self.suspicions), named[0])
                yield query, f"{query.name} --{wanted} {name}"


def fabric_of(connection: duckdb.DuckDBPyConnection | None, queries: Mapping[str, Query]) -> Fabric:
    """Return the switches and servers of the warehouse; empty if the build has none."""
    switches, servers, suspects, groups = (ask(connection, queries[name]).text_rows() for name in QUERIES)
    suspicions = grouped(((row["cluster"] or "", row["name"] or ""), row) for row in suspects)
    return Fabric(switches, servers, groups, suspicions)
