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
    from collections.abc import Mapping
    from typing import Any

    from warehouse.store.signatures import Stamp

    Json = dict[str, Any]

FRESH_NS = 5 * 10**9
"""Age up to which a build uses what the comparison before it has seen."""
_intact: list[tuple[int, Stamp, Json, bytes]] = []
"""The last comparison, if all outputs were as in the snapshot: when, the lock file's signature, the snapshot."""


_SIGNATURE = struct.Struct("=QqqQ")
_BETWEEN = "\0"


def packed(outputs: Mapping[str, Stamp], target: str) -> tuple[str, bytes]:
    """Return the paths of the outputs below the target, sorted and in one text, and their signatures."""
    ordered = sorted(outputs)
    below = len(target) + 1
    numbers = b"".join([_SIGNATURE.pack(*outputs[path]) for path in ordered])
    return _BETWEEN.join([path[below:] for path in ordered]), numbers


def paths(taken: Json) -> list[str]:
    """Return the path of each output in a snapshot."""
    target = taken["request"]["target"]
    return [f"{target}/{path}" for path in taken["outputs"].split(_BETWEEN)]


def difference(taken: Json, packed: memoryview) -> str:
    """Return the first output that is gone, or else changed."""
    target = taken["request"]["target"]
    looked_ns, lock = time.time_ns(), signatures.stamp(os.stat(f"{target}/lock"))
    handle = os.open(target, os.O_RDONLY | os.O_DIRECTORY)  # a stat below it does not look up the whole path
    below: list[str] = taken["outputs"].split(_BETWEEN)
    found: list[bytes] = []
    try:
        for path in below:
            try:
                found.append(_SIGNATURE.pack(*signatures.stamp(os.stat(path, dir_fd=handle))))
            except (FileNotFoundError, NotADirectoryError):
                # reported first: removing a hard link changes the signature of the other link
                return f"{target}/{path} is gone"
    finally:
        os.close(handle)
    if b"".join(found) == packed:
        _intact.append((looked_ns, lock, taken, bytes(packed)))
        return ""
    size = _SIGNATURE.size
    for at, (path, seen) in enumerate(zip(below, found, strict=True)):
        if seen != packed[size * at : size * (at + 1)]:
            return f"{target}/{path} has changed"
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
    return dict(zip(paths(taken), map(list, _SIGNATURE.iter_unpack(packed)), strict=True))


def forget() -> None:
    """Forget the last comparison."""
    _intact.clear()
