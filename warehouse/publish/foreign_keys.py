"""Foreign keys of tables, read off their `references` checks: the joins that a build has proven."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from warehouse.base.startup import regex

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from warehouse.reader.relation import Check, Relation

_REFERENCES = regex(r"^references\((?P<mine>[^)]*)\)\s*->\s*(?P<other>[\w.]+)\((?P<theirs>[^)]*)\)$", re.IGNORECASE)
_NOT_NULL = regex(r"^not null\((?P<names>[^)]*)\)$", re.IGNORECASE)


class ForeignKey(NamedTuple):
    """Columns whose values, where none is NULL, stand in columns of another table."""

    columns: tuple[str, ...]
    other: str
    """The other table, `reference.dim_port`."""
    others: tuple[str, ...]

    def __str__(self) -> str:
        return f"({', '.join(self.columns)}) -> {self.other}({', '.join(self.others)})"


def foreign_keys(relation: Relation, tables: Collection[str]) -> list[ForeignKey]:
    """Return the keys of a table into `tables` that hold for every row of this build."""
    found = (_key(check) for check in relation.checks if check.status == "passed")
    return [key for key in found if key and key.other in tables]


def _key(check: Check) -> ForeignKey | None:
    match = _REFERENCES.match(check.check)
    return ForeignKey(_names(match["mine"]), match["other"], _names(match["theirs"])) if match else None


def required(relation: Relation) -> set[str]:
    """Return the columns that have no NULL: those of the grain, and of `not null` checks that passed."""
    matches = (_NOT_NULL.match(check.check) for check in relation.checks if check.status == "passed")
    return {*relation.grain, *(name for match in matches if match for name in _names(match["names"]))}


def others_first(relations: Mapping[str, Relation]) -> list[tuple[Relation, list[ForeignKey]]]:
    """Return all tables with their keys, each after the tables that its keys name."""
    ordered: dict[str, tuple[Relation, list[ForeignKey]]] = {}

    def add(name: str) -> None:
        keys = foreign_keys(relations[name], relations)
        for other in {key.other for key in keys} - ordered.keys() - {name}:
            add(other)
        ordered.setdefault(name, (relations[name], keys))

    for name in relations:
        add(name)
    return list(ordered.values())


def _names(listed: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in listed.split(","))


def named_keys(keys: Iterable[ForeignKey]) -> str:
    """Return keys as a sentence of a comment; empty where there are none."""
    said = "; ".join(map(str, keys))
    return f"Foreign keys: {said}." if said else ""
