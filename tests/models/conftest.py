"""A build of a sample with its truth, and builds of the real files, each made once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

import warehouse
from tests.conftest import MadeOnce
from tests.release import only
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.graph.dag import Graph, load_graph
from warehouse.project.project import Project

Rows = list[tuple[Any, ...]]
OF_JOBS = (
    "metrics.jobs", "metrics.job_totals", "metrics.published_claims", "metrics.utilization_distribution",
    "reference.dim_cluster", "staging.elasticflow_jobs", "staging.testbed_jobs",
)  # fmt: skip


class Planted:
    """A built sample beside what was planted in it."""

    def __init__(self, root: Path, target: Path) -> None:
        self.root = root
        self.target = target
        self.truth: dict[str, Any] = json.loads((root / "truth.json").read_text(encoding="utf-8"))
        self.connection = warehouse.open(target)

    def rows(self, sql: str) -> Rows:
        """Return the rows of a query, sorted as text so that NULLs do not matter."""
        return sorted(self.connection.execute(sql).fetchall(), key=str)

    def traps(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the planted cases of these kinds."""
        return [trap for trap in self.truth["traps"] if trap["kind"] in kinds]


@pytest.fixture(scope="session")
def planted(sample: Path, built: Path) -> Iterator[Planted]:
    """Return the build of the sample beside what was planted."""
    found = Planted(sample, built)
    yield found
    found.connection.close()


@pytest.fixture(scope="session")
def real_built(real_output: tuple[Path, str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Return a connection to the build of the real Zhejiang files."""
    with warehouse.open(real_output[0]) as connection:
        yield connection


@pytest.fixture(scope="session")
def real_jobs(real: Path, made_once: MadeOnce) -> Iterator[duckdb.DuckDBPyConnection]:
    """Return a connection to a build of the ITP and Acme files at hand, of the models that tests read."""

    def make(folder: Path) -> None:
        with only(folder / "project", *OF_JOBS):
            warehouse.build([real / "itp", real / "acme"], folder / "warehouse")

    with warehouse.open(made_once("real-jobs", make) / "warehouse") as connection:
        yield connection


@pytest.fixture(scope="session")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Return the shipped models with what they read."""
    with closing(DuckDBEngine(memory_bytes=2**30, spill=tmp_path_factory.mktemp("spill"))) as engine:
        return load_graph(Project.open(), engine)
