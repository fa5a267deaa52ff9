"""Cache of the content hashes of raw files, keyed by path and validated by file signature."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from warehouse.store.atomic import write_text
from warehouse.store.content_hash import of_content
from warehouse.store.signatures import is_racy, read_text, stamp


class HashCache:
    """Cache of content hashes in `cache/digests.json`.

    A file that changed less than two seconds before the last build began, or later, is hashed again. It may have
    changed once more without a visible change of its times.

    Parameters
    ----------
    path
        The cache file; it may be missing or damaged.
    paranoid
        True to ignore the cached hashes.
    """

    def __init__(self, path: Path, *, paranoid: bool = False) -> None:
        self._path = path
        self._started_ns = time.time_ns()
        self._now: dict[str, list[object]] = {}
        self._known: dict[str, list[object]] = {}
        self._known_ns = 0
        if paranoid:
            return
        try:
            cached = json.loads(read_text(path))
            self._known, self._known_ns = dict(cached["files"]), int(cached["looked_ns"])
        except (OSError, ValueError, KeyError, TypeError):
            pass  # missing or damaged: hash all files again

    def of(self, path: Path, watch: Callable[[bytes], None] | None = None) -> str:
        """Return the hash of a file's content. Passes the content to `watch` if the file is read.

        Raises OSError when it cannot be read.
        """
        seen = stamp(os.stat(path))  # noqa: PTH116 - called for thousands of files
        cached = self._known.get(str(path), [])
        if cached[:-1] == seen and not is_racy(seen, self._known_ns):
            digest = str(cached[-1])
        else:
            digest = of_content(path, watch)
        self._now[str(path)] = [*seen, digest]
        return digest

    def forget(self, path: Path) -> None:
        """Remove a file from the cache, so that the next build hashes it again."""
        self._now.pop(str(path), None)

    def save(self) -> None:
        """Write the hashes used by this build; drop all others."""
        write_text(self._path, json.dumps({"looked_ns": self._started_ns, "files": self._now}))
