"""DAG of models, built from the relations that their SELECTs read: parse, order, bind, select.

All models and checks are bound against the contracts of their inputs, which finds every mistake that can be found
without rows.
"""

from __future__ import annotations

import fnmatch
import graphlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from warehouse.base.errors import ModelError, Place, SettingsError, nearest, nearest_hint
from warehouse.base.sql_text import line_column
from warehouse.base.startup import regex
from warehouse.engine import python_model
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.duckdb_errors import EngineError
from warehouse.engine.sources import Empty
from warehouse.engine.tree import TABLES, Parsed, looks_volatile
from warehouse.formats.base import is_raw
from warehouse.ingest.reading import FILES, source_columns
from warehouse.project.contract import Check, Column, same_columns
from warehouse.project.model import LAYERS, Model, compile_check, relations_of
from warehouse.project.project import Project
from warehouse.store.state import ParseCache

_HAS_QUERY = regex(r"\b(?:select|from|with|write_log)\b", re.IGNORECASE)
"""Words of a check that is a query. A check without any of these is a condition on a row."""
_MAPPED = regex(r"/\* (data/traces/[^*]+):(\d+) \*/")
"""Place of an expression of a mapping, as `warehouse.project.macros` writes it."""


class Node(NamedTuple):
    """Node of the DAG: a model, its rendered SELECT or Python source, and the relations that it reads."""

    model: Model
    sql: str
    reads: tuple[str, ...]
    canonical: str
    canonical_hash: str
    """Hash of the canonical text."""
    volatile: tuple[tuple[str, int | None], ...] = ()
    """Non-deterministic expressions, each with its byte offset in the SQL."""
    needs: frozenset[frozenset[str]] = frozenset()
    """Groups of relations: if all relations of one group are empty, the result is empty."""
    checks_need: Mapping[str, frozenset[frozenset[str]]] = MappingProxyType({})
    """Same as `needs` for each check that is a query, by its text. The check passes if its result is empty."""

    @property
    def is_volatile(self) -> bool:
        """True if the SELECT or a check is volatile, so that every build must run it."""
        return bool(self.volatile) or any(looks_volatile(check.text) for check in self.model.checks)


