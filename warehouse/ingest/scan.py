"""Recognition of the files of data folders: cluster, release path, format, status.

Every file is listed with its format and the status `read`, or with another status and the reason. A file that no
format recognizes is `unknown`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from warehouse.base.errors import DataError
from warehouse.base.startup import regex
from warehouse.base.text import plural
from warehouse.formats.base import IGNORED, SKIPPED, UNKNOWN, Format, Inventory, RawFile
from warehouse.formats.csv_headers import NOT_THAT
from warehouse.store.signatures import must_not_follow
from warehouse.store.walk import LINK_OUT, UNREADABLE, Folder, walk

if TYPE_CHECKING:
    from warehouse.store.signatures import Stamp

_DESKTOP_FILES = regex(r"^(\.DS_Store|\._.*|Thumbs\.db|desktop\.ini|~\$.*|\.complete|__MACOSX)$", re.IGNORECASE)
_DOCUMENTS = regex(r"^(readme.*|licen[cs]e.*|.*\.md|.*\.txt|.*\.pdf|truth\.json)$", re.IGNORECASE)
_TOOL_FILES = regex(r"/\.git/|/\.cache/huggingface/download/|/\.gitattributes$|/\.gitignore$")
NO_CLUSTER = "unknown"
"""Cluster of files below no cluster's folder; their release path begins in the data folder."""
_CLUSTER_CHILDREN = ("trafficinfo", "taskinfo")
_HOUR = regex(r"^\d{10}$")
_SHOWN = 3


