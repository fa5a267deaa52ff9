"""Unit tests of models: input rows and the expected output rows.

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
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from warehouse.base.errors import ModelError, Place, nearest_hint
from warehouse.base.startup import regex
from warehouse.base.text import few
from warehouse.base.yaml_text import Value, read_yaml
from warehouse.engine import python_model
from warehouse.engine.base import Empty, EngineError, Parts, Select, Source
from warehouse.engine.duckdb import DuckDBEngine, DuckDBScratch
from warehouse.engine.duckdb_sql import source_sql
from warehouse.graph.dag import Graph, Node
from warehouse.project.contract import Column
from warehouse.store.atomic import scratch_folder
from warehouse.store.signatures import read_text

SUFFIX = ".test.yaml"
EVERYWHERE = "everywhere"
_SHAPE = (
    "a test has `expect` with rows, and `given` with rows for each table; rows are a block of text: `|`, then a line "
    "of column names"
)
_RANGE = regex(r"^(2\^)?([0-9]{1,9})[.]{2}([0-9]{1,9})$")
_LONGEST_RANGE = 100_000
_LARGEST_POWER = 62  # 2^63 exceeds BIGINT
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
    try:
        tests = read_yaml(read_text(path), shown, "the file of tests")
    except UnicodeDecodeError as error:
        raise ModelError("the file is not UTF-8 text", place=Place(shown)) from error
    everywhere = tests.pop(EVERYWHERE, None)
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
            raise ModelError(f"{node.name} does not read {relation}", place=table.place(shown), hint=hint)
        rows = _content(table, node.model.path.parent, shown)
        given[relation] = rows_of(rows, shown, _contract(graph, relation), relation, everywhere)
    expect = rows_of(keys["expect"], shown, node.model.columns, node.name, everywhere)
    return ModelTest(node.name, name, value.place(shown), given, expect)


def _content(rows: Value, folder: Path, shown: str) -> Value:
    """Return the rows, or those of the file that they name."""
    if not isinstance(rows.content, str) or not rows.content.endswith(".csv"):
        return rows
    if not (folder / rows.content).is_file():
        raise ModelError(f"there is no file {rows.content}", place=rows.place(shown))
    return rows._replace(content=read_text(folder / rows.content))


def rows_of(value: Value, shown: str, contract: Sequence[Column], relation: str, everywhere: Mapping[str, str]) -> Rows:
    """Return the rows of a CSV block, with the values of `everywhere` added."""
    known = [column.name for column in contract]
    text = value.content if isinstance(value.content, str) else ""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), value.line + 1) if line.strip()]
    parsed = [(number, [cell.strip() for cell in _cells(line)]) for number, line in lines]
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
    parsed[1:] = [(number, one) for number, cells in parsed[1:] for one in _spread(cells, Place(shown, number))]
    more = {name: text for name, text in everywhere.items() if name in known and name not in columns}
    rows = tuple((*(None if cell == "" else cell for cell in row), *more.values()) for _, row in parsed[1:])
    return Rows((*columns, *more), rows, value.place(shown))


def _cells(line: str) -> list[str]:
    # A quote after a blank would otherwise be a letter of the cell.
    return next(csv.reader([line], skipinitialspace=True))


def _spread(cells: list[str], place: Place) -> Iterator[list[str]]:
    """Yield the rows of a row with ranges such as `0..59`; several ranges in one row advance together."""
    bounds = {at: found for at, cell in enumerate(cells) if (found := _RANGE.match(cell))}
    runs = [_numbers(found) for found in bounds.values()]
    if len({len(run) for run in runs}) > 1:
        lengths = " and ".join(str(len(run)) for run in runs)
        raise ModelError(f"ranges of {lengths} numbers in one row", place=place, hint="they run side by side")
    if not runs:
        yield cells
    for values in zip(*runs, strict=True):
        spread = dict(zip(bounds, map(str, values), strict=True))
        yield [spread.get(at, cell) for at, cell in enumerate(cells)]


def _numbers(found: re.Match[str]) -> Sequence[int]:
    powers, first, last = found[1], int(found[2]), int(found[3])
    if powers:
        return [2**exponent for exponent in range(first, min(last, _LARGEST_POWER) + 1)]
    return range(first, min(last + 1, first + _LONGEST_RANGE))


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
    sources: dict[str, Source] = {}
    _add_sources(sources, node, graph, test.given)
    try:
        with engine.scratch(sources) as scratch:
            chosen = [column for name in test.expect.columns for column in node.model.columns if column.name == name]
            expected = scratch.rows(_select(test.expect, chosen))
            rows = _output_rows(scratch, node, graph, chosen)
            found = list(differences(rows, expected, chosen, node.model.grain))
    except EngineError as error:
        raise ModelError(f"the test `{test.name}` fails to run: {error.message}", place=test.place) from error
    return found


def _visible(graph: Graph, node: Node) -> list[str]:
    """Return the relations that a model reads, including those below views."""
    found: dict[str, None] = {}
    for read in node.reads:
        found[read] = None
        if _is_view(graph, read):
            found |= dict.fromkeys(_visible(graph, graph.nodes[read]))
    return list(found)


def _is_view(graph: Graph, relation: str) -> bool:
    return relation in graph.nodes and graph.nodes[relation].model.is_view


def _add_sources(sources: dict[str, Source], node: Node, graph: Graph, given: Mapping[str, Rows | Source]) -> None:
    """Add the sources of a model's inputs, in dependency order."""
    for read in node.reads:
        contract = tuple(_contract(graph, read))
        if read in given:
            rows = given[read]
            sources[read] = _source(rows, contract) if isinstance(rows, Rows) else rows
        elif _is_view(graph, read):
            _add_sources(sources, graph.nodes[read], graph, given)
            # A view has no rows of its own: a test should not have to repeat what it computes.
            sources[read] = Select(graph.nodes[read].sql, contract)
        else:
            sources[read] = Empty(contract)


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


def _source(rows: Rows, contract: tuple[Column, ...]) -> Source:
    """Return the rows as a source with all columns of the contract; missing columns are NULL."""
    if not rows.cells:
        return Empty(contract)
    named = [next(column for column in contract if column.name == name) for name in rows.columns]
    rest = [column for column in contract if column.name not in rows.columns]
    nulls = "".join(f', NULL AS "{column.name}"' for column in rest)
    return Select(f"SELECT *{nulls} FROM ({_select(rows, named)})", contract)


def _select(rows: Rows, columns: Sequence[Column]) -> str:
    names = ", ".join(f'"{column.name}"' for column in columns)
    casts = ", ".join(f'CAST("{column.name}" AS {column.type}) AS "{column.name}"' for column in columns)
    if not rows.cells:
        return f"SELECT {casts} FROM (SELECT {', '.join(f'NULL AS {name}' for name in names.split(', '))}) WHERE false"
    values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows.cells)
    return f"SELECT {casts} FROM (VALUES {values}) AS given ({names})"


def _literal(cell: str | None) -> str:
    if cell is None:
        return "NULL"
    # An empty cell is NULL, so the empty text needs a form of its own.
    return "''" if cell == "''" else "'" + cell.replace("'", "''") + "'"


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
    for row in sorted(rows, key=lambda one: [_shown(cell) for cell in one]):
        row_key = tuple(_shown(row[at]) for at in key)
        number = 1
        while (*row_key, str(number).zfill(6)) in found:
            number += 1
        # Padded, as the keys are sorted as texts.
        found[*row_key, str(number).zfill(6)] = row
    return found


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9) or (math.isnan(one) and math.isnan(other))
    return one == other


def _shown(cell: object) -> str:
    return "NULL" if cell is None else str(cell)
