"""Examples of mappings of job traces (`examples` in `data/traces/NAME.yaml`), as tests of models: `warehouse test`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from warehouse.base.errors import ModelError
from warehouse.base.yaml_text import Value
from warehouse.engine.base import Source
from warehouse.formats.base import RawFile
from warehouse.formats.named_csv import NamedCsv
from warehouse.formats.traces import TARGETS, Trace
from warehouse.graph.dag import Graph
from warehouse.ingest.schemas import FILES, csv_source
from warehouse.quality.model_tests import ModelTest, Rows, rows_of


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
