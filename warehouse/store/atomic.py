"""Files on their way: written under a hidden name with the number of the process, then renamed into their place.

So nothing is ever there by half, and what a killed process left on its way can be told from what a living one
writes: the next build removes it.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

from warehouse.base.startup import regex

_CLOCK_SECONDS = 2.0
"""The boot time that Linux tells is in whole seconds."""
_NAME = regex(r"^\..+\.(\d+)$")


def temporary_path(path: Path) -> Path:
    """Where to write what will be renamed to `path`."""
    return path.with_name(f".{path.name}.{threading.get_native_id()}.{os.getpid()}")


def write_text(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    on_its_way = temporary_path(path)
    try:
        on_its_way.write_text(text, encoding="utf-8")
        on_its_way.replace(path)
    except OSError as error:
        error.filename = error.filename or str(path)  # a write that fails does not name its file
        on_its_way.unlink(missing_ok=True)
        raise
    except BaseException:
        on_its_way.unlink(missing_ok=True)
        raise


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, on disk: a power cut later on does not take them back."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def left_behind(folder: Path) -> Iterator[Path]:
    """Files and folders on their way whose process is gone."""
    for where, below, names in os.walk(folder):
        yield from (Path(where, name) for name in (*below, *names) if _is_left(Path(where, name)))
        is_archives = where.endswith("/unpacked")  # which are renamed whole: nothing in them is on its way
        below[:] = [name for name in below if not (name.startswith(".") or is_archives)]


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there; a folder by one rename, so that none is ever there by half."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    gone = path if path.name.startswith(".") else path.rename(temporary_path(path.with_name(f"{path.name}.gone")))
    shutil.rmtree(gone)


def quarantine(target: Path, path: Path) -> Path:
    """Move something damaged out of the way, to `damaged/` of its target, and return its new place."""
    place = target / "damaged" / path.relative_to(target)
    place.parent.mkdir(parents=True, exist_ok=True)
    number = 0
    free = place
    while os.path.lexists(free):
        number += 1
        free = place.with_name(f"{place.name}.{number}")
    path.rename(free)
    return free


def is_in_the_way(path: Path, *, folder: bool = False) -> bool:
    """Return True if a pipe, socket, dangling link or the like is where a file (or a folder) belongs."""
    return os.path.lexists(path) and not (path.is_dir() if folder else path.is_file())


def _is_left(path: Path) -> bool:
    """Return True if the process that wrote a hidden file is gone; another one may have its number by now."""
    found = _NAME.match(path.name)
    if found is None:
        return False
    process = int(found[1])
    if not _lives(process):
        return True
    try:
        return path.lstat().st_mtime < _started(process) - _CLOCK_SECONDS
    except OSError:  # one of them is gone meanwhile, or this is no Linux
        return False


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _started(process: int) -> float:
    """Return when a process started, in seconds since 1970. Raises OSError. Source: proc(5), fields `btime`, 22."""
    boot = next(line for line in Path("/proc/stat").read_text(encoding="ascii").splitlines() if line[:5] == "btime")
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return int(boot.split()[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")
