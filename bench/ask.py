"""One ad-hoc query on raw or staged rows with another library: python bench/ask.py WAY ROWS SQL OUT.

ROWS is the staged Parquet file or, for `csv`, a list of the raw files. The answer goes to OUT as CSV. One thread. Each
library runs in an environment of its own (`bench/peers/readers.txt`), so this file does not import our package.
"""

from __future__ import annotations

import sys
from pathlib import Path

STAGED = """
SELECT
    regexp_extract(DeviceName, '((ST-leaf|Leaf)-[0-9]+)', 1) AS switch, PortName AS port,
    SaveTimeUTC AS time_ms, SaveTimeUTC // 1000 AS second, SaveTimeUTC // 60000 AS minute,
    InOctets + CASE WHEN InOctets >= 0 THEN 0 WHEN port[:2] = 'M-' THEN 4294967296 ELSE -InOctets END AS in_bytes,
    OutOctets + CASE WHEN OutOctets >= 0 THEN 0 WHEN port[:2] = 'M-' THEN 4294967296 ELSE -OutOctets END AS out_bytes,
    InPkts AS in_packets, OutPkts AS out_packets
FROM read_csv({files}, auto_detect=false, header=true, delim=',', quote='', escape='', columns={columns})
"""
"""View over the CSV files as a user would write it: names, integer times, negative deltas cleaned."""
TEXTS, RATIOS = {"SaveTime", "DeviceName", "PortName"}, {"InRatio", "OutRatio"}
COUNTERS = ["InPkts", "InOctets", "OutPkts", "OutOctets"]
NAMES = ["SaveTime", "SaveTimeUTC", "DeviceName", "PortName", *COUNTERS, "InRatio", "OutRatio"]


def staged(listing: Path) -> str:
    """Return the view's SELECT for a list of files."""
    kinds = {name: "VARCHAR" if name in TEXTS else "DOUBLE" if name in RATIOS else "BIGINT" for name in NAMES}
    return STAGED.format(files=listing.read_text(encoding="utf-8").split("\n"), columns=kinds)


def csv(listing: str, sql: str, out: str) -> None:
    """Query a view over the CSV files with DuckDB."""
    _duckdb(staged(Path(listing)), sql, out)


def parquet(rows: str, sql: str, out: str) -> None:
    """Query the staged Parquet file with DuckDB."""
    _duckdb(f"FROM '{rows}'", sql, out)


def _duckdb(rows: str, sql: str, out: str) -> None:
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    connection.execute(f"CREATE VIEW rows_ AS {rows}")
    connection.execute(f"COPY ({sql}) TO '{out}' (HEADER false)")


def polars(rows: str, sql: str, out: str) -> None:
    """Query the staged Parquet file with polars' SQL."""
    import polars as library

    library.SQLContext(rows_=library.scan_parquet(rows)).execute(sql).collect(engine="streaming").write_csv(
        out, include_header=False
    )


def chdb(rows: str, sql: str, out: str) -> None:
    """Query the staged Parquet file with embedded ClickHouse."""
    import chdb as library

    query = f"WITH rows_ AS (SELECT * FROM file('{rows}', Parquet)) {sql} SETTINGS max_threads = 1"
    Path(out).write_bytes(library.query(query, "CSV").bytes())


if __name__ == "__main__":
    {"csv": csv, "parquet": parquet, "polars": polars, "chdb": chdb}[sys.argv[1]](*sys.argv[2:])
