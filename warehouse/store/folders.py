"""Walk over data folders: the names and signatures of all files, packed folder by folder.

A packed folder is three bytes values. Equal bytes mean that nothing in the folder changed, so one comparison stands for
thousands of files.

A build that is up to date imports this module, and little else. To keep that fast, it imports only light modules.
"""

from __future__ import annotations

import os
import stat
import struct
import time
from contextlib import suppress

from warehouse.base.regular_files import NOT_REGULAR
from warehouse.store.signatures import LARGEST, RACY_NS, must_not_follow, real_roots, system_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from warehouse.store.signatures import Stamp

LINK_OUT = "link out of the data folder"
"""Begin of the reason of an entry that is a link to elsewhere."""
_FOLLOWED = ": --follow-links reads it"
UNREADABLE = "cannot be read: "
"""Begin of the reason of an entry that cannot be read."""
_SUBFOLDER = ""
_REGULAR, _FOLDER = stat.S_IFREG, stat.S_IFDIR
_FIELDS = 4


class Folder:
    """Files of one folder at the time of a walk.

    Parameters
    ----------
    key
        The path that was listed: a folder, or a single file.
    root
        The data folder, or file, in which the walk began.
    names
        Names of the regular files in order, separated by `/`.
    numbers
        Sizes, then mtimes, then ctimes, then inodes of these files, 8 bytes each. The ctime of a link is the later of
        its own and its target's: a link that is replaced has a new one, even if it leads back.
    rest
        Name and reason of each other entry, separated by `/`. The reason of a subfolder is empty.
    own
        Mtime, ctime and inode of the folder itself; empty for a single file.
    looked_ns
        When the walk that looked at these files began.
    """

    __slots__ = ("key", "looked_ns", "names", "numbers", "own", "rest", "root")

    def __init__(
        self, key: str, root: str, packed: tuple[bytes, bytes, bytes], own: tuple[int, ...], looked_ns: int
    ) -> None:
        self.key = key
        self.root = root
        self.names, self.numbers, self.rest = packed
        self.own = own
        self.looked_ns = looked_ns

    @property
    def packed(self) -> tuple[bytes, bytes, bytes]:
        """Everything that a walk sees of the files; equal if nothing changed."""
        return self.names, self.numbers, self.rest

    @property
    def path(self) -> str:
        """Path of the folder that holds the files."""
        return self.key if self.own else os.path.dirname(self.key)

    @property
    def is_racy(self) -> bool:
        """True if a file could have changed after the walk without a change of its signature."""
        size = len(self.numbers) // _FIELDS
        times = struct.unpack(f"={size // 4}q", self.numbers[size : 3 * size])
        return max(times, default=0) > self.looked_ns - RACY_NS

    def is_unchanged(self, own: tuple[int, ...]) -> bool:
        """Return True if the times of the folder itself prove that it has the same entries."""
        return own == self.own and max(own[:2]) <= self.looked_ns - RACY_NS and not self.is_racy

    @property
    def count(self) -> int:
        """Number of regular files."""
        return len(self.numbers) // (8 * _FIELDS)

    def stamps(self) -> dict[str, Stamp]:
        """Return the signature of each regular file by name."""
        return stamps(self.names, self.numbers)

    def others(self) -> Iterator[tuple[str, str]]:
        """Yield name and reason of each entry that is neither a regular file nor a subfolder."""
        return ((name, why) for name, why in _pairs(self.rest) if why != _SUBFOLDER)

    def subfolders(self) -> list[str]:
        """Return the names of the subfolders."""
        return [name for name, why in _pairs(self.rest) if why == _SUBFOLDER]

    def signatures(self) -> dict[str, Stamp]:
        """Return the signature of each entry by path; empty for entries that are no regular file."""
        found: dict[str, Stamp] = {name: [] for name, _ in _pairs(self.rest)} | self.stamps()
        return {f"{self.path}/{name}": seen for name, seen in found.items()}


def stamps(names: bytes, numbers: bytes) -> dict[str, Stamp]:
    """Return the signature of each file of a packed folder, by name."""
    count = len(numbers) // (8 * _FIELDS)
    values = struct.unpack(f"={_FIELDS * count}q", numbers)
    columns = (values[start : start + count] for start in range(0, len(values), count or 1))
    return {name: list(one) for name, one in zip(split_names(names), zip(*columns, strict=True), strict=True)}


