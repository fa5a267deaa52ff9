"""Column lineage: the steps from raw files to a column, and the clauses that determine its rows.

`warehouse.lineage.select_steps` finds the steps in the models' SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from warehouse.base.errors import SettingsError, nearest_hint
from warehouse.base.text import few
from warehouse.graph.dag import columns_outside
from warehouse.lineage.steps import COMPUTED, KINDS, LITERAL, ROWS, Block, Ref, Step
from warehouse.lineage.table_lineage import find_model
from warehouse.project.model import Model
from warehouse.project.project import Project

if TYPE_CHECKING:
    from sqlglot.schema import MappingSchema

COUNTED = "counted"
"""Kind of a step from rows to the rows below them."""


class Node(NamedTuple):
    """Column of a relation, or of a block inside a model."""

    relation: str
    block: str
    column: str

    def __str__(self) -> str:
        return f"{self.block or self.relation}.{self.column}"

    @property
    def full(self) -> str:
        """Full name, such as `metrics.uplink_balance/sums.total`."""
        return f"{self.relation}{'/' if self.block else ''}{self.block}.{self.column}"


class Origin(NamedTuple):
    """Step of a column, or a clause that determines rows, with its place and input columns."""

    kind: str
    place: str
    """File and line, such as `models/metrics/uplink_balance.sql:42`."""
    inputs: tuple[Node, ...]


@dataclass(frozen=True)
class Trace:
    """Lineage of one column."""

    column: Node
    origins: Mapping[Node, tuple[Origin, ...]]
    """Steps of every column on the path that a model computes, in the order of the path."""
    ends: tuple[Node, ...]
    """Columns of raw files and reference tables at the end of the path."""
    literals: tuple[str, ...]
    """Places of the literals at the end of the path."""
    deciders: tuple[Origin, ...]
    """Clauses that determine rows, with columns of other relations."""


class Columns:
    """Columns of all models with their steps. A model is parsed when one of its columns is asked for."""

    def __init__(self, project: Project) -> None:
        self.source_columns: Mapping[str, Sequence[str]] = {
            name: [one.name for one in columns] for name, columns in columns_outside(project).items()
        }
        """Columns of raw relations and reference tables."""
        self._project = project
        self._relations = dict(self.source_columns) | {
            name: [one.name for one in model.columns] for name, model in project.models.items()
        }
        self._blocks: dict[str, Mapping[str, Block]] = {}

    @cached_property
    def _schema(self) -> MappingSchema:
        from warehouse.graph.syntax import schema_of  # imports sqlglot, which is slow

        return schema_of({name: dict.fromkeys(columns, "") for name, columns in self._relations.items()})

    def blocks(self, relation: str) -> Mapping[str, Block]:
        """Return the blocks of a model by name, the outermost SELECT as ""; none of a relation that is no model."""
        if relation not in self._blocks and relation in self._project.models:
            self._blocks[relation] = self._parsed(self._project.models[relation])
        return self._blocks.get(relation, {})

    def _parsed(self, model: Model) -> Mapping[str, Block]:
        if model.is_python:  # its code is not analyzed: each column may depend on all input columns
            line = min(place.line or 1 for place in model.reads.values())
            given = tuple(Ref(read, column) for read in model.reads for column in self._relations.get(read, ()))
            step = Step(COMPUTED, line, given)
            return {"": Block({one.name: (step,) for one in model.columns}, (), tuple(model.reads))}
        from warehouse.lineage.select_steps import blocks_of

        return blocks_of(self._project.render(model), self._schema, self._relations, model.shown_path)

    def _file(self, relation: str) -> str:
        return self._project.models[relation].shown_path

    def origins(self, node: Node) -> tuple[Origin, ...]:
        """Return the steps of a model's column; none for a column of a raw relation or reference table."""
        blocks = self.blocks(node.relation)
        if not blocks:
            return ()
        block, file = blocks[node.block], self._file(node.relation)
        if node.column == ROWS:
            inputs = tuple(self.node(node.relation, Ref(read, ROWS)) for read in block.reads)
            return (Origin(COUNTED, file, inputs),)
        return tuple(
            Origin(step.kind, f"{file}:{step.line}", tuple(self.node(node.relation, ref) for ref in step.inputs))
            for step in block.columns[node.column]
        )

    def node(self, relation: str, ref: Ref) -> Node:
        """Return the node of a reference inside a model."""
        return Node(ref.source, "", ref.column) if "." in ref.source else Node(relation, ref.source, ref.column)

    def trace(self, relation: str, column: str) -> Trace:
        """Return the lineage of a column down to raw files, reference tables and literals."""
        start = Node(relation, "", column)
        path = self._upstream([start], lambda _: True)
        ends = tuple(node for node in path if node.relation in self.source_columns)
        found = {node: origins for node, origins in path.items() if node.relation not in self.source_columns}
        places = (one.place for origins in found.values() for one in origins if one.kind == LITERAL)
        return Trace(start, found, ends, tuple(dict.fromkeys(places)), tuple(self._deciders(found)))

    def _upstream(self, nodes: Iterable[Node], is_followed: Callable[[Node], bool]) -> dict[Node, tuple[Origin, ...]]:
        """Return columns and all columns upstream of those that are followed, each with its steps, in path order."""
        path: dict[Node, tuple[Origin, ...]] = {}
        # Reversed, as the last one is popped first.
        waiting = list(nodes)[::-1]
        while waiting:
            node = waiting.pop()
            if node not in path:
                path[node] = self.origins(node) if is_followed(node) else ()
                waiting += [one for origin in reversed(path[node]) for one in reversed(origin.inputs)]
        return path

    def _deciders(self, path: Iterable[Node]) -> Iterator[Origin]:
        """Yield the clauses of all blocks on a path, and of the blocks that these read inside their model.

        Counted rows are not followed: their relation has its own lineage.
        """
        seen: dict[tuple[str, str], None] = {}
        waiting = list(dict.fromkeys((node.relation, node.block) for node in path if node.column != ROWS))[::-1]
        while waiting:
            relation, name = waiting.pop()
            if (relation, name) not in seen:
                seen[relation, name] = None
                block = self.blocks(relation)[name]
                reads = (*block.reads, *(ref.source for clause in block.deciders for ref in clause.inputs))
                waiting += [(relation, read) for read in reads if "." not in read]
                yield from self._clauses_of(relation, name)

    def _clauses_of(self, relation: str, name: str) -> Iterator[Origin]:
        for one in self.blocks(relation)[name].deciders:
            columns = self._outside_of(self.node(relation, ref) for ref in one.inputs)
            if columns:
                yield Origin(one.kind, f"{self._file(relation)}:{one.line}", columns)

    def clauses(self, relation: str) -> tuple[Origin, ...]:
        """Return the clauses that determine the rows of a model, of all its blocks."""
        return tuple(one for name in self.blocks(relation) for one in self._clauses_of(relation, name))

    def made_of(self, relation: str, column: str) -> tuple[Node, ...]:
        """Return the columns of other relations that a model's column is computed from."""
        inputs = (one for origin in self.origins(Node(relation, "", column)) for one in origin.inputs)
        return self._outside_of(inputs)

    def kind(self, relation: str, column: str) -> str:
        """Return the most complex kind of a column's steps inside its model: copied, computed, aggregated, literal."""
        start = Node(relation, "", column)
        inside = self._upstream([start], lambda one: one == start or (bool(one.block) and one.column != ROWS))
        return max((one.kind for origins in inside.values() for one in origins), key=KINDS.index, default=KINDS[0])

    def reads(self, relation: str) -> list[str]:
        """Return the relations that a model reads."""
        return sorted({read for block in self.blocks(relation).values() for read in block.reads if "." in read})

    def _outside_of(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        """Return the columns of other relations that columns inside a model are computed from."""
        return tuple(node for node in self._upstream(nodes, lambda one: bool(one.block)) if not node.block)


def column_named(columns: Columns, project: Project, name: str) -> tuple[str, str]:
    """Return (relation, column) of a name such as `metrics.port_hour.in_bytes` or `port_hour.in_bytes`.

    Raises
    ------
    SettingsError
        With the nearest name.
    """
    table, _, column = name.rpartition(".")
    relation = table if table in columns.source_columns else find_model(project, table).name
    names = columns.source_columns.get(relation) or list(columns.blocks(relation)[""].columns)
    for one in names:
        if one.lower() == column.lower():
            return relation, one
    raise SettingsError(
        f"{relation} has no column {column}", hint=nearest_hint(column, names) or f"it has {few(names, 8)}"
    )
