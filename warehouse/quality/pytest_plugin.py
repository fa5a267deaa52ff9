"""Pytest plugin for unit tests of models: `pytest -p warehouse.quality.pytest_plugin models/`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from warehouse.base.errors import ModelError
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.graph.dag import Graph, load_graph
from warehouse.project.project import Project
from warehouse.quality.model_tests import SUFFIX, ModelTest, run_test, tests_of


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ModelTestFile | None:
    """Collect `models/<layer>/<name>.test.yaml`."""
    if file_path.name.endswith(SUFFIX) and file_path.parents[1].name == "models":
        return ModelTestFile.from_parent(parent, path=file_path)
    return None


class ModelTestFile(pytest.File):
    """File of tests, next to its model."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield each test of the file."""
        engine, graph = _graph(self.path.parents[2])
        node = graph.nodes[f"{self.path.parent.name}.{self.path.name.removesuffix(SUFFIX)}"]
        for test in tests_of(node, graph):
            yield ModelTestItem.from_parent(self, name=test.name, engine=engine, graph=graph, test=test)


class ModelTestItem(pytest.Item):
    """Pytest item of one model test."""

    def __init__(self, *, engine: DuckDBEngine, graph: Graph, test: ModelTest, **given: Any) -> None:
        super().__init__(**given)
        self._run = engine, graph, test

    def runtest(self) -> None:
        """Run the test; raise ModelError with all differences."""
        found = run_test(*self._run)
        if found:
            raise ModelError("\n".join(found), place=self._run[2].place)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        """Return the message of a ModelError without traceback."""
        known = isinstance(excinfo.value, ModelError)
        return str(excinfo.value) if known else str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the place of the test."""
        place = self._run[2].place
        return self.path, (place.line or 1) - 1, f"{self._run[2].model}: {self.name}"


@cache
def _graph(folder: Path) -> tuple[DuckDBEngine, Graph]:
    engine = DuckDBEngine(memory_bytes=2**29, spill=Path("spill"))
    return engine, load_graph(Project.open(folder), engine)
