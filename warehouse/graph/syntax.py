"""Syntax trees of SELECTs, with names resolved by contracts. sqlglot parses and resolves; no query runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from warehouse.base.errors import ModelError, Place


def parsed(sql: str, shown_path: str) -> exp.Expr:
    """Return the syntax tree of a SELECT.

    Raises
    ------
    ModelError
        If it does not parse; the message has file and line.
    """
    try:
        return parse_one(sql, read="duckdb")
    except SqlglotError as error:
        first = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
        place = Place(shown_path, first.get("line"), first.get("col"))
        raise ModelError(f"it does not parse: {first.get('description') or error}", place=place) from error


def schema_of(relations: Mapping[str, Mapping[str, str]]) -> MappingSchema:
    """Return the types of columns, by relation and column, as sqlglot reads them. Made once for many SELECTs."""
    schema: dict[str, Any] = {}
    for relation, columns in relations.items():
        folder, _, name = relation.partition(".")
        schema.setdefault(folder, {})[name] = dict(columns)
    return MappingSchema(schema, dialect="duckdb")


def qualified(tree: exp.Expr, schema: MappingSchema, *, strict: bool = True) -> exp.Expr:
    """Resolve names, stars, aliases and USING in a tree, in place, and return it. Not strict: unknown names stay.

    Raises
    ------
    SqlglotError
        If a name is unknown or ambiguous.
    """
    return qualify(
        tree, schema=schema, dialect="duckdb", quote_identifiers=False, identify=False, validate_qualify_columns=strict
    )


def uneven(union: exp.Expr) -> bool:
    """Return True for a resolved UNION BY NAME whose sides differ in the names of columns or in their order.

    sqlglot joins the sides by position.
    """
    return (
        isinstance(union, exp.SetOperation)
        and bool(union.args.get("by_name"))
        and union.this.named_selects != union.expression.named_selects
    )


def line(node: exp.Expr | None) -> int:
    """Return the first known line of a node's text; for an alias, the line of its name; 0 if unknown."""
    if node is None:
        return 0
    if isinstance(node, exp.Alias) and "line" in node.args["alias"].meta:
        return int(node.args["alias"].meta["line"])
    # bfs=False walks in the order of the text.
    return next((int(below.meta["line"]) for below in node.walk(bfs=False) if "line" in below.meta), 0)
