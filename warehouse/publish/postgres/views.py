"""SQL of the public views, and names of the tables behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.publish.postgres.registry import FUNCTION, Layout, Names, marked
from warehouse.publish.postgres.server import ident, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.publish.postgres.sent_tables import Sent

_LONGEST_STEM = 44
"""Longest prefix in bytes that object names take from a table's name; PostgreSQL names have 63."""


def view_body(names: Names, relation: str, layouts: Sequence[Layout]) -> str:
    """Return the SELECT of a relation's view: columns of the first layout, rows of the snapshot's version.

    Older layouts with rows are cast to the columns of the first, so that a transaction begun before the columns
    changed finds its rows.
    """
    first, *older = layouts
    branches = [_branch(names, relation, first, [ident(name) for name, _ in first.columns])]
    for one in older:
        kinds = dict(one.columns)
        branches.append(
            _branch(names, relation, one, [_cast(name, kind, kinds.get(name)) for name, kind in first.columns])
        )
    return " UNION ALL ".join(branches)


def _branch(names: Names, relation: str, layout: Layout, columns: Sequence[str]) -> str:
    version = f"{ident(names.own, FUNCTION)}({text(relation)}, {layout.layout})"
    return (
        f"SELECT {', '.join(columns)} FROM {ident(names.own, layout.parent)} "
        f"WHERE {ident(layout.key)} = (SELECT {version})"
    )


def _cast(name: str, kind: str, was: str | None) -> str:
    if was == kind:
        return ident(name)
    value = "NULL" if was is None else ident(name) if kind == "text" else f"{ident(name)}::text"
    return f"{value}::{kind} AS {ident(name)}"


def is_replaceable(old: Layout, new: Layout) -> bool:
    """Return True if CREATE OR REPLACE VIEW supports the change of columns."""
    return new.columns[: len(old.columns)] == old.columns


def comments(names: Names, table: Sent, build: str) -> str:
    """Return the statements that comment a view and its columns."""
    view = ident(*names.view(table.full_name))
    statements = [f"COMMENT ON VIEW {view} IS {text(marked(table.about, build))}"]
    statements += [
        f"COMMENT ON COLUMN {view}.{ident(column.name)} IS {text(column.comment) if column.comment else 'NULL'}"
        for column in table.columns
    ]
    return "; ".join(statements)


def parent_name(relation: str, layout: int) -> str:
    """Return the name of the partitioned table of a layout.

    >>> parent_name("metrics.port_hour", 3)
    'port_hour_c3'
    """
    return f"{_stem(relation)}_c{layout}"


def stored_name(relation: str, version: int) -> str:
    """Return the name of a version's partition.

    >>> stored_name("metrics.port_hour", 17)
    'port_hour_r17'
    """
    return f"{_stem(relation)}_r{version}"


def key_column(columns: Sequence[tuple[str, str]]) -> str:
    """Return a name for the version column that no column of the table has.

    >>> key_column([("switch", "text"), ("warehouse_version", "text")])
    'warehouse_version_'
    """
    name = "warehouse_version"
    while name in {one for one, _ in columns}:
        name += "_"
    return name


def _stem(relation: str) -> str:
    return relation.partition(".")[2].encode()[:_LONGEST_STEM].decode(errors="ignore")
