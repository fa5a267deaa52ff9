"""File signatures: size, mtime, ctime and inode, to detect a changed file without opening it.

A build that is up to date imports this module, and little else. To keep that fast, it imports only light modules.
"""

from __future__ import annotations

import os
import stat

from warehouse.base.regular_files import open_regular, opener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


Stamp = list[int]
"""Size, mtime, ctime and inode of a file."""
LARGEST = 2**63 - 1
"""Inode numbers are cut to this size, to be packed in 8 bytes."""
RACY_NS = 2 * 10**9
"""Age below which a file's times prove nothing: the coarsest file systems count in steps of two seconds."""


def stamp(about: os.stat_result) -> Stamp:
    """Return the signature of a file: size, mtime, ctime, inode."""
    return [about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino]


def read_text(path: str | os.PathLike[str], encoding: str = "utf-8") -> str:
    """Return the text of a file. Raises OSError for a pipe, socket or device, which could block forever."""
    with open(path, encoding=encoding, opener=opener) as stream:
        return stream.read()


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file. Raises OSError for a pipe, socket or device, which could block forever."""
    with open_regular(path) as stream:
        return stream.read()


_SYSTEM = ("/proc", "/sys")


def is_within(path: str, folders: Iterable[str]) -> bool:
    """Return True if a resolved path is one of these folders or below one."""
    return any(path == folder or path.startswith(os.path.join(folder, "")) for folder in folders)


def must_not_follow(link: str, inside: Sequence[str] | None) -> bool:
    """Return True if a link must not be followed.

    Parameters
    ----------
    link
        A symbolic link in a data folder.
    inside
        The resolved paths of the folders that links may lead to; None for all except /proc and /sys.
    """
    real = os.path.realpath(link)
    return is_within(real, _SYSTEM) or (inside is not None and not is_within(real, inside))


def system_folders() -> set[tuple[int, int]]:
    """Return device and inode of /proc and /sys, whose files are never opened."""
    return {_identity(folder) for folder in _SYSTEM if os.path.isdir(folder)}


def _files(places: Iterable[tuple[str, bool]]) -> dict[str, Stamp]:
    """Return files with their signatures, empty for unreadable ones. Lists each folder once, so that loops end."""
    found: dict[str, Stamp] = {}
    listed = system_folders()
    for root, deep in places:
        waiting = [root]
        while waiting:
            folder = waiting.pop()
            try:
                identity = _identity(folder)
                if identity in listed:
                    continue
                listed.add(identity)
                below = []
                with os.scandir(folder) as entries:
                    for entry in entries:
                        try:
                            about = entry.stat()
                        except OSError:
                            found[entry.path] = []
                            continue
                        if entry.is_symlink() and must_not_follow(entry.path, None):
                            found[entry.path] = []
                        elif stat.S_ISREG(about.st_mode):
                            found[entry.path] = stamp(about)
                        elif not stat.S_ISDIR(about.st_mode):
                            found[entry.path] = []  # a pipe or a device is never read
                        elif deep and entry.name != "__pycache__":  # Python writes its bytecode there
                            found[entry.path] = []  # record the name of a folder, not its times
                            below.append(entry.path)
                waiting += sorted(below, reverse=True)
            except NotADirectoryError:
                found[folder] = stamp(os.stat(folder))
            except OSError:
                found[folder] = []
    return found


def _identity(folder: str) -> tuple[int, int]:
    about = os.stat(folder)
    return about.st_dev, about.st_ino


def real_roots(data: Iterable[str | Path]) -> list[str]:
    """Return the resolved paths of data folders, where links may lead."""
    return [os.path.realpath(root) for root in data]


def code_files(folders: Iterable[Path | str]) -> dict[str, Stamp]:
    """Return the signatures of this package's modules and of the files of a project's folders."""
    places = [(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), True)]
    for folder in folders:
        places += [(f"{folder}/models", True), (f"{folder}/sql", True), (f"{folder}/data", False)]
        places.append((f"{folder}/warehouse.toml", False))
    return _files(places)
