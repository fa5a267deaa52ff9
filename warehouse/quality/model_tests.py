"""Tests of `warehouse test`: unit tests of models, examples of mappings of job traces, examples of log lines.

A unit test has input rows and the expected output rows.

`models/metrics/leaf_hour.test.yaml`, beside the model:

    everywhere: {cluster: c, hour_utc: 2024-05-23 16:00:00}

    access ports and uplinks are summed apart:
      given:
        metrics.port_hour: |
          switch, port, in_bytes, out_bytes
          Leaf-1, a,    10,       1
          Leaf-1, u,    5,        20
        topology.ports: |
          switch, port, port_class
          Leaf-1, a,    access
          Leaf-1, u,    uplink
      expect: |
        switch, access_in_bytes, uplink_out_bytes
        Leaf-1, 10,              20

Rows are CSV; blanks around a cell are ignored. An empty cell is NULL, and `''` is the empty text. `0..59` stands for
60 rows, `2^0..5` for one row each with 1, 2, 4 .. 32. Several ranges in one row advance together. A column that a
table does not name has its value from `everywhere`. Without one, it is NULL in inputs and not compared in outputs. A
relation that is not given is empty; a view is computed from its inputs. A path of a CSV file stands for its rows.

`examples` in `data/traces/NAME.yaml` are files of a trace and the rows of its tables; they become such tests. Examples
of kinds of log lines stand in `data/log_lines.yaml`.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from warehouse.base.errors import ModelError, Place, nearest_hint
from warehouse.base.sql_text import identifier, literal
from warehouse.base.startup import regex
from warehouse.base.text import few
from warehouse.base.yaml_text import Value, read_yaml
from warehouse.engine import python_model
from warehouse.engine.duckdb import DuckDBEngine, DuckDBScratch
from warehouse.engine.duckdb_errors import EngineError
from warehouse.engine.sources import Empty, Parts, Select, Source, source_sql
from warehouse.formats.base import RawFile
from warehouse.formats.logs.event import DAMAGED, Damaged
from warehouse.formats.logs.line_kinds import LineKind, line_kinds
from warehouse.formats.logs.line_parser import LineParser
from warehouse.formats.named_csv import NamedCsv
from warehouse.formats.traces import TARGETS, Trace
from warehouse.graph.dag import Graph, Node
from warehouse.ingest.reading import FILES, csv_source
from warehouse.project.contract import Column
from warehouse.project.model import read_source
from warehouse.store.atomic import scratch_folder

SUFFIX = ".test.yaml"
_SHAPE = (
    "a test has `expect` with rows, and `given` with rows for each table; rows are a block of text: `|`, then a line "
    "of column names"
)
_RANGE = regex(r"^(2\^)?([0-9]{1,9})[.]{2}([0-9]{1,9})$")
_LONGEST_RANGE = 100_000
_LARGEST_POWER = 62  # 2^63 exceeds BIGINT
_VALUES = {"": None, "''": ""}
"""Values of cells that are not their text: an empty cell is NULL, so the empty text needs a form of its own."""
Row = tuple[object, ...]


@dataclass(frozen=True)
class Rows:
    """Table of a test: column names, cells as text, place."""

    columns: tuple[str, ...]
    cells: tuple[tuple[str | None, ...], ...]
    place: Place


@dataclass(frozen=True)
class ModelTest:
    """Unit test of a model."""

    model: str
    name: str
    place: Place
    given: Mapping[str, Rows | Source]
    expect: Rows


def tests_of(node: Node, graph: Graph) -> list[ModelTest]:
    """Return the tests in the file next to a model, checked against the contracts; none without a file.

    Raises
    ------
    ModelError
        With file and line, for an invalid test.
    """
    path = node.model.path.with_name(node.model.path.stem + SUFFIX)
    if not path.is_file():
        return []
    shown = node.model.shown_path.removesuffix(node.model.path.suffix) + SUFFIX
    tests = read_yaml(read_source(path, shown), shown, "the file of tests")
    everywhere = tests.pop("everywhere", None)
    values = everywhere.content if everywhere and isinstance(everywhere.content, Mapping) else {}
    if everywhere and not values:
        raise ModelError("`everywhere` is a list of `column: value`", place=everywhere.place(shown))
    if not tests:
        raise ModelError("the file holds no test", place=Place(shown, 1))
    same = {name: str(below.content) for name, below in values.items()}
    return [_test(node, graph, name, value, shown, same) for name, value in tests.items()]


def _test(node: Node, graph: Graph, name: str, value: Value, shown: str, everywhere: Mapping[str, str]) -> ModelTest:
    keys = value.content if isinstance(value.content, Mapping) else {}
    tables = keys["given"].content if "given" in keys else {}
    if not {"expect"} <= keys.keys() <= {"given", "expect"} or not isinstance(tables, Mapping):
        raise ModelError(_SHAPE, place=value.place(shown))
    given: dict[str, Rows | Source] = {}
    known = _visible(graph, node)
    for relation, table in tables.items():
        if relation not in known:
            hint = nearest_hint(relation, known) or f"it reads {', '.join(known)}"
            raise ModelError(f"{node.model.name} does not read {relation}", place=table.place(shown), hint=hint)
        rows = _content(table, node.model.path.parent, shown)
        given[relation] = rows_of(rows, shown, _contract(graph, relation), relation, everywhere)
    expect = rows_of(keys["expect"], shown, node.model.columns, node.model.name, everywhere)
    return ModelTest(node.model.name, name, value.place(shown), given, expect)


def _content(rows: Value, folder: Path, shown: str) -> Value:
    """Return the rows, or those of the file that they name."""
    if not isinstance(rows.content, str) or not rows.content.endswith(".csv"):
        return rows
    if not (folder / rows.content).is_file():
        raise ModelError(f"there is no file {rows.content}", place=rows.place(shown))
    return rows._replace(content=read_source(folder / rows.content, rows.content))


def rows_of(value: Value, shown: str, contract: Sequence[Column], relation: str, everywhere: Mapping[str, str]) -> Rows:
    """Return the rows of a CSV block, with the values of `everywhere` added."""
    known = [column.name for column in contract]
    text = value.content if isinstance(value.content, str) else ""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), value.line + 1) if line.strip()]
    # A quote after a blank would otherwise be a letter of the cell.
    split = [(number, next(csv.reader([line], skipinitialspace=True))) for number, line in lines]
    parsed = [(number, [cell.strip() for cell in cells]) for number, cells in split]
    if not parsed:
        raise ModelError(_SHAPE, place=value.place(shown))
    columns = parsed[0][1]
    for name in columns:
        if name not in known:
            raise ModelError(
                f"{relation} has no column {name}",
                place=Place(shown, parsed[0][0]),
                hint=nearest_hint(name, known) or f"it has {few(known, 8)}",
            )
    for number, cells in parsed[1:]:
        if len(cells) != len(columns):
            raise ModelError(f"{len(cells)} cells below {len(columns)} columns", place=Place(shown, number))
    more = {name: text for name, text in everywhere.items() if name in known and name not in columns}
    rows = [[*row, *more.values()] for number, cells in parsed[1:] for row in _spread(cells, Place(shown, number))]
    return Rows(
        (*columns, *more), tuple(tuple(_VALUES.get(cell, cell) for cell in row) for row in rows), value.place(shown)
    )


def _spread(cells: list[str], place: Place) -> Iterator[list[str]]:
    """Yield the rows of a row with ranges such as `0..59`; several ranges in one row advance together."""
    runs = {at: _numbers(found, place) for at, cell in enumerate(cells) if (found := _RANGE.match(cell))}
    lengths = [len(run) for run in runs.values()]
    if len(set(lengths)) > 1:
        shown = " and ".join(map(str, lengths))
        raise ModelError(f"ranges of {shown} numbers in one row", place=place, hint="they run side by side")
    for number in range(max(lengths, default=1)):
        yield [str(runs[at][number]) if at in runs else cell for at, cell in enumerate(cells)]


def _numbers(found: re.Match[str], place: Place) -> Sequence[int]:
    powers, first, last = found[1], int(found[2]), int(found[3])
    if last - first >= _LONGEST_RANGE or (powers and last > _LARGEST_POWER):
        longest = f"a range has at most {_LONGEST_RANGE:,} numbers, and powers up to 2^{_LARGEST_POWER}"
        raise ModelError(f"the range {found[0]} is too long: {longest}", place=place)
    return [2**number for number in range(first, last + 1)] if powers else range(first, last + 1)


def _contract(graph: Graph, relation: str) -> Sequence[Column]:
    return graph.nodes[relation].model.columns if relation in graph.nodes else graph.source_columns[relation]


# running ------------------------------------------------------------------------------------


def run_test(engine: DuckDBEngine, graph: Graph, test: ModelTest) -> list[str]:
    """Run one test; return one line for each different cell or row. An empty list means that the test passed.

    Raises
    ------
    ModelError
        With the place of the test, when the model fails or a cell does not have its column's type.
    """
    node = graph.nodes[test.model]
    sources = {read: _source(graph, read, test.given.get(read)) for read in _visible(graph, node)}
    try:
        with engine.scratch(sources) as scratch:
            chosen = [column for name in test.expect.columns for column in node.model.columns if column.name == name]
            expected = scratch.rows(_select(test.expect, chosen)) if test.expect.cells else []
            rows = _output_rows(scratch, node, graph, chosen)
            return list(differences(rows, expected, chosen, node.model.grain))
    except EngineError as error:
        raise ModelError(f"the test `{test.name}` fails to run: {error.message}", place=test.place) from error


def _visible(graph: Graph, node: Node) -> list[str]:
    """Return the relations that a model reads, after those that they read if they are views."""
    found: dict[str, None] = {}
    for read in node.reads:
        if read in graph.nodes and graph.nodes[read].model.is_view:
            found |= dict.fromkeys(_visible(graph, graph.nodes[read]))
        found[read] = None
    return list(found)


def _source(graph: Graph, relation: str, given: Rows | Source | None) -> Source:
    """Return the given rows of a relation; without any, a view is computed, as no test should repeat what it does."""
    contract = tuple(_contract(graph, relation))
    if isinstance(given, Rows):
        return _all_columns(given, contract)
    if given is None and relation in graph.nodes and graph.nodes[relation].model.is_view:
        return Select(graph.nodes[relation].sql, contract)
    return given or Empty(contract)


def _output_rows(scratch: DuckDBScratch, node: Node, graph: Graph, chosen: Sequence[Column]) -> list[Row]:
    """Return the chosen columns of the model's output rows."""
    model = node.model
    names = ", ".join(f'made."{column.name}"' for column in chosen)
    if not model.is_python:
        return scratch.rows(f"SELECT {names} FROM ({source_sql(Select(node.sql, model.columns))}) AS made")
    with scratch_folder("test") as folder:
        path = folder / "made.parquet"
        orders = [graph.nodes[read].model.grain if read in graph.nodes else () for read in model.reads]
        python_model.write(scratch, model, orders, path)
        # By way of a file, as a build does it: so the types of the contract are checked, too.
        scratch.bind([("written.made", Parts(model.columns, (path,)))])
        return scratch.rows(f"SELECT {names} FROM written.made")


