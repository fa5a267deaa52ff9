"""Safe unpacking of releases given as zip or tar archives.

An archive is untrusted input. Only regular files and folders are unpacked, only below the target, each name once,
and within limits for the number of members and bytes.
"""

from __future__ import annotations

import json
import stat
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, NamedTuple

from warehouse.base import hashing
from warehouse.base.errors import DataError
from warehouse.base.regular_files import open_regular
from warehouse.store.atomic import remove, temporary_path
from warehouse.store.signatures import look, refuse_changed, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MAX_BYTES = 200 * 2**30
MAX_MEMBERS = 1_000_000
_CHUNK = 2**20
_LINK, _DEVICE = "a link", "a device, pipe or unknown kind of file"
_SUFFIXES = (".tar.gz", ".tar.xz", ".tar.bz2", ".zip", ".tar", ".tgz")
_TAR_BLOCK = bytes(512)
"""Empty block: two of them end a tar, of which `tarfile` reads the first."""


class Unpacked(NamedTuple):
    """Members of an archive on disk."""

    folder: Path
    refused: list[tuple[str, str]]
    """(name, reason) of each member that was not unpacked."""


class _Member(NamedTuple):
    name: str
    is_folder: bool
    refusal: str
    """Why it must not be unpacked, by its kind; empty for a regular file or a folder."""
    size: int
    open: Callable[[], IO[bytes] | None]


def is_archive(path: Path) -> bool:
    """Return True if a path given as data is an archive, by its name."""
    return path.name.lower().endswith(_SUFFIXES) and path.is_file()


def data_folder(root: Path, into: Path) -> Path:
    """Return a data folder; for an archive, the folder that it is unpacked to. Raises as `unpack`."""
    if not is_archive(root):
        return root
    return unpack(root, into, strict=True).folder


def unpack(
    archive: Path, into: Path, *, max_bytes: int = MAX_BYTES, max_members: int = MAX_MEMBERS, strict: bool = False
) -> Unpacked:
    """Unpack the allowed members of an archive below `into`, unless the same content is unpacked there already.

    Parameters
    ----------
    archive
        A zip or a tar, plain or compressed, as its suffix says.
    into
        The folder for unpacked archives, created if missing. Nothing outside it is written.
    max_bytes, max_members
        Limits for all members together.
    strict
        True to unpack nothing of an archive with a member that is refused.

    Returns
    -------
    Unpacked
        The folder, `into/<hash of the content>/<name without suffix>`. It is complete: members are written to a
        temporary folder, which is then renamed.

    Raises
    ------
    DataError
        When the archive is damaged or too large, or changes meanwhile. Nothing is kept then.
    """
    seen = {archive: look(archive)}
    settle(seen.values())
    suffix = next((one for one in _SUFFIXES if archive.name.lower().endswith(one)), "")
    try:
        with open_regular(archive) as stream:
            done = into / hashing.of_stream(stream)
            if not done.is_dir():
                written = temporary_path(done)
                try:
                    folder = written / (archive.name[: len(archive.name) - len(suffix)].strip(". ") or "archive")
                    folder.mkdir(parents=True)
                    stream.seek(0)
                    refused = list(_unpack(stream, archive, folder, max_bytes, max_members))
                    _refuse(archive, refused if strict else [])
                    if refused:
                        (written / "refused.json").write_text(json.dumps(refused))
                    refuse_changed(seen)
                    written.replace(done)
                finally:
                    remove(written)
        (folder,) = (path for path in done.iterdir() if path.is_dir())
        noted = done / "refused.json"
        found = json.loads(noted.read_text()) if noted.exists() else []
        _refuse(archive, found if strict else [])
        return Unpacked(folder, [(name, why) for name, why in found])
    except OSError as error:
        raise DataError(f"{archive}: cannot be unpacked: {error.strerror or error}") from error


def _refuse(archive: Path, refused: Sequence[Sequence[str]]) -> None:
    """Raise DataError if a member is refused."""
    for name, why in refused:
        raise DataError(f"{archive}: member {name!r}: {why}", hint="nothing of it was unpacked")


def _unpack(
    stream: IO[bytes], archive: Path, folder: Path, max_bytes: int, max_members: int
) -> Iterator[tuple[str, str]]:
    """Write the members of an archive to a folder; yield name and reason of those that are refused.

    Raises
    ------
    DataError
        When the archive is damaged or too large.
    """
    members = _zip_members(stream) if archive.name.lower().endswith(".zip") else _tar_members(stream)
    size = 0
    try:
        for count, member in enumerate(members, 1):
            size += member.size
            if size > max_bytes or count > max_members:
                most = f"{max_bytes:,} bytes" if size > max_bytes else f"{max_members:,} members"
                raise DataError(f"{archive}: member {member.name[:200]!r}: unpacks to more than {most}")  # noqa: TRY301
            why = _refusal(member) or _write(member, folder / member.name)
            if why:
                yield member.name.encode(errors="backslashreplace").decode()[:200], why
    except Exception as error:
        if isinstance(error, DataError) or getattr(error, "errno", None):  # the latter of the disk
            raise
        why = str(error).partition(":")[0] or type(error).__name__
        raise DataError(f"{archive}: truncated or damaged: {why}") from error


def _refusal(member: _Member) -> str:
    """Return why a member must not be unpacked; empty if it may."""
    path = PurePosixPath(member.name)
    if member.refusal:
        return member.refusal
    if path.is_absolute() or ".." in path.parts or "\\" in member.name:
        return "its name leads out of the archive's own folder"
    if member.name != member.name.encode(errors="replace").decode():
        return "its name is not UTF-8"
    return ""


def _write(member: _Member, target: Path) -> str:
    """Write a member; return why it cannot be."""
    try:
        (target if member.is_folder else target.parent).mkdir(parents=True, exist_ok=True)
        if not member.is_folder:
            content = member.open()
            assert content is not None
            with content, target.open("xb") as out:
                while chunk := content.read(_CHUNK):
                    out.write(chunk)
    except (FileExistsError, NotADirectoryError):
        return "its name is there twice"
    return ""


def _tar_members(stream: IO[bytes]) -> Iterator[_Member]:
    with tarfile.open(fileobj=stream, mode="r:*") as tar:
        for info in tar:
            refusal = "" if info.isreg() or info.isdir() else _LINK if info.issym() or info.islnk() else _DEVICE
            yield _Member(info.name, info.isdir(), refusal, info.size, lambda one=info: tar.extractfile(one))  # type: ignore[misc]
        tail = b""
        while chunk := tar.fileobj.read(_CHUNK):  # to the end, where a checksum is
            tail = (tail + chunk)[-len(_TAR_BLOCK) :]
        if tail != _TAR_BLOCK:
            raise EOFError("it lacks the end of a tar")


def _zip_members(stream: IO[bytes]) -> Iterator[_Member]:
    with zipfile.ZipFile(stream) as package:
        for info in package.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            is_folder = info.is_dir() or kind == stat.S_IFDIR
            refusal = "" if is_folder or kind in (0, stat.S_IFREG) else _LINK if kind == stat.S_IFLNK else _DEVICE
            yield _Member(info.filename, is_folder, refusal, info.file_size, lambda one=info: package.open(one))  # type: ignore[misc]
