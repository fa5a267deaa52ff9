"""Tables of a warehouse: listing, description, check results and first rows."""

from __future__ import annotations

import fnmatch
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TextIO

from warehouse.base.errors import QueryError, nearest_hint
from warehouse.base.next_step import for_target
from warehouse.base.settings import DEFAULT_TARGET
from warehouse.base.sql_text import qualified
from warehouse.base.text import size
from warehouse.engine.duckdb_errors import sentence
from warehouse.project.semantics import Measure, Semantics
from warehouse.reader import value_text
from warehouse.reader.answer_table import people_values
from warehouse.reader.check_results import print_results, stopped
from warehouse.reader.connection import connect
from warehouse.reader.damaged_parts import refuse_damage
from warehouse.reader.guard import check_read_only
from warehouse.reader.query_errors import MOVED, START, nearest_table
from warehouse.reader.relation import Check, Column, Relation, Table
from warehouse.reader.result import Row, open_result
from warehouse.reader.units import unit_of
from warehouse.reader.why_empty import why_empty

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
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


@dataclass(frozen=True)
class Shown:
    """Table and its first rows."""

    relation: Relation
    head: tuple[value_text.Column, ...]
    rows: tuple[Row, ...]
    empty: str | None = None
    """Reason why the table has no rows."""
    units: tuple[str | None, ...] = ()
    """Units of the columns, for people."""


def ls(target: Path, pattern: str | None = None) -> list[Table]:
    """List the tables of a warehouse, by name.

    Parameters
    ----------
    target
        Folder of the warehouse.
    pattern
        Pattern for names: `metrics.*`, or any part of a name (`port`).

    Raises
    ------
    QueryError
        If no name matches.
    """
    with connect(target) as connection:
        return list_tables(connection, pattern)


def show(target: Path, name: str, *, rows: int = 5, data_folders: Sequence[Path] = ()) -> Shown:
    """Describe one table and read its first rows.

    Parameters
    ----------
    target
        Folder of the warehouse.
    name
        Full name (`metrics.port_hour`), or the short name (`port_hour`) if it is unique.
    rows
        Number of rows to read.
    data_folders
        Folders of raw files that moved after the build.

    Raises
    ------
    QueryError
        If there is no such table (the message has the nearest name), or its rows cannot be read.
    """
    from warehouse.base.startup import duckdb

    with connect(target, data_folders) as connection:
        relation = describe(connection, name)
        relation = replace(relation, stopped=stopped(target, relation.table.name))
        source = qualified(relation.table.name)
        try:
            [statement] = check_read_only(connection, f"FROM {source} LIMIT {rows:d}")
            refuse_damage(target, statement.tables)
            result = open_result(connection, statement)
            rows_read = tuple(result.rows)
            empty = None if rows_read or not rows else why_empty(connection, relation.table.name)
        except duckdb.Error as error:
            raise QueryError(
                f"the rows of {relation.table.name} cannot be read: {sentence(error)}", hint=MOVED
            ) from error
    units = tuple(unit_of(one.name, one.type, one.unit) for one in relation.columns)
    return Shown(relation, result.columns, rows_read, empty, units)


def list_tables(connection: duckdb.DuckDBPyConnection, pattern: str | None = None) -> list[Table]:
    """List the tables on an open connection, as `ls` does."""
    found = connection.execute("SELECT model, kind, rows, bytes, about FROM meta.models ORDER BY model").fetchall()
    tables = [_table(row) for row in found]
    if not pattern:
        return tables
    wanted = pattern if any(mark in pattern for mark in "*?[") else f"*{pattern}*"
    matching = [table for table in tables if fnmatch.fnmatchcase(table.name, wanted.lower())]
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


def tables_as_json(tables: Iterable[Table]) -> list[dict[str, object]]:
    """Return a listing as `--json` prints it."""
    return [asdict(table) for table in tables]


def shown_as_json(shown: Shown) -> dict[str, object]:
    """Return a description as `--json` prints it."""
    relation = asdict(shown.relation)
    table = relation.pop("table")
    semantics = shown.relation.semantics
    relation["semantics"] = {**semantics._asdict(), "measures": [measure._asdict() for measure in semantics.measures]}
    head = [
        {column.name: _value(column, text) for column, text in zip(shown.head, row, strict=True)} for row in shown.rows
    ]
    return {**table, **relation, "head": head}


def _value(column: value_text.Column, text: str | None) -> object:
    if text is None or column.kind == "text":
        return text
    return None if text in value_text.NOT_JSON else json.loads(text)


def print_shown(shown: Shown, stream: TextIO, *, width: int | None = None, target: Path = DEFAULT_TARGET) -> None:
    """Print a description: meaning, columns, checks and first rows of a table."""
    from warehouse.reader.text_table import escape, make_console, print_rows, wrapped

    relation, table = shown.relation, shown.relation.table
    wide = make_console(stream, width).width
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
    if shown.empty:
        stream.writelines(wrapped(for_target(shown.empty, target), wide))
    if example := _example(shown):
        stream.writelines(wrapped(f"for example: {escape(example)}", wide))
    stream.write("\n")
    sums = {measure.column: str(measure) for measure in relation.semantics.measures}
    names = ("column", "type", "unit", *(("sum",) if sums else ()), "meaning")
    columns = [
        (one.name, one.type, one.unit or "", *((sums.get(one.name, ""),) if sums else ()), one.about)
        for one in relation.columns
    ]
    print_rows(_columns(*names), columns, stream, width=width, wrap_last=True)
    print_results(relation, stream, width)
    if shown.rows:
        stream.write("\n")
        print_rows(
            shown.head,
            _readable(shown),
            stream,
            width=width,
            all_by=for_target(f"warehouse sql 'FROM {table.name}' --format lines", target),
        )


def _readable(shown: Shown) -> list[Row]:
    """Return the first rows with readable numbers."""
    columns = people_values(shown.head, shown.units or (None,) * len(shown.head), shown.rows)
    return list(zip(*columns, strict=True))


def _example(shown: Shown) -> str:
    """Return the row with the most values that are neither NULL nor zero, as one line."""
    rows = _readable(shown)
    if not rows:
        return ""
    fullest = max(range(len(rows)), key=lambda at: sum(one not in (None, "0", "0.0", "") for one in shown.rows[at]))
    return " · ".join(
        f"{column.name} {value.strip()}"
        for column, value in zip(shown.head, rows[fullest], strict=True)
        if value is not None
    )


def _columns(*names: str) -> list[value_text.Column]:
    """Return columns for printing; a name that begins with # holds numbers."""
    return [value_text.Column(name.lstrip("#"), "number" if name[0] == "#" else "text", "") for name in names]
