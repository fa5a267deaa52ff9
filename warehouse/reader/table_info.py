"""Tables of a warehouse: listing, description and check results."""

from __future__ import annotations

import fnmatch
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, TextIO

from warehouse.base.errors import QueryError, nearest_hint
from warehouse.base.next_step import for_target
from warehouse.base.text import size, wrapped
from warehouse.project.semantics import Measure, Semantics
from warehouse.reader.check_results import print_results, stopped
from warehouse.reader.connection import connect
from warehouse.reader.damaged_parts import refuse_damage
from warehouse.reader.query_errors import START, nearest_table
from warehouse.reader.relation import Check, Column, Relation, Table
from warehouse.reader.value_text import Column as Heading
from warehouse.reader.why_empty import why_empty

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb


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
    """Describe one table, with the reason why it is empty or why the last build stopped at it.

    Raises
    ------
    QueryError
        If there is no such table (the message has the nearest name), or its parts are damaged.
    """
    with connect(target) as connection:
        relation = describe(connection, name)
        full = relation.table.name
        refuse_damage(target, [full])
        return replace(relation, stopped=stopped(target, full), empty=why_empty(connection, full))


def list_tables(connection: duckdb.DuckDBPyConnection, pattern: str | None = None) -> list[Table]:
    """List the tables on an open connection by name; with a pattern (`metrics.*`), those that match it.

    Raises
    ------
    QueryError
        If no name matches.
    """
    found = connection.execute("SELECT model, kind, rows, bytes, about FROM meta.models ORDER BY model").fetchall()
    tables = [_table(row) for row in found]
    if not pattern:
        return tables
    matching = [table for table in tables if fnmatch.fnmatchcase(table.name, pattern.lower())]
    if not matching:
        raise QueryError(f"no table matches {pattern}", hint=nearest_hint(pattern, (table.name for table in tables)))
    return matching


def describe(connection: duckdb.DuckDBPyConnection, name: str) -> Relation:
    """Return the description of one table from the `meta` tables of an open connection."""
    full = _full_name(connection, name)
    row = connection.execute(
        "SELECT model, kind, rows, bytes, about, grain, partition_column, file, sources "
        "FROM meta.models WHERE model = $1",
        [full],
    ).fetchall()[0]
    columns = connection.execute(
        "SELECT column_name, type, unit, about FROM meta.columns WHERE model = $1 ORDER BY position", [full]
    ).fetchall()
    checks = connection.execute(_CHECKS, [full]).fetchall()
    return Relation(
        table=_table(row[:5]),
        grain=tuple(row[5] or ()),
        partition_column=row[6],
        file=row[7],
        sources=row[8],
        columns=tuple(Column(name, kind, unit, about or "") for name, kind, unit, about in columns),
        checks=tuple(
            Check(text, severity, status, failures, tuple(rows), tuple(sentences))
            for text, severity, status, failures, rows, sentences in checks
        ),
        semantics=_semantics(connection, full),
    )


def _semantics(connection: duckdb.DuckDBPyConnection, name: str) -> Semantics:
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


def _table(row: tuple[Any, ...]) -> Table:
    name, kind, rows, size, about = row
    return Table(name, kind, rows, size, about or "")


def _full_name(connection: duckdb.DuckDBPyConnection, name: str) -> str:
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
    found["semantics"] = {**semantics._asdict(), "measures": [measure._asdict() for measure in semantics.measures]}
    return {**found.pop("table"), **found}


def print_relation(relation: Relation, stream: TextIO, *, width: int | None = None, target: Path) -> None:
    """Print a description: meaning, columns and checks of a table, and the command for its rows."""
    from warehouse.reader.text_table import escape, print_rows, width_of

    table, wide = relation.table, width_of(stream, width)
    facts = [table.kind]
    if table.rows is not None:
        facts.append(f"{table.rows:,} rows")
    if table.bytes is not None:
        facts.append(size(table.bytes))
    stream.write(f"{table.name}  {', '.join(facts)}\n")
    stream.writelines(wrapped(escape(table.about), wide))
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
    print_results(relation, stream, width)
    stream.write(for_target(f"\nNext:  warehouse sql 'FROM {table.name} LIMIT 5'\n", target))
