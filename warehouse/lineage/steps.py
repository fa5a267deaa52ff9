"""Values of column lineage: steps inside a model, and clauses that determine rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

COPIED, COMPUTED, AGGREGATED, LITERAL = "copied", "computed", "aggregated", "literal"
KINDS = (LITERAL, COPIED, COMPUTED, AGGREGATED)
"""Kinds of steps, the simplest first."""
ROWS = "*"
"""Pseudo-column for the rows of a relation, as read by count(*)."""


class Ref(NamedTuple):
    """Column of a relation (`metrics.port_hour`) or of another block of the same model (`sums`)."""

    source: str
    column: str


class Step(NamedTuple):
    """Step that computes a column (a UNION has one for each branch), or a clause that determines rows."""

    kind: str
    """One of `KINDS`, or for a clause: filter, join, group, distinct, limit, union, except or intersect."""
    line: int
    inputs: tuple[Ref, ...]


@dataclass(frozen=True)
class Block:
    """SELECT inside a model: the outermost one, a CTE or a subquery."""

    columns: Mapping[str, tuple[Step, ...]]
    deciders: tuple[Step, ...]
    reads: tuple[str, ...]
    """Relations and blocks in FROM."""

    def kind_of(self, column: str) -> str:
        """Return the most complex kind of a column's steps."""
        return max((step.kind for step in self.columns[column]), key=KINDS.index)
