"""The content of raw files, hashed once: remembered by size, times and inode of each."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from warehouse.store.atomic import write_text
from warehouse.store.content_hash import of_content
from warehouse.store.signatures import is_racy, read_text, stamp


class Digests:
    """Hashes of files, as `cache/digests.json` remembers them.

    What was hashed within two seconds of its last change is not believed again: the file may have changed
    once more, and its times need not show it.

    Parameters
    ----------
    path
        The file that remembers; it may be missing or damaged.
    paranoid
        Believe nothing, and hash every file again.
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
            said = json.loads(read_text(path))
            self._known, self._known_ns = dict(said["files"]), int(said["looked_ns"])
        except (OSError, ValueError, KeyError, TypeError):
            pass  # none yet, or damaged: all are hashed again

    def of(self, path: Path, watch: Callable[[bytes], None] | None = None) -> str:
        """The hash of a file's content, which `watch` is shown if it has to be read.

        Raises OSError when it cannot be read.
        """
        seen = stamp(os.stat(path))  # noqa: PTH116 - of its many files, each once: a path object has no part in it
        remembered = self._known.get(str(path), [])
        if remembered[:-1] == seen and not is_racy(seen, self._known_ns):
            digest = str(remembered[-1])
        else:
            digest = of_content(path, watch)
        self._now[str(path)] = [*seen, digest]
        return digest

    def forget(self, path: Path) -> None:
        """Have the next build read this file again."""
        del self._now[str(path)]

    def save(self) -> None:
        """Remember what was asked for, and forget the rest."""
        write_text(self._path, json.dumps({"looked_ns": self._started_ns, "files": self._now}))
