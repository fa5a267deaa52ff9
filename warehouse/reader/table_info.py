"""Tables of a warehouse: listing, description and check results."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TextIO

from warehouse.base import startup
from warehouse.base.errors import QueryError
from warehouse.base.text import for_target, size, wrapped
from warehouse.project.contract import NOTHING_SAID, Column, Measure, Semantics
from warehouse.reader.connection import connect, refuse_damage
from warehouse.reader.query_errors import START, nearest_table
from warehouse.reader.result import Column as Heading

_EMPTY = startup.regex(r"empty: (.+?( in the data folders)?)\. ")
"""Start of the comment of an empty table (`warehouse/runner/catalog.py`): the reason, and if files are missing."""


@dataclass(frozen=True)
class Table:
    """Relation of a warehouse, as `ls` lists it."""

    name: str
    """`metrics.port_hour`"""
    kind: str
    """One of `table`, `partitioned`, `view`, `raw` and `reference`."""
    rows: int | None
    bytes: int | None
    about: str


@dataclass(frozen=True)
class Check:
    """Check of a table and its latest result."""

    check: str
    severity: str
    status: str
    failures: int
    rows: tuple[str, ...] = ()
    """First failing rows, as JSON objects."""
    sentences: tuple[str, ...] = ()
    """First failing rows as sentences, if the check defines one."""


@dataclass(frozen=True)
class Relation(Table):
    """Complete description of one table."""

    grain: tuple[str, ...]
    partition_column: str | None
    file: str | None
    sources: str | None
    columns: tuple[Column, ...]
    checks: tuple[Check, ...]
    semantics: Semantics = NOTHING_SAID
    """Aggregations for its numbers, and dimensions to group by."""
    empty: str | None = None
    """Reason why the table has no rows."""


_TABLE = "model, kind, rows, bytes, coalesce(about, '')"
"""Columns of a `Table`."""
_SHOWN_ROWS = 3
"""Failing rows of a check that are printed."""
# a partitioned table has one result per partition: show the worst
_CHECKS = """
WITH failing AS (
    SELECT check_text, array_agg(failing_row ORDER BY partition, position) AS failing,
        array_agg(sentence ORDER BY partition, position) FILTER (sentence IS NOT NULL) AS sentences
    FROM meta.failures WHERE model = $1 GROUP BY ALL
)

SELECT check_text, severity, arg_max(status, [failures, (status <> 'passed')::BIGINT]), sum(failures)::BIGINT,
    coalesce(any_value(failing), []), coalesce(any_value(sentences), [])
