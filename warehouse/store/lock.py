"""One build at a time holds a target. The kernel drops the lock of a dead process, so none goes stale."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from warehouse.base.errors import LockedError, SettingsError, WarehouseError
from warehouse.store.atomic import is_in_the_way, quarantine
from warehouse.store.signatures import read_text

_MISREAD = "\\?*"
"""What the engine takes for something else in the path of a file that it writes."""


@contextmanager
def hold(target: Path, *, wait: bool = False, reads: bool = False) -> Iterator[None]:
    """Hold `target/lock` while the block runs.

    With `reads`, a target that cannot be written is held as far as that is possible: no build of this user can run.

    Raises
    ------
    LockedError
        When another process holds it and `wait` is false; names its pid.
    WarehouseError
        When no warehouse can be written there.
    """
    path = str(target.absolute())
    misread = next((mark for mark in _MISREAD if mark in path), None)
    if misread:
        raise SettingsError(
            f"a target's path cannot hold `{misread}`: {path}", hint="give another folder with --target"
        )
    try:
        if not reads:
            target.mkdir(parents=True, exist_ok=True)
            if is_in_the_way(target / "lock"):
                quarantine(target.absolute(), target.absolute() / "lock")
        handle, is_ours = os.open(target / "lock", os.O_RDWR | os.O_CREAT, 0o644), True
    except OSError as error:
        if not reads:
            raise WarehouseError(f"the target {target} cannot be written: {error.strerror}") from error
        try:
            handle, is_ours = os.open(target / "lock", os.O_RDONLY), False
        except OSError:  # none there, or closed to us
            yield
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
        if is_ours:
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps({"pid": os.getpid()}).encode(), 0)
        yield
    finally:
        os.close(handle)


def _holder(target: Path) -> str:
    try:
        return f" (process {json.loads(read_text(target / 'lock'))['pid']})"
    except (OSError, ValueError, KeyError):
        return ""
