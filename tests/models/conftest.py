"""A build of a sample with its truth, and a build of the real files, each made once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import warehouse
from tests.conftest import MadeOnce
from warehouse.sample import SampleOptions, write_sample

Rows = list[tuple[Any, ...]]


class Planted:
    """A built sample beside what was planted in it."""

    def __init__(self, root: Path, target: Path) -> None:
        self.root = root
        self.target = target
        self.truth: dict[str, Any] = json.loads((root / "truth.json").read_text(encoding="utf-8"))
        self.connection = warehouse.open(target)

    def rows(self, sql: str) -> Rows:
        """The rows of a query, sorted as text so that NULLs do not matter."""
        return sorted(self.connection.execute(sql).fetchall(), key=str)


@pytest.fixture(scope="session")
def planted(made_once: MadeOnce) -> Iterator[Planted]:
    """Two hours of a whole 15 minutes each: enough for every trap, small enough for every test run."""

    def make(folder: Path) -> None:
        write_sample(folder / "sample", SampleOptions(seconds=900))
        warehouse.build(folder / "sample", folder / "warehouse", threads=2)

    folder = made_once("planted", make)
    found = Planted(folder / "sample", folder / "warehouse")
    yield found
    found.connection.close()


@pytest.fixture(scope="session")
def real_built(real_output: tuple[Path, str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to that build."""
    connection = warehouse.open(real_output[0])
    yield connection
    connection.close()
