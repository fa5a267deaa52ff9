"""Arrow without pandas: it imports it, which is dear, to see whether what it is given is a column of pandas."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pandas_left_out() -> Iterator[None]:
    """Have Arrow find no pandas, where it is not there already."""
    sys.meta_path.insert(0, _NoPandas)
    try:
        yield
    finally:
        sys.meta_path.remove(_NoPandas)


class _NoPandas:
    """Finds everything but pandas where it does."""

    @classmethod
    def find_spec(cls, name: str, *_: object) -> None:
        """Refuse pandas; leave the rest to others."""
        if name == "pandas":
            raise ModuleNotFoundError(name, name=name)
