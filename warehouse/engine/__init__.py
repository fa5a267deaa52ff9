"""DuckDB behind one interface: what turns a SELECT into a part."""
