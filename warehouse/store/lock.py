"""Lock of a target: one build at a time. The kernel releases the lock of a dead process, so none goes stale."""

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
def hold(target: Path, *, wait: bool = False, reads: bool = False) -> Iterator[bool]:
    """Hold `target/lock` while the block runs; give it True if the last holder was killed, or it is unknown.

    The lock file holds the process id of the holder until it lets go.

    With `reads`, a read-only target is accepted. It is locked if its lock file is readable, and not locked otherwise.

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
            yield True
            return
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not wait:
                    raise LockedError(
                        f"another build holds {target}{_holder(target)}", hint="--wait waits until it ends"
                    ) from None
                time.sleep(0.2)
            except OSError as error:
                raise WarehouseError(f"the target {target} cannot be locked: {error.strerror}") from error
        was_killed = os.fstat(handle).st_size > 0
        if is_ours:
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps({"pid": os.getpid()}).encode(), 0)
        try:
            yield was_killed
        finally:
            if is_ours:
                os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _holder(target: Path) -> str:
    try:
        return f" (process {json.loads(read_text(target / 'lock'))['pid']})"
    except (OSError, ValueError, KeyError):
        return ""
