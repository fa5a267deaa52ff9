"""Reasons for a NULL value or an empty answer to a user's SQL, as a sentence, from `meta` and small tables alone.

The reason is in the contract of the source column (`NULL of ITP, which does not publish start times`). Or WHERE has a
value that no row has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warehouse.base.startup import regex
from warehouse.formats.base import is_raw
from warehouse.reader.column_units import Columns, followed, origin_of, tree_of
from warehouse.reader.known_values import known_values, near_or_listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import duckdb

    from warehouse.reader.guard import Statement

_CLAUSE = regex(r"(?:^|; |, )(?P<clause>NULL (?:for|of|on|under|unless|when|where|without)\b[^;]*)")
_MOST_NOTES = 3


def null_notes(
    connection: duckdb.DuckDBPyConnection, statement: Statement, names: Sequence[str], nulls: Sequence[str]
) -> list[str]:
    """Return sentences on the columns of an answer that hold a NULL, at most three.

    Parameters
    ----------
    connection
        Connection to the warehouse; nothing else runs on it.
    statement
        Statement that returned the answer.
    names
        Columns of the answer.
    nulls
        Columns with a NULL.
    """
    tree = tree_of(connection, statement)
    if tree is None:
        return []
    contracts, clauses = _clauses(connection)
    columns: dict[str, list[str]] = {}
    for name, origin in zip(names, followed(tree, names, contracts), strict=True):
        if name in nulls and origin and origin in clauses:
            table, _, column = origin.rpartition(".")
            columns.setdefault(f"{table} {clauses[origin]}", []).append(column)
    notes = list(unknown_values(connection, statement))  # the right value may have NULLs, too
    for key, found in columns.items():
        table, _, clause = key.partition(" ")
        listed = list(dict.fromkeys(found))
        notes.append(f"{', '.join(listed)} of {table} {'is' if len(listed) == 1 else 'are'} {clause}")
    return notes[:_MOST_NOTES]


def unknown_values(connection: duckdb.DuckDBPyConnection, statement: Statement) -> Iterator[str]:
    """Yield a sentence for each `column = 'value'` in WHERE that matches no row of the column's table."""
    tree = tree_of(connection, statement)
    if tree is None or tree.get("type") != "SELECT_NODE":
        return
    contracts, _ = _clauses(connection)
    for left, right in _equal_to_text(tree.get("where_clause") or {}):
        origin = origin_of(tree, left, contracts)
        value = _text(right)
        if origin is None or value is None or is_raw(origin) or not _is_text(connection, origin):
            continue
        table, _, column = origin.rpartition(".")
        known = known_values(connection, column, table)
        if known.values and value not in known.values:
            where = f" in {table}" if known.table == table else ""
            written = _as_written(connection, table, column, value) or near_or_listed(value, known.values)
            yield f"no {column} {value}{where}{written}"


def _clauses(connection: duckdb.DuckDBPyConnection) -> tuple[dict[str, Columns], dict[str, str]]:
    """Return the columns of each table with their full names, and the contracts' clauses on NULL."""
    contracts: dict[str, Columns] = {}
    clauses: dict[str, str] = {}
    for model, name, about in connection.execute(
        "SELECT model, column_name, about FROM meta.columns ORDER BY model, position"
    ).fetchall():
        contracts.setdefault(model, []).append((name, f"{model}.{name}"))
        if match := _CLAUSE.search(about or ""):
            clauses[f"{model}.{name}"] = match["clause"]
    return contracts, clauses


def _equal_to_text(where: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the column and the constant of each `column = 'text'` that every row must meet."""
    if where.get("type") == "CONJUNCTION_AND":
        for one in where["children"]:
            yield from _equal_to_text(one)
    elif where.get("type") == "COMPARE_EQUAL":
        left, right = where["left"], where["right"]
        if left.get("class") == "CONSTANT":
            left, right = right, left
        if left.get("class") == "COLUMN_REF" and right.get("class") == "CONSTANT":
            yield left, right


def _is_text(connection: duckdb.DuckDBPyConnection, origin: str) -> bool:
    found = connection.execute(
        "SELECT 1 FROM meta.columns WHERE model || '.' || column_name = $1 AND type = 'VARCHAR'", [origin]
    )
    return found.fetchone() is not None


def _text(constant: Mapping[str, Any]) -> str | None:
    literal = constant.get("literal") or {}
    return str(literal["text"]) if literal.get("kind") == "STRING" else None


def _as_written(connection: duckdb.DuckDBPyConnection, table: str, column: str, value: str) -> str | None:
    """Return the condition that has the value in other case, on the column or another dimension of its table."""
    names = connection.execute(
        "SELECT d.column_name FROM meta.dimensions AS d JOIN meta.columns AS c USING (model, column_name) "
        "WHERE d.model = $1 AND c.type = 'VARCHAR' ORDER BY ALL",
        [table],
    ).fetchall()
    for name in (column, *(name for (name,) in names)):
        for one in known_values(connection, name, table).values:
            if one.lower() == value.lower():
                return f"; write {name} = '{one}'"
    return None
