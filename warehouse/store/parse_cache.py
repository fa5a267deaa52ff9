"""Cache of results that are slow to compute, keyed by a hash of their inputs.

Each project has a cache of parsed and bound models. A change of the engine, of Python or of this package
invalidates it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

from warehouse.base import hashing
from warehouse.store.state import PARSED, DamagedStateError, State, opened
from warehouse.store.walk import code_files


@cache
def environment_hash(engine: str) -> str:
    """Return the hash of engine, Python and this package, which every cached result depends on."""
    return hashing.of([engine, sys.version, code_files(())])


def cache_of_models(folders: Sequence[Path], *, paranoid: bool = False) -> ParseCache:
    """Return the cache of a project, in the user's cache folder."""
    from warehouse.base.startup import duckdb

    project = hashing.of([str(folder.absolute()) for folder in folders])
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home folder
        return ParseCache(None)
    path = base / "warehouse" / f"models-{project}.sqlite"
    return ParseCache(path, f"duckdb {duckdb.__version__}", paranoid=paranoid)


class ParseCache:
    """Cache of JSON-able values in one file.

    Parameters
    ----------
    path
        The file; it may be missing or damaged. None for a cache in memory.
    engine
        Name and version of the engine.
    paranoid
        True to ignore the cached values.
    """

    def __init__(self, path: Path | None, engine: str = "", *, paranoid: bool = False) -> None:
        self._path = path
        self._used: dict[str, Any] = {}
        self._rows: dict[str, tuple[str, str]] = {}
        self._environment = environment_hash(engine) if path else ""
        if path and not paranoid:
            with suppress(DamagedStateError), closing(State(path)) as state:
                self._rows = state.texts(PARSED)

    def get(self, inputs: object, compute: Callable[[], Any]) -> Any:
        """Return the cached value for some inputs; compute and cache it if it is missing. Exceptions are not cached.

        `inputs` must contain everything that the value depends on.
        """
        key = self._key(inputs)
        if key not in self._used:
            known = opened(PARSED, key, self._rows.get(key))
            self._used[key] = compute() if known is None else known
        return self._used[key]

    def contains(self, inputs: object) -> bool:
        """Return True if the value for these inputs is cached."""
        key = self._key(inputs)
        return key in self._used or opened(PARSED, key, self._rows.get(key)) is not None

    def _key(self, inputs: object) -> str:
        return hashing.of([self._environment, inputs])

    def save(self) -> None:
        """Write the values used since the cache was opened; drop all others."""
        new = {key: value for key, value in self._used.items() if key not in self._rows}
        gone = self._rows.keys() - self._used.keys()
        if self._path is None or not (new or gone):
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(State(self._path, create=True)) as state:
                state.put(PARSED, new, gone=gone)
        except (DamagedStateError, OSError):  # without the cache, builds are only slower
            with suppress(OSError):
                self._path.unlink()
