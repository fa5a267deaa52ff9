"""One walk over the data folders makes the inventory, `raw.files`.

Every file is listed with what it was taken for: a format's name and `read`, or the reason why not.
Nothing is guessed: a file that no format knows is `unknown`.
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
from warehouse.store.signatures import kernel_folders, leads_out, real_roots

_STRAYS = regex(r"^(\.DS_Store|\._.*|Thumbs\.db|desktop\.ini|~\$.*|\.complete|__MACOSX)$", re.IGNORECASE)
_PAPERS = regex(r"^(readme.*|licen[cs]e.*|.*\.md|.*\.txt|.*\.pdf|truth\.json)$", re.IGNORECASE)
_KEPT = regex(r"/\.git/|/\.cache/huggingface/download/|/\.gitattributes$|/\.gitignore$")
_CLUSTER_CHILDREN = ("trafficinfo", "taskinfo")
LINK_OUT = "link out of the data folder"
Seen = os.stat_result | OSError | str
"""The stat of a file, the error of asking for it, or why it is ignored."""
Inspect = Callable[[Format, RawFile], RawFile]
_HOUR = regex(r"^\d{10}$")


def scan(
    roots: Sequence[Path],
    formats: Sequence[Format],
    *,
    cluster: str | None = None,
    leave_out: Sequence[Path] = (),
    progress: Callable[[int], None] | None = None,
    inspect: Inspect | None = None,
    follow_links: bool = False,
) -> Inventory:
    """List and recognise every file below `roots`.

    Parameters
    ----------
    roots
        Folders (or single files) as given with `--data`; each must exist.
    formats
        In order of precedence; the first that claims a file's name and accepts its header has it.
    cluster
        The name for files that lie below no folder that looks like a cluster's.
    leave_out
        Folders that are no data, such as a target that lies among them.
    progress
        Called with the number of files seen, now and then.
    inspect
        Who asks a format what a file is, where that is not just asked.
    follow_links
        Follow links that lead out of the roots, too.

    Raises
    ------
    DataError
        When a folder does not exist or cannot be listed.
    """
    found: dict[Path, RawFile] = {}
    named = _ClusterNames(cluster)
    inside = None if follow_links else real_roots(roots)
    for root in roots:
        start = root.absolute()
        if not start.exists():
            raise DataError(f"no such data folder: {root}", hint="give an existing folder with --data")
        if leads_out(str(start), None):
            raise DataError(f"{root} is a folder of the kernel, which holds no data", hint="give another with --data")
        for path, entry in walk(start, leave_out, inside):
            if path in found:
                continue
            found[path] = _recognise(path, entry, start, formats, named, inspect or _just_ask)
            if progress and len(found) % 500 == 0:
                progress(len(found))
    files = sorted(found.values(), key=lambda file: (file.release_path, str(file.path)))
    return Inventory(tuple(root.absolute() for root in roots), tuple(files))


def walk(
    start: Path, leave_out: Sequence[Path] = (), inside: Sequence[str] | None = None
) -> Iterator[tuple[Path, Seen]]:
    """Give every file below `start`, sorted by folder and name, with its stat or why there is none.

    Links are followed to the real paths `inside`, to all where that is None, and never to /proc and /sys. A folder
    reached twice (by device and inode) is listed once, so that a loop ends.
    """
    visited = {(about.st_dev, about.st_ino) for about in map(Path.stat, filter(Path.exists, leave_out))}
    visited |= kernel_folders()
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
            if is_link and leads_out(str(path), inside):
                yield path, LINK_OUT
            elif stat.S_ISDIR(about.st_mode):
                below.append(path)
            elif stat.S_ISREG(about.st_mode):
                yield path, about
            else:
                yield path, OSError(0, "not a regular file")
        waiting.extend(reversed(below))


class _ClusterNames:
    """The cluster of a file: the nearest folder above it that holds trafficinfo/, taskinfo/ or a workbook."""

    def __init__(self, fallback: str | None) -> None:
        self._fallback = fallback
        self._holds: dict[Path, bool] = {}
        self._begins: dict[tuple[str, Path], tuple[str, str]] = {}

    def of(self, path: Path) -> Path | None:
        """The cluster's folder, or None."""
        for folder in path.parents:
            if folder not in self._holds:
                self._holds[folder] = _holds_cluster(folder)
            if self._holds[folder]:
                return folder
        return None

    def place(self, path: Path, root: Path) -> tuple[str, str]:
        """(cluster, release path) of a file: those of its folder are asked for once."""
        folder = (os.path.dirname(path), root)  # noqa: PTH120 - of many files, each once
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
    if _HOUR.match(folder.name):  # an hour's own workbook lies in the folder that it is named after, too
        return False
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return any(name in _CLUSTER_CHILDREN or (name.endswith(".xlsx") and name[:-5] == folder.name) for name in names)


def signs_above(root: Path) -> list[Path]:
    """What lies above a data folder and would change, by coming or going, which cluster its files belong to."""
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
    if _STRAYS.match(path.name):
        return file.but(status=IGNORED, reason="left behind by a desktop, not a part of the release")
    if _is_kept_aside(path):
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
    if _PAPERS.match(path.name):
        return file.but(status=IGNORED, reason="a text for people")
    return file.but(status=UNKNOWN, reason="no known format has such a name")


def _just_ask(one: Format, file: RawFile) -> RawFile:
    return one.inspect(file)


def _is_kept_aside(path: Path) -> bool:
    """Whether a file is in the store of a tool that also lays the release out: there it is read by its name."""
    store = path.parent
    in_hub = store.name in ("blobs", "refs") and (store.parent / "snapshots").is_dir()
    return in_hub or _KEPT.search(path.as_posix()) is not None


def _is_text(name: str) -> bool:
    """Whether a name of the file system is text; one that is not holds bytes that nothing can display."""
    return name == _printable(name)


def _printable(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def settle_duplicates(inventory: Inventory) -> Inventory:
    """Read a file that is there twice once; refuse two that claim the same place with other content.

    Files must carry their digest. Two files claim the same place when they hold the same cluster, hour,
    switch and port, or, for formats without hours, have the same release path.

    Raises
    ------
    DataError
        Naming both files.
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
