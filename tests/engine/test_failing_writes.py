"""A write that fails ends with its error, whatever DuckDB's threads do at that moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from warehouse.engine.base import EngineError, Select
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.project.contract import Column

FAILS = """
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
import sys

import numpy as np

from warehouse.engine.duckdb import DuckDBEngine
from warehouse.project.contract import Column


def chunks(count: int) -> Iterator[dict[str, np.ndarray]]:
    for number in range(count):
        yield {"a": np.random.default_rng(number).integers(0, 2**60, 122_880)}
    raise ValueError("no more")


folder = Path(sys.argv[1])
with closing(DuckDBEngine(threads=2, memory_bytes=2**30, spill=folder / "spill")) as engine:
    for count in range(60):
        with engine.scratch({}) as scratch:
            try:
                scratch.write_arrays(chunks(1 + count % 6), [Column("a", "BIGINT")], folder / "x.parquet")
            except ValueError:
                continue
            raise SystemExit("it did not fail")
print("all failed")
"""


def test_sixty_writes_of_arrays_that_fail_do_not_hang(tmp_path: Path) -> None:
    """With DuckDB 2.0.0 as it comes, one of them waits forever."""
    done = subprocess.run([sys.executable, "-c", FAILS, tmp_path], capture_output=True, text=True, check=False)
    assert done.stdout == "all failed\n", done.stderr


def test_a_select_that_fails_late_leaves_its_error(tmp_path: Path) -> None:
    engine = DuckDBEngine(threads=2, memory_bytes=2**30, spill=tmp_path / "spill")
    late = "SELECT CASE WHEN range < 999_999 THEN range ELSE error('too late') END::BIGINT AS a FROM range(1_000_000)"
    for _ in range(20):
        with engine.scratch({}) as scratch, pytest.raises(EngineError, match="too late"):
            scratch.write(Select(late, (Column("a", "BIGINT"),)), tmp_path / "x.parquet", ())
    engine.close()
