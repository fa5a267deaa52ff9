"""Columns, CTEs and clauses of a SELECT by name, to describe the difference of two versions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_CLAUSES = {
    "from_table": "FROM",
    "where_clause": "WHERE",
    "group_expressions": "GROUP BY",
    "group_sets": "GROUP BY",
    "having": "HAVING",
    "qualify": "QUALIFY",
    "modifiers": "ORDER BY",
    "sample": "sample",
    "children": "UNION",
}


def changed_pieces(before: str, after: str) -> list[str]:
    """Return the columns, CTEs and clauses that differ between two canonical texts."""
    old, new = (dict(_pieces(json.loads(text)["statements"][0]["node"])) for text in (before, after))
    return [name for name in {**new, **old} if old.get(name) != new.get(name)]


def _pieces(node: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for position, item in enumerate(node.get("select_list") or ()):
        named = item.get("alias") or (item.get("column_names") or [""])[-1] or f"column {position + 1}"
        yield named, json.dumps(item)
    for one in (node.get("cte_map") or {}).get("map", ()):
        yield f"WITH {one['key']}", json.dumps(one["value"])
    for key, name in _CLAUSES.items():
        if node.get(key):
            yield name, json.dumps([node[key], node.get("setop_type")])
