"""Run chain.sql of the working folder in a DuckDB file beside it, without a runner."""

from pathlib import Path

import duckdb

with duckdb.connect("chain.duckdb", config={"threads": 2}) as connection:
    connection.execute(Path("chain.sql").read_text(encoding="utf-8"))
