"""What runs inside Spark's tasks, on its executors: raw files in, parts out, both by DuckDB.

Spark's own reader of CSV makes NULL of what it cannot read, and its own writer leaves folders of files. Here a raw
file is read as on one machine, with the same errors at the same lines, and a part is one file with the same bytes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from warehouse.aside import aside, sync
from warehouse.engines.duckdb_errors import sentence
from warehouse.engines.duckdb_scratch import copy_rows
from warehouse.engines.duckdb_sql import casts, identifier, source_sql

if TYPE_CHECKING:
    import pyarrow

    from warehouse.engines.base import CsvFiles
    from warehouse.model import Column

OPEN, CLOSE = "<<warehouse: ", " :warehouse>>"
"""What an executor has to say stands between these in the stack trace that reaches the driver."""
BATCH = 20_000
"""Rows that travel together between Spark and Python."""


class TaskError(Exception):
    """A task failed of what it was given: the sentence is for people."""

    def __init__(self, error: duckdb.Error) -> None:
        super().__init__(f"{OPEN}{sentence(error)}{CLOSE}")


@cache
def _duckdb(memory_bytes: int) -> duckdb.DuckDBPyConnection:
    """The DuckDB of this worker process, on one thread: Spark counts a task as one core."""
    scratch = os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).partition(",")[0]
    return duckdb.connect(
        config={
            "threads": 1,
            "memory_limit": f"{memory_bytes // 2**20}MiB",
            "temp_directory": str(Path(scratch) / f"warehouse-{os.getpid()}"),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "errors_as_json": True,
        }
    )


def read_csv(
    numbers: Iterable[pyarrow.RecordBatch], groups: Sequence[CsvFiles], memory_bytes: int
) -> Iterator[pyarrow.RecordBatch]:
    """The rows of the groups of files with these numbers."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            try:
                yield from _duckdb(memory_bytes).cursor().sql(source_sql(groups[number])).to_arrow_reader(BATCH)
            except duckdb.Error as error:
                raise TaskError(error) from error


@dataclass(frozen=True)
class Writing:
    """A part that a task is to write."""

    columns: tuple[Column, ...]
    order: tuple[str, ...]
    path: Path
    few: bool
    """Whether its rows are gathered before they are written, as those of a part that reads few are."""
    memory_bytes: int

    def write(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """Sort the rows and write them; gives their number, or nothing where not a batch has come.

        What is written by half is never seen under the part's name: a task that is tried again starts anew.
        """
        import pyarrow

        batches = iter(batches)
        first = next(batches, None)
        if first is None:
            return
        rows = pyarrow.RecordBatchReader.from_batches(first.schema, chain([first], batches))
        connection = _duckdb(self.memory_bytes).cursor()
        written = aside(self.path)
        try:
            connection.register("rows_of_spark", rows)
            count = self._copy(connection, written)
            sync(written)
            written.replace(self.path)
        except duckdb.Error as error:
            raise TaskError(error) from error
        finally:
            connection.unregister("rows_of_spark")
            written.unlink(missing_ok=True)
        yield pyarrow.RecordBatch.from_pydict({"rows": [count]})

    def _copy(self, connection: duckdb.DuckDBPyConnection, path: Path) -> int:
        by = f" ORDER BY {', '.join(map(identifier, self.order))}" if self.order else ""
        select = f"SELECT {casts(self.columns)} FROM rows_of_spark{by}"
        types = [column.type for column in self.columns]
        if not self.few:
            return copy_rows(connection, select, path, types)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE gathered AS {select}")
        count = copy_rows(connection, "FROM gathered", path, types)
        connection.execute("DROP TABLE gathered")
        return count
