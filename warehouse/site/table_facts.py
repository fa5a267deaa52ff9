"""Facts of published tables: rows, checks, and lowest, highest and missing values per column."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warehouse.base.sql_text import identifier, qualified
from warehouse.engine.duckdb_errors import sentence
from warehouse.formats.base import is_raw
from warehouse.reader.findings import is_synthetic
from warehouse.reader.guard import check_read_only
from warehouse.reader.result import open_result, text_of, unit_of
from warehouse.reader.table_info import Relation, describe, list_tables
from warehouse.runner.reporter import Bar, with_progress
from warehouse.site.people_rows import NO_ROWS, Rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

MOST_ROWS = 1_000_000
"""Most rows of a table whose views are read for values: an hour of all switches has more."""
EXAMPLES = 3
"""Number of example rows."""
_OF_THIS_MACHINE = ("path", "read_path", "filename")
"""Columns of `raw` with local paths, which a shared site must not show."""


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
    examples: Rows = NO_ROWS

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
    from warehouse.base.startup import duckdb

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
