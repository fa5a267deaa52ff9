"""A cursor of DuckDB that tells what each statement needed, for `build --profile`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warehouse.base.startup import duckdb

_QUERIES = ("COPY (", "CREATE TABLE memory.", "SELECT ", "FROM ", "WITH ")
"""How statements begin that do the work of a part; others bind names."""


@dataclass(frozen=True)
class Statement:
    """What the engine says of a statement that ran."""

    sql: str
    plan: str
    """The tree of `EXPLAIN ANALYZE`, with rows and time of each operator."""
    memory: int
    """Largest size of all buffers while it ran, bytes."""
    spill: int
    """Largest size of its temporary files, bytes."""


class Observed:
    """A cursor that profiles; of a statement it tells before the next one, by when its rows were fetched."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, tell: Callable[[Statement], None]) -> None:
        self._cursor = cursor
        self._tell = tell
        self._sql = ""
        cursor.execute("PRAGMA enable_profiling = 'no_output'")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def execute(self, sql: str, *given: object) -> Observed:
        """Run a statement."""
        self.tell_last()
        self._cursor.execute(sql, *given)
        self._sql = sql
        return self

    def sql(self, sql: str) -> duckdb.DuckDBPyRelation:
        """A SELECT that runs when its rows are asked for."""
        self.tell_last()
        self._sql = sql
        return self._cursor.sql(sql)

    def tell_last(self) -> None:
        """Tell of the last statement, unless that was done."""
        sql, self._sql = self._sql, ""
        if not sql.startswith(_QUERIES):
            return
        try:
            system = json.loads(self._cursor.get_profiling_information("json")).get("system", {})
            plan = self._cursor.get_profiling_information("text")  # type: ignore[arg-type]  # which its stubs leave out
        except duckdb.Error:  # its rows were not asked for
            return
        self._tell(
            Statement(sql, plan, int(system.get("peak_buffer_memory", 0)), int(system.get("peak_temp_dir_size", 0)))
        )
