"""What was found out once and need not be found out again: answers by the hash of all that they follow from.

How a SELECT parses and that it fits its contract is remembered for a project, as Python keeps compiled modules; what
a raw file is, for a target. None of it changes while text, file, engine and this package are what they were. A memo
of another engine or package knows nothing.
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
from warehouse.store.signatures import look_at_sources

FILE = "memo.msgpack"
_DIGEST_LENGTH = len(hashing.of(""))


@cache
def _stands_on(engine: str) -> str:
    """All that every answer follows from: engine, Python, and this package, whose modules are loaded only once."""
    return hashing.of([engine, sys.version, look_at_sources(()).files])


def cache_of_models(folders: Sequence[Path], engine: str, *, paranoid: bool = False) -> ParseCache:
    """The memo of a project, in the user's cache folder."""
    project = hashing.of([str(folder.absolute()) for folder in folders])
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home
        return ParseCache(None)
    return ParseCache(base / "warehouse" / f"models-{project}.msgpack", engine, paranoid=paranoid)


class ParseCache:
    """Answers, as a file of the cache keeps them.

    Parameters
    ----------
    path
        The file; it may be missing or damaged. None for a memo that lasts as long as the object.
    engine
        Name and version of the engine.
    paranoid
        Believe nothing.
    """

    def __init__(self, path: Path | None, engine: str = "", *, paranoid: bool = False) -> None:
        self._path = path
        self._known: dict[str, Any] = {}
        self._used: dict[str, Any] = {}
        self._mark = ""
        if path is None:
            return
        self._mark = _stands_on(engine)
        try:
            digest, written = (content := path.read_bytes())[:_DIGEST_LENGTH], content[_DIGEST_LENGTH:]
            said = msgspec.msgpack.decode(written)
            if said["mark"] == self._mark and not paranoid and digest.decode() == hashing.of_bytes(written):
                self._known = dict(said["answers"])
        except (OSError, ValueError, KeyError, TypeError):
            pass  # none yet, or damaged

    def ask(self, question: object, find_out: Callable[[], Any]) -> Any:
        """The answer to a question, a JSON-able value, which `find_out` gives where it is not known.

        The question holds all that the answer follows from; what is raised is no answer.
        """
        key = hashing.of(question)
        if key not in self._used:
            self._used[key] = self._known[key] if key in self._known else find_out()
        return self._used[key]

    def knows(self, question: object) -> bool:
        """Whether a question need not be asked."""
        key = hashing.of(question)
        return key in self._used or key in self._known

    def save(self) -> None:
        """Remember what was asked this time, and forget the rest."""
        if self._path is None or self._used == self._known:
            return
        content = msgspec.msgpack.encode({"mark": self._mark, "answers": self._used})
        written = temporary_path(self._path)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            try:
                written.write_bytes(hashing.of_bytes(content).encode() + content)
                written.replace(self._path)
            finally:
                written.unlink(missing_ok=True)
        except OSError:
            pass  # it only saves time
