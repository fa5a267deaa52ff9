"""Scan of the data folders: the inventory of raw files, `raw.files`.

Every file is listed with its format and the status `read`, or with another status and the reason. A file that no
format recognizes is `unknown`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from warehouse.base.errors import DataError
from warehouse.base.startup import regex
from warehouse.formats.base import IGNORED, SKIPPED, UNKNOWN, Format, Inventory, RawFile
from warehouse.store.signatures import must_not_follow, real_roots, system_folders

_DESKTOP_FILES = regex(r"^(\.DS_Store|\._.*|Thumbs\.db|desktop\.ini|~\$.*|\.complete|__MACOSX)$", re.IGNORECASE)
_DOCUMENTS = regex(r"^(readme.*|licen[cs]e.*|.*\.md|.*\.txt|.*\.pdf|truth\.json)$", re.IGNORECASE)
_TOOL_FILES = regex(r"/\.git/|/\.cache/huggingface/download/|/\.gitattributes$|/\.gitignore$")
_CLUSTER_CHILDREN = ("trafficinfo", "taskinfo")
LINK_OUT = "link out of the data folder"
Seen = os.stat_result | OSError | str
"""Stat of a file, the error of stat(2), or the reason to ignore the file."""
Inspect = Callable[[Format, RawFile], RawFile]
_HOUR = regex(r"^\d{10}$")


def scan(
    roots: Sequence[Path],
    formats: Sequence[Format],
    *,
    cluster: str | None = None,
    leave_out: Sequence[Path] = (),
    inspect: Inspect | None = None,
    follow_links: bool = False,
) -> Inventory:
    """List every file below `roots` and recognize its format.

    Parameters
    ----------
    roots
        Folders or single files given with `--data`. Each must exist.
    formats
        Formats in order of precedence: the first one that matches a file's name and header is used.
    cluster
        The cluster of files that are not below a cluster's folder.
    leave_out
        Folders to skip, such as a target inside a data folder.
    inspect
        Replacement for `Format.inspect`, for example with a cache.
    follow_links
        True to follow links that lead out of the roots.

    Raises
    ------
    DataError
        When a folder does not exist, or is below /proc or /sys.
    """
    found: dict[Path, RawFile] = {}
    named = _ClusterNames(cluster)
    inside = None if follow_links else real_roots(roots)
    for root in roots:
        start = root.absolute()
        if not start.exists():
            raise DataError(f"no such data folder: {root}", hint="give an existing folder with --data")
        if must_not_follow(str(start), None):
            raise DataError(f"{root} is a folder of the kernel, which holds no data", hint="give another with --data")
        for path, entry in walk(start, leave_out, inside):
            if path in found:
                continue
            found[path] = _recognise(path, entry, start, formats, named, inspect or _inspect_directly)
    files = sorted(found.values(), key=lambda file: (file.release_path, str(file.path)))
    return Inventory(tuple(root.absolute() for root in roots), tuple(files))


def walk(
    start: Path, leave_out: Sequence[Path] = (), inside: Sequence[str] | None = None
) -> Iterator[tuple[Path, Seen]]:
    """Yield every file below `start`, sorted by folder and name, with its stat or the reason why it has none.

    Links are followed into the resolved paths `inside` (None: anywhere), but never to /proc and /sys. A folder that is
    reached twice (by device and inode) is listed once, so that loops end.
    """
    visited = {(about.st_dev, about.st_ino) for about in map(Path.stat, filter(Path.exists, leave_out))}
    visited |= system_folders()
    waiting = [start]
    while waiting:
        folder = waiting.pop()
        try:
            about = folder.stat()
            if not stat.S_ISDIR(about.st_mode):
                yield folder, about
                continue
            if (about.st_dev, about.st_ino) in visited:
                continue
            visited.add((about.st_dev, about.st_ino))
            with os.scandir(folder) as entries:
                names = sorted((entry.name, entry.is_symlink()) for entry in entries)
        except OSError as error:
            yield folder, error
            continue
        below = []
        for name, is_link in names:
            path = folder / name
            try:
                about = path.stat()
            except OSError as error:
                yield path, error
                continue
            if is_link and must_not_follow(str(path), inside):
                yield path, LINK_OUT
            elif stat.S_ISDIR(about.st_mode):
                below.append(path)
            elif stat.S_ISREG(about.st_mode):
                yield path, about
            else:
                yield path, OSError(0, "not a regular file")
        waiting.extend(reversed(below))


class _ClusterNames:
    """Clusters of files: the nearest parent folder that contains trafficinfo/, taskinfo/ or a workbook."""

    def __init__(self, fallback: str | None) -> None:
        self._fallback = fallback
        self._holds: dict[Path, bool] = {}
        self._begins: dict[tuple[str, Path], tuple[str, str]] = {}

    def of(self, path: Path) -> Path | None:
        """Return the folder of a file's cluster, or None."""
        for folder in path.parents:
            if folder not in self._holds:
                self._holds[folder] = _holds_cluster(folder)
            if self._holds[folder]:
                return folder
        return None

    def place(self, path: Path, root: Path) -> tuple[str, str]:
        """Return (cluster, release path) of a file; computed once for each folder."""
        folder = (os.path.dirname(path), root)  # noqa: PTH120 - called for thousands of files
        if folder not in self._begins:
            cluster, release_path = self._place(path, root)
            self._begins[folder] = cluster, release_path.removesuffix(path.name)
        cluster, begin = self._begins[folder]
        return cluster, begin + path.name

    def _place(self, path: Path, root: Path) -> tuple[str, str]:
        folder = self.of(path)
        if folder is not None:
            return folder.name, path.relative_to(folder.parent).as_posix()
        name = self._fallback or "unknown"
        below = path.relative_to(root).as_posix() if path != root else path.name
        return name, f"{name}/{below}"


