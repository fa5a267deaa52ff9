"""DuckDB cursor that reports the cost of each statement, for `build --profile`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warehouse.base.startup import duckdb

_QUERIES = ("COPY (", "SELECT ", "FROM ", "WITH ")
"""First words of statements that process rows; other statements only bind names."""


@dataclass(frozen=True)
class Statement:
    """Profile of a finished statement."""

    memory: int
    """Peak size of all buffers, in bytes."""
    spill: int
    """Peak size of temporary files, in bytes."""
    read: int = 0
    """Bytes read from files."""
    written: int = 0


class Observed:
    """Cursor with profiling. It reports a statement before the next one starts, when its rows have been fetched."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, report: Callable[[Statement], None]) -> None:
        self._cursor = cursor
        self._tell = report
        self._sql = ""
        cursor.execute("PRAGMA enable_profiling = 'no_output'")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def execute(self, sql: str, *given: object) -> Observed:
        """Run a statement."""
        self.report_last()
        self._cursor.execute(sql, *given)
        self._sql = sql
        return self

    def sql(self, sql: str) -> duckdb.DuckDBPyRelation:
        """Return a relation, whose SELECT runs when its rows are fetched."""
        self.report_last()
        self._sql = sql
        return self._cursor.sql(sql)

    def close(self) -> None:
        """Report the last statement; close the cursor."""
        self.report_last()
        self._cursor.close()

    def report_last(self) -> None:
        """Report the last statement, once."""
        sql, self._sql = self._sql, ""
        if not sql.startswith(_QUERIES):
            return
        try:
            found = json.loads(self._cursor.get_profiling_information("json"))
        except duckdb.Error:  # the statement's rows were never fetched
            return
        system, io = found.get("system", {}), found.get("io", {})
        sizes = (system.get("peak_buffer_memory"), system.get("peak_temp_dir_size"),
                 io.get("total_bytes_read"), io.get("total_bytes_written"))  # fmt: skip
        self._tell(Statement(*(int(size or 0) for size in sizes)))
