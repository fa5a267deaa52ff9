"""Rows of a statement as exact text, streamed, with the types and units of their columns.

The engine makes the texts, so that no digit is lost in a Python conversion. Tables name their columns by unit:
`in_bytes`, `out_mean_bps`, `queue_seconds`, `leaving_share`. An expression has the unit that its alias names, else it
is a plain number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from warehouse.base import startup
from warehouse.reader.guard import Statement

Row = tuple[str | None, ...]

OPENING = "FROM (\n"
"""Text before a wrapped query; positions in engine errors are too high by its length."""
_BATCH = 2048  # rows of a vector of the engine
COUNTED = 100_000
"""Rows that are counted at most."""


@dataclass
class Result:
    """Columns and rows of a statement.

    The rows can be read once, and the connection must not run anything else meanwhile.
    """

    columns: tuple[Column, ...]
    rows: Iterator[Row]
    """Rows that were not taken yet."""
    connection: startup.duckdb.DuckDBPyConnection
    statement: Statement
    count: int = 0
    """Rows that were taken."""

    def take(self, limit: int | None) -> Iterator[Row]:
        """Yield the next rows, and count them."""
        for row in islice(self.rows, limit):
            self.count += 1
            yield row

    def units(self) -> list[str | None]:
        """Return the unit of each column that its name states."""
        # A cursor, as the rows still wait on the connection itself.
        described = column_meanings(self.connection.cursor(), (), [column.name for column in self.columns])
        return [unit for unit, _ in described]

    @property
    def is_plan(self) -> bool:
        """Return True if this is the output of EXPLAIN: text of many lines, not a table."""
        return self.statement.kind == "EXPLAIN"


def open_result(
    connection: startup.duckdb.DuckDBPyConnection,
    statement: Statement,
    parameters: Mapping[str, object] | None = None,
    *,
    nested_as_json: bool = False,
) -> Result:
    """Start a checked statement and return its result.

    Parameters
    ----------
    connection
        Connection to a warehouse; it must not run anything else until the rows are read.
    statement
        Statement from `warehouse.reader.guard.check_read_only`.
    parameters
        Values of its `$name` parameters; unused ones are ignored.
    nested_as_json
        Return lists and structs as JSON instead of the engine's text.
    """
    used = {name: value for name, value in (parameters or {}).items() if name in statement.parameters}
    if statement.kind != "SELECT":
        cursor = connection.execute(statement.text, used)
        columns = tuple(column(name, kind, nested_as_json=False) for name, kind, *_ in cursor.description)
        return Result(columns, map(_shown, _batches(cursor)), connection, statement)
    # Types come first: they decide how the second run writes values as text.
    cursor = connection.execute(wrap(statement, "LIMIT 0"), used)
    types = [(name, kind) for name, kind, *_ in cursor.description]
    texts = [
        text_of(f"#{position}", kind, nested_as_json=nested_as_json)
        for position, (_, kind) in enumerate(types, start=1)
    ]
    cursor = connection.execute(wrap(statement, f"SELECT {', '.join(texts)}"), used)
    columns = tuple(column(name, kind, nested_as_json=nested_as_json) for name, kind in types)
    return Result(columns, _batches(cursor), connection, statement)


def total(read: int, rows: Iterator[Row]) -> str:
    """Return the number of rows of which some were read; at most 100,000 others are counted."""
    most = read + COUNTED
    read += sum(1 for _ in islice(rows, COUNTED))
    return f"{read:,}" if read < most else f"more than {COUNTED:,}"


def wrap(statement: Statement, around: str) -> str:
    """Wrap the statement as a subquery: `FROM (...) SELECT count(*)`."""
    # On a new line, as the query may end in a comment.
    return f"{OPENING}{statement.text}\n) {around}"


def _batches(cursor: startup.duckdb.DuckDBPyConnection) -> Iterator[Row]:
    while batch := cursor.fetchmany(_BATCH):
        yield from batch


def _shown(row: tuple[object, ...]) -> Row:
    return tuple(
        None if value is None else str(value).lower() if isinstance(value, bool) else str(value) for value in row
    )


INTEGERS = frozenset(
    {"tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint",
     "uhugeint", "bignum"}
)  # fmt: skip
NUMBERS = INTEGERS | {"decimal", "float", "double"}
NESTED = frozenset({"list", "array", "struct", "map", "union", "variant"})
NOT_JSON = frozenset({"nan", "-nan", "inf", "-inf"})
"""Engine texts of numbers that JSON does not support."""
_SECONDS_ONLY = "%Y-%m-%d %H:%M:%S.%f"


class Column(NamedTuple):
    """Column of a result."""

    name: str
    kind: str
    """One of `number`, `boolean`, `json` (its text is JSON already) and `text`."""
    type: str
    """Type as the engine writes it: `DECIMAL(10,2)`."""


def column(name: str, declared: startup.duckdb.sqltypes.DuckDBPyType, *, nested_as_json: bool) -> Column:
    """Return the column for a name and an engine type."""
    kind = "number" if declared.id in NUMBERS else "boolean" if declared.id == "boolean" else "text"
    if str(declared) == "JSON" or (declared.id in NESTED and nested_as_json):
        kind = "json"
    return Column(name, kind, str(declared))


def text_of(reference: str, declared: startup.duckdb.sqltypes.DuckDBPyType, *, nested_as_json: bool = False) -> str:
    """Return a SQL expression for the exact text of a column.

    Timestamps are `YYYY-MM-DD HH:MM:SS[.ffffff]`, doubles have their shortest form. Other types are cast by the engine.

    Parameters
    ----------
    reference
        Column in SQL: `#1`, or a quoted name.
    declared
        Engine type of the column.
    nested_as_json
        Write lists and structs as JSON instead of the engine's text.
    """
    kind = declared.id
    plain = f"CAST({reference} AS VARCHAR)"
    if kind in NESTED and nested_as_json:
        return f"CAST(to_json({reference}) AS VARCHAR)"
    # A cast drops zeros at the end of a fraction, so that values of one column would differ in length.
    if kind in ("timestamp", "timestamp_ms"):
        return (
            f"CASE WHEN {reference} = date_trunc('second', {reference}) THEN {plain} "
            f"ELSE strftime({reference}, '{_SECONDS_ONLY}') END"
        )
    return plain


SHARE = "share"
"""Unit of fractions of 1, shown as %."""
COUNT = "count"
"""Unit of counts."""
_SUFFIXES = {"bytes": "B", "bps": "bit/s", "seconds": "s", "ms": "ms", "ns": "ns", "share": SHARE, "utilization": SHARE,
             "watts": "W"}  # fmt: skip
_SHARES = frozenset({"duty_cycle", "in_out_difference", "mfu_6n", "mfu_6n_12lhs"})


def column_meanings(
    connection: startup.duckdb.DuckDBPyConnection, tables: Iterable[str], names: Sequence[str]
) -> list[tuple[str | None, str]]:
    """Return unit and meaning of each column of a result, from the contracts of the tables that it reads.

    A column that these tables do not have, or to which they give several meanings, has the unit of its name alone.
    Counts are known by name, too.
    """
    rows = connection.execute(
        "SELECT column_name, any_value(type), any_value(unit), any_value(about) FROM meta.columns "
        "WHERE list_contains($1, model) GROUP BY column_name HAVING count(DISTINCT [unit, about]) = 1",
        [[*tables]],
    ).fetchall()
    known = {name: (unit_of(name, kind, unit), about or "") for name, kind, unit, about in rows}
    counts = connection.execute(
        "SELECT DISTINCT lower(column_name) FROM meta.columns WHERE unit = '1' AND list_contains($1, lower(type))",
        [[*INTEGERS]],
    ).fetchall()
    found = ((name, known.get(name.lower(), (None, ""))) for name in names)
    return [
        (unit or named_unit(name) or (COUNT if (name.lower(),) in counts else None), about)
        for name, (unit, about) in found
    ]


def named_unit(name: str) -> str | None:
    """Return the unit that the name of a column states.

    >>> named_unit("in_bytes"), named_unit("leaving_share"), named_unit("duty_cycle"), named_unit("polls")
    ('B', 'share', 'share', None)
    """
    name = name.lower()
    return SHARE if name in _SHARES or "_share_" in name else _SUFFIXES.get(name.rpartition("_")[2])


def unit_of(name: str, kind: str, unit: str | None) -> str | None:
    """Return the unit of a contract's column; unit `1` becomes a share, a count, or None.

    >>> unit_of("leaving_share", "DOUBLE", "1"), unit_of("polls", "BIGINT", "1"), unit_of("cov", "DOUBLE", "1")
    ('share', 'count', None)
    """
    if unit != "1":
        return unit
    if kind in ("DOUBLE", "FLOAT"):
        return SHARE if named_unit(name) == SHARE else None
    return COUNT
