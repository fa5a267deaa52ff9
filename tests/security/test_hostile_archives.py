"""Archives write nothing outside the target."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from tests.security.room import Room, is_as_before, is_one_sentence, zipped


def tar(*members: tuple[str, bytes, bytes, str]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, kind, inside, link in members:
            one = tarfile.TarInfo(name)
            one.type, one.size, one.linkname = kind, len(inside), link
            archive.addfile(one, io.BytesIO(inside))
    return content.getvalue()


ARCHIVES: dict[str, tuple[str, bytes]] = {
    "a way up": ("r.zip", zipped({"../../pwned": b"x"})),
    "a way up in the middle": ("r.zip", zipped({"c/../../../pwned": b"x"})),
    "an absolute name": ("r.zip", zipped({"/tmp/pwned": b"x"})),
    "a drive": ("r.zip", zipped({"C:\\pwned": b"x"})),
    "a link out": ("r.tar.gz", tar(("c/x", tarfile.SYMTYPE, b"", "/etc/passwd"))),
    "a link, then through it": (
        "r.tar.gz", tar(("c", tarfile.SYMTYPE, b"", "/tmp"), ("c/pwned", tarfile.REGTYPE, b"x", "")),
    ),
    "a hard link": ("r.tar.gz", tar(("c/x", tarfile.LNKTYPE, b"", "../../secret.csv"))),
    "a device": ("r.tar.gz", tar(("c/x", tarfile.CHRTYPE, b"", ""))),
    "a pipe": ("r.tar.gz", tar(("c/x", tarfile.FIFOTYPE, b"", ""))),
    "one name twice": ("r.tar.gz", tar(("c/x", tarfile.REGTYPE, b"1", ""), ("c/x", tarfile.REGTYPE, b"2", ""))),
    "a name with control characters": ("r.tar.gz", tar(("c/\x1b[2J", tarfile.SYMTYPE, b"", "x"))),
    "cut short": ("r.tar.gz", tar(("c/x", tarfile.REGTYPE, b"1" * 9999, ""))[:-40]),
    "none": ("r.tar.gz", b"no archive"),
}  # fmt: skip


def test_an_archive_writes_nothing_outside(room: Room) -> None:
    parts = room.parts()
    for case, (name, content) in ARCHIVES.items():
        archive = room.base / name
        archive.write_bytes(content)
        before = room.outside()
        is_one_sentence(room.run("build", "-d", archive, "-t", room.target), case)
        is_as_before(room, before, parts)
        assert not list(room.base.rglob("pwned*")), case
        assert not Path("/tmp/pwned").exists(), case
        archive.unlink()
