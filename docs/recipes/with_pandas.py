"""A table of the warehouse as a frame of pandas: `python with_pandas.py build/warehouse metrics.leaf_hour`."""

import sys

import duckdb
import pandas as pd

target, table = sys.argv[1:]

with duckdb.connect(f"{target}/warehouse.duckdb", read_only=True) as connection:
    # by way of Arrow whole numbers stay whole beside NULLs, and sums keep their digits; .df() makes floats of both
    frame = connection.sql(f"FROM {table}").to_arrow_table().to_pandas(types_mapper=pd.ArrowDtype)

print(frame.head())