@dataclass(frozen=True)
class Graph:
    """All models, and the columns of the source relations (`raw`, `reference`)."""

    nodes: Mapping[str, Node]
    source_columns: Mapping[str, tuple[Column, ...]]

    @staticmethod
    def build(project: Project, engine: DuckDBEngine) -> Graph:
        """Parse and order all models, except those in the cache.

        Raises
        ------
        ModelError
            For a syntax error, an unknown relation (with the nearest name), or a circular dependency.
        """
        source_columns = columns_outside(project)
        nodes = {}
        parse_cache = project.parse_cache
        # The SELECT is put in brackets, where a semicolon is an error.
        selects = {name: project.render(model).rstrip().rstrip(";") for name, model in project.models.items()}
        in_sql = [name for name, model in project.models.items() if not model.is_python]
        of_sql = dict(zip(in_sql, _parse_all([selects[name] for name in in_sql], engine, parse_cache), strict=True))
        for name, model in project.models.items():
            parsed = python_model.parse(model, parse_cache) if model.is_python else of_sql[name]
            if isinstance(parsed, EngineError):
                raise model_error(model, selects[name], parsed) from parsed
            queries = {check.text: _parse_query(check, model, engine, parse_cache) for check in model.checks}
            needs = {text: query.needs for text, query in queries.items() if query}
            nodes[name] = Node(model, selects[name], *parsed, needs)
        for name in sorted(nodes.keys() & source_columns.keys()):
            raise ModelError(f"{name} is a table of data/, too", place=nodes[name].model.place())
        known = [*nodes, *source_columns]
        for node in nodes.values():
            places = {read: check.place for check in node.model.checks for read in relations_of(check.text)}
            for read in (*node.reads, *places):
                if read not in known:
                    place = _place_of(node, read) if read in node.reads else places[read]
                    raise ModelError(f"no relation {read}", place=place, hint=_hint(read, known))
        graph = Graph(nodes, source_columns)
        _ = graph.order  # raises ModelError for a cycle
        return graph

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Model names in dependency order: each after the models that it and its checks read. Ties by name."""
        wants = {
            name: {*node.reads, *(checked_relations(node) - {name})} & self.nodes.keys()
            for name, node in self.nodes.items()
        }
        sorter = graphlib.TopologicalSorter(wants)
        try:
            sorter.prepare()
        except graphlib.CycleError as error:
            names = error.args[1]
            first = self.nodes[names[1]]
            raise ModelError(
                # graphlib names an input before its reader.
                f"the models read each other in a circle: {' -> '.join(reversed(names))}",
                place=_place_of(first, names[0]),
            ) from error
        ordered: list[str] = []
        while sorter.is_active():
            ready = sorted(sorter.get_ready())
            ordered += ready
            sorter.done(*ready)
        return tuple(ordered)

    def ancestors(self, name: str) -> set[str]:
        """Return all relations upstream of a model, raw ones included."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            node = self.nodes.get(waiting.pop())
            for read in node.reads if node else ():
                if read not in found:
                    found.add(read)
                    waiting.append(read)
        return found

    def descendants(self, name: str) -> set[str]:
        """Return all models downstream of a relation."""
        return {other for other in self.nodes if name in self.ancestors(other)}

    def below_views(self, reads: Iterable[str]) -> Iterator[str]:
        """Yield these relations, with each view replaced by the relations that it reads."""
        for read in reads:
            node = self.nodes.get(read)
            if node is not None and node.model.is_view:
                yield from self.below_views(node.reads)
            else:
                yield read

    def joined_with_files(self, node: Node) -> frozenset[str]:
        """Return the raw relations that a model joins with `raw.files`.

        For such a model, `raw.files` lists only the files of these relations. So the table of a workbook does not
        depend on counter files. The result is empty, and all files are listed, if the model is a view, does not read
        `raw.files`, reads no other raw relation, or also reads `raw.files` through a view. The model's checks read the
        same list.
        """
        others = [read for read in node.reads if read != FILES]
        if len(others) == len(node.reads) or node.model.is_view or FILES in self.below_views(others):
            return frozenset()
        return frozenset(read for read in others if is_raw(read))


def _parse_all(selects: Sequence[str], engine: DuckDBEngine, parse_cache: ParseCache) -> list[Parsed | EngineError]:
    """Parse SELECTs with the engine, except those in the cache."""
    new = [sql for sql in dict.fromkeys(selects) if not parse_cache.contains(["parse", sql])]
    found = dict(zip(new, engine.parse_all(new) if new else (), strict=True))
    for sql in selects:
        parsed = found.get(sql)
        if not isinstance(parsed, EngineError):
            known = parse_cache.get(["parse", sql], partial(msgspec.to_builtins, parsed))
            found[sql] = msgspec.convert(known, Parsed)
    return [found[sql] for sql in selects]


def _parse_query(check: Check, model: Model, engine: DuckDBEngine, parse_cache: ParseCache) -> Parsed | None:
    """Parse a check that is a query; None for a condition on a row. Raises ModelError if it reads files or writes."""
    if not _HAS_QUERY.search(check.text):
        return None
    (parsed,) = _parse_all([compile_check(check, model).failing], engine, parse_cache)
    if isinstance(parsed, EngineError):
        raise ModelError(f"the check `{check.text}` is not valid: {parsed.message}", place=check.place) from parsed
    for expression, _ in parsed.volatile:
        if expression.startswith("'") or TABLES.match(expression.removesuffix("()")):
            raise ModelError(
                f"the check `{check.text}` is refused: it reads {expression}, which is no relation", place=check.place
            )
    return parsed