FROM meta.checks LEFT JOIN failing USING (check_text)
WHERE model = $1 GROUP BY check_text, severity ORDER BY min(checks.rowid)
"""


def show(target: Path, name: str) -> Relation:
    """Describe one table, with the reason why it is empty.

    Raises
    ------
    QueryError
        If there is no such table (the message has the nearest name), or its parts are damaged.
    """
    with connect(target) as connection:
        relation = describe(connection, name)
        refuse_damage(target, [relation.name])
        empty = [f"{table} is empty: {reason}" for table, reason in reasons_of(connection, [relation.name]).items()]
        return replace(relation, empty=empty[0] if empty else None)


def reasons_of(connection: startup.duckdb.DuckDBPyConnection, tables: Iterable[str]) -> dict[str, str]:
    """Return why each of these tables is empty, as its comment in the catalog says; a table with rows is left out."""
    comments = dict(
        connection.execute(
            "SELECT schema_name || '.' || table_name, comment FROM duckdb_tables() UNION ALL "
            "SELECT schema_name || '.' || view_name, comment FROM duckdb_views() WHERE NOT internal"
        ).fetchall()
    )
    found = ((table, _EMPTY.match(comments.get(table) or "")) for table in tables)
    return {table: f"{why[1]} (warehouse doctor)" if why[2] else why[1] for table, why in found if why}


def list_tables(connection: startup.duckdb.DuckDBPyConnection) -> list[Table]:
    """List the tables on an open connection by name."""
    return [Table(*row) for row in connection.execute(f"SELECT {_TABLE} FROM meta.models ORDER BY model").fetchall()]


def describe(connection: startup.duckdb.DuckDBPyConnection, name: str) -> Relation:
    """Return the description of one table from the `meta` tables of an open connection."""
    full = _full_name(connection, name)
    [(table, kind, count, size_in_bytes, about, grain, partition_column, file, sources)] = connection.execute(
        f"SELECT {_TABLE}, grain, partition_column, file, sources FROM meta.models WHERE model = $1", [full]
    ).fetchall()
    columns = connection.execute(
        "SELECT column_name, type, unit, about FROM meta.columns WHERE model = $1 ORDER BY position", [full]
    ).fetchall()
    checks = connection.execute(_CHECKS, [full]).fetchall()
    return Relation(
        name=table,
        kind=kind,
        rows=count,
        bytes=size_in_bytes,
        about=about,
        grain=tuple(grain or ()),
        partition_column=partition_column,
        file=file,
        sources=sources,
        columns=tuple(Column(name, kind, unit, about or "") for name, kind, unit, about in columns),
        checks=tuple(
            Check(text, severity, status, failures, tuple(rows), tuple(sentences))
            for text, severity, status, failures, rows, sentences in checks
        ),
        semantics=_semantics(connection, full),
    )


def _semantics(connection: startup.duckdb.DuckDBPyConnection, name: str) -> Semantics:
    measures = connection.execute(
        "SELECT column_name, how, not_over, above, below, display_unit, display_factor FROM meta.measures "
        "WHERE model = $1 ORDER BY rowid",
        [name],
    ).fetchall()
    dimensions = connection.execute(
        "SELECT column_name, is_time FROM meta.dimensions WHERE model = $1 ORDER BY rowid", [name]
    ).fetchall()
    return Semantics(
        next((column for column, is_time in dimensions if is_time), None),
        tuple(column for column, _ in dimensions),
        tuple(Measure(column, how, tuple(but), *rest) for column, how, but, *rest in measures),
    )


def _full_name(connection: startup.duckdb.DuckDBPyConnection, name: str) -> str:
    names = [row[0] for row in connection.execute("SELECT model FROM meta.models ORDER BY model").fetchall()]
    wanted = name.lower()
    if wanted in names:
        return wanted
    short = [full for full in names if full.partition(".")[2] == wanted and not full.startswith(START)]
    if len(short) == 1:
        return str(short[0])
    if short:
        raise QueryError(f"{name} may be {' or '.join(short)}", hint="give the full name")
    raise QueryError(f"no table {name}", hint=nearest_table(wanted, names) or "warehouse ls lists the tables")


def as_json(relation: Relation) -> dict[str, object]:
    """Return a description as `--json` prints it."""
    found = asdict(relation)
    semantics = relation.semantics
    found["columns"] = [column._asdict() for column in relation.columns]
    found["semantics"] = {**semantics._asdict(), "measures": [measure._asdict() for measure in semantics.measures]}
    return found


def print_relation(relation: Relation, stream: TextIO, *, width: int | None = None, target: Path) -> None:
    """Print a description: meaning, columns and checks of a table, and the command for its rows."""
    from warehouse.reader.text_table import escape, print_rows, width_of

    wide = width_of(stream, width)
    counted = "" if relation.rows is None else f", {relation.rows:,} rows"
    stored = "" if relation.bytes is None else f", {size(relation.bytes)}"
    stream.write(f"{relation.name}  {relation.kind}{counted}{stored}\n")
    stream.writelines(wrapped(escape(relation.about), wide))
    for label, text in (
        ("grain", ", ".join(relation.grain)),
        ("one part for each", relation.partition_column),
        ("written in", relation.file),
        ("sources", relation.sources),
        ("time", relation.semantics.time),
        ("group by", ", ".join(relation.semantics.dimensions)),
    ):
        if text:
            stream.writelines(wrapped(f"{label}: {escape(text)}", wide))
    if relation.empty:
        stream.writelines(wrapped(for_target(relation.empty, target), wide))
    stream.write("\n")
    sums = {measure.column: str(measure) for measure in relation.semantics.measures}
    names = ("column", "type", "unit", *(("sum",) if sums else ()), "meaning")
    columns = [
        (one.name, one.type, one.unit or "", *((sums.get(one.name, ""),) if sums else ()), one.about)
        for one in relation.columns
    ]
    print_rows([Heading(name, "text", "") for name in names], columns, stream, width=width)
    if relation.checks:
        stream.write("\n")
        headings = [Heading("status", "text", ""), Heading("failures", "number", ""), Heading("check", "text", "")]
        rows = [(check.status, f"{check.failures:,}", check.check) for check in relation.checks]
        print_rows(headings, rows, stream, width=width)
    for check in (one for one in relation.checks if one.rows):
        stream.writelines(["\n", *wrapped(f"fails {escape(check.check)}; meta.failures has more", wide)])
        for text in (check.sentences or tuple(map(_values_of, check.rows)))[:_SHOWN_ROWS]:
            stream.writelines(f"  {line}" for line in wrapped(escape(text), wide - 2))
    stream.write(for_target(f"\nNext:  warehouse sql 'FROM {relation.name} LIMIT 5'\n", target))


def _values_of(row: str) -> str:
    """Return the values of a failing row as text, without NULLs."""
    return ", ".join(f"{name} {value}" for name, value in json.loads(row).items() if value is not None)
