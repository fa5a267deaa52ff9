"""DuckDB without its Python layer: the engine alone starts at a quarter of what `import duckdb` costs.

`from warehouse.extension import duckdb` gives `connect`, `execute`, `fetchall`, `fetchnumpy`, cursors, types, tokens
and errors: the same objects that the package hands on. Relations (`connection.sql`) and whatever is Arrow, pandas or
polars are missing, until `complete` loads the package. It does so for connections that are open already, too.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import duckdb
else:
    try:
        import _duckdb as duckdb
    except ImportError:  # where it has another name
        import duckdb

__all__ = ["complete", "duckdb"]


def complete() -> None:
    """Load what a connection needs for `sql`, Arrow, pandas and polars."""
    import duckdb  # noqa: F401
