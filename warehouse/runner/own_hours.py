"""Tables of many parts, each with the rows of its own hour alone: a query of one hour opens the files of this hour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

from warehouse.base.sql_text import literal
from warehouse.engine.base import Engine
from warehouse.graph.plan import Key
from warehouse.ingest.partitions import HOUR
from warehouse.project.model import Model
from warehouse.runner.build_state import BuildState
from warehouse.runner.result import Outcome
from warehouse.store.part_records import Part

MANY_PARTS = 48
"""Number of parts above which the view of a table takes the hour from the name of a part's folder, and above which a
table is not copied into the catalog: a build with one more hour copies all of them again."""


def hour_of_folders(parts: Sequence[Part], outcome: Outcome) -> str:
    """Return the column of the hour if there are many parts with rows of their own hour alone; else an empty text."""
    if len(parts) <= MANY_PARTS:
        return ""
    known = outcome.own_hour[parts[0].relation]
    return HOUR if all(part.partition in known for part in parts) else ""


def note_own_hours(state: BuildState) -> None:
    """Note the parts of large tables whose rows all have the hour of the part, by the statistics in their files."""
    outcome, plan = state.outcome, state.plan
    unknown: list[Part] = []
    for name in state.graph.order:
        partitions = plan.partitions(name)
        if len(partitions) > MANY_PARTS and _has_hours(state.graph.nodes[name].model):
            keys = (Key(name, one) for one in partitions if one not in outcome.own_hour[name])
            unknown += [outcome.parts[key] for key in keys if key in outcome.parts and key not in state.without_file]
    for part in _with_own_hour(unknown, state.prepared.engine):
        outcome.own_hour[part.relation].add(part.partition)
        outcome.examined.add(Key(part.relation, part.partition))


def _has_hours(model: Model) -> bool:
    """Return True if a model has a part for each hour, and the hour as a timestamp."""
    return model.partition == HOUR and any((one.name, one.type) == (HOUR, "TIMESTAMP") for one in model.columns)


def _with_own_hour(parts: Sequence[Part], engine: Engine) -> Iterator[Part]:
    """Yield the parts that have no row of another hour."""
    hours = _hours_in(parts, engine) if parts else {}
    for part in parts:
        if not part.rows or hours.get(part.file) == f"{part.partition.replace('T', ' ')}:00:00":
            yield part


def _hours_in(parts: Sequence[Part], engine: Engine) -> Mapping[str, str]:
    """Return the hour of each file with rows of one hour, as text."""
    paths = literal([part.file for part in parts])
    with closing(engine.connection()) as connection:
        return dict(
            connection.execute(
                f"SELECT file_name, any_value(stats_min_value) FROM parquet_metadata({paths})"
                f" WHERE path_in_schema = {literal(HOUR)} GROUP BY file_name"
                " HAVING bool_and(coalesce(stats_min_value = stats_max_value AND stats_null_count = 0, false))"
                " AND count(DISTINCT stats_min_value) = 1"
            ).fetchall()
        )
