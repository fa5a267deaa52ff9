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
    reads = {name: columns.reads(name) for name in tables}
    clauses = {name: columns.clauses(name) for name in tables if columns.blocks(name)}
    made_of = {Node(name, "", one): columns.made_of(name, one) for name in clauses for one in tables[name]}
    return Origins(
        reads,
        grouped((read, name) for name, several in reads.items() for read in several),
        made_of,
        grouped((given, node) for node, several in made_of.items() for given in several),
        {node: columns.kind(node.relation, node.column) for node in made_of},
        clauses,
        grouped(
            (given, name)
            for name, some in clauses.items()
            for given in dict.fromkeys(one for clause in some for one in clause.inputs)
        ),
    )


def as_graph(origins: Origins, tables: Mapping[str, Sequence[str]], abouts: Mapping[str, str]) -> dict[str, object]:
    """Return the lineage as indexes, for the page that draws the graph.

    `tables` are [name, meaning, columns]; a column is a pair of numbers, of its table and of itself in that, -1
    for the rows; `made` has for each table and column [kind, pairs], `rows` for each table [how, place, pairs].
    """
    names = {name: at for at, name in enumerate(tables)}
    places = {Node(name, "", column): at for name, columns in tables.items() for at, column in enumerate(columns)}

    def pairs(nodes: Sequence[Node]) -> list[list[int]]:
        return [[names[node.relation], -1 if node.column == ROWS else places[node]] for node in nodes]

    return {
        "tables": [[name, abouts.get(name, ""), list(columns)] for name, columns in tables.items()],
        "reads": [[names[read] for read in origins.reads[name]] for name in tables],
        "made": [
            [
                [KINDS.index(origins.kinds.get(node, KINDS[0])), pairs(origins.made_of.get(node, ()))]
                for node in (Node(name, "", column) for column in columns)
            ]
            for name, columns in tables.items()
        ],
        "rows": [
            [[one.kind, one.place, pairs(one.inputs)] for one in origins.clauses.get(name, ())] for name in tables
        ],
    }
