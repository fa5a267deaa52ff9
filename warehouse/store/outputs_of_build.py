"""Outputs of a build, as its snapshot has them: the files of the target that readers and the next build need.

A build that is up to date imports this module, and little else. To keep that fast, it imports only light modules.
"""

from __future__ import annotations

import os
import struct
import time

from warehouse.store import signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from warehouse.store.signatures import Stamp

    Json = dict[str, Any]

FRESH_NS = 5 * 10**9
"""Age up to which a build uses what the comparison before it has seen."""
_intact: list[tuple[int, Stamp, Json, bytes]] = []
"""The last comparison, if all outputs were as in the snapshot: when, the lock file's signature, the snapshot."""


def packed(outputs: Mapping[str, Stamp]) -> tuple[dict[str, str], bytes]:
    """Return the names of the outputs by folder, and their signatures."""
    names: dict[str, list[str]] = {}
    for path in outputs:
        folder, _, name = path.rpartition("/")
        names.setdefault(folder, []).append(name)
    folders = {folder: "/".join(sorted(names[folder])) for folder in sorted(names)}
    seen = [number for path in _paths(folders) for number in outputs[path]]
    return folders, _numbers(seen)


def _numbers(values: Sequence[int]) -> bytes:
    """Return signatures of files as bytes."""
    return struct.pack("=" + "QqqQ" * (len(values) // 4), *values)


def paths(taken: Json) -> Iterator[str]:
    """Yield the path of each output in a snapshot."""
    return _paths(taken["outputs"])


def _paths(folders: Mapping[str, str]) -> Iterator[str]:
    return (f"{folder}/{name}" for folder, names in folders.items() for name in names.split("/"))


def difference(taken: Json, packed: memoryview) -> str:
    """Return the first output that is gone, or else changed."""
    target = taken["request"]["target"]
    looked_ns, lock = time.time_ns(), signatures.stamp(os.stat(f"{target}/lock"))
    handle = os.open(target, os.O_RDONLY | os.O_DIRECTORY)  # a stat below it does not look up the whole path
    found: list[int] = []
    try:
        below = len(target) + 1
        for path in paths(taken):
            try:
                found += signatures.stamp(os.stat(path[below:], dir_fd=handle))
            except (FileNotFoundError, NotADirectoryError):
                # reported first: removing a hard link changes the signature of the other link
                return f"{path} is gone"
    finally:
        os.close(handle)
    if _numbers(found) == packed:
        _intact.append((looked_ns, lock, taken, bytes(packed)))
        return ""
    for at, path in enumerate(paths(taken)):
        if _numbers(found[4 * at : 4 * at + 4]) != packed[32 * at : 32 * at + 32]:
            return f"{path} has changed"
    return "the list of outputs is damaged"


def recent(lock: Stamp) -> dict[str, Stamp]:
    """Return the outputs that a comparison has just found intact, with their signatures; none if in doubt.

    `lock` is the signature of the lock file before this process took the lock, or empty. It tells if another process
    held the lock since the comparison, and so may have replaced outputs.
    """
    if not _intact:
        return {}
    looked_ns, seen, taken, packed = _intact.pop()
    if seen != lock or not 0 <= time.time_ns() - looked_ns <= FRESH_NS:
        return {}
    values = struct.unpack("=" + "QqqQ" * (len(packed) // 32), packed)
    return {path: list(values[4 * at : 4 * at + 4]) for at, path in enumerate(paths(taken))}


def forget() -> None:
    """Forget the last comparison."""
    _intact.clear()
