"""Files of a data folder have no effect but rows and reasons."""

from __future__ import annotations

import gzip
import os
import pickle
from collections.abc import Callable
from pathlib import Path

from tests.security.room import Room, is_as_before, is_quiet, zipped

Put = Callable[[Room, Path], object]
HEADER = b"SaveTime,SaveTimeUTC,DeviceName,PortName,InPkts,InOctets,OutPkts,OutOctets,InRatio,OutRatio\n"


def with_entities(declared: bytes, used: bytes) -> bytes:
    said = b'<?xml version="1.0"?><!DOCTYPE x [' + declared + b"]><workbook>" + used + b"</workbook>"
    return zipped({"[Content_Types].xml": b"<Types/>", "xl/workbook.xml": said})


LAUGHS = b"".join(b'<!ENTITY l%d "%s">' % (n, (b"&l%d;" % (n - 1)) * 10 if n else b"lol") for n in range(10))


class Run:
    """Pickle that would run code."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch pwned",)


FILES: dict[str, tuple[str, Put]] = {
    "a link to a secret": ("Leaf-1_1_2.csv", lambda room, path: path.symlink_to(room.secret)),
    "a link to itself": ("Leaf-1_1_2.csv", lambda _, path: path.symlink_to(path)),
    "a link to all files": ("all", lambda _, path: path.symlink_to("/", target_is_directory=True)),
    "a link to the kernel": ("all", lambda _, path: path.symlink_to("/proc", target_is_directory=True)),
    "a link to its own folder": ("all", lambda _, path: path.symlink_to("..", target_is_directory=True)),
    "a pipe": ("Leaf-1_1_2.csv", lambda _, path: os.mkfifo(path)),
    "a folder": ("Leaf-1_1_2.csv", lambda _, path: path.mkdir()),
    "one endless line": ("Leaf-1_1_2.csv", lambda _, path: path.write_bytes(HEADER + b"x" * 20_000_000)),
    "zeros": ("Leaf-1_1_2.csv", lambda _, path: path.write_bytes(HEADER + bytes(100_000))),
    "SQL for a port": ("Leaf-1_1_2.csv", lambda _, path: path.write_bytes(
        HEADER + b"2024/05/24 x 00:00:01.000,1716480001000,NH-Leaf-1.GPU,'); COPY x TO 'pwned'; --,1,1,1,1,0,0\n")),
    "a packed bomb": ("Leaf-1_1_2.csv.gz", lambda _, path: path.write_bytes(gzip.compress(bytes(50_000_000)))),
    "what is not packed": ("Leaf-1_1_2.csv.gz", lambda _, path: path.write_bytes(b"no gzip")),
    "a name with control characters": ("Leaf-1\x1b[2J\n_1_2.csv", lambda _, path: path.write_bytes(HEADER)),
    "a name with SQL": ("x'); DROP SCHEMA raw; --.csv", lambda _, path: path.write_bytes(HEADER)),
    "a name with a glob": ("Leaf-1_[*]_?{a,b}.csv", lambda _, path: path.write_bytes(HEADER)),
    "a name with Jinja": ("{{ 7 * 7 }}{% raw %}.csv", lambda _, path: path.write_bytes(HEADER)),
    "a name that is no text": (os.fsdecode(b"Leaf-1_\xff.csv"), lambda _, path: path.write_bytes(HEADER)),
    "a workbook that is none": ("b.xlsx", lambda _, path: path.write_bytes(b"PK\x03\x04 no")),
    "a workbook that is a bomb": ("b.xlsx", lambda _, path: path.write_bytes(
        zipped({"[Content_Types].xml": b"<Types/>", "xl/workbook.xml": bytes(100_000_000)}))),
    "a workbook of many parts": ("b.xlsx", lambda _, path: path.write_bytes(
        zipped({f"x{n}": b"" for n in range(3000)}))),
    "a workbook that laughs": ("b.xlsx", lambda _, path: path.write_bytes(with_entities(LAUGHS, b"&l9;"))),
    "a workbook that reads": ("b.xlsx", lambda room, path: path.write_bytes(
        with_entities(b'<!ENTITY e SYSTEM "file://%s">' % str(room.secret).encode(), b"&e;"))),
    "a workbook that writes": ("b.xlsx", lambda _, path: path.write_bytes(
        zipped({"../../pwned": b"x", "/pwned": b"x"}))),
    "a pickle that runs": ("util_pkl/x.pkl", lambda _, path: path.write_bytes(pickle.dumps([Run()]))),
    "a pickle that evaluates": ("util_pkl/x.pkl", lambda _, path: path.write_bytes(
        b"cbuiltins\neval\n(S'__import__(\"os\").system(\"touch pwned\")'\ntR.")),
    "a pickle that is cut": ("util_pkl/x.pkl", lambda _, path: path.write_bytes(pickle.dumps([1.0] * 99)[:-7])),
    "a log that moves the cursor": ("taskinfo/t/x.log", lambda _, path: path.write_bytes(b"\x1b[2J\x00" * 9999)),
}  # fmt: skip
FOLDERS = ("a folder", "a link to its own folder")
"""Cases that are no files, and so not listed."""


def test_a_damaged_part_is_rebuilt(room: Room) -> None:
    """Check the part itself; tests/runner/test_damage.py tests everything that can replace it."""
    (part,) = (room.target / "parts" / "staging.seen").rglob("*.parquet")
    part.unlink()
    os.mkfifo(part)
    said = room.tiny.build()
    assert said.status == 0, said.err
    assert part.is_file()
    assert "is damaged" in said.err_text


def test_a_hostile_data_file_has_no_effect(room: Room) -> None:
    """One build reads the good files beside all of these, each in a folder of its own."""
    for at, (name, put) in enumerate(FILES.values()):
        is_beside = name.startswith(("util_pkl", "taskinfo", "b.xlsx"))
        path = room.tiny.data / f"c{at}" / ("" if is_beside else "trafficinfo/2024052400/x") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        put(room, path)
    before = room.outside()
    for said in (room.tiny.build(), room.run("doctor", "--all", "-d", room.tiny.data, "-t", room.target)):
        is_quiet(said)
        assert said.status == 0, said
    is_as_before(room, before)
    assert not list(room.base.rglob("pwned*"))
    unread = room.tiny.ask("SELECT count(*), count(reason) FROM raw.files WHERE status NOT IN ('read', 'partial')")
    assert unread == [(len(FILES) - len(FOLDERS),) * 2], "each is listed with a reason"
    is_quiet(room.sql("SELECT * FROM staging.seen", "--format", "table"))
    assert not room.tiny.ask("SELECT path FROM staging.seen WHERE value IS NOT NULL OR access IS NOT NULL")