def _holds_cluster(folder: Path) -> bool:
    if _HOUR.match(folder.name):  # the folder of an hour also contains a workbook of its own name
        return False
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return any(name in _CLUSTER_CHILDREN or (name.endswith(".xlsx") and name[:-5] == folder.name) for name in names)


def cluster_markers_above(root: Path) -> list[Path]:
    """Return the paths above a data folder that determine, by existing or not, the cluster of its files."""
    names = (*_CLUSTER_CHILDREN, "{}.xlsx")
    return [folder / name.format(folder.name) for folder in root.absolute().parents for name in names]


def _recognise(
    path: Path,
    about: Seen,
    root: Path,
    formats: Sequence[Format],
    named: _ClusterNames,
    inspect: Inspect,
) -> RawFile:
    cluster, release_path = named.place(path, root)
    if not _is_text(str(path)):
        shown = _printable(str(path))
        return RawFile(
            Path(shown), _printable(release_path), 0, 0, cluster=_printable(cluster), status=SKIPPED,
            reason="its path is not UTF-8 text",
        )  # fmt: skip
    if isinstance(about, str):
        return RawFile(path, release_path, 0, 0, cluster=cluster, status=IGNORED, reason=about)
    if isinstance(about, OSError):
        return RawFile(
            path,
            release_path,
            0,
            0,
            cluster=cluster,
            status=SKIPPED,
            reason=f"cannot be read: {about.strerror}",
        )
    file = RawFile(path, release_path, about.st_size, about.st_mtime_ns, cluster=cluster)
    if _DESKTOP_FILES.match(path.name):
        return file.but(status=IGNORED, reason="left behind by a desktop, not a part of the release")
    if _is_tool_internal(path):
        return file.but(status=IGNORED, reason="what git or the Hugging Face hub keeps for itself")
    refused: RawFile | None = None
    for one in formats:
        if not one.claims(path):
            continue
        try:
            seen = inspect(one, file.but(format=one.name))
        except OSError as error:
            return file.but(format=one.name, status=SKIPPED, reason=f"cannot be read: {error.strerror}")
        if seen.is_read:
            return seen
        refused = refused or seen
    if refused is not None:
        return refused
    if _DOCUMENTS.match(path.name):
        return file.but(status=IGNORED, reason="a text for people")
    return file.but(status=UNKNOWN, reason="no known format has such a name")


def _inspect_directly(one: Format, file: RawFile) -> RawFile:
    return one.inspect(file)


def _is_tool_internal(path: Path) -> bool:
    """Return True if a file is in the internal store of git or the Hugging Face hub. The checkout has the same file."""
    store = path.parent
    in_hub = store.name in ("blobs", "refs") and (store.parent / "snapshots").is_dir()
    return in_hub or _TOOL_FILES.search(path.as_posix()) is not None


def _is_text(name: str) -> bool:
    """Return True if a file name is valid UTF-8."""
    return name == _printable(name)


def _printable(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def settle_duplicates(inventory: Inventory) -> Inventory:
    """Ignore duplicates of a file with equal content; refuse two files with different content for the same data.

    Files must have their content hash. Two files are for the same data if their cluster, hour, switch and port are
    equal. For formats without hours, the release path must be equal.

    Raises
    ------
    DataError
        With the names of both files.
    """
    first: dict[tuple[object, ...], RawFile] = {}
    settled = []
    for file in inventory.files:
        if not file.is_read:
            settled.append(file)
            continue
        place: tuple[object, ...] = (file.format, file.release_path)
        if file.hour_utc is not None:
            place = (file.format, file.cluster, file.hour_utc, file.switch, file.port)
        other = first.setdefault(place, file)
        if other is file:
            settled.append(file)
        elif other.digest == file.digest:
            settled.append(file.but(status=IGNORED, reason=f"the same content as {other.release_path}"))
        else:
            what = f"{file.switch} {file.port}" if file.port else file.release_path
            raise DataError(
                f"two different files hold {what}" + (f" at {file.hour_utc} UTC" if file.hour_utc else ""),
                details=[f"  {other.path}", f"  {file.path}"],
                hint="Keep one of them: move the other out of the data folders.",
            )
    return Inventory(inventory.roots, tuple(settled), inventory.rejected)
