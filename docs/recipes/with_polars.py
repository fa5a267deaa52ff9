"""A table of the warehouse as a frame of polars: `python with_polars.py build/warehouse metrics.leaf_hour`."""

import sys

import duckdb

target, table = sys.argv[1:]

with duckdb.connect(f"{target}/warehouse.duckdb", read_only=True) as connection:
    frame = connection.sql(f"FROM {table}").pl()

print(frame.head())