def split_names(names: bytes) -> list[str]:
    """Return the names of a packed folder."""
    return os.fsdecode(names).split("/") if names else []


def _pairs(rest: bytes) -> Iterator[tuple[str, str]]:
    items = split_names(rest)
    return zip(items[::2], items[1::2], strict=True)


class Walk:
    """Walk over data folders: each folder once, in order.

    Parameters
    ----------
    roots
        Absolute paths of folders and single files.
    leave_out
        Folders to skip, such as a target inside a data folder.
    inside
        The resolved paths of the folders that links may lead to; None for all except /proc and /sys.
    known
        Returns a folder of an earlier walk, or None.
    trust
        True to take a known folder with unchanged mtime, ctime and inode as unchanged, without looking at its files.
    """

    def __init__(
        self,
        roots: Iterable[str],
        leave_out: Iterable[str] = (),
        inside: Sequence[str] | None = None,
        known: Callable[[str], Folder | None] | None = None,
        *,
        trust: bool = False,
    ) -> None:
        self.roots = list(roots)
        self.leave_out = list(leave_out)
        self.inside = inside
        self.trust = trust
        self.looked_ns = time.time_ns()
        self._trusted_ns = self.looked_ns if trust else 0
        self.ended_ns = 0
        self.skip: Callable[[str], bool] = lambda _: False
        """True for the names of subfolders to leave out, without a look at them."""
        self._known = known or (lambda _: None)
        self._found: dict[str, Folder] = {}

    def is_like(self, other: Walk) -> bool:
        """Return True if another walk is over the same folders, in the same way."""
        mine, theirs = ((walk.roots, walk.leave_out, walk.inside, walk.trust) for walk in (self, other))
        return mine == theirs

    def again(self, keys: Iterable[str]) -> Iterator[tuple[Folder, Folder | None]]:
        """Look at folders again, without those below; yield each as it was and as it is, None if it is gone.

        No folder is trusted whose files this walk has looked at.
        """
        later = Walk(self.roots, self.leave_out, self.inside, self._found.get, trust=self.trust)
        later._trusted_ns = self._trusted_ns
        for key in keys:
            folder, now = self._found[key], None
            with suppress(OSError):
                about = os.stat(key)
                single = None if folder.own else later._single(key, folder.root, about)
                now = single or later._listed(key, folder.root, about)[0]
            yield folder, now

    def folders(self) -> Mapping[str, Folder]:
        """Return all folders by key."""
        if not self._found and not self.ended_ns:
            for _ in self:
                pass
        return self._found

    def look_everywhere(self) -> None:
        """Walk again, and skip nothing."""
        self.skip = lambda _: False
        for _ in self:
            pass

    def leave_out_folders(self, is_left_out: Callable[[Folder], bool]) -> None:
        """Forget folders, as if they did not exist."""
        self._found = {key: folder for key, folder in self.folders().items() if not is_left_out(folder)}

    def __iter__(self) -> Iterator[Folder]:
        """Yield each folder, a parent before its subfolders."""
        self._found.clear()
        for root in sorted(self.roots, key=os.path.isfile):  # a file in one of the folders is listed there
            yield from self._below(root)
        self.ended_ns = time.time_ns()

    def _below(self, root: str) -> Iterator[Folder]:
        listed = system_folders()
        listed |= {(about.st_dev, about.st_ino) for about in map(os.stat, filter(os.path.exists, self.leave_out))}
        waiting: list[tuple[str, os.stat_result | None]] = [(root, None)]
        while waiting:
            path, about = waiting.pop()
            is_new = path not in self._found
            below: list[tuple[str, os.stat_result | None]] = []
            try:
                about = about or os.stat(path)
                if about.st_mode & 0o170000 != _FOLDER:
                    folder = self._single(path, root, about)
                    is_new = is_new and os.path.dirname(path) not in self._found
                elif (about.st_dev, about.st_ino) in listed:
                    continue
                else:
                    listed.add((about.st_dev, about.st_ino))
                    folder, below = self._listed(path, root, about)
            except OSError as error:
                rest = _packed_rest([(os.path.basename(path), _reason(error))])
                folder = Folder(path, root, (b"", b"", rest), (), self.looked_ns)
            if is_new:
                self._found[path] = folder
                yield folder
            waiting += [one for one in reversed(below) if not self.skip(os.path.basename(one[0]))]

    def _listed(
        self, path: str, root: str, about: os.stat_result
    ) -> tuple[Folder, list[tuple[str, os.stat_result | None]]]:
        """Return a folder and its subfolders with their stat, if that is known."""
        own = (about.st_mtime_ns, about.st_ctime_ns, about.st_ino & LARGEST)
        listed, known = self._found.get(path), self._known(path)
        is_trusted = known is not None and known.looked_ns < self._trusted_ns and known.is_unchanged(own)
        if listed is None and known is not None and is_trusted:
            listed = Folder(path, root, known.packed, own, known.looked_ns)
        if listed is not None:
            return listed, [(os.path.join(path, name), None) for name in listed.subfolders()]
        files, others, below = [], [], []
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)  # a stat below it does not look up the whole path
        try:
            with os.scandir(handle) as entries:
                for entry in entries:
                    name = entry.name
                    try:
                        seen = entry.stat()
                    except OSError as error:
                        others.append((name, _reason(error)))
                        continue
                    kind = seen.st_mode & 0o170000
                    if kind not in (_REGULAR, _FOLDER):
                        others.append((name, f"{UNREADABLE}{NOT_REGULAR}"))
                    elif entry.is_symlink() and must_not_follow(link := os.path.join(path, name), self.inside):
                        others.append((name, LINK_OUT if must_not_follow(link, None) else f"{LINK_OUT}{_FOLLOWED}"))
                    elif kind == _REGULAR:
                        ctime_ns = seen.st_ctime_ns
                        if entry.is_symlink():
                            ctime_ns = max(ctime_ns, entry.stat(follow_symlinks=False).st_ctime_ns)
                        files.append((name, seen.st_size, seen.st_mtime_ns, ctime_ns, seen.st_ino & LARGEST))
                    else:
                        others.append((name, _SUBFOLDER))
                        below.append((os.path.join(path, name), seen))
        finally:
            os.close(handle)
        files.sort()
        names, sizes, mtimes, ctimes, inodes = zip(*files, strict=True) if files else ((),) * 5
        numbers = struct.pack(f"={_FIELDS * len(files)}q", *sizes, *mtimes, *ctimes, *inodes)
        below.sort(key=lambda one: one[0])
        packed = os.fsencode("/".join(names)), numbers, _packed_rest(others)
        if known is not None and known.packed == packed:
            packed = known.packed  # one copy in memory
        return Folder(path, root, packed, own, self.looked_ns), list(below)

    def _single(self, path: str, root: str, about: os.stat_result) -> Folder:
        """Return a file that is given as data folder."""
        if about.st_mode & 0o170000 != _REGULAR:
            raise OSError(0, NOT_REGULAR)
        name = os.fsencode(os.path.basename(path))
        ctime_ns = max(about.st_ctime_ns, os.lstat(path).st_ctime_ns)
        numbers = (about.st_size, about.st_mtime_ns, ctime_ns, about.st_ino & LARGEST)
        return Folder(path, root, (name, struct.pack("=4q", *numbers), b""), (), self.looked_ns)


def _packed_rest(others: Iterable[tuple[str, str]]) -> bytes:
    return os.fsencode("/".join([text for other in sorted(others) for text in other]))


def _reason(error: OSError) -> str:
    return f"{UNREADABLE}{error.strerror}"


def walk_data(
    data: Iterable[Path],
    leave_out: Iterable[Path],
    *,
    follow_links: bool = False,
    known: Callable[[str], Folder | None] | None = None,
    trust: bool = False,
) -> Walk:
    """Return a walk over data folders that begins now."""
    roots = [str(root.absolute()) for root in data]
    inside = None if follow_links else real_roots(roots)
    return Walk(roots, map(str, leave_out), inside, known, trust=trust)
