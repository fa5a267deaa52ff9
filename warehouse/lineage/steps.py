"""What is known of a column's origin: steps inside a model, and what decides its rows.

Plain values that can be kept as JSON; nothing here parses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

COPIED, COMPUTED, AGGREGATED, LITERAL = "copied", "computed", "aggregated", "literal"
KINDS = (LITERAL, COPIED, COMPUTED, AGGREGATED)
"""How a column comes about, the plainest first."""
ROWS = "*"
"""Stands for the rows themselves where no column of them is read, as by count(*)."""


class Ref(NamedTuple):
    """A column of a relation (`metrics.port_hour`) or of another block of the same model (`sums`)."""

    source: str
    column: str


@dataclass(frozen=True)
class Step:
    """One way in which a column comes about; a UNION has several."""

    kind: str
    line: int
    inputs: tuple[Ref, ...]


@dataclass(frozen=True)
class Decider:
    """What decides which rows there are: a filter, join, group, distinct, limit, union, except or intersect."""

    how: str
    line: int
    inputs: tuple[Ref, ...]


@dataclass(frozen=True)
class Block:
    """A SELECT of a model: its own, a CTE or a subquery."""

    columns: Mapping[str, tuple[Step, ...]]
    deciders: tuple[Decider, ...]
    reads: tuple[str, ...]
    """Relations and blocks of its FROM."""

    def kind_of(self, column: str) -> str:
        """The least plain kind of a column's steps."""
        return max((step.kind for step in self.columns[column]), key=KINDS.index)

    def as_json(self) -> dict[str, Any]:
        """JSON-able values."""
        return {
            "columns": {name: [list(step.__dict__.values()) for step in steps] for name, steps in self.columns.items()},
            "deciders": [list(one.__dict__.values()) for one in self.deciders],
            "reads": list(self.reads),
        }

    @staticmethod
    def from_json(said: Mapping[str, Any]) -> Block:
        """Read what `as_json` gave."""
        return Block(
            {name: tuple(Step(k, n, _refs(r)) for k, n, r in steps) for name, steps in said["columns"].items()},
            tuple(Decider(how, line, _refs(refs)) for how, line, refs in said["deciders"]),
            tuple(said["reads"]),
        )


def _refs(said: Any) -> tuple[Ref, ...]:
    return tuple(Ref(source, column) for source, column in said)
