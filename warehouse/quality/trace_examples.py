"""Examples of mappings of job traces (`examples` in `data/traces/NAME.yaml`), as tests of models: `warehouse test`."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from warehouse.base.errors import ModelError
from warehouse.base.yaml_text import Value
from warehouse.formats.base import RawFile
from warehouse.formats.named_csv import NamedCsv
from warehouse.formats.traces import TARGETS, Trace
from warehouse.graph.dag import Graph
from warehouse.ingest.schemas import FILES
from warehouse.quality.model_tests import ModelTest, Rows, expected_rows
from warehouse.store.atomic import scratch_folder


def example_tests(trace: Trace, graph: Graph) -> Iterator[ModelTest]:
    """Yield a test of each table of a mapping with expected rows; the lines of its example files are given.

    Raises
    ------
    ModelError
        With the place of an example whose file the mapping does not read, or whose line is rejected.
    """
    names = {table: f"staging.trace_{table}" for table in trace.tables if table in trace.examples}
    models = {table: graph.nodes[name] for table, name in names.items() if name in graph.nodes}
    given: dict[str, Rows] = {}
    files: list[tuple[str, str | None, str | None]] = []
    for name, lines in trace.examples.items():
        if name in TARGETS or not models:
            continue
        kind, file, rows = _read(trace, name, lines)
        relation = kind.relations[0].full_name
        before = given[relation].cells if relation in given else ()
        given[relation] = Rows((*kind.cells, "filename"), (*before, *rows), lines.place(trace.shown))
        files.append((name, file.cluster, file.file_group))
    for table, node in models.items():
        place = trace.examples[table].place(trace.shown)
        given[FILES] = Rows(("read_path", "cluster", "file_group"), tuple(files), place)
        expect = expected_rows(trace.examples[table], trace.shown, node)
        yield ModelTest(node.name, f"{table} of the examples", place, dict(given), expect)


def _read(trace: Trace, name: str, lines: Value) -> tuple[NamedCsv, RawFile, list[tuple[str | None, ...]]]:
    """Return the kind of an example file, the file as it is looked at, and its rows, as a build reads them."""
    place = lines.place(trace.shown)
    with scratch_folder("test") as folder:
        path, clean = folder.joinpath(*(part for part in Path(name).parts if part not in ("..", "/"))), folder / "clean"
        path.parent.mkdir(parents=True, exist_ok=True)
        looked = [RawFile(path, name, 0, 0)]
        kinds = [one for one in trace.formats if one.claims(path)]
        path.write_text(str(lines.content), encoding=kinds[0].encoding if kinds else None)
        looked = [one.inspect(looked[0]) for one in kinds]
        found = next(((one, file) for one, file in zip(kinds, looked, strict=True) if file.is_read), None)
        if found is None:
            why = "; ".join(str(file.reason) for file in looked) or "no `name` of its files fits"
            raise ModelError(f"the mapping does not read the example {name}: {why}", place=place)
        kind, file = found
        for bad in kind.repair(file, clean):
            raise ModelError(f"{name}, line {bad.line} of the example is rejected: {bad.reason}", place=place)
        with clean.open(encoding=kind.encoding, newline="") as stream:
            rows = list(csv.reader(stream, delimiter=kind.delimiter))[kind.has_header :]
    names = file.header or tuple(kind.cells)
    cells = [dict(zip(names, row, strict=False)) for row in rows]
    return kind, file, [(*(row.get(column) or None for column in kind.cells), name) for row in cells]
