"""Blocks of hours in the view of a table with many parts: a query of one hour opens the files of its block alone.

A block is a condition on the hour, which all rows of its files fulfill. DuckDB drops a block whose condition excludes
that of the query before it opens its files, except one to bind the view.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import lru_cache

from warehouse.base.sql_text import identifier, literal
from warehouse.engine.base import Block, Engine
from warehouse.graph.plan import Key
from warehouse.ingest.partitions import HOUR
from warehouse.runner.build_state import BuildState
from warehouse.runner.result import Outcome
from warehouse.store.part_records import Part

MANY_PARTS = 48
"""Number of parts above which the view of a table has blocks, and above which a table is not copied into the catalog: a
build with one more hour copies all of them again."""
_FEW_BLOCKS = 8
_LENGTHS = tuple(map(len, ("2024-05-23", "2024-05-2", "2024-05", "2024")))
"""Lengths of the beginnings of names of hours that stand for a day, ten days, a month and a year."""


def blocks_of(parts: Sequence[Part], outcome: Outcome) -> tuple[Block, ...]:
    """Return the blocks of a table's parts; none if they are few, or if a part may have rows of another hour."""
    if len(parts) <= MANY_PARTS or not outcome.own_hour.issuperset(_keys(parts)):
        return ()
    return _blocks(tuple(part.partition for part in parts))


def note_own_hours(state: BuildState) -> None:
    """Note the parts of large tables whose rows all have the hour of the part, by the statistics in their files."""
    outcome, plan = state.outcome, state.plan
    large = {
        name
        for name in state.graph.order
        if state.graph.nodes[name].model.partition == HOUR and len(plan.partitions(name)) > MANY_PARTS
    }
    known = outcome.own_hour | state.without_file
    unknown = [part for key, part in outcome.parts.items() if key.model in large and key not in known]
    outcome.examined = set(_keys(_with_own_hour(unknown, state.prepared.engine)))
    outcome.own_hour |= outcome.examined


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


@lru_cache(maxsize=8)
def _blocks(hours: Sequence[str]) -> tuple[Block, ...]:
    """Return the blocks of some hours; cached, since most tables have the same hours."""
    lengths = (length for length in _LENGTHS if len(_grouped(hours, length)) <= _FEW_BLOCKS)
    return tuple(
        Block(len(block), f"{identifier(HOUR)} BETWEEN {_timestamp(block[0])} AND {_timestamp(block[-1])}")
        for block in _grouped(hours, next(lengths, _LENGTHS[-1]))
    )


def _grouped(hours: Sequence[str], length: int) -> list[list[str]]:
    return [list(block) for _, block in itertools.groupby(hours, key=lambda hour: hour[:length])]


def _timestamp(hour: str) -> str:
    return f"TIMESTAMP {literal(hour.replace('T', ' ') + ':00:00')}"


def _keys(parts: Iterable[Part]) -> Iterator[Key]:
    return (Key(part.relation, part.partition) for part in parts)
