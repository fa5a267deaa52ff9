"""Reasons for a NULL value or an empty answer to a user's SQL, as a sentence.

The reason is in the contract of the source column (`NULL of ITP, which does not publish start times`). Or WHERE has a
value that no row has.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from warehouse.base.errors import nearest
from warehouse.base.startup import regex
from warehouse.base.text import few
from warehouse.formats.base import is_raw
from warehouse.reader.column_units import Columns, followed, origin_of, tree_of
from warehouse.reader.relation import has_meta
from warehouse.reader.result import execute

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import duckdb

    from warehouse.reader.guard import Statement

_CLAUSE = regex(r"(?:^|; |, )(?P<clause>NULL (?:for|of|on|under|unless|when|where|without)\b[^;]*)")
_MOST_NOTES = 3


def null_notes(
    connection: duckdb.DuckDBPyConnection,
    statement: Statement,
    names: Sequence[str],
    nulls: Sequence[str],
    given: Mapping[str, object],
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
    given
        Values of its `$name` parameters.
    """
    tree = tree_of(connection, statement)
    if tree is None:
        return []
    unknown = list(unknown_values(connection, statement))
    if not unknown and (unmet := _no_row_counted(connection, statement, tree, given)):
        return unmet
    contracts, clauses = _clauses(connection)
    columns: dict[str, list[str]] = {}
    for name, origin in zip(names, followed(tree, names, contracts), strict=True):
        if name in nulls and origin and origin in clauses:
            table, _, column = origin.rpartition(".")
            columns.setdefault(f"{table} {clauses[origin]}", []).append(column)
    notes = unknown  # the right value may have NULLs, too
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
        if origin is None or value is None or is_raw(origin):  # listing raw values would read all files
            continue
        table, _, column = origin.rpartition(".")
        listed = _values(connection, table, column)
        if value in listed:
            continue
        same = next((one for one in listed if one.lower() == value.lower()), None)
        close = (
            f"; write {column} = '{same}'" if same else f"; near: {near}" if (near := nearest(value, listed)) else ""
        )
        yield f"no {column} {value} in {table}" + (
            close or _other_dimension(connection, table, value) or _listed(listed)
        )


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


def _no_row_counted(
    connection: duckdb.DuckDBPyConnection, statement: Statement, tree: dict[str, Any], given: Mapping[str, object]
) -> list[str]:
    """Return a sentence if a SELECT without groups aggregates over no rows, which makes its aggregates NULL."""
    from warehouse.base.startup import duckdb

    if tree.get("type") != "SELECT_NODE" or tree.get("group_expressions") or tree.get("group_sets"):
        return []
    counted = connection.execute("SELECT json_serialize_sql('SELECT count(*)')").fetchone()
    if counted is None:
        return []
    outer = json.loads(counted[0])
    alone = outer["statements"][0]["node"]
    outer["statements"][0]["node"] = tree | {
        "select_list": alone["select_list"], "modifiers": [], "having": None, "qualify": None,
    }  # fmt: skip
    used = {name: value for name, value in given.items() if name in statement.parameters}
    try:
        text = connection.execute("SELECT json_deserialize_sql($1::JSON)", [json.dumps(outer)]).fetchone()
        row = execute(connection, text[0], used).fetchone() if text else None
    except (duckdb.BinderException, duckdb.ParserException):  # the engine cannot write this tree as text
        return []
    return ["no row meets the conditions of the query"] if row and row[0] == 0 else []


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


def _text(constant: Mapping[str, Any]) -> str | None:
    literal = constant.get("literal") or {}
    return str(literal["text"]) if literal.get("kind") == "STRING" else None


def _values(connection: duckdb.DuckDBPyConnection, table: str, column: str) -> list[str]:
    """Return the distinct values of a column as text; both names are from the catalog."""
    rows = connection.execute(f'SELECT DISTINCT "{column}"::VARCHAR AS v FROM {table} WHERE v IS NOT NULL ORDER BY v')
    return [one for (one,) in rows.fetchall()]


def _other_dimension(connection: duckdb.DuckDBPyConnection, table: str, value: str) -> str | None:
    """Return the condition on another dimension of the table that has the value, ignoring case."""
    if not has_meta(connection, "dimensions"):  # a build of an earlier version
        return None
    names = connection.execute(
        "SELECT d.column_name FROM meta.dimensions AS d JOIN meta.columns AS c USING (model, column_name) "
        "WHERE d.model = $1 AND c.type = 'VARCHAR' ORDER BY ALL",
        [table],
    ).fetchall()
    for (name,) in names:
        for one in _values(connection, table, name):
            if one.lower() == value.lower():
                return f"; write {name} = '{one}'"
    return None


def _listed(values: Sequence[str]) -> str:
    ordered = sorted(values, key=lambda one: [int(n) if n.isdigit() else n for n in re.split(r"(\d+)", one)])
    return f"; there are {few(ordered)}" if values else ""
