"""Values as text, made by the engine, so that no digit is lost in a Python conversion."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from duckdb.sqltypes import DuckDBPyType

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


def column(name: str, declared: DuckDBPyType, *, nested_as_json: bool) -> Column:
    """Return the column for a name and an engine type."""
    return Column(name, _kind(declared, nested_as_json=nested_as_json), str(declared))


def text_of(reference: str, declared: DuckDBPyType, *, nested_as_json: bool = False) -> str:
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


def _kind(declared: DuckDBPyType, *, nested_as_json: bool) -> str:
    if declared.id in NUMBERS:
        return "number"
    if declared.id == "boolean":
        return "boolean"
    if str(declared) == "JSON" or (declared.id in NESTED and nested_as_json):
        return "json"
    return "text"
