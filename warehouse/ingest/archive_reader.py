"""Safe unpacking of releases given as zip or tar archives.

An archive is untrusted input. It is unpacked if all its members are regular files and folders, below the target, each
name once, within limits for the number of members and bytes; else not at all.
"""

from __future__ import annotations

import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from warehouse.base import hashing
from warehouse.base.errors import DataError
from warehouse.base.hashing import open_regular
from warehouse.store.atomic import remove, temporary_path
from warehouse.store.signatures import look, refuse_changed, settle

MAX_BYTES = 200 * 2**30
MAX_MEMBERS = 1_000_000
_CHUNK = 2**20
_LINK, _DEVICE = "a link", "a device, pipe or unknown kind of file"
_SUFFIXES = (".tar.gz", ".tar.xz", ".tar.bz2", ".zip", ".tar", ".tgz")
_TAR_BLOCK = bytes(512)
"""Empty block: two of them end a tar, of which `tarfile` reads the first."""


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


def unpack(archive: Path, into: Path, *, max_bytes: int = MAX_BYTES, max_members: int = MAX_MEMBERS) -> Path:
    """Unpack an archive below `into`, unless the same content is unpacked there already; return the folder.

    It is `into/<hash of the content>/<name without suffix>`, and it is complete: members are written to a temporary
    folder, which is then renamed.

    Parameters
    ----------
    archive
        A zip or a tar, plain or compressed, as its suffix says.
    into
        The folder for unpacked archives, created if missing. Nothing outside it is written.
    max_bytes, max_members
        Limits for all members together.

    Raises
    ------
    DataError
        When the archive is damaged or too large, has a member that must not be unpacked, or changes meanwhile.
        Nothing is kept then.
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
                    # Dots alone would be a folder above this one.
                    folder = written / (archive.name[: len(archive.name) - len(suffix)].strip(". ") or "archive")
                    folder.mkdir(parents=True)
                    stream.seek(0)
                    _unpack(stream, archive, folder, max_bytes, max_members)
                    refuse_changed(seen)
                    written.replace(done)
                finally:
                    remove(written)
        return next(done.iterdir())
    except OSError as error:
        raise DataError(f"{archive}: cannot be unpacked: {error.strerror or error}") from error


def _unpack(stream: IO[bytes], archive: Path, folder: Path, max_bytes: int, max_members: int) -> None:
    """Write the members of an archive to a folder.

    Raises
    ------
    DataError
        When the archive is damaged or too large, or has a member that must not be unpacked.
    """
    members = _zip_members(stream) if archive.name.lower().endswith(".zip") else _tar_members(stream)
    size = 0
    try:
        for count, member in enumerate(members, 1):
            # Neither tarfile nor zipfile gives more bytes of a member than it declares.
            size += member.size
            if size > max_bytes or count > max_members:
                most = f"{max_bytes:,} bytes" if size > max_bytes else f"{max_members:,} members"
                why = f"unpacks to more than {most}"
            else:
                why = _refusal(member) or _write(member, folder / member.name)
            if why:
                what = f"{archive}: member {member.name[:200]!r}: {why}"
                raise DataError(what, hint="nothing of it was unpacked")  # noqa: TRY301
    except Exception as error:  # tarfile, zipfile, zlib and lzma raise many kinds for damage
        if isinstance(error, DataError) or getattr(error, "errno", None):  # the latter of the disk
            raise
        why = str(error).partition(":")[0] or type(error).__name__
        raise DataError(f"{archive}: truncated or damaged: {why}") from error


def _refusal(member: _Member) -> str:
    """Return why a member must not be unpacked; empty if it may."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or "\\" in member.name:
        return "its name leads out of the archive's own folder"
    # tarfile turns bytes that are not UTF-8 into surrogates.
    is_text = member.name == member.name.encode(errors="replace").decode()
    return member.refusal or ("" if is_text else "its name is not UTF-8")


def _write(member: _Member, target: Path) -> str:
    """Write a member; return why it cannot be."""
    try:
        (target if member.is_folder else target.parent).mkdir(parents=True, exist_ok=True)
        content = None if member.is_folder else member.open()
        if content:
            # x fails for a second member of one name, also if the file system ignores case.
            with content, target.open("xb") as out:
                shutil.copyfileobj(content, out, _CHUNK)
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
            # 0: not every program that makes a zip tells the kind of a member.
            refusal = "" if is_folder or kind in (0, stat.S_IFREG) else _LINK if kind == stat.S_IFLNK else _DEVICE
            yield _Member(info.filename, is_folder, refusal, info.file_size, lambda one=info: package.open(one))  # type: ignore[misc]
