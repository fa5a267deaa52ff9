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


class Step(NamedTuple):
    """One way in which a column comes about (a UNION has several), or a clause that decides which rows there are."""

    kind: str
    """One of `KINDS`; of a clause filter, join, group, distinct, limit, union, except or intersect."""
    line: int
    inputs: tuple[Ref, ...]


@dataclass(frozen=True)
class Block:
    """A SELECT of a model: its own, a CTE or a subquery."""

    columns: Mapping[str, tuple[Step, ...]]
    deciders: tuple[Step, ...]
    reads: tuple[str, ...]
    """Relations and blocks of its FROM."""

    def kind_of(self, column: str) -> str:
        """The least plain kind of a column's steps."""
        return max((step.kind for step in self.columns[column]), key=KINDS.index)

    def as_json(self) -> dict[str, Any]:
        """JSON-able values."""
        return {
            "columns": {name: list(map(list, steps)) for name, steps in self.columns.items()},
            "deciders": list(map(list, self.deciders)),
            "reads": list(self.reads),
        }

    @staticmethod
    def from_json(said: Mapping[str, Any]) -> Block:
        """Read what `as_json` gave."""
        return Block(
            {name: _steps(steps) for name, steps in said["columns"].items()},
            _steps(said["deciders"]),
            tuple(said["reads"]),
        )


def _steps(said: Any) -> tuple[Step, ...]:
    return tuple(Step(kind, line, tuple(Ref(*one) for one in refs)) for kind, line, refs in said)
