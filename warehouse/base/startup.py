"""Start-up costs, kept down in one place: what a command does not need, it does not load.

`regex` compiles a pattern when it is first asked. `duckdb` is the engine without its Python layer, which alone starts
at a quarter of what `import duckdb` costs: `connect`, `execute`, `fetchall`, `fetchnumpy`, cursors, types and errors,
the same objects that the package hands on. Relations (`connection.sql`), Arrow, pandas and polars are missing until
`complete` loads the package, for connections that are open already, too. `pandas_left_out` keeps Arrow from importing
pandas.
"""

from __future__ import annotations

import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import compile as regex

    import duckdb
else:

    class regex:  # noqa: N801
        """Stands for what `re.compile` would give.

        >>> regex("b+").sub("c", "abba")
        'aca'
        """

        def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
            self.pattern = pattern
            self._flags = flags

        def __getattr__(self, name: str) -> object:
            found = getattr(re.compile(self.pattern, self._flags), name)
            setattr(self, name, found)  # from now on it is asked at once
            return found

    def __getattr__(name: str) -> object:
        """Return the engine when it is first asked for."""
        if name != "duckdb":
            raise AttributeError(name)
        try:
            import _duckdb as duckdb
        except ImportError:  # where it has another name
            import duckdb
        return duckdb


__all__ = ["complete", "duckdb", "pandas_left_out", "regex"]


def complete() -> None:
    """Load what a connection needs for `sql`, Arrow, pandas and polars."""
    import duckdb  # noqa: F401


class pandas_left_out:  # noqa: N801 - a context manager: contextlib is not loaded for it
    """Have Arrow find no pandas, where it is not loaded already: Arrow imports it to see whether it is given any."""

    def __enter__(self) -> None:
        sys.meta_path.insert(0, _NoPandas)

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(_NoPandas)


class _NoPandas:
    """Finds everything but pandas where it does."""

    @classmethod
    def find_spec(cls, name: str, *_: object) -> None:
        """Refuse pandas; leave the rest to others."""
        if name == "pandas":
            raise ModuleNotFoundError(name, name=name)
