"""File signatures: size, mtime, ctime and inode, to detect a changed file without opening it.

A build that is up to date imports this module, and little else. To keep that fast, it imports only light modules.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from warehouse.base.errors import DataError
from warehouse.base.regular_files import open_regular, opener
from warehouse.base.text import plural

Stamp = list[int]
"""Size, mtime, ctime and inode of a file."""
LARGEST = 2**63 - 1
"""Inode numbers are cut to this size, to be packed in 8 bytes."""
RACY_NS = 2 * 10**9
"""Age below which a file's times prove nothing: the coarsest file systems count in steps of two seconds."""


def stamp(about: os.stat_result) -> Stamp:
    """Return the signature of a file: size, mtime, ctime, inode."""
    return [about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino]


def read_text(path: str | os.PathLike[str], encoding: str = "utf-8") -> str:
    """Return the text of a file. Raises OSError for a pipe, socket or device, which could block forever."""
    with open(path, encoding=encoding, opener=opener) as stream:
        return stream.read()


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file. Raises OSError for a pipe, socket or device, which could block forever."""
    with open_regular(path) as stream:
        return stream.read()


_SHOWN = 3
_STEP_NS = 20 * 10**6
"""Longest step of the times of a file system that counts in fractions of a second: two ticks of a slow kernel."""


def look(path: Path) -> Stamp:
    """Return the signature of a file as a walk sees it; empty if it cannot be looked at."""
    try:
        about, link = path.stat(), path.lstat()
    except OSError:
        return []
    # A link that is replaced has a new ctime, even if it leads to a file of the same size and times.
    return [about.st_size, about.st_mtime_ns, max(about.st_ctime_ns, link.st_ctime_ns), about.st_ino & LARGEST]


def changed(seen: Mapping[Path, Sequence[int]]) -> list[str]:
    """Return the files that have another signature now."""
    return [str(path) for path, before in seen.items() if look(path) != list(before)]


def refuse_changed(seen: Mapping[Path, Sequence[int]]) -> None:
    """Raise DataError if a file has another signature now than before it was hashed."""
    if paths := changed(seen):
        raise changed_meanwhile(paths)


def changed_meanwhile(paths: Iterable[str]) -> DataError:
    """Return the error of files that changed during a build."""
    names = sorted(paths)
    return DataError(
        f"{plural(len(names), 'file')} changed while the build ran",
        details=[f"  {path}" for path in names[:_SHOWN]],
        hint="Nothing of this build is published. Build again when nothing writes there.",
    )


def settle(seen: Iterable[Sequence[int]]) -> None:
    """Wait until any later change of these files has another ctime, which counts in steps.

    Before that, two states of a file can have one signature. Times in whole seconds count in steps of up to two.
    """
    now = time.time_ns()
    waits = [0]
    for _, _, ctime_ns, _ in filter(None, seen):
        step = _STEP_NS if ctime_ns % 10**9 else RACY_NS
        waits.append(min(step, ctime_ns + step - now))  # the clock of a file server may be ahead
    time.sleep(max(waits) / 1e9)
