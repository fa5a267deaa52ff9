"""Atomic file writes: write to a temporary name, fsync, rename.

A temporary name contains a random part, host, boot and process id. The next build removes temporary files of processes
that no longer run, and those of other machines after a day.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from warehouse.base.startup import regex
from warehouse.store.origin import has_ended, machine

_CLOCK_SECONDS = 2.0
"""Tolerance for start times of processes: Linux gives the boot time in whole seconds."""
_ELSEWHERE_SECONDS = 86_400
"""Age of a temporary file of another machine, where its process cannot be looked up, that counts as left behind."""
_NAME = regex(r"^\..+?(?:\.([A-Za-z0-9-]*~[0-9a-f]{8}))?\.(\d+)$")
"""Temporary name; one of an earlier release has no machine."""


def temporary_path(path: Path) -> Path:
    """Return the temporary path for a file that will be renamed to `path`."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.{machine()}.{os.getpid()}")


def write_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Write a text file atomically; with `durable`, it and its name are on disk when this returns."""
    write_bytes(path, text.encode(), durable=durable)


def write_bytes(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write a file atomically; with `durable`, it and its name are on disk when this returns."""
    temporary = temporary_path(path)
    try:
        temporary.write_bytes(content)
        if durable:
            sync(temporary)
        temporary.replace(path)
        if durable:
            sync(path.parent)
    except OSError as error:
        error.filename = error.filename or str(path)  # errors of write() have no file name
        temporary.unlink(missing_ok=True)
        raise
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


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

    Parameters
    ----------
    command
        Word for the folder's name.
    """
    base = Path(tempfile.gettempdir())
    for path in base.glob(".warehouse-*"):
        with suppress(OSError):  # another command removes it, too
            if path.lstat().st_uid == os.geteuid() and _is_orphaned(path):
                remove(path)
    folder = temporary_path(base / f"warehouse-{command}")
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk (fsync)."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def orphaned_files(folder: Path, leave_out: Collection[str] = ()) -> Iterator[Path]:
    """Yield temporary files and folders whose process no longer runs. Folders named in `leave_out` are not searched."""
    for where, below, names in os.walk(folder):
        temporary = (name for name in (*below, *names) if _NAME.match(name))
        yield from (path for path in (Path(where, name) for name in temporary) if _is_orphaned(path))
        is_archives = where.endswith("/unpacked")  # archives are renamed whole, without temporary files inside
        below[:] = [name for name in below if not (name.startswith(".") or is_archives or name in leave_out)]


def remove(path: Path) -> None:
    """Remove a file or folder if it exists. A folder is renamed first, so that it disappears atomically."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    gone = path if path.name.startswith(".") else path.rename(temporary_path(path.with_name(f"{path.name}.gone")))
    shutil.rmtree(gone)


def quarantine(target: Path, path: Path) -> Path:
    """Move a damaged file or folder to `damaged/` of its target; return the new path."""
    name = path.relative_to(target)
    place = target / "damaged" / name
    for folder in (target / "damaged" / above for above in name.parents):
        if is_misplaced(folder, folder=True):  # a file that was quarantined from the place of a folder
            folder.rename(_free(folder))
    place.parent.mkdir(parents=True, exist_ok=True)
    return path.rename(_free(place))


def _free(place: Path) -> Path:
    """Return the path, with a number if it exists."""
    number = 0
    free = place
    while os.path.lexists(free):
        number += 1
        free = place.with_name(f"{place.name}.{number}")
    return free


def is_misplaced(path: Path, *, folder: bool = False) -> bool:
    """Return True if the path exists and is not a regular file (or folder), such as a pipe or broken link."""
    return os.path.lexists(path) and not (path.is_dir() if folder else path.is_file())


def _is_orphaned(path: Path) -> bool:
    """Return True if the process that wrote a temporary file has ended, even if its process id is in use again."""
    found = _NAME.match(path.name)
    if found is None:
        return False
    process = int(found[2])
    ended = has_ended(found[1] or machine(), process)
    if ended:
        return True
    try:
        written = path.lstat().st_mtime
        if ended is None:
            return written < time.time() - _ELSEWHERE_SECONDS
        return written < _start_time(process) - _CLOCK_SECONDS
    except OSError:  # the file or process disappeared meanwhile, or this is not Linux
        return False


def _start_time(process: int) -> float:
    """Return the start time of a process in seconds since 1970. Raises OSError. Source: proc(5), `btime`, field 22."""
    boot = next(line for line in Path("/proc/stat").read_text(encoding="ascii").splitlines() if line[:5] == "btime")
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return int(boot.split()[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")
