"""Lock of a target: one process at a time writes to it. The kernel releases the lock of a dead process."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from warehouse.base.errors import LockedError, SettingsError, WarehouseError
from warehouse.store.atomic import is_misplaced, quarantine
from warehouse.store.signatures import read_text

_UNSAFE_CHARACTERS = "\\?*"
"""Characters that DuckDB does not take literally in the path of a file that it writes."""


@contextmanager
def hold(target: Path, *, wait: bool = False, reads: bool = False) -> Iterator[None]:
    """Hold a target's lock while the block runs. The lock file has the process id of the holder.

    Parameters
    ----------
    wait
        True to wait for another holder.
    reads
        True to accept a read-only target. It is locked if its lock file is readable, and not locked otherwise.

    Raises
    ------
    LockedError
        When another process holds the lock and `wait` is false. The message has its pid.
    WarehouseError
        When the target cannot be written.
    """
    path = str(target.absolute())
    unsafe = next((character for character in _UNSAFE_CHARACTERS if character in path), None)
    if unsafe:
        raise SettingsError(f"a target's path cannot hold `{unsafe}`: {path}", hint="give another folder with --target")
    try:
        if not reads:
            target.mkdir(parents=True, exist_ok=True)
            if is_misplaced(target / "lock"):
                quarantine(target.absolute(), target.absolute() / "lock")
        handle, is_ours = os.open(target / "lock", os.O_RDWR | os.O_CREAT, 0o644), True
    except OSError as error:
        if not reads:
            raise WarehouseError(f"the target {target} cannot be written: {error.strerror}") from error
        try:
            handle, is_ours = os.open(target / "lock", os.O_RDONLY), False
        except OSError:  # missing or unreadable
            yield
            return
    try:
        _lock(handle, target, wait=wait)
        if is_ours:
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps({"pid": os.getpid()}).encode(), 0)
        yield
        if is_ours:
            os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _lock(handle: int, target: Path, *, wait: bool) -> None:
    """Take the kernel's lock."""
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not wait:
                raise LockedError(_holder(target), hint="--wait waits until it ends") from None
            time.sleep(0.2)
        except OSError as error:
            raise WarehouseError(f"the target {target} cannot be locked: {error.strerror}") from error


def _holder(target: Path) -> str:
    """Return the sentence that another process holds the lock."""
    try:
        return f"another build holds {target} (process {json.loads(read_text(target / 'lock'))['pid']})"
    except (OSError, ValueError, KeyError, TypeError):
        return f"another build holds {target}"