def _all_columns(rows: Rows, contract: tuple[Column, ...]) -> Source:
    """Return the rows as a source with all columns of the contract; missing columns are NULL."""
    if not rows.cells:
        return Empty(contract)
    named = [next(column for column in contract if column.name == name) for name in rows.columns]
    nulls = "".join(f", NULL AS {identifier(one.name)}" for one in contract if one.name not in rows.columns)
    return Select(f"SELECT *{nulls} FROM ({_select(rows, named)})", contract)


def _select(rows: Rows, columns: Sequence[Column]) -> str:
    names = [identifier(column.name) for column in columns]
    casts = [f"CAST({name} AS {column.type}) AS {name}" for name, column in zip(names, columns, strict=True)]
    values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows.cells)
    return f"SELECT {', '.join(casts)} FROM (VALUES {values}) AS given ({', '.join(names)})"


# comparing ----------------------------------------------------------------------------------


def differences(
    made: Sequence[Row], expected: Sequence[Row], columns: Sequence[Column], grain: Sequence[str]
) -> Iterator[str]:
    """Yield the differences of rows, cell by cell for rows with the same grain, else as missing or unexpected rows."""
    key = [position for position, column in enumerate(columns) if column.name in grain]
    if not set(grain) <= {column.name for column in columns}:
        key = []  # without all columns of the grain, compare sorted rows by position
    left = _keyed(made, key)
    right = _keyed(expected, key)
    for row_key in sorted({*left, *right}):
        name = ", ".join(f"{columns[at].name} {_shown((left.get(row_key) or right[row_key])[at])}" for at in key)
        name = name or f"row {row_key[-1]}"
        if row_key not in left:
            yield f"{name}: is missing"
        elif row_key not in right:
            yield f"{name}: is not expected, {', '.join(map(_shown, left[row_key]))}"
        else:
            for column, is_, should in zip(columns, left[row_key], right[row_key], strict=True):
                if not _same(is_, should):
                    yield f"{name}: {column.name} is {_shown(is_)}, expected {_shown(should)}"


