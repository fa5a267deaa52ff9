"""A write that fails ends with its error, whatever DuckDB's threads do at that moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FAILS = """
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
import sys

import numpy as np
import pyarrow as pa

from warehouse.engine.duckdb_errors import EngineError
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.project.contract import Column

SCHEMA = pa.schema({"a": pa.int64()})


def batches(count: int) -> Iterator[pa.RecordBatch]:
    for number in range(count):
        yield pa.record_batch({"a": np.random.default_rng(number).integers(0, 2**60, 122_880)}, schema=SCHEMA)
    raise ValueError("no more")


folder = Path(sys.argv[1])
with closing(DuckDBEngine(memory_bytes=2**30, spill=folder / "spill")) as engine:
    for count in range(30):
        with engine.scratch({}) as scratch:
            try:
                rows = pa.RecordBatchReader.from_batches(SCHEMA, batches(1 + count % 6))
                scratch.write_arrow(rows, [Column("a", "BIGINT")], folder / "x.parquet", ["a"][: count % 2])
            except EngineError as error:
                assert "no more" in str(error), error
                continue
            raise SystemExit("it did not fail")
print("all failed")
"""


def test_thirty_writes_of_streams_that_fail_do_not_hang(tmp_path: Path) -> None:
    """With DuckDB 2.0.0 as it comes, one of them waits forever."""
    done = subprocess.run([sys.executable, "-c", FAILS, tmp_path], capture_output=True, text=True, check=False)
    assert done.stdout == "all failed\n", done.stderr
