"""Column lineage: the steps from raw files to a column, and the clauses that determine its rows; as text and as JSON.

`warehouse.lineage.select_steps` finds the steps in the models' SQL.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from warehouse.base.errors import SettingsError, nearest_hint
from warehouse.base.settings import Settings
from warehouse.base.text import few, for_target, grouped
from warehouse.graph.dag import columns_outside
from warehouse.graph.syntax import parsed, schema_of
from warehouse.lineage.select_steps import COMPUTED, KINDS, ROWS, Block, Node, Step, blocks_of
from warehouse.lineage.table_lineage import find_model, tree
from warehouse.project.model import Model
from warehouse.project.project import Project

_WIDTH = 80
"""Longest line of the summary, apart from lines of SQL."""


@dataclass(frozen=True)
class Trace:
    """Lineage of one column."""

    column: Node
    origins: Mapping[Node, tuple[Step, ...]]
    """Steps of every column on the path that a model computes, in the order of the path."""
    ends: tuple[Node, ...]
    """Columns of raw files and reference tables at the end of the path."""
    deciders: tuple[Step, ...]
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
        self._schema = schema_of({name: dict.fromkeys(columns, "") for name, columns in self._relations.items()})
        self._blocks: dict[str, Mapping[str, Block]] = {}

    def blocks(self, relation: str) -> Mapping[str, Block]:
        """Return the blocks of a model by name, the outermost SELECT as ""; none of a relation that is no model."""
        if relation not in self._blocks and relation in self._project.models:
            self._blocks[relation] = self._parsed(self._project.models[relation])
        return self._blocks.get(relation, {})

    def _parsed(self, model: Model) -> Mapping[str, Block]:
        if model.is_python:  # its code is not analyzed: each column may depend on all input columns
            line = min(place.line or 1 for place in model.reads.values())
            given = tuple(Node(read, "", column) for read in model.reads for column in self._relations.get(read, ()))
            step = Step(COMPUTED, f"{model.shown_path}:{line}", given)
            rows = tuple(Node(read, "", ROWS) for read in model.reads)
            return {"": Block({one.name: (step,) for one in model.columns}, (), rows)}
        return blocks_of(model.name, self._project.render(model), self._schema, self._relations, model.shown_path)

    def origins(self, node: Node) -> tuple[Step, ...]:
        """Return the steps of a model's column; none for a column of a raw relation or reference table."""
        block = self.blocks(node.relation).get(node.block)
        if block is None:
            return ()
        if node.column == ROWS:
            return (Step("counted", self._project.models[node.relation].shown_path, block.reads),)
        return block.columns[node.column]

    def trace(self, relation: str, column: str) -> Trace:
        """Return the lineage of a column down to raw files, reference tables and literals."""
        start = Node(relation, "", column)
        path = self._upstream([start], lambda _: True)
        ends = tuple(node for node in path if node.relation in self.source_columns)
        found = {node: origins for node, origins in path.items() if node.relation not in self.source_columns}
        return Trace(start, found, ends, tuple(self._deciders(found)))

    def _upstream(self, nodes: Iterable[Node], is_followed: Callable[[Node], bool]) -> dict[Node, tuple[Step, ...]]:
        """Return columns and all columns upstream of those that are followed, each with its steps, in path order."""
        path: dict[Node, tuple[Step, ...]] = {}
        # Reversed, as the last one is popped first.
        waiting = list(nodes)[::-1]
        while waiting:
            node = waiting.pop()
            if node not in path:
                path[node] = self.origins(node) if is_followed(node) else ()
                waiting += [one for origin in reversed(path[node]) for one in reversed(origin.inputs)]
        return path

    def _deciders(self, path: Iterable[Node]) -> Iterator[Step]:
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
                inputs = (*block.reads, *(one for clause in block.deciders for one in clause.inputs))
                waiting += [(relation, one.block) for one in inputs if one.block]
                yield from self._clauses_of(block)

    def _clauses_of(self, block: Block) -> Iterator[Step]:
        """Yield the clauses of a block, with the columns of other relations that they compare."""
        for one in block.deciders:
            columns = self._outside_of(one.inputs)
            if columns:
                yield one._replace(inputs=columns)

    def clauses(self, relation: str) -> tuple[Step, ...]:
        """Return the clauses that determine the rows of a model, of all its blocks."""
        return tuple(one for block in self.blocks(relation).values() for one in self._clauses_of(block))

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
        reads = (one for block in self.blocks(relation).values() for one in block.reads)
        return sorted({one.relation for one in reads if not one.block})

    def _outside_of(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        """Return the columns of other relations that columns inside a model are computed from."""
        return tuple(node for node in self._upstream(nodes, lambda one: bool(one.block)) if not node.block)


def column_lineage(settings: Settings, name: str, *, steps: bool = False) -> tuple[str, dict[str, object]]:
    """Return the lineage of a column from the models' SQL: as text, with each step if `steps`, and as JSON-able values.

    Raises
    ------
    SettingsError
        When there is no such column, with the nearest name.
    """
    project = Project.open(settings.project)
    columns = Columns(project)
    relation, column = _column_named(columns, project, name)
    trace, ends = columns.trace(relation, column), read_from(project)
    origins, model = trace.origins.get(trace.column, ()), project.models.get(relation)
    about, expression = "", list[str]()
    if model is not None:
        about = next(one.about for one in model.columns if one.name == column)
    if model is not None and not model.is_python and len(origins) == 1:  # a UNION has one for each branch
        tree = parsed(project.render(model), model.shown_path)
        texts = [
            one.sql("duckdb", pretty=True, normalize_functions="lower", comments=False)
            for one in (tree.selects if isinstance(tree, exp.Query) else ())
            if one.alias_or_name == column
        ]
        expression = "\n".join(texts).splitlines()
    said = summary_text(trace, about, columns.made_of(relation, column), expression, ends)
    if steps:
        said += f"\n\n{steps_text(trace, ends)}"
    elif origins:
        said += for_target(f"\n\nNext:  warehouse lineage {trace.column} --steps", settings.target)
    return said, as_json(trace)


def _column_named(columns: Columns, project: Project, name: str) -> tuple[str, str]:
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


def summary_text(
    trace: Trace, about: str, parents: Sequence[Node], expression: Sequence[str], ends: Mapping[str, str]
) -> str:
    """Return where a column is from in a few lines: its expression, the tables it reads, and the raw files.

    Parameters
    ----------
    trace
        The lineage of the column.
    about
        Its meaning, from the contract.
    parents
        Columns of other relations that the column is computed from.
    expression
        Lines of the SELECT item that computes the column, with macros expanded.
    ends
        The files of each source relation, from `read_from`.
    """
    lines = [f"{trace.column}  {_steps(trace, trace.column)}".rstrip()]
    lines += [_wrapped(f"    {about}")] if about else []
    lines += [f"    {line}" for line in expression]
    if parents:
        lines += ["", "reads", *(_wrapped(f"  {line}") for line in _by_relation(parents).values())]
    lines += ["", f"{trace.column} comes from"] if trace.ends else []
    for relation, columns in _by_relation(sorted(trace.ends)).items():
        lines += [_wrapped(f"  {columns}"), f"    {ends.get(relation, 'raw')}"]
    between = dict.fromkeys(node.relation for node in trace.origins if node.relation != trace.column.relation)
    lines += [_wrapped(f"  by way of {', '.join(between)}")] if between else []
    return "\n".join(lines)


def _wrapped(line: str) -> str:
    """Return a line in lines of the width; what follows the first is indented by two more."""
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _by_relation(nodes: Iterable[Node]) -> dict[str, str]:
    """Return each relation with its columns, by relation."""
    found = grouped((node.relation, "its rows" if node.column == ROWS else node.column) for node in nodes)
    return {relation: f"{relation}: {', '.join(columns)}" for relation, columns in found.items()}


def _steps(trace: Trace, node: Node) -> str:
    return ", ".join(f"{one.kind} {one.place}" for one in trace.origins.get(node, ()))


def steps_text(trace: Trace, ends: Mapping[str, str]) -> str:
    """Return a tree of all steps, and the clauses that determine the rows.

    Parameters
    ----------
    trace
        The lineage of the column.
    ends
        The files of each source relation, from `read_from`.
    """

    def inputs(node: Node) -> list[Node]:
        origins = () if node.column == ROWS else trace.origins.get(node, ())
        return list(dict.fromkeys(one for origin in origins for one in origin.inputs))

    def label(node: Node) -> str:
        said = "the number of rows" if node.column == ROWS else _steps(trace, node) or ends.get(node.relation, "")
        return f"{node}  {said}"

    lines = tree(trace.column, inputs, label)
    lines += ["", "rows decided by"] if trace.deciders else []
    lines += [f"  {one.kind:<8} {one.place}  {', '.join(map(str, one.inputs))}" for one in trace.deciders]
    return "\n".join(lines)


def as_json(trace: Trace) -> dict[str, object]:
    """Return the lineage as JSON-able values."""
    return {
        "column": trace.column.full,
        "steps": [
            {"column": node.full, "kind": one.kind, "place": one.place, "inputs": [given.full for given in one.inputs]}
            for node, origins in trace.origins.items()
            for one in origins
        ],
        "ends": [node.full for node in trace.ends],
        "rows": [
            {"how": one.kind, "place": one.place, "columns": [node.full for node in one.inputs]}
            for one in trace.deciders
        ],
    }


def read_from(project: Project) -> dict[str, str]:
    """Return the files of each source relation: the kind of raw files, or the file of `data/`."""
    sources = {
        "raw.files": "names and folders of the raw files",
        "raw.rejected_rows": "the lines that could not be read",
    }
    for one in project.formats:
        sources |= {relation.full_name: f"files of {one.name}" for relation in one.relations}
    return sources | {name: f"data/{one.path.name}" for name, one in project.references.items()}
