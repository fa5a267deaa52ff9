"""Atomic file writes, and the lock of a target.

A file is written to a temporary name, synced and renamed. One process at a time writes to a target; the kernel releases
the lock of a dead process.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from warehouse.base.errors import LockedError, SettingsError, WarehouseError
from warehouse.store.signatures import read_text

TEMPORARY = "tmp"
"""Folder of a target for unfinished files. It is emptied under the target's lock."""

_RANDOM = "[0-9a-f]" * 8
"""End of the names of `temporary_path`."""


def temporary_path(path: Path) -> Path:
    """Return the temporary path for a file that will be renamed to `path`."""
    # In the same folder, since a rename between file systems is a copy.
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def output_path(output: Path, process: int | None = None) -> Path:
    """Return the temporary path of an output file that a process writes, by default this one; a link is followed."""
    place = output.resolve()
    return place.with_name(f".{place.name}.{process or os.getpid()}")


@contextmanager
def replacing(output: Path) -> Iterator[Path]:
    """Yield the path to write instead of an output file; at the end of the block it replaces the file.

    The mode of the file stays. If anything fails, the file stays as it was. A pipe or device is written directly.

    Raises
    ------
    OSError
        With the name of the output file.
    """
    is_regular = output.is_file() or not output.exists()
    path = output_path(output) if is_regular else output
    try:
        yield path
        if is_regular:
            if output.exists():
                shutil.copymode(output, path)
            sync(path)
            path.replace(output.resolve())
    except OSError as error:
        if error.filename in (None, str(path)):  # errors of write() have no file name
            error.filename = str(output)
        raise
    finally:
        if is_regular:
            path.unlink(missing_ok=True)


@contextmanager
def scratch_folder(command: str) -> Iterator[Path]:
    """Yield a folder in the system's temporary directory; remove it at the end, and those of commands that were killed.

    A running command holds a lock on its folder, which the kernel releases when the command ends.

    Parameters
    ----------
    command
        Word for the folder's name.
    """
    base = Path(tempfile.gettempdir())
    for path in base.glob(".warehouse-*"):
        with suppress(OSError), _locked(path):  # an error: its command runs, or another command removes it, too
            if path.stat().st_mtime < time.time() - _NEW_SECONDS:
                shutil.rmtree(path)
    folder = temporary_path(base / f"warehouse-{command}")
    folder.mkdir(mode=0o700)  # other users can write in /tmp
    try:
        with _locked(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_NEW_SECONDS = 60
"""Age below which a command may not have locked its folder yet."""


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder while the block runs. Raises OSError if another process holds the lock."""
    # Anybody can put a link with such a name in /tmp, or a pipe, which would block.
    handle = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk (fsync)."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def leftovers(target: Path) -> list[Path]:
    """Return what killed processes left in a target whose lock is held."""
    places = ("", "builds/", "builds/*/", "cache/", "cache/unpacked/", "cache/clean/*/")
    hidden = (path for place in places for path in target.glob(f"{place}.*.{_RANDOM}"))
    return [*hidden, *(target / TEMPORARY).glob("*")]


def remove(path: Path) -> None:
    """Remove a file or folder if it exists. A folder is renamed first, so that it disappears atomically."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    gone = path if path.name.startswith(".") else path.rename(temporary_path(path.with_name(f"{path.name}.gone")))
    shutil.rmtree(gone)


def quarantine(target: Path, path: Path) -> Path:
    """Move a damaged file or folder to a new folder of `damaged/` in its target; return the new path."""
    place = target / "damaged" / secrets.token_hex(4) / path.relative_to(target)
    place.parent.mkdir(parents=True)
    return path.rename(place)


def is_misplaced(path: Path, *, folder: bool = False) -> bool:
    """Return True if the path exists and is not a regular file (or folder), such as a pipe or broken link."""
    return os.path.lexists(path) and not (path.is_dir() if folder else path.is_file())


def quarantine_misplaced(target: Path) -> Iterator[str]:
    """Move pipes, sockets and broken links in the target to `damaged/`; yield their paths relative to the target."""
    folders = [target / name for name in ("builds", "cache", "parts", TEMPORARY, "cache/clean", "cache/unpacked")]
    folders += (target / "builds").glob("[0-9a-f]" * 16)
    files = [target / "warehouse.duckdb", target / "builds" / "current", *(target / "builds").glob("*/*.*")]
    for path, is_folder in [*((path, True) for path in folders), *((path, False) for path in files)]:
        if is_misplaced(path, folder=is_folder):
            quarantine(target, path)
            yield path.relative_to(target).as_posix()


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
        True to accept a read-only target, which is not locked.

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
        # The file is never removed: who opens it next could lock a new one beside the removed one.
        handle = os.open(target / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        if not reads:
            raise WarehouseError(f"the target {target} cannot be written: {error.strerror}") from error
        yield
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockedError(_holder(target), hint="--wait waits until it ends") from None
        except OSError as error:
            raise WarehouseError(f"the target {target} cannot be locked: {error.strerror}") from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _holder(target: Path) -> str:
    """Return the sentence that another process holds the lock."""
    with suppress(OSError, ValueError):  # it is being written
        return f"another build holds {target} (process {int(read_text(target / 'lock'))})"
    return f"another build holds {target}"
