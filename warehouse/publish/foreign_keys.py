"""Foreign keys of tables, read from checks: `references`, and `referenced` of the table that is joined.

A build has proven these joins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from warehouse.project.check_language import NOT_NULL, REFERENCED, REFERENCES

if TYPE_CHECKING:
    import re
    from collections.abc import Collection, Iterable, Iterator

    from warehouse.reader.relation import Relation


class ForeignKey(NamedTuple):
    """Columns whose values, where none is NULL, stand in columns of another table."""

    columns: tuple[str, ...]
    other: str
    """The other table, `reference.dim_port`."""
    others: tuple[str, ...]

    def __str__(self) -> str:
        return f"({', '.join(self.columns)}) -> {self.other}({', '.join(self.others)})"


def foreign_keys(relation: Relation, tables: Collection[str], dimensions: Iterable[Relation]) -> list[ForeignKey]:
    """Return the keys of a table into `tables` that hold for every row of this build.

    A table of an hour names no table that spans hours, so the `dimensions` say which tables refer to them.
    """
    found = [*_own_keys(relation), *(key for other in dimensions for key in _keys_into(other, relation.table.name))]
    return sorted((key for key in found if key.other in tables), key=lambda key: (key.other, key.columns))


def _own_keys(relation: Relation) -> Iterator[ForeignKey]:
    for match in _passed(relation, REFERENCES):
        yield ForeignKey(_names(match["columns"]), match["relation"], _names(match["others"]))


def _keys_into(dimension: Relation, table: str) -> Iterator[ForeignKey]:
    for match in _passed(dimension, REFERENCED):
        if match["relation"] == table:
            yield ForeignKey(_names(match["others"]), dimension.table.name, _names(match["columns"]))


def _passed(relation: Relation, form: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Return the checks of this form that passed, in the order of their texts."""
    found = {check.check: form.match(check.check) for check in relation.checks if check.status == "passed"}
    return (match for match in found.values() if match)


def required(relation: Relation) -> set[str]:
    """Return the columns that have no NULL: those of the grain, and of `not null` checks that passed."""
    return {*relation.grain, *(name for match in _passed(relation, NOT_NULL) for name in _names(match["columns"]))}


def _names(listed: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in listed.split(","))


def about_with_keys(relation: Relation, tables: Collection[str], dimensions: Iterable[Relation]) -> str:
    """Return the description of a table, which ends in its foreign keys, for a comment."""
    listed = "; ".join(map(str, foreign_keys(relation, tables, dimensions)))
    return relation.table.about + (f" Foreign keys: {listed}." if listed else "")