def checked_relations(node: Node) -> set[str]:
    """Return the relations that a model's checks read."""
    return {read for check in node.model.checks for read in relations_of(check.text)}


def model_error(model: Model, sql: str, error: EngineError, relations: Sequence[str] = ()) -> ModelError:
    """Return an engine's error with its place in the model's file. DuckDB counts bytes; the place counts characters."""
    parsed, message, hint = error.parsed, error.message, None
    if parsed.name and parsed.table:  # for a CTE or an alias, DuckDB may offer no names: take the words of the SQL
        message = f"no column {parsed.name} in {parsed.table}"
        words = parsed.candidates or set(re.findall(r"[a-z_][a-z0-9_]*", sql)) - {parsed.name}
        hint = nearest_hint(parsed.name, words)
    elif parsed.name and (parsed.candidates or parsed.kind != "column"):
        message = f"no {parsed.kind} {parsed.name}"
        if parsed.kind == "relation":
            hint = _nearest_relation(parsed.name, relations)
        else:
            others = f"there are: {', '.join(parsed.candidates)}" if parsed.kind == "column" else None
            hint = nearest_hint(parsed.name, parsed.candidates) or others
    place = model.place() if parsed.position is None else place_in_select(model, sql, parsed.position)
    return ModelError(message, place=place, hint=hint)


def place_in_select(model: Model, sql: str, offset: int) -> Place:
    """Return the place in a model's file of a byte offset in its rendered SELECT.

    A line with a macro call has no column number, since the rendered text is longer. An expression of a mapping has its
    place in front of it.
    """
    line, column = line_column(sql, offset)
    written = model.sql.split("\n")
    has_macro = line <= len(written) and "{{" in written[line - 1]
    mapped = _MAPPED.findall(sql.encode()[:offset].decode(errors="ignore").rpartition("\n")[2]) if has_macro else None
    if mapped:
        return Place(mapped[-1][0], int(mapped[-1][1]))  # the last one before the error
    return model.place(line, None if has_macro else column)


def _place_of(node: Node, relation: str) -> Place:
    """Return the place where a model's text first names a relation."""
    if relation in node.model.reads:
        return node.model.reads[relation]
    found = re.search(rf"\b{re.escape(relation)}\b", node.sql)
    if found is None:
        return node.model.place()
    return place_in_select(node.model, node.sql, len(node.sql[: found.start()].encode()))


def _hint(read: str, known: Sequence[str]) -> str | None:
    """Return the nearest relation, and for an unknown table of `data/` how to add it."""
    near = _nearest_relation(read, known)
    layer, _, name = read.partition(".")
    if layer != "reference":
        return near
    add = f"data/{name}.csv of the project needs an entry `{name}:` with `about` and `columns` in data/tables.yaml"
    return "; ".join(filter(None, (near, add)))


def _nearest_relation(name: str, known: Iterable[str]) -> str:
    known = list(known)
    same_tail = [other for other in known if other.split(".")[-1] == name.split(".")[-1]]
    found = same_tail[0] if same_tail else nearest(name, known)
    return f"nearest: {found}" if found else "see `warehouse ls` for what there is"


def contracts(graph: Graph) -> list[object]:
    """Return the contract of every model, and the SELECT of every view. Both are part of the build id."""
    return [
        [
            name,
            node.model.about,
            node.model.grain,
            node.model.materialize,
            [column._asdict() for column in node.model.columns],
            node.canonical if node.model.is_view else None,
        ]
        for name, node in sorted(graph.nodes.items())
    ]


