"""Semantics as JSON: measures, dimensions, times, units and keys, for BI tools and language models.

The JSON Schema of the output is `semantics.schema.json` in this folder.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

from warehouse.publish.foreign_keys import foreign_keys
from warehouse.publish.parquet_metadata import TIME_ZONE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.project.semantics import Measure
    from warehouse.reader.relation import Column, Relation

KIND, VERSION = "warehouse semantics", 1
SCHEMA = "semantics.schema.json"


def semantics_schema() -> str:
    """Return the JSON Schema of `semantics_json`."""
    return (resources.files("warehouse.publish") / SCHEMA).read_text(encoding="utf-8")


def semantics_json(relations: Mapping[str, Relation], build: str | None) -> dict[str, Any]:
    """Return the semantics of tables with measures or dimensions, and of the tables their keys reference."""
    return {
        "kind": KIND,
        "version": VERSION,
        "build": build,
        "time_zone": TIME_ZONE,
        "tables": [_table(one, relations) for one in described_tables(relations)],
    }


def described_tables(relations: Mapping[str, Relation]) -> list[Relation]:
    """Return the tables with semantics and all tables that their keys reference, sorted by name."""
    facts = [one for one in relations.values() if one.semantics.dimensions or one.semantics.measures]
    found = {one.table.name for one in facts}
    waiting = list(facts)
    while waiting:
        others = {key.other for key in foreign_keys(waiting.pop(), relations, relations.values())} - found
        found |= others
        waiting += [relations[name] for name in others]
    return [relations[name] for name in sorted(found)]


def _table(relation: Relation, relations: Mapping[str, Relation]) -> dict[str, Any]:
    semantics = relation.semantics
    columns = {column.name: column for column in relation.columns}
    measured = {one.column for one in semantics.measures}
    keys = foreign_keys(relation, relations, relations.values())
    return {
        "name": relation.table.name,
        "about": relation.table.about,
        "grain": list(relation.grain),
        "time": semantics.time,
        "dimensions": [_column(columns[name]) for name in dimensions(relation)],
        "measures": [_measure(one, columns[one.column]) for one in semantics.measures],
        "attributes": [
            _column(one)
            for name, one in columns.items()
            if name not in {*dimensions(relation), *measured, semantics.time}
        ],
        "foreign_keys": [
            {"columns": list(key.columns), "table": key.other, "table_columns": list(key.others)} for key in keys
        ],
    }


def dimensions(relation: Relation) -> list[str]:
    """Return the columns to group by: the declared dimensions or else the grain, without the time column."""
    names = relation.semantics.dimensions or relation.grain
    return [name for name in names if name != relation.semantics.time]


def _column(column: Column) -> dict[str, Any]:
    return {"name": column.name, "type": column.type, "unit": column.unit, "about": column.about}


def _measure(measure: Measure, column: Column) -> dict[str, Any]:
    return {
        **_column(column),
        "aggregate": measure.how,
        "not_over": list(measure.not_over),
        "numerator": measure.above,
        "denominator": measure.below,
        "shown_in": measure.unit,
        "shown_factor": measure.factor,
    }
