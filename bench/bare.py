"""Run chain.sql of the working folder in a DuckDB file beside it, with nothing around it."""

from pathlib import Path

import duckdb

with duckdb.connect("chain.duckdb", config={"threads": 2}) as connection:
    connection.execute(Path("chain.sql").read_text(encoding="utf-8"))
