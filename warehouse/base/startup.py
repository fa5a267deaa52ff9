"""Lazy imports and patterns, to keep the start-up of commands fast.

`regex` compiles a pattern at its first use. `duckdb` is DuckDB's extension module without the Python package around
it: it loads in a quarter of the time. It has `connect`, `execute`, `fetchall`, `fetchnumpy`, cursors, types and errors,
the same objects as in the package. Relations (`connection.sql`), Arrow, pandas and polars need `complete`, which loads
the package, also for connections that are already open.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import compile as regex

    import duckdb
else:

    class regex:  # noqa: N801
        """Pattern that is compiled at its first use.

        >>> regex("b+").sub("c", "abba")
        'aca'
        """

        def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
            self.pattern = pattern
            self._flags = flags

        def __getattr__(self, name: str) -> object:
            found = getattr(re.compile(self.pattern, self._flags), name)
            setattr(self, name, found)  # later lookups skip __getattr__
            return found

    def __getattr__(name: str) -> object:
        """Import DuckDB's extension module at its first use."""
        if name != "duckdb":
            raise AttributeError(name)
        try:
            import _duckdb as duckdb
        except ImportError:  # the module has another name in some distributions
            import duckdb
        return duckdb


__all__ = ["ASYNC_THREADS", "complete", "duckdb", "regex"]

ASYNC_THREADS = 0
"""DuckDB's `async_threads` for connections that write files. With its default, DuckDB 2.0.0 waits forever if a COPY
to Parquet fails while a thread still writes (tests/engine/test_failing_writes.py); with 0 it writes at once."""


def complete() -> None:
    """Load the duckdb package, which `sql`, Arrow, pandas and polars need."""
    import duckdb  # noqa: F401
