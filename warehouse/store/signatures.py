"""File signatures: size, mtime, ctime and inode, which tell a file from its successor without opening it.

This module is part of what a build with nothing to do costs: plain values and `os`, and nothing else.
"""

from __future__ import annotations

import errno
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path
    from typing import Any

    Said = dict[str, Any]
    Stamp = list[int]

RACY_NS = 2 * 10**9
"""A time this close to the look says nothing: the coarsest file system counts in steps of two seconds."""


def stamp(about: os.stat_result) -> Stamp:
    """What tells a file from its successor: size, time of the content, time of the entry, inode."""
    return [about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino]


def read_text(path: str | os.PathLike[str], encoding: str = "utf-8") -> str:
    """Return the text of a file; raise OSError for a pipe, socket or device, which could block for ever."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, encoding=encoding) as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "not a file", str(path))
        return stream.read()


_KERNEL = ("/proc", "/sys")


def is_within(path: str, folders: Iterable[str]) -> bool:
    """Return True if a real path is one of these folders, or below one."""
    return any(path == folder or path.startswith(os.path.join(folder, "")) for folder in folders)


def leads_out(link: str, inside: Sequence[str] | None) -> bool:
    """Return True if a link must not be followed.

    Parameters
    ----------
    link
        A symbolic link in a data folder.
    inside
        The real paths of the folders that links may lead to; None for all but those of the kernel.
    """
    real = os.path.realpath(link)
    return is_within(real, _KERNEL) or (inside is not None and not is_within(real, inside))


def kernel_folders() -> set[tuple[int, int]]:
    """Return the identities of /proc and /sys, whose files are never opened."""
    return {_identity(folder) for folder in _KERNEL if os.path.isdir(folder)}


def is_racy(seen: Sequence[int], looked_ns: int) -> bool:
    """Whether a file could have changed again after the look without its stamp showing it."""
    return max(seen[1], seen[2]) > looked_ns - RACY_NS


class Look:
    """All files of some places, as a moment found them.

    Parameters
    ----------
    places
        (path, deep): a folder with all that is below it, or only its own files; or a single file.
    leave_out
        A folder that is none of them, such as a target among data folders.
    inside
        The real paths of the folders that links may lead to; None for all.
    """

    def __init__(
        self,
        places: Iterable[tuple[str, bool]],
        leave_out: str | None = None,
        inside: Sequence[str] | None = None,
    ) -> None:
        self.places = list(places)
        self.leave_out = leave_out
        self.inside = inside
        self.looked_ns = time.time_ns()
        self.files = _files(self.places, leave_out, inside)

    def again(self) -> Look:
        """The same places, now."""
        return Look(self.places, self.leave_out, self.inside)

    def changes(
        self, later: Look, same: Callable[[str], bool], *, times_count: bool = False
    ) -> tuple[list[str], list[str], list[str]]:
        """Files that are new, gone, and changed.

        Parameters
        ----------
        later
            The same places later on.
        same
            Whether the content of a path is what it was, asked where the stamps prove nothing.
        times_count
            Whether another time of the content is a change in itself, as it is where the warehouse lists it.
        """
        new = [path for path in later.files if path not in self.files]
        gone = [path for path in self.files if path not in later.files]
        changed = []
        for path, seen in self.files.items():
            now = later.files.get(path)
            if now is None or (now == seen and not (seen and is_racy(seen, self.looked_ns))):
                continue
            telling = 2 if times_count else 1
            if now[:telling] != seen[:telling] or not same(path):
                changed.append(path)
        return new, gone, changed


def _files(places: Iterable[tuple[str, bool]], leave_out: str | None, inside: Sequence[str] | None) -> dict[str, Stamp]:
    """List files with their stamps. A folder is listed once, so that a loop ends; what cannot be seen has no stamp."""
    found: dict[str, Stamp] = {}
    listed = kernel_folders()
    if leave_out and os.path.isdir(leave_out):
        listed.add(_identity(leave_out))
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
                        if entry.is_symlink() and leads_out(entry.path, inside):
                            found[entry.path] = []
                        elif stat.S_ISREG(about.st_mode):
                            found[entry.path] = stamp(about)
                        elif not stat.S_ISDIR(about.st_mode):
                            found[entry.path] = []  # a pipe or a device: nobody reads it
                        elif deep and entry.name != "__pycache__":
                            found[entry.path] = []  # the name of an empty folder can mean something, its times cannot
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


def real_roots(data: Iterable[Path]) -> list[str]:
    """Return the real paths of data folders: links may lead there."""
    return [os.path.realpath(root) for root in data]


def look_at_data(data: Sequence[Path], target: Path, *, follow_links: bool = False) -> Look:
    """The raw files."""
    inside = None if follow_links else real_roots(data)
    return Look([(str(root.absolute()), True) for root in data], str(target), inside)


def look_at_sources(folders: Iterable[Path]) -> Look:
    """The modules of this package, and the files of the project's folders."""
    places = [(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), True)]
    for folder in folders:
        places += [(f"{folder}/models", True), (f"{folder}/sql", True), (f"{folder}/data", False)]
        places.append((f"{folder}/warehouse.toml", False))
    return Look(places)


def same_content(path: str, digest: str | None) -> bool:
    """Whether a file still holds what was hashed; not where nothing was."""
    if digest is None:
        return False
    from pathlib import Path

    from warehouse.store.content_hash import of_content

    try:
        return of_content(Path(path)) == digest
    except OSError:
        return False
