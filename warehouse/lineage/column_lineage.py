"""Column lineage: the steps from raw files to a column, and the clauses that determine its rows.

`warehouse.lineage.select_steps` finds the steps in the models' SQL. It is imported only for changed models; the
steps of other models are in the target's cache.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from warehouse.base import hashing
from warehouse.base.errors import SettingsError, nearest_hint
from warehouse.base.text import few
from warehouse.graph.dag import columns_outside
from warehouse.lineage.steps import COMPUTED, LITERAL, ROWS, Block, Ref, Step
from warehouse.lineage.table_lineage import find_model
from warehouse.project.model import Model
from warehouse.project.project import Project

CACHE = "lineage.json"
COUNTED = "counted"
"""Kind of a step from rows to the rows below them."""
VERSION = 2
"""Version of the cache. Increase it if a SELECT would give different steps."""


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


@dataclass(frozen=True)
class Columns:
    """Columns of all models with their steps."""

    blocks: Mapping[str, Mapping[str, Block]]
    """Blocks of each model by name; the outermost SELECT is ""."""
    files: Mapping[str, str]
    source_columns: Mapping[str, Sequence[str]]
    """Columns of raw relations and reference tables."""
    _origins: dict[Node, tuple[Origin, ...]] = field(default_factory=dict, compare=False, repr=False)
    _paths: dict[Node, dict[Node, None]] = field(default_factory=dict, compare=False, repr=False)
    _blocks_below: dict[tuple[str, str], dict[tuple[str, str], None]] = field(
        default_factory=dict, compare=False, repr=False
    )
    _clauses: dict[tuple[str, str], tuple[Origin, ...]] = field(default_factory=dict, compare=False, repr=False)
    _outside: dict[Node, tuple[Node, ...]] = field(default_factory=dict, compare=False, repr=False)

    def origins(self, node: Node) -> tuple[Origin, ...]:
        """Return the steps of a model's column; none for a column of a raw relation or reference table."""
        known = self._origins.get(node)
        if known is None:
            known = self._origins[node] = self._new_origins(node)
        return known

    def _new_origins(self, node: Node) -> tuple[Origin, ...]:
        if node.relation not in self.blocks:
            return ()
        block = self.blocks[node.relation][node.block]
        file = self.files[node.relation]
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
        path = self._path(start)
        ends = tuple(node for node in path if node.relation in self.source_columns)
        found = {node: self.origins(node) for node in path if node.relation not in self.source_columns}
        places = (one.place for origins in found.values() for one in origins if one.kind == LITERAL)
        return Trace(start, found, ends, tuple(dict.fromkeys(places)), tuple(self._deciders(found)))

    def _path(self, start: Node) -> Mapping[Node, None]:
        """Return a column and all columns upstream of it, in order of discovery."""
        path = self._paths.get(start)
        if path is None:
            path = self._paths[start] = {}
            waiting = [start]
            while waiting:
                node = waiting.pop()
                if node.block or node == start:  # blocks of a model can be recursive; models cannot
                    if node not in path:
                        path[node] = None
                        waiting += (one for origin in self.origins(node) for one in reversed(origin.inputs))
                else:
                    path |= self._path(node)
        return path

    def _deciders(self, path: Iterable[Node]) -> Iterable[Origin]:
        """Yield the clauses of all blocks on a path, and of the blocks that these read inside their model.

        Counted rows are not followed: their relation has its own lineage.
        """
        seen: dict[tuple[str, str], None] = {}
        for node in path:
            if node.column != ROWS and (node.relation, node.block) not in seen:
                seen |= self._below(node.relation, node.block)
        for at in seen:
            if at not in self._clauses:
                self._clauses[at] = tuple(self._clauses_of(*at))
            yield from self._clauses[at]

    def _below(self, relation: str, name: str) -> Mapping[tuple[str, str], None]:
        """Return a block and the blocks of its model that it reads, directly or indirectly."""
        found = self._blocks_below.get((relation, name))
        if found is None:
            found = self._blocks_below[relation, name] = {}
            waiting = [name]
            while waiting:
                one = waiting.pop()
                if (relation, one) not in found:
                    found[relation, one] = None
                    block = self.blocks[relation][one]
                    reads = (*block.reads, *(ref.source for clause in block.deciders for ref in clause.inputs))
                    waiting += [read for read in reads if "." not in read]
        return found

    def _clauses_of(self, relation: str, name: str) -> Iterator[Origin]:
        for one in self.blocks[relation][name].deciders:
            columns = self._outside_of(self.node(relation, ref) for ref in one.inputs)
            if columns:
                yield Origin(one.kind, f"{self.files[relation]}:{one.line}", columns)

    def clauses(self, relation: str) -> tuple[Origin, ...]:
        """Return the clauses that determine the rows of a model, of all its blocks."""
        return tuple(one for name in self.blocks[relation] for one in self._clauses_of(relation, name))

    def made_of(self, relation: str, column: str) -> tuple[Node, ...]:
        """Return the columns of other relations that a model's column is computed from."""
        inputs = (one for origin in self.origins(Node(relation, "", column)) for one in origin.inputs)
        return self._outside_of(inputs)

    def _outside_of(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        """Return the columns of other relations that columns inside a model are computed from."""
        found: dict[Node, None] = {}
        for node in nodes:
            if node not in self._outside:
                self._outside[node] = (node,) if not node.block else ()  # a recursive CTE reads itself
                if node.block:
                    inputs = [one for origin in self.origins(node) for one in origin.inputs]
                    self._outside[node] = self._outside_of(inputs)
            found |= dict.fromkeys(self._outside[node])
        return tuple(found)


def load(project: Project, target: Path) -> Columns:
    """Return the columns of all models of a project. Unchanged models come from the target's cache."""
    cache = target / "cache" / CACHE if target.is_dir() else None
    return columns_of(
        project, {name: [one.name for one in columns] for name, columns in columns_outside(project).items()}, cache
    )


def columns_of(project: Project, source_columns: Mapping[str, Sequence[str]], cache: Path | None = None) -> Columns:
    """Return the columns of all models of a project, except those in `cache` without parsing."""
    relations = dict(source_columns) | {
        name: [one.name for one in model.columns] for name, model in project.models.items()
    }
    schema = None
    known = _read(cache)
    kept: dict[str, dict[str, Any]] = {}
    blocks: dict[str, Mapping[str, Block]] = {}
    for name, model in project.models.items():
        sql = project.render(model) if not model.is_python else f"{relations[name]} {model.reads}"
        cached = known.get(name)
        if cached is not None and cached["mark"] == _mark(sql, cached["reads"], relations):
            blocks[name] = {one: Block.from_json(block) for one, block in cached["blocks"].items()}
            kept[name] = cached
            continue
        if model.is_python:
            blocks[name] = _declared(model, relations)
        else:
            from warehouse.graph.syntax import schema_of  # imports sqlglot, which is slow
            from warehouse.lineage.select_steps import blocks_of

            schema = schema or schema_of({one: dict.fromkeys(columns, "") for one, columns in relations.items()})
            blocks[name] = blocks_of(sql, schema, relations, model.shown_path)
        if cache is not None:
            reads = sorted({read for block in blocks[name].values() for read in block.reads if "." in read})
            as_json = {one: block.as_json() for one, block in blocks[name].items()}
            kept[name] = {"mark": _mark(sql, reads, relations), "reads": reads, "blocks": as_json}
    if cache is not None and kept != known:
        _write(cache, kept)
    return Columns(blocks, {name: model.shown_path for name, model in project.models.items()}, source_columns)


def _declared(model: Model, relations: Mapping[str, Sequence[str]]) -> Mapping[str, Block]:
    """Return the block of a Python model, whose code is not analyzed: each column may depend on all input columns."""
    line = min(place.line or 1 for place in model.reads.values())
    given = tuple(Ref(read, column) for read in model.reads for column in relations.get(read, ()))
    step = Step(COMPUTED, line, given)
    return {"": Block({one.name: (step,) for one in model.columns}, (), tuple(model.reads))}


def _mark(sql: str, reads: Sequence[str], relations: Mapping[str, Sequence[str]]) -> str:
    return hashing.of([VERSION, sql, [[read, relations.get(read)] for read in reads]])


def _read(cache: Path | None) -> dict[str, dict[str, Any]]:
    try:
        cached = json.loads(cache.read_bytes()) if cache else {}
    except (OSError, ValueError):
        return {}
    return cached if isinstance(cached, dict) else {}


def _write(cache: Path, kept: Mapping[str, object]) -> None:
    temporary_path = cache.with_name(f".{cache.name}.{os.getpid()}")
    try:
        cache.parent.mkdir(exist_ok=True)
        temporary_path.write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")
        temporary_path.replace(cache)
    except OSError:  # a read-only target: models are parsed again next time
        temporary_path.unlink(missing_ok=True)


def column_named(columns: Columns, project: Project, name: str) -> tuple[str, str]:
    """Return (relation, column) of a name such as `metrics.port_hour.in_bytes` or `port_hour.in_bytes`.

    Raises
    ------
    SettingsError
        With the nearest name.
    """
    table, _, column = name.rpartition(".")
    relation = table if table in columns.source_columns else find_model(project, table).name
    names = columns.source_columns.get(relation) or list(columns.blocks[relation][""].columns)
    for one in names:
        if one.lower() == column.lower():
            return relation, one
    raise SettingsError(
        f"{relation} has no column {column}", hint=nearest_hint(column, names) or f"it has {few(names, 8)}"
    )
