"""Cache of results that are slow to compute, keyed by a hash of their inputs.

Each project has a cache of parsed and bound models. A change of the engine, of Python or of this package
invalidates it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from warehouse.base import hashing
from warehouse.store.atomic import temporary_path
from warehouse.store.signatures import code_files

_DIGEST_LENGTH = len(hashing.of(""))


@cache
def environment_hash(engine: str) -> str:
    """Return the hash of engine, Python and this package, which every cached result depends on."""
    return hashing.of([engine, sys.version, code_files(())])


def cache_of_models(folders: Sequence[Path], engine: str, *, paranoid: bool = False) -> ParseCache:
    """Return the cache of a project, in the user's cache folder."""
    project = hashing.of([str(folder.absolute()) for folder in folders])
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home folder
        return ParseCache(None)
    return ParseCache(base / "warehouse" / f"models-{project}.msgpack", engine, paranoid=paranoid)


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
        self._known: dict[str, Any] = {}
        self._used: dict[str, Any] = {}
        self._environment = ""
        if path is None:
            return
        self._environment = environment_hash(engine)
        try:
            digest, written = (content := path.read_bytes())[:_DIGEST_LENGTH], content[_DIGEST_LENGTH:]
            cached = msgspec.msgpack.decode(written)
            if (
                cached["environment"] == self._environment
                and not paranoid
                and digest.decode() == hashing.of_bytes(written)
            ):
                self._known = dict(cached["values"])
        except (OSError, ValueError, KeyError, TypeError):
            pass  # missing or damaged

    @property
    def is_on_disk(self) -> bool:
        """True for a cache in a file, False for one in memory."""
        return self._path is not None

    def get(self, inputs: object, compute: Callable[[], Any]) -> Any:
        """Return the cached value for some inputs; compute and cache it if it is missing. Exceptions are not cached.

        `inputs` must contain everything that the value depends on.
        """
        key = hashing.of(inputs)
        if key not in self._used:
            self._used[key] = self._known[key] if key in self._known else compute()
        return self._used[key]

    def contains(self, inputs: object) -> bool:
        """Return True if the value for these inputs is cached."""
        key = hashing.of(inputs)
        return key in self._used or key in self._known

    def save(self) -> None:
        """Write the values used since the cache was opened; drop all others."""
        if self._path is None or self._used == self._known:
            return
        content = msgspec.msgpack.encode({"environment": self._environment, "values": self._used})
        written = temporary_path(self._path)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            try:
                written.write_bytes(hashing.of_bytes(content).encode() + content)
                written.replace(self._path)
            finally:
                written.unlink(missing_ok=True)
        except OSError:
            pass  # without the cache, builds are only slower
