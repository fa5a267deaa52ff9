"""Clear errors for a full disk or an exceeded file size limit."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from warehouse.base.errors import WarehouseError
from warehouse.base.text import size
from warehouse.engine.duckdb_errors import is_full_disk
from warehouse.store.walk import walk

if TYPE_CHECKING:
    from warehouse.base.settings import Settings

_TOO_LARGE = re.compile(r"File too large")
_PATH = re.compile(r"[\"'](/[^\"']+)[\"']")


class DiskFullError(WarehouseError):
    """Full disk, or a file that would be larger than a file may be."""


@contextmanager
def explaining_full_disk(settings: Settings) -> Iterator[None]:
    """Replace errors of a full disk or of a file size limit with a clear message.

    Raises
    ------
    DiskFullError
        With the folder, its free space, and the space that a build of these data folders may need.
    """
    try:
        yield
    except (OSError, WarehouseError) as error:
        text = _text(error)
        if is_full_disk(text) or _has(error, errno.ENOSPC, errno.EDQUOT):
            free = os.statvfs(settings.target)
            needed = _raw_bytes(settings)
            raise DiskFullError(
                f"the disk of {settings.target} is full: {size(free.f_bavail * free.f_frsize)} are free",
                hint=f"A build of these data folders needs up to {size(needed)}; -t DIR builds on another disk.",
            ) from error
        if _TOO_LARGE.search(text) or _has(error, errno.EFBIG):
            found = _PATH.search(text)
            name = getattr(error, "filename", None) or (found[1] if found else settings.target)
            raise DiskFullError(
                f"{name} would be larger than a file may be here", hint="ulimit -f sets that limit"
            ) from error
        raise


def _raw_bytes(settings: Settings) -> int:
    """Return the size of all raw files in bytes, an upper bound for parts and spilled rows together."""
    found = walk(settings.data, [settings.target.absolute()], follow_links=settings.follow_links)
    return max(sum(seen[0] for folder in found.values() for seen in folder.stamps.values()), 50_000_000)


def _text(error: BaseException) -> str:
    """Return the messages of an error and its causes."""
    return "\n".join(map(str, _chain(error)))


def _has(error: BaseException, *numbers: int) -> bool:
    return any(isinstance(one, OSError) and one.errno in numbers for one in _chain(error))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, each once: a re-raised error can be in a cycle of causes."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__
