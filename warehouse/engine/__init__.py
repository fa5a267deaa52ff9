"""DuckDB behind one interface, `base`: what turns a SELECT into a part."""
