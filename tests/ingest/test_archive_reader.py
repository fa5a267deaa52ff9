"""Downloaded archives: unpacked once, completely, and only into their folder."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from warehouse.base.errors import DataError
from warehouse.ingest.archive_reader import MAX_BYTES, MAX_MEMBERS, is_archive, unpack

FILES = {
    "cluster/trafficinfo/2024052400/a.csv": b"x,y\n1,2\n",
    "cluster/b.log": b"",
    "readme.md": b"hi\n" * 999,
}
TARS = {".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz", ".tar.xz": "w:xz", ".tar.bz2": "w:bz2"}
Member = tuple[tarfile.TarInfo, bytes]


def plain(name: str, content: bytes = b"x", kind: bytes = tarfile.REGTYPE, link: str = "") -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(content)
    return info, content


def write_tar(path: Path, members: list[Member], suffix: str = ".tar") -> Path:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=TARS[suffix]) as tar:  # type: ignore[call-overload]
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    path.write_bytes(buffer.getvalue())
    return path


def write_zip(path: Path, members: list[tuple[str | zipfile.ZipInfo, bytes]]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in members:
            package.writestr(name, content)
    return path


def special(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


def release(folder: Path, suffix: str) -> Path:
    path = folder / f"release{suffix}"
    if suffix == ".zip":
        return write_zip(path, [("cluster/", b""), *FILES.items()])
    folders = [plain(name, b"", tarfile.DIRTYPE) for name in ("./", "cluster/", "empty")]
    return write_tar(path, [*folders, *(plain(f"./{name}", content) for name, content in FILES.items())], suffix)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def fails(archive: Path, into: Path, max_bytes: int = MAX_BYTES, max_members: int = MAX_MEMBERS) -> str:
    """Return the error of an archive; nothing may remain on disk, and nothing be written outside of `into`."""
    around = {path for path in into.parent.rglob("*") if path != into}
    with pytest.raises(DataError) as error:
        unpack(archive, into, max_bytes=max_bytes, max_members=max_members)
    assert {path for path in into.parent.rglob("*") if path != into} == around
    assert str(archive) in error.value.message
    return error.value.message


@pytest.mark.parametrize("suffix", [".zip", *TARS])
def test_a_release_is_unpacked_once_within_its_limits(tmp_path: Path, suffix: str) -> None:
    archive, into = release(tmp_path, suffix), tmp_path / "unpacked"
    size = sum(map(len, FILES.values()))
    members = len(FILES) + (1 if suffix == ".zip" else 3)
    assert f"unpacks to more than {size - 1:,} bytes" in fails(archive, into, max_bytes=size - 1)
    assert f"more than {members - 1} members" in fails(archive, into, max_members=members - 1)
    folder = unpack(archive, into, max_bytes=size, max_members=members)
    assert contents(folder) == FILES
    assert (folder.name, folder.parent.parent) == ("release", into)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    os.utime(archive, (0, 0))
    assert unpack(archive, into) == folder
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    other = write_zip(tmp_path / "release.zip", [("Leaf-1", b"1"), ("leaf-1", b"2")])
    assert contents(unpack(other, into)) == {"Leaf-1": b"1", "leaf-1": b"2"}, "another content, of two names"


def test_an_interrupted_extraction_is_not_taken_for_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, into = release(tmp_path, ".tar.gz"), tmp_path / "unpacked"

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        patch.setattr("shutil.rmtree", lambda *_, **__: None)
        with pytest.raises(KeyboardInterrupt):
            unpack(archive, into)
    assert list(into.glob(".*/release/cluster"))
    assert contents(unpack(archive, into)) == FILES


def test_archives_are_known_by_name_and_a_name_that_is_only_a_suffix_stays_inside(tmp_path: Path) -> None:
    known = {".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".zip", ".ZIP"}
    for suffix in (*known, ".tar.zst", ".csv.gz", ".gz", ".xlsx"):
        path = tmp_path / f"a{suffix}"
        assert not is_archive(path)
        path.touch()
        assert is_archive(path) is (suffix in known)
    for name in (".zip", "..zip", "...zip"):
        folder = unpack(write_zip(tmp_path / name, [("a", name.encode())]), tmp_path / "unpacked")
        assert (folder.name, folder.parent.parent) == ("archive", tmp_path / "unpacked")


OUT, LINK = "its name leads out of the archive's own folder", "a link"
OTHER, TWICE = "a device, pipe or unknown kind of file", "its name is there twice"
REFUSED: list[tuple[list[Member], str]] = [
    *(([plain(name)], OUT) for name in ("/evil", "a/..", "..\\evil", "/")),
    ([plain("odd", b"", tarfile.SYMTYPE, "good")], LINK),
    ([plain("odd", b"", tarfile.BLKTYPE)], OTHER),
    ([plain("./good")], TWICE),
    ([plain("good/b")], TWICE),
    ([plain("a/b"), plain("a")], TWICE),
    ([plain("good/", b"", tarfile.DIRTYPE)], TWICE),
    ([plain(b"\xff\xfe".decode("utf-8", "surrogateescape"))], "its name is not UTF-8"),
]
"""Members beside a good one, and why the archive is refused; tests/security/test_hostile_archives.py has others."""
ZIPPED = (("..\\evil", OUT), (special("odd", stat.S_IFLNK), LINK), (special("odd", stat.S_IFCHR), OTHER))


def test_an_archive_with_a_member_that_must_not_be_unpacked_is_refused(tmp_path: Path) -> None:
    for members, why in REFUSED:
        archive = write_tar(tmp_path / "a.tar", [plain("good"), *members])
        assert fails(archive, tmp_path / "unpacked").endswith(f": {why}"), members
    for member, why in ZIPPED:
        archive = write_zip(tmp_path / "a.zip", [("good", b"x"), (member, b"/etc/passwd")])
        assert fails(archive, tmp_path / "unpacked").endswith(f": {why}"), member


@pytest.mark.parametrize("suffix", [".zip", *TARS])
def test_truncated_and_damaged_archives_are_refused(tmp_path: Path, suffix: str) -> None:
    archive = release(tmp_path, suffix)
    whole = archive.read_bytes()
    for length in (0, 5, len(whole) // 3, len(whole) // 2, len(whole) * 9 // 10):
        archive.write_bytes(whole[:length])
        if suffix == ".tar" and length > len(whole) // 2:
            continue  # the missing bytes are padding after the end of the tar
        assert "truncated" in fails(archive, tmp_path / "unpacked")
    at = whole.index(b"a.csv") + 8 if suffix == ".zip" else len(whole) - 12
    archive.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
    assert suffix == ".tar" or "damaged" in fails(archive, tmp_path / "unpacked")


def test_an_archive_or_target_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    into = tmp_path / "unpacked"
    cut = write_tar(tmp_path / "a.tar", [plain("a", b"x" * 512), plain("b", b"y" * 512)])
    cut.write_bytes(cut.read_bytes()[:1024])
    assert "it lacks the end of a tar" in fails(cut, into)
    encrypted = bytearray(write_zip(tmp_path / "b.zip", [("a", b"x")]).read_bytes())
    encrypted[encrypted.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "b.zip").write_bytes(encrypted)
    assert "encrypted" in fails(tmp_path / "b.zip", into)
    with pytest.raises(DataError, match=r"gone\.zip: cannot be unpacked: No such file"):
        unpack(tmp_path / "gone.zip", into)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match=r"release\.zip: cannot be unpacked: "):
        unpack(release(tmp_path, ".zip"), tmp_path / "file")
