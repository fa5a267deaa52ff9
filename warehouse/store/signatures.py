"""File signatures (size, mtime, ctime, inode), which tell a changed file unopened; the walk over data folders.

A build that is up to date imports this module, and little else. To keep that fast, it imports only light modules.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import xxhash

from warehouse.base.errors import DataError
from warehouse.base.hashing import NOT_REGULAR, open_regular, opener
from warehouse.base.settings import CONFIG
from warehouse.base.text import plural

Stamp = list[int]
"""Size, mtime, ctime and inode of a file."""
RACY_NS = 2 * 10**9
"""Age below which a file's times prove nothing: the coarsest file systems count in steps of two seconds."""


def stamp(about: os.stat_result, link: os.stat_result | None = None) -> Stamp:
    """Return the signature of a file, and of the link that leads to it: size, mtime, ctime, inode."""
    # A link that is replaced has a new ctime, even if it leads to a file of the same size and times.
    ctime_ns = max(about.st_ctime_ns, link.st_ctime_ns) if link else about.st_ctime_ns
    return [about.st_size, about.st_mtime_ns, ctime_ns, about.st_ino]


def read_text(path: str | os.PathLike[str], encoding: str = "utf-8") -> str:
    """Return the text of a file. Raises OSError for a pipe, socket or device, which could block forever."""
    with open(path, encoding=encoding, opener=opener) as stream:
        return stream.read()


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file. Raises OSError for a pipe, socket or device, which could block forever."""
    with open_regular(path) as stream:
        return stream.read()


_SHOWN = 3
_STEP_NS = 20 * 10**6
"""Longest step of the times of a file system that counts in fractions of a second: two ticks of a slow kernel."""


def look(path: Path) -> Stamp:
    """Return the signature of a file as a walk sees it; empty if it cannot be looked at."""
    try:
        return stamp(path.stat(), path.lstat())
    except OSError:
        return []


def changed(seen: Mapping[Path, Sequence[int]]) -> list[str]:
    """Return the files that have another signature now."""
    return [str(path) for path, before in seen.items() if look(path) != list(before)]


def refuse_changed(seen: Mapping[Path, Sequence[int]]) -> None:
    """Raise DataError if a file has another signature now than before it was hashed."""
    if paths := changed(seen):
        raise changed_meanwhile(paths)


def changed_meanwhile(paths: Iterable[str]) -> DataError:
    """Return the error of files that changed during a build."""
    names = sorted(paths)
    return DataError(
        f"{plural(len(names), 'file')} changed while the build ran",
        details=[f"  {path}" for path in names[:_SHOWN]],
        hint="Nothing of this build is published. Build again when nothing writes there.",
    )


def settle(seen: Iterable[Sequence[int]]) -> None:
    """Wait until any later change of these files has another ctime, which counts in steps.

    Before that, two states of a file can have one signature. Times in whole seconds count in steps of up to two.
    """
    now = time.time_ns()
    waits = [0]
    for _, _, ctime_ns, _ in filter(None, seen):
        step = _STEP_NS if ctime_ns % 10**9 else RACY_NS
        waits.append(min(step, ctime_ns + step - now))  # the clock of a file server may be ahead
    time.sleep(max(waits) / 1e9)


# walk ---------------------------------------------------------------------------------------------

LINK_OUT = "link out of the data folder"
"""Begin of the reason of an entry that is a link to elsewhere."""
_FOLLOWED = ": --follow-links reads it"
UNREADABLE = "cannot be read: "
"""Begin of the reason of an entry that cannot be read."""
_REGULAR, _FOLDER = stat.S_IFREG, stat.S_IFDIR
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


class Folder:
    """Files of one folder at the time of a walk.

    Parameters
    ----------
    key
        The path that was listed: a folder, or a single file that is given as data.
    root
        The data folder, or file, in which the walk began.
    stamps
        Signature of each regular file by name, in order. The ctime of a link is the later of its own and its target's:
        a link that is replaced has a new one, even if it leads back.
    others
        Name and reason of each other entry that is no subfolder, in order.
    subfolders
        Names of the subfolders, in order.
    """

    __slots__ = ("is_single", "key", "others", "root", "stamps", "subfolders")

    def __init__(
        self,
        key: str,
        root: str,
        stamps: dict[str, Stamp],
        others: Iterable[tuple[str, str]] = (),
        subfolders: Iterable[str] = (),
        *,
        is_single: bool = False,
    ) -> None:
        self.key, self.root = key, root
        self.stamps, self.others, self.subfolders = stamps, sorted(others), sorted(subfolders)
        self.is_single = is_single

    @property
    def path(self) -> str:
        """Path of the folder that holds the files."""
        return os.path.dirname(self.key) if self.is_single else self.key

    @property
    def signature(self) -> str:
        """Hash of all names and signatures; equal if nothing changed."""
        seen = repr((list(self.stamps.items()), self.others, self.subfolders))
        return xxhash.xxh3_128_hexdigest(seen.encode("utf-8", "surrogateescape"))

    def entries(self) -> dict[str, Stamp]:
        """Return the signature of each entry but subfolders, by name; empty for what is no regular file."""
        return self.stamps | {name: [] for name, _ in self.others}


def walk(data: Iterable[Path], leave_out: Iterable[Path], *, follow_links: bool = False) -> dict[str, Folder]:
    """List data folders, each folder once, a parent before its subfolders.

    Parameters
    ----------
    data
        Folders and single files.
    leave_out
        Folders to skip, such as a target inside a data folder.
    follow_links
        True to follow links that lead out of the data folders, except to /proc and /sys.
    """
    roots = [str(root.absolute()) for root in data]
    inside = None if follow_links else list(map(os.path.realpath, roots))
    found: dict[str, Folder] = {}
    skipped = filter(os.path.exists, (*_SYSTEM, *map(str, leave_out)))
    # By inode: links lead to one folder by several paths, and in circles.
    left_out = {(about.st_dev, about.st_ino) for about in map(os.stat, skipped)}
    for root in sorted(roots, key=os.path.isfile):  # a file in one of the folders is listed there
        seen = set(left_out)
        waiting = [root]
        while waiting:
            path = waiting.pop()
            try:
                about = os.stat(path)
                if not stat.S_ISDIR(about.st_mode):
                    if os.path.dirname(path) not in found:
                        found.setdefault(path, _single(path, about))
                    continue
                if (about.st_dev, about.st_ino) in seen:
                    continue
                seen.add((about.st_dev, about.st_ino))
                folder = found.get(path) or _listed(path, root, inside)
            except OSError as error:
                folder = Folder(
                    path, root, {}, [(os.path.basename(path), f"{UNREADABLE}{error.strerror}")], is_single=True
                )
            found.setdefault(path, folder)
            waiting += [os.path.join(path, name) for name in reversed(folder.subfolders)]
    return found


def _listed(path: str, root: str, inside: list[str] | None) -> Folder:
    """Return the entries of a folder."""
    files: list[tuple[str, Stamp]] = []
    others, below = [], []
    with os.scandir(path) as entries:
        for entry in entries:
            name = entry.name
            try:
                about = entry.stat()
                link = entry.stat(follow_symlinks=False) if entry.is_symlink() else None
            except OSError as error:
                others.append((name, f"{UNREADABLE}{error.strerror}"))
                continue
            kind = stat.S_IFMT(about.st_mode)
            if kind not in (_REGULAR, _FOLDER):
                others.append((name, f"{UNREADABLE}{NOT_REGULAR}"))
            elif link and must_not_follow(there := os.path.join(path, name), inside):
                # --follow-links does not lead to /proc and /sys either.
                others.append((name, LINK_OUT if must_not_follow(there, None) else f"{LINK_OUT}{_FOLLOWED}"))
            elif kind == _REGULAR:
                files.append((name, stamp(about, link)))
            else:
                below.append(name)
    return Folder(path, root, dict(sorted(files)), others, below)


def _single(path: str, about: os.stat_result) -> Folder:
    """Return a file that is given as data folder. Raises OSError if it is not a regular file."""
    if not stat.S_ISREG(about.st_mode):
        raise OSError(0, NOT_REGULAR)
    return Folder(path, path, {os.path.basename(path): stamp(about, os.lstat(path))}, is_single=True)


def code_files(folders: Iterable[Path | str]) -> dict[str, Stamp]:
    """Return the signatures of this package's modules and of the files of a project's folders."""
    own = [Path(folder).absolute() for folder in folders]
    package = Path(__file__).parents[1]
    code = walk(
        [package, *(folder / name for folder in own for name in ("models", "sql", "data/traces"))],
        [],
        follow_links=True,
    )
    found = {
        f"{folder.path}/{name}": seen
        for folder in code.values()
        if not folder.path.endswith("/__pycache__")  # Python writes its bytecode there
        for name, seen in folder.entries().items()
    }
    beside = [path for folder in own for path in sorted((folder / "data").glob("*.*"))]
    return found | {str(path): look(path) for path in (*beside, *(folder / CONFIG for folder in own))}
