"""Column lineage in both directions, and the columns that decide rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.base.text import grouped
from warehouse.lineage.column_lineage import Node
from warehouse.lineage.steps import KINDS, ROWS

if TYPE_CHECKING:
    from warehouse.lineage.column_lineage import Columns, Origin


@dataclass(frozen=True)
class Origins:
    """Lineage of all relations and columns."""

    reads: Mapping[str, Sequence[str]]
    read_by: Mapping[str, Sequence[str]]
    made_of: Mapping[Node, Sequence[Node]]
    """Columns of other relations that a column derives from; `*` stands for rows."""
    used_by: Mapping[Node, Sequence[Node]]
    kinds: Mapping[Node, str]
    """Kind of each column: copied, computed, aggregated or literal; the most complex step counts."""
    clauses: Mapping[str, Sequence[Origin]]
    """Clauses that decide the rows of a model."""
    decides: Mapping[Node, Sequence[str]]
    """Models whose rows a column decides."""


def origins_of(columns: Columns, tables: Mapping[str, Sequence[str]]) -> Origins:
    """Return the lineage of columns in both directions.

    Parameters
    ----------
    columns
        From `warehouse.lineage.column_lineage`.
    tables
        All relations with their columns.
    """
    reads = {name: _reads(columns, name) for name in tables}
    clauses = {name: columns.clauses(name) for name in tables if columns.blocks(name)}
    nodes = [Node(name, "", column) for name in clauses for column in tables[name]]
    made_of = {node: columns.made_of(node.relation, node.column) for node in nodes}
    return Origins(
        reads,
        grouped((read, name) for name, several in reads.items() for read in several),
        made_of,
        grouped((given, node) for node, several in made_of.items() for given in several),
        {node: _kind(columns, node) for node in nodes},
        clauses,
        grouped(
            (given, name)
            for name, some in clauses.items()
            for given in dict.fromkeys(one for clause in some for one in clause.inputs)
        ),
    )


def _reads(columns: Columns, name: str) -> list[str]:
    blocks = columns.blocks(name)
    return sorted({read for block in blocks.values() for read in block.reads if "." in read})


def _kind(columns: Columns, start: Node) -> str:
    """Return the kind of a column, following it through the model's CTEs."""
    found: dict[Node, None] = {}
    kinds = {KINDS[0]}
    waiting = [start]
    while waiting:
        node = waiting.pop()
        if node in found or node.relation != start.relation or node.column == ROWS:
            continue
        found[node] = None
        if not node.block and node != start:
            continue
        for origin in columns.origins(node):
            kinds.add(origin.kind)
            waiting += origin.inputs
    return max((kind for kind in kinds if kind in KINDS), key=KINDS.index)


def as_graph(origins: Origins, tables: Mapping[str, Sequence[str]], abouts: Mapping[str, str]) -> dict[str, object]:
    """Return the lineage as indexes, for the page that draws the graph.

    `tables` are [name, meaning, columns]; a column is a pair of numbers, of its table and of itself in that, -1
    for the rows; `made` has for each table and column [kind, pairs], `rows` for each table [how, place, pairs].
    """
    names = {name: at for at, name in enumerate(tables)}
    places = {name: {column: at for at, column in enumerate(columns)} for name, columns in tables.items()}

    def pair(node: Node) -> list[int]:
        return [names[node.relation], -1 if node.column == ROWS else places[node.relation][node.column]]

    def made(name: str, column: str) -> list[object]:
        node = Node(name, "", column)
        inputs = origins.made_of.get(node, ())
        return [KINDS.index(origins.kinds.get(node, KINDS[0])), [pair(one) for one in inputs]]

    return {
        "tables": [[name, abouts.get(name, ""), list(columns)] for name, columns in tables.items()],
        "reads": [[names[read] for read in origins.reads[name]] for name in tables],
        "made": [[made(name, column) for column in columns] for name, columns in tables.items()],
        "rows": [
            [[one.kind, one.place, [pair(node) for node in one.inputs]] for one in origins.clauses.get(name, ())]
            for name in tables
        ],
    }