def _keyed(rows: Sequence[Row], key: Sequence[int]) -> dict[tuple[str, ...], Row]:
    """Return the rows by key and a sequence number among rows with the same key."""
    found: dict[tuple[str, ...], Row] = {}
    seen = Counter[tuple[str, ...]]()
    for row in sorted(rows, key=lambda one: [_shown(cell) for cell in one]):
        row_key = tuple(_shown(row[at]) for at in key)
        seen[row_key] += 1
        # Padded, as the keys are sorted as texts.
        found[*row_key, f"{seen[row_key]:06}"] = row
    return found


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9) or (math.isnan(one) and math.isnan(other))
    return one == other


def _shown(cell: object) -> str:
    return "NULL" if cell is None else str(cell)


# examples of job traces -------------------------------------------------------------------


def example_tests(trace: Trace, graph: Graph, folder: Path) -> Iterator[ModelTest]:
    """Yield a test of each table of a mapping with expected rows; the engine reads the example files, as in a build.

    Raises
    ------
    ModelError
        With the place of an example whose file the mapping does not read, or whose line is rejected.
    """
    expected = {f"staging.trace_{table}": rows for table, rows in trace.examples.items() if table in trace.tables}
    names = [name for name in trace.examples if name not in TARGETS and expected.keys() & graph.nodes.keys()]
    read = [_read(trace, name, trace.examples[name], folder / trace.name) for name in names]
    files = tuple((str(file.path), file.cluster, file.file_group) for _, file in read)
    for name, rows in expected.items():
        if name in graph.nodes:
            place = rows.place(trace.shown)
            given: dict[str, Rows | Source] = {FILES: Rows(("read_path", "cluster", "file_group"), files, place)}
            for kind in trace.formats:
                given[f"raw.{kind.relation}"] = csv_source(kind, [file for one, file in read if one is kind])
            expect = rows_of(rows, trace.shown, graph.nodes[name].model.columns, name, {})
            yield ModelTest(name, f"{name.partition('_')[2]} of the examples", place, given, expect)