def scan(
    roots: Sequence[Path],
    formats: Sequence[Format],
    *,
    cluster: str | None = None,
    leave_out: Sequence[Path] = (),
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
    follow_links
        True to follow links that lead out of the roots.

    Raises
    ------
    DataError
        When a folder does not exist, or is below /proc or /sys.
    """
    check_roots(roots)
    places = Places(cluster)
    files = [
        file
        for folder in walk(roots, leave_out, follow_links=follow_links).values()
        for file in recognize_folder(folder, places.of(folder), formats)
    ]
    return Inventory((root.absolute() for root in roots), sorted(files, key=in_order))


def check_roots(roots: Sequence[Path]) -> None:
    """Raise DataError if a data folder does not exist, or is below /proc or /sys."""
    for root in roots:
        if not root.exists():
            raise DataError(f"no such data folder: {root}", hint="give an existing folder with --data")
        if must_not_follow(str(root.absolute()), None):
            raise DataError(f"{root} is a folder of the kernel, which holds no data", hint="give another with --data")


def refuse_nothing_to_read(inventory: Inventory) -> None:
    """Raise DataError, with the reasons of the first files, if no file of the data folders is readable."""
    if inventory.is_readable:
        return
    where = ", ".join(str(root) for root in inventory.roots)
    seen = plural(inventory.count, "file")
    unread = sorted(inventory.files, key=lambda file: file.status != SKIPPED)
    raise DataError(
        f"nothing readable in {where}: {seen}, none recognised" if inventory.count else f"no files in {where}",
        details=[f"  {file.path.name}: {file.reason}" for file in unread[:_SHOWN]],
        hint="see what was found: warehouse doctor -d DIR",
    )


def in_order(file: RawFile) -> tuple[str, str]:
    """Return the sort key of the inventory."""
    return file.release_path, str(file.path)


class Place(NamedTuple):
    """Place of a folder in a release."""

    cluster: str
    begin: str
    """Release path of the folder, with a `/` at the end; empty for a data folder of no cluster."""
    is_internal: bool
    """True for a folder of the internal store of the Hugging Face hub."""


class Places:
    """Clusters of folders: the nearest parent folder that contains trafficinfo/, taskinfo/ or a workbook."""

    def __init__(self, fallback: str | None) -> None:
        self._fallback = fallback
        self._holds: dict[str, bool] = {}
        self._places: dict[tuple[str, str], Place] = {}

    def of(self, folder: Folder) -> Place:
        """Return the place of the files of a folder. Its parents in the walk must be asked for first."""
        path = folder.path
        if not folder.is_single and path not in self._holds:
            self._holds[path] = self._is_cluster(folder)
        above, _, name = path.rpartition("/")
        known = self._places.get((above, folder.root))
        is_internal = name in ("blobs", "refs") and os.path.isdir(os.path.join(above, "snapshots"))
        if known is None or is_internal or self._holds.get(path, True) or not path.startswith(folder.root):
            known = self._place(path, folder.root, is_internal=is_internal)
        else:  # as that of the parent
            known = Place(known.cluster, f"{known.begin}{name}/", is_internal=False)
        self._places[path, folder.root] = known
        return known

    def _is_cluster(self, folder: Folder) -> bool:
        name = os.path.basename(folder.path)
        if _HOUR.match(name):
            return False
        return not {*_CLUSTER_CHILDREN, f"{name}.xlsx"}.isdisjoint([*folder.stamps, *folder.subfolders])

    def _place(self, path: str, root: str, *, is_internal: bool) -> Place:
        below = ""
        folder = path
        while True:
            if folder not in self._holds:
                self._holds[folder] = _holds_cluster(folder)
            if self._holds[folder]:
                cluster = os.path.basename(folder)
                return Place(cluster, f"{cluster}/{below}", is_internal)
            parent = os.path.dirname(folder)
            if parent == folder:
                break
            below = f"{os.path.basename(folder)}/{below}"
            folder = parent
        inside = os.path.relpath(path, root) if path.startswith(root) else "."
        begin = "/".join(part for part in (self._fallback, inside) if part and part != ".")
        return Place(self._fallback or NO_CLUSTER, f"{begin}/" if begin else "", is_internal)


def _holds_cluster(folder: str) -> bool:
    name = os.path.basename(folder)
    if _HOUR.match(name):  # the folder of an hour also contains a workbook of its own name
        return False
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return not {f"{name}.xlsx", *_CLUSTER_CHILDREN}.isdisjoint(names)


def cluster_markers_above(root: Path) -> list[Path]:
    """Return the paths above a data folder that determine, by existing or not, the cluster of its files."""
    names = (*_CLUSTER_CHILDREN, "{}.xlsx")
    return [folder / name.format(folder.name) for folder in root.absolute().parents for name in names]


def recognize_folder(folder: Folder, place: Place, formats: Sequence[Format]) -> Iterator[RawFile]:
    """Yield all files of a folder: the regular files in order, then those that cannot be read or followed."""
    for name, seen in folder.stamps.items():
        yield recognize(folder.path, name, seen, place, formats)
    yield from others(folder, place)


def others(folder: Folder, place: Place) -> Iterator[RawFile]:
    """Yield the files of a folder that cannot be read or followed."""
    for name, why in folder.others:
        path = os.path.join(folder.path, name)
        if not is_text(path):
            yield _not_text(path, place, name)
            continue
        status = IGNORED if why.startswith(LINK_OUT) else SKIPPED
        yield RawFile(Path(path), place.begin + name, 0, 0, cluster=place.cluster, status=status, reason=why)


def recognize(folder: str, name: str, seen: Stamp, place: Place, formats: Sequence[Format]) -> RawFile:
    """Return a regular file with its format, status and reason; opens the file if a format claims its name."""
    joined = os.path.join(folder, name)
    if not is_text(joined):
        return _not_text(joined, place, name)
    path = Path(joined)
    file = RawFile(path, place.begin + name, seen[0], seen[1], cluster=place.cluster, seen=seen)
    if _DESKTOP_FILES.match(name):
        return file.but(status=IGNORED, reason="left behind by a desktop, not a part of the release")
    if place.is_internal or _TOOL_FILES.search(joined):
        return file.but(status=IGNORED, reason="what git or the Hugging Face hub keeps for itself")
    refused: RawFile | None = None
    for one in formats:
        if not one.claims(path):
            continue
        try:
            inspected = one.inspect(file.but(format=one.name))
        except OSError as error:
            return file.but(format=one.name, status=SKIPPED, reason=f"{UNREADABLE}{error.strerror}")
        if inspected.is_read:
            return inspected
        if inspected.reason and (refused is None or _says_more(inspected, refused)):
            refused = inspected
    if refused is not None and refused.status != UNKNOWN:
        return refused
    if _DOCUMENTS.match(name):
        return file.but(status=IGNORED, reason="a text for people")
    return refused or file.but(status=UNKNOWN, reason="no known format has such a name")


def _says_more(inspected: RawFile, refused: RawFile) -> bool:
    """Return True if a second format has a better reason: the first one found another format's name or header."""

    def is_foreign(file: RawFile) -> bool:
        return file.status == UNKNOWN or (file.reason or "").startswith(NOT_THAT)

    return is_foreign(refused) and not is_foreign(inspected)


def _not_text(path: str, place: Place, name: str) -> RawFile:
    return RawFile(
        Path(printable(path)), printable(place.begin + name), 0, 0, cluster=printable(place.cluster), status=SKIPPED,
        reason="its path is not UTF-8 text",
    )  # fmt: skip


def is_text(name: str) -> bool:
    """Return True if a file name is valid UTF-8."""
    return name == printable(name)


def printable(name: str) -> str:
    """Return a path with bytes that are not UTF-8 escaped."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def settle_duplicates(files: Iterable[RawFile]) -> list[RawFile]:
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
    for file in files:
        if not file.is_read:
            settled.append(file)
            continue
        other = first.setdefault(subject(file), file)
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
    return settled


def subject(file: RawFile) -> tuple[object, ...]:
    """Return what a file is about; two files with different content must not be about the same."""
    if file.hour_utc is not None:
        return file.format, file.cluster, file.hour_utc, file.switch, file.port
    return file.format, file.release_path
