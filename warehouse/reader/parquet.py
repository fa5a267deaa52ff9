"""Parquet output, written by the engine, without loss for types that Parquet does not support."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError
from warehouse.base.sql_text import identifier, literal
from warehouse.reader.result import execute, wrap

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import duckdb
    from duckdb.sqltypes import DuckDBPyType

    from warehouse.reader.guard import Statement

# No file of the engine's own: `replacing` has one already, and only its path is allowed.
OPTIONS = "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880, USE_TMP_FILE false"
_EXACT = {
    "hugeint": "DECIMAL(38, 0)",
    "uhugeint": "DECIMAL(38, 0)",
    "interval": "VARCHAR",
    "time with time zone": "VARCHAR",
    "bignum": "VARCHAR",
    "bit": "VARCHAR",
    "union": "VARCHAR",
}
"""Casts for types that the Parquet writer would silently round or change. Numbers too long for DECIMAL fail."""


def copy_to_parquet(
    connection: duckdb.DuckDBPyConnection,
    statement: Statement,
    parameters: Mapping[str, object],
    path: Path,
    *,
    limit: int | None = None,
) -> int:
    """Write the rows of a checked SELECT to a new file and return their number."""
    if statement.kind != "SELECT":
        raise QueryError(f"what {statement.kind} says is no table for Parquet", hint="--format csv")
    used = {name: value for name, value in parameters.items() if name in statement.parameters}
    cursor = execute(connection, wrap(statement, "LIMIT 0"), used)
    columns = ", ".join(
        # By position, as an answer may have a name twice.
        f"{exact(f'#{position}', kind)} AS {identifier(name)}"
        for position, (name, kind, *_) in enumerate(cursor.description, start=1)
    )
    source = wrap(statement, f"SELECT {columns}" + (f" LIMIT {limit:d}" if limit is not None else ""))
    cursor = execute(connection, f"COPY ({source}) TO {literal(str(path))} ({OPTIONS})", used)
    return int(cursor.fetchall()[0][0])


def exact(reference: str, declared: DuckDBPyType) -> str:
    """Return SQL that casts a column to a type that Parquet supports without loss."""
    target = _exact_type(declared)
    return f"CAST({reference} AS {target})" if target != str(declared) else reference


def _exact_type(declared: DuckDBPyType) -> str:
    if declared.id in _EXACT:
        return _EXACT[declared.id]
    if declared.id == "list":
        return f"{_exact_type(declared.children[0][1])}[]"  # type: ignore[arg-type]
    return str(declared)