def _read(trace: Trace, name: str, lines: Value, folder: Path) -> tuple[NamedCsv, RawFile]:
    """Write an example file and return its kind, and the file as a build looks at it."""
    place = lines.place(trace.shown)
    path = folder.joinpath(*(part for part in Path(name).parts if part not in ("..", "/")))
    path.parent.mkdir(parents=True, exist_ok=True)
    why = "no `name` of its files fits"
    for kind in (one for one in trace.formats if one.claims(path)):
        path.write_text(str(lines.content), encoding=kind.encoding)
        file = kind.inspect(RawFile(path, name, 0, 0))
        if file.is_read:
            for bad in kind.repair(file, path.with_suffix(".clean")):
                raise ModelError(f"{name}, line {bad.line} of the example is rejected: {bad.reason}", place=place)
            return kind, file
        why = str(file.reason)
    raise ModelError(f"the mapping does not read the example {name}: {why}", place=place)


# examples of log lines ----------------------------------------------------------------------

_BEFORE = {"nccl": "node-1:1:2 [0] NCCL INFO ", "logger": "[2024-04-29 06:15:13,208] [INFO] [x.py:1:f] "}
_OF_PREFIX = {
    "nccl": ("host", "pid", "tid", "local_rank", "level"),
    "logger": ("time_utc", "level"),
}
"""Columns that the text before an example fills, by scope."""


def failed_examples(log_lines: Sequence[Path] = ()) -> tuple[int, list[str]]:
    """Return the number of examples, and a line for each that gives another event than it says."""
    kinds = line_kinds(log_lines)
    return len(kinds), [text for kind in kinds if (text := _failure(kind, kinds))]


def _failure(kind: LineKind, kinds: Sequence[LineKind]) -> str | None:
    place = f"{kind.path}:{kind.line}: {kind.name}"
    try:
        events = LineParser(kinds).read(_BEFORE.get(kind.scope, "") + kind.example)[1]
    except Damaged as damage:
        if kind.constants["kind"] != DAMAGED and kind.damage != str(damage):
            return f"{place}: the example is read as damaged: {damage}"
        events = damage.kept
        if not events:
            return None
    wanted = kind.constants["kind"], kind.constants["family"]
    mine = [event for event in events if (event["kind"], event["family"]) == wanted]
    if not mine:
        read = ", ".join(f"{event['family']} {event['kind']}" for event in events) or "plain text"
        return f"{place}: the example is read as {read}"
    given = {column: _plain(text) for column, text in kind.gives.items()}
    hidden = {"family", "kind", "level", *_OF_PREFIX.get(kind.scope, ())} - set(given)
    shown = [
        {c: _plain(value) for c, value in event.items() if value is not None and c not in hidden} for event in mine
    ]
    if given not in shown:
        return f"{place}: the example gives {_listed(shown[0])}, and it says {_listed(given)}"
    return None


def _plain(value: object) -> str | float:
    """Return a number as a number, whatever its form, and other values as text."""
    try:
        return float(str(value))
    except ValueError:
        return str(value)


def _listed(columns: dict[str, str | float]) -> str:
    return ", ".join(f"{column} {value}" for column, value in columns.items()) or "nothing"
