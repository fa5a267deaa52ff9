"""Lock of a target: one build at a time, or several shares of a build.

The kernel releases the lock of a dead process, so none goes stale. On file systems of several machines, files with
counters are the lock (`shared_lock`).
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from warehouse.base.errors import LockedError, SettingsError, WarehouseError
from warehouse.store import shared_lock
from warehouse.store.atomic import is_misplaced, quarantine
from warehouse.store.signatures import read_text, stamp

if TYPE_CHECKING:
    from warehouse.store.signatures import Stamp

_UNSAFE_CHARACTERS = "\\?*"
"""Characters that DuckDB does not take literally in the path of a file that it writes."""
_OF_SHARES = b'{"shares": true}'
"""Content of the lock file since shares held it: they do not tell who was killed."""


class Held(NamedTuple):
    """Lock that is held."""

    was_killed: bool
    """True if the last holder was killed, or it is unknown."""
    confirm: Callable[[], None]
    """Raises LockedError if the lock was lost."""
    before: Stamp = []  # noqa: RUF012 - never changed
    """Signature of the lock file before: each holder changes it. Empty if that is not sure."""


@contextmanager
def hold(target: Path, *, wait: bool = False, reads: bool = False, shared: bool = False) -> Iterator[Held]:
    """Hold a target's lock while the block runs.

    The lock file holds the process id of the holder until it lets go.

    Parameters
    ----------
    wait
        True to wait for other holders.
    reads
        True to accept a read-only target. It is locked if its lock file is readable, and not locked otherwise.
    shared
        True to allow other holders that share the lock.

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
            yield Held(True, lambda: None)
            return
    try:
        if is_ours and shared_lock.is_on_network(target):
            with (
                shared_lock.hold_on_network(target, wait=wait, shared=shared) as holder,
                _noted(handle, shared) as held,
            ):
                yield held._replace(confirm=holder.confirm, before=[])
            return
        _lock(handle, target, wait=wait, shared=shared)
        with _noted(handle if is_ours else None, shared) as held:
            yield held
    finally:
        os.close(handle)


def _lock(handle: int, target: Path, *, wait: bool, shared: bool) -> None:
    """Take the kernel's lock."""
    while True:
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not wait:
                raise LockedError(_holder(target), hint="--wait waits until it ends") from None
            time.sleep(0.2)
        except OSError as error:
            raise WarehouseError(f"the target {target} cannot be locked: {error.strerror}") from error


@contextmanager
def _noted(handle: int | None, shared: bool) -> Iterator[Held]:
    """Note the holder in the lock file while the block runs; `handle` is None if it cannot be written."""
    if handle is None:
        yield Held(False, lambda: None)
        return
    about = os.fstat(handle)
    was_killed = about.st_size > 0
    if shared:
        os.pwrite(handle, _OF_SHARES, 0)
        os.ftruncate(handle, len(_OF_SHARES))
        yield Held(was_killed, lambda: None)
        return
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps({"pid": os.getpid()}).encode(), 0)
    try:
        yield Held(was_killed, lambda: None, stamp(about))
    finally:
        os.ftruncate(handle, 0)


def _holder(target: Path) -> str:
    """Return the sentence that another process holds the lock."""
    try:
        about = json.loads(read_text(target / "lock"))
        if "shares" in about:
            return f"a share of a build holds {target}"
        return f"another build holds {target} (process {about['pid']})"
    except (OSError, ValueError, KeyError, TypeError):
        return f"another build holds {target}"
