"""Safe unpacking of releases given as zip or tar archives.

An archive is untrusted input. Only regular files and folders are unpacked, only below the target, each name once,
and within limits for the number of members and bytes.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import stat
import tarfile
import zipfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, NamedTuple, cast

import zstandard

from warehouse.base import hashing
from warehouse.base.errors import DataError
from warehouse.base.regular_files import open_regular
from warehouse.store.atomic import remove, temporary_path, write_text
from warehouse.store.changed_files import look, refuse_changed, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_BYTES = 200 * 2**30
MAX_MEMBERS = 1_000_000
CHUNK = 2**20

_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst")
_TAR_OVERHEAD = 16 * 2**10
"""Bytes of a tar member besides its content: headers, long names, padding."""
_TAR_END = bytes(1024)
"""End of a complete tar: two empty blocks. A tar without them is truncated."""


class _Member(NamedTuple):
    name: str
    is_folder: bool
    size: int
    refusal: str | None
    """Reason if the member is neither a regular file nor a folder."""
    open: Callable[[], IO[bytes]]


def is_archive(path: Path) -> bool:
    """Return True if a path given as data is an archive, by its name."""
    return _suffix(path) is not None and path.is_file()


def unpack(archive: Path, into: Path, *, max_bytes: int = MAX_BYTES, max_members: int = MAX_MEMBERS) -> Path:
    """Unpack an archive below `into`, unless the same content is unpacked there already.

    Parameters
    ----------
    archive
        A zip or a tar, plain or compressed, as its suffix says.
    into
        The folder for unpacked archives, created if missing. Nothing outside it is written.
    max_bytes, max_members
        Limits for all members together.

    Returns
    -------
    Path
        `into/<hash of the content>/<name without suffix>`. The folder is complete: members are written to a temporary
        folder, which is then renamed.

    Raises
    ------
    DataError
        When the archive is damaged or too large, or has a forbidden member. Nothing is kept then.
    """
    suffix = _suffix(archive)
    if suffix is None:
        raise DataError(f"{archive}: not an archive", hint=f"known: {', '.join(_SUFFIXES)}")
    try:
        guard = _Guard(archive, max_bytes, max_members)
        with open_regular(archive) as stream:
            folder = into / hashing.of_stream(stream)
            done = folder / (archive.name[: -len(suffix)].strip(". ") or "archive")
            if not done.is_dir():
                stream.seek(0)
                _unpack(stream, suffix, done, guard)
    except OSError as error:
        raise DataError(f"{archive}: cannot be unpacked: {error.strerror or error}") from error
    return done


def data_folder(root: Path, into: Path) -> Path:
    """Return a data folder; for an archive, the folder that it is unpacked to."""
    return unpack(root, into) if is_archive(root) else root


class Members(NamedTuple):
    """Unpacked members of an archive inside a data folder."""

    folder: Path
    refused: list[tuple[str, str]]
    """(name, reason) of each member that was not unpacked."""


def unpack_members(archive: Path, into: Path, *, max_bytes: int, max_members: int) -> Members:
    """Unpack the allowed members, unless the same content is unpacked already; list the refused ones.

    Raises
    ------
    DataError
        When the archive is damaged or too large. Nothing is kept then.
    """
    suffix = _suffix(archive) or ".tar"
    try:
        guard = _Guard(archive, max_bytes, max_members)
        with open_regular(archive) as stream:
            folder = into / hashing.of_stream(stream)
            done, noted = folder / "members", folder / "refused.json"
            if not (done.is_dir() and noted.is_file()):
                stream.seek(0)
                refused: list[tuple[str, str]] = []
                _unpack(stream, suffix, done, guard, refused)
                write_text(noted, json.dumps(refused))
            found = json.loads(noted.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{archive}: cannot be unpacked: {error.strerror or error}") from error
    return Members(done, [(str(name), str(why)) for name, why in found])


def _unpack(
    stream: IO[bytes], suffix: str, done: Path, guard: _Guard, refused: list[tuple[str, str]] | None = None
) -> None:
    unpacked = temporary_path(done.parent)
    remove(unpacked)
    unpacked.mkdir(parents=True)
    try:
        members = _zip_members(stream, guard) if suffix == ".zip" else _tar_members(stream, suffix, guard)
        for member in members:
            try:
                target = unpacked / guard.admit(member)
            except _MemberError as error:
                if refused is None:
                    raise
                refused.append((member.name.encode(errors="backslashreplace").decode()[:200], error.why))
                continue
            if member.is_folder:
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as out:
                out.writelines(_chunks(member, guard))
        refuse_changed(guard.seen)
        done.parent.mkdir(exist_ok=True)
        try:
            unpacked.rename(done)
        except OSError:
            if not done.is_dir():  # else another process unpacked it first
                raise
    finally:
        remove(unpacked)


class _MemberError(DataError):
    """Error of a forbidden member; other members can still be unpacked."""

    why = ""


class _Guard:
    """Guard that checks members and counts them against the limits. Must be created before the archive is hashed."""

    def __init__(self, archive: Path, max_bytes: int, max_members: int) -> None:
        self.seen = {archive: look(archive)}
        settle(self.seen.values())
        self.max_bytes, self.max_members = max_bytes, max_members
        self._archive = archive
        self._bytes = self._members = 0
        self._files: set[PurePosixPath] = set()
        self._folders = {PurePosixPath()}

    def refusal(self, why: str, name: str | None = None) -> DataError:
        """Return the error that stops the unpacking."""
        member = f" member {name[:200]!r}:" if name is not None else ""
        return DataError(f"{self._archive}:{member} {why}", hint="nothing of it was unpacked")

    def member(self, why: str, name: str) -> _MemberError:
        """Return the error of a forbidden member."""
        error = self.refusal(why, name)
        found = _MemberError(error.message, hint=error.hint)
        found.why = why
        return found

    @contextmanager
    def reading(self, name: str | None = None) -> Iterator[None]:
        """Convert any exception from a damaged archive to a DataError with its name."""
        try:
            yield
        except DataError:
            raise
        except Exception as error:
            raise self.refusal(f"truncated or damaged: {error or type(error).__name__}", name) from error

    def admit(self, member: _Member) -> PurePosixPath:
        """Return the relative path of a member. Raises DataError if it is forbidden or over the limits."""
        name = member.name
        parts = [part for part in name.split("/") if part not in ("", ".")]
        path = PurePosixPath(*parts)
        if member.refusal:
            raise self.member(member.refusal, name)
        if name.startswith("/") or ".." in parts or "\\" in name:
            raise self.member("its name leads out of the archive's own folder", name)
        if name != name.encode(errors="replace").decode():
            raise self.member("its name is not UTF-8", name)
        above = set(path.parents)
        if member.is_folder:
            above.add(path)
        elif path in self._files or path in self._folders:
            raise self.member("its name is there twice", name)
        if not self._files.isdisjoint(above):
            raise self.member("its folder is also a file", name)
        self._folders |= above
        self._members += 1
        if self._members > self.max_members:
            raise self.refusal(f"more than {self.max_members:,} members", name)
        if not member.is_folder:
            self._files.add(path)
            self._bytes += member.size
        if self._bytes > self.max_bytes:
            raise self.refusal(f"unpacks to more than {self.max_bytes:,} bytes", name)
        return path


class _Counted:
    """Decompressed stream that raises ValueError beyond the size limit."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream, self._left = stream, limit
        self.tail = b""

    def read(self, size: int) -> bytes:
        """Return the next bytes; keep the last ones in `tail`."""
        chunk = self._stream.read(min(size, self._left + 1))
        self._left -= len(chunk)
        if self._left < 0:
            raise ValueError("it unpacks to more than is allowed")
        self.tail = (self.tail + chunk)[-len(_TAR_END) :]
        return chunk