def bind(graph: Graph, engine: DuckDBEngine, parse_cache: ParseCache) -> None:
    """Bind every model and its checks against the contracts of their inputs, except those in the cache.

    Raises
    ------
    ModelError
        For an unknown column or function (with the nearest name), a wrong type, or columns that differ
        from the contract.
    """
    contracts = {**graph.source_columns, **{name: node.model.columns for name, node in graph.nodes.items()}}
    inputs = {name: _inputs(graph, name, contracts) for name in graph.order}
    uncached = [graph.nodes[name] for name in graph.order if not parse_cache.contains(inputs[name])]
    needed = {read for node in uncached for read in (node.model.name, *node.reads, *checked_relations(node))}
    with engine.scratch({name: Empty(contracts[name]) for name in needed}) as scratch:
        for node in uncached:
            if not node.model.is_python:  # Python models have no schema before they run
                try:
                    actual = scratch.describe(node.sql)
                except EngineError as error:
                    raise model_error(node.model, node.sql, error, [*contracts]) from error
                same_columns(node.model.columns, actual, node.model.place(1))
            for check in node.model.checks:
                try:
                    scratch.describe(compile_check(check, node.model).failing)
                except EngineError as error:
                    raise check_is_not_valid(check, node.model, error) from error
    # Cached models, too: `save` drops what was not used.
    for name in graph.order:
        parse_cache.get(inputs[name], lambda: True)


def _inputs(graph: Graph, name: str, contracts: Mapping[str, tuple[Column, ...]]) -> object:
    """Return the cache key of a model: everything that decides if the model and its checks bind."""
    node = graph.nodes[name]
    checks = [[check.text, check.warn] for check in node.model.checks]
    reads = sorted({name, *node.reads, *checked_relations(node)})
    types = [[read, [[column.name, column.type] for column in contracts[read]]] for read in reads]
    return ["bind", node.sql, node.model.grain, checks, types]


def check_is_not_valid(check: Check, model: Model, error: EngineError) -> ModelError:
    """Return the error of a check that does not bind, with the nearest existing name as a hint."""
    parsed, hint = error.parsed, None
    if parsed.name and parsed.candidates:
        columns = [column.name for column in model.columns] if parsed.kind == "column" else []
        hint = nearest_hint(parsed.name, [*columns, *parsed.candidates])
    return ModelError(f"the check `{check.text}` is not valid: {error.message}", place=check.place, hint=hint)


def load_graph(project: Project, engine: DuckDBEngine) -> Graph:
    """Parse, order and bind all models, except those in the project's cache.

    This finds every mistake that can be found without rows. Raises ModelError.
    """
    graph = Graph.build(project, engine)
    bind(graph, engine, project.parse_cache)
    project.parse_cache.save()
    return graph


def columns_outside(project: Project) -> dict[str, tuple[Column, ...]]:
    """Return the columns of the relations that no model makes: raw ones and reviewed tables."""
    raw = source_columns(project.formats) if project.reads_raw else {}
    return raw | {name: one.columns for name, one in project.references.items()}


def select_models(graph: Graph, selectors: Sequence[str]) -> set[str]:
    """Return the models that match the selectors; all models without a selector.

    A selector is a name (`metrics.port_hour`), a layer (`metrics`), or a glob (`*.port_*`). A leading `+` adds all
    upstream models, a trailing `+` all downstream models.

    Raises
    ------
    SettingsError
        When a selector matches no model.
    """
    if not selectors:
        return set(graph.nodes)
    chosen: set[str] = set()
    for selector in (part.strip() for given in selectors for part in given.split(",") if part.strip()):
        core = selector.strip("+")
        pattern = f"{core}.*" if core in LAYERS else core
        found = set(fnmatch.filter(graph.nodes, pattern))
        if not found:
            raise SettingsError(
                f"--select {selector}: no model has this name",
                hint=nearest_hint(core, [*graph.nodes, *LAYERS]),
            )
        chosen |= found
        if selector.startswith("+"):
            chosen |= {name for one in found for name in graph.ancestors(one) if name in graph.nodes}
        if selector.endswith("+"):
            chosen |= {name for one in found for name in graph.descendants(one)}
    return chosen
