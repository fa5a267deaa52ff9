"""Semantics as MetricFlow YAML: a semantic model per table, a metric per measure, entities for keys.

MetricFlow cannot express some measures, which are left out: those of tables without a time column, those that are
non-additive over a column other than time, and those valid only for a single row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from warehouse.base.sql_text import identifier
from warehouse.publish.foreign_keys import foreign_keys
from warehouse.publish.semantics_json import described_tables, dimensions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from warehouse.project.semantics import Measure
    from warehouse.publish.foreign_keys import ForeignKey
    from warehouse.reader.relation import Column, Relation

_AGGREGATES = {"sum": "sum", "mean": "average", "min": "min", "max": "max"}
_ENTITIES = {f"reference.dim_{name}": f"{name}_key" for name in ("cluster", "switch", "port", "server", "nic")}
_TIMES = ("TIMESTAMP", "DATE")
_HOURS = "reference.dim_hour"


def metricflow_yaml(relations: Mapping[str, Relation], build: str | None) -> str:
    """Return the YAML documents, each after a line `---`."""
    shown = described_tables(relations)
    documents: list[dict[str, Any]] = []
    if _HOURS in relations:
        spine = {
            "node_relation": _node(_HOURS),
            "primary_column": {"name": "hour_utc", "time_granularity": "hour"},
        }
        documents.append({"project_configuration": {"time_spines": [spine]}})
    documents += [{"semantic_model": _model(one, relations)} for one in shown]
    documents += [{"metric": metric} for one in shown for metric in _metrics(one)]
    head = f"# Measures and dimensions of warehouse build {build}, for MetricFlow. Times are in UTC.\n"
    return head + yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=120, explicit_start=True)


def _node(name: str) -> dict[str, str]:
    schema, _, alias = name.partition(".")
    return {"schema_name": schema, "alias": alias}


def _model(relation: Relation, relations: Mapping[str, Relation]) -> dict[str, Any]:
    columns = {column.name: column for column in relation.columns}
    time, name = relation.semantics.time, _name(relation)
    found: dict[str, Any] = {
        "name": name,
        "description": relation.table.about,
        "node_relation": _node(relation.table.name),
    }
    if time:
        found["defaults"] = {"agg_time_dimension": time}
    entities = list(_entities(relation, relations))
    if not any(one["type"] == "primary" for one in entities):
        found["primary_entity"] = f"{name}_row"
    if entities:
        found["entities"] = entities
    found["dimensions"] = [_dimension(columns[one]) for one in ([time] if time else []) + _labels(relation)]
    measures = [_measure(one, relation, columns[one.column]) for one in _kept(relation)]
    measures += [_side(one, relation, columns[one]) for one in _own_sides(relation)]
    if measures:
        found["measures"] = measures
    return found


def _labels(relation: Relation) -> list[str]:
    """Return the columns to group by; in a dimension table, all columns outside the key."""
    if relation.table.name in _ENTITIES:
        return [one.name for one in relation.columns if one.name != _ENTITIES[relation.table.name]]
    if relation.table.name == _HOURS:
        return [one.name for one in relation.columns]
    return dimensions(relation)


def _entities(relation: Relation, relations: Mapping[str, Relation]) -> Iterator[dict[str, Any]]:
    """Yield the keys as one expression each, since MetricFlow joins by single expressions."""
    own = _ENTITIES.get(relation.table.name)
    if own:
        column = "cluster" if own == "cluster_key" else own
        yield {"name": own, "type": "primary", "expr": column}
    seen = {own}
    for key in foreign_keys(relation, relations, relations.values()):
        entity = _ENTITIES.get(key.other)
        if entity not in (None, *seen) and key.others == relations[key.other].grain:
            seen.add(entity)
            yield {"name": entity, "type": "foreign", "expr": _joined(key)}


def _joined(key: ForeignKey) -> str:
    return " || '/' || ".join(map(identifier, key.columns))


def _dimension(column: Column) -> dict[str, Any]:
    found: dict[str, Any] = {"name": column.name.rstrip("_")}
    if column.type in _TIMES:
        grain = next((one for one in ("hour", "minute", "second") if column.name == f"{one}_utc"), None)
        grain = grain or ("day" if column.type == "DATE" else "second")
        found |= {"type": "time", "type_params": {"time_granularity": grain}}
    else:
        found["type"] = "categorical"
    if found["name"] != column.name:
        found["expr"] = identifier(column.name)
    return found | {"description": column.about}


def _kept(relation: Relation) -> list[Measure]:
    """Return the measures that MetricFlow can sum: additive, or additive over all columns but time."""
    time = relation.semantics.time
    if not time:
        return []
    return [
        one for one in relation.semantics.measures
        if one.how in _AGGREGATES and set(one.not_over) <= {time}
    ]  # fmt: skip


def _measure(measure: Measure, relation: Relation, column: Column) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": f"{_name(relation)}_{measure.column}",
        "agg": _AGGREGATES[measure.how],
        "expr": identifier(measure.column),
        "description": column.comment,
    }
    if measure.not_over:
        found["non_additive_dimension"] = {"name": relation.semantics.time, "window_choice": "max"}
    return found


def _ratios(relation: Relation) -> list[Measure]:
    """Return the ratios of sums, if the table has a time."""
    return [one for one in relation.semantics.measures if one.how == "ratio" and relation.semantics.time]


def _own_sides(relation: Relation) -> list[str]:
    """Return the columns of ratios that add up in the ratio only, such as the line rate of a port over hours."""
    additive = {one.column for one in _kept(relation) if one.how == "sum" and not one.not_over}
    sides = [side for one in _ratios(relation) for side in (one.above, one.below) if side]
    return list(dict.fromkeys(side for side in sides if side not in additive))


def _side(column: str, relation: Relation, described: Column) -> dict[str, Any]:
    return {
        "name": f"{_name(relation)}_{column}_of_ratio",
        "agg": "sum",
        "expr": identifier(column),
        "description": described.comment,
    }


def _metrics(relation: Relation) -> Iterator[dict[str, Any]]:
    columns = {column.name: column for column in relation.columns}
    name, kept = _name(relation), _kept(relation)
    for measure in kept:
        yield _metric(relation, measure, columns, "simple", {"measure": f"{name}_{measure.column}"})
    own = _own_sides(relation)
    for side in own:
        yield {
            "name": f"{name}_{side}_of_ratio",
            "description": columns[side].comment,
            "type": "simple",
            "type_params": {"measure": f"{name}_{side}_of_ratio"},
        }
    for measure in _ratios(relation):
        above, below = (
            {"name": f"{name}_{side}" + ("_of_ratio" if side in own else "")} for side in (measure.above, measure.below)
        )
        yield _metric(relation, measure, columns, "ratio", {"numerator": above, "denominator": below})


def _metric(
    relation: Relation, measure: Measure, columns: Mapping[str, Column], kind: str, parts: Mapping[str, Any]
) -> dict[str, Any]:
    column = columns[measure.column]
    meta = {"unit": column.unit, "shown_in": measure.unit, "shown_factor": measure.factor}
    return {
        "name": f"{_name(relation)}_{measure.column}",
        "label": f"{measure.column} of {_name(relation)}",
        "description": column.comment,
        "type": kind,
        "type_params": parts,
        "config": {"meta": {name: text for name, text in meta.items() if text is not None}},
    }


def _name(relation: Relation) -> str:
    return relation.table.name.partition(".")[2]
