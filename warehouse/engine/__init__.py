"""Engine that turns SELECTs into parts: the interface in `base`, and DuckDB as its implementation."""