def _tar_members(stream: IO[bytes], suffix: str, guard: _Guard) -> Iterator[_Member]:
    limit = guard.max_bytes + _TAR_OVERHEAD * (guard.max_members + 1)
    with guard.reading(), _decompressed(stream, suffix) as whole:
        plain = _Counted(whole, limit)
        with tarfile.open(fileobj=cast("IO[bytes]", plain), mode="r|") as tar:
            for info in tar:
                refusal = None if info.isreg() or info.isdir() else "a device, pipe or unknown kind of file"
                if info.issym() or info.islnk():
                    refusal = "a link"
                content = cast("Callable[[], IO[bytes]]", partial(tar.extractfile, info))
                yield _Member(info.name, info.isdir(), info.size, refusal, content)
        while plain.read(CHUNK):  # a compressed stream verifies its checksum only at the end
            pass
        if plain.tail != _TAR_END:
            raise guard.refusal("truncated: it lacks the end of a tar")


def _zip_members(stream: IO[bytes], guard: _Guard) -> Iterator[_Member]:
    with guard.reading(), zipfile.ZipFile(stream) as package:
        for info in package.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            refusal = None if kind in (0, stat.S_IFREG, stat.S_IFDIR) else "a device, pipe or unknown kind of file"
            if kind == stat.S_IFLNK:
                refusal = "a link"
            elif info.flag_bits & 0x1:
                refusal = "encrypted"
            is_folder = info.is_dir() or kind == stat.S_IFDIR
            yield _Member(info.filename, is_folder, info.file_size, refusal, partial(package.open, info))


def _chunks(member: _Member, guard: _Guard) -> Iterator[bytes]:
    with guard.reading(member.name), member.open() as content:
        while chunk := content.read(CHUNK):
            yield chunk


def _decompressed(stream: IO[bytes], suffix: str) -> IO[bytes]:
    if suffix in (".tar.gz", ".tgz"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=stream))
    if suffix == ".tar.xz":
        return cast("IO[bytes]", lzma.LZMAFile(stream))
    if suffix == ".tar.bz2":
        return cast("IO[bytes]", bz2.BZ2File(stream))
    if suffix == ".tar.zst":
        reader = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
        return cast("IO[bytes]", reader)
    return stream


def _suffix(path: Path) -> str | None:
    """Return the longest archive suffix of a name, or None."""
    name = path.name.lower()
    return next((suffix for suffix in sorted(_SUFFIXES, key=len, reverse=True) if name.endswith(suffix)), None)
