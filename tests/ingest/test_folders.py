"""Folders, archives and files of any name and kind: rows are in, or the file is listed as skipped."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import call
from tests.release import done, fails
from tests.tiny import Tiny
from warehouse.base import hashing


@pytest.fixture
def ports(tiny: Tiny) -> Tiny:
    """Return a project whose model reads port files, a part an hour and switch."""
    tiny.model(
        "metrics.total",
        "SELECT f.cluster, p.PortName AS port, f.hour_utc, f.switch, p.InOctets AS bytes FROM raw.port_counters AS p "
        "JOIN raw.files AS f ON f.read_path = p.filename",
        {"cluster": "VARCHAR", "port": "VARCHAR", "hour_utc": "TIMESTAMP", "switch": "VARCHAR", "bytes": "BIGINT"},
        "grain: [cluster, port, hour_utc]",
        "partition: [hour_utc, switch]",
    )
    return tiny


def rows(tiny: Tiny) -> list[tuple[object, ...]]:
    return tiny.ask("SELECT cluster, port, hour(hour_utc), bytes FROM metrics.total ORDER BY ALL")


ROWS = [("c", "TwoHundredGigE1/0/1:1", hour, 100) for hour in (16, 17)]
NAMES = {
    "quotes": ["it's", 'a "b"', "`c`", "'; DROP TABLE x; --"],
    "blanks": [" two  blanks ", "tab\there", "line\nbreak", "\x1b[31mred", "\u202eturned"],
    "brackets": ["[1]", "[!a]", "{a,b}", "(x)", "{{ x }}"],
    "marks": ["100%", "a%20b", "year=2024", "$HOME", "~", "#1", "a:b", "-d", "a;b", "a&b", "x.csv", "ünï 中"],
}
GLOBS = {"stars": ["*", "**", "[*]"], "globs": ["[a-z]*?", "?"]}
BACKSLASHES = {"backslashes": ["a\\b", "\\"]}
"""DuckDB does not write into folders of these names, nor of globs."""


def test_what_cannot_be_opened_is_skipped_and_listed(ports: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    hour = ports.data / "c" / "trafficinfo" / "2024052400"
    (hour / "loop").symlink_to(ports.data, target_is_directory=True)
    (hour / "self").symlink_to(hour / "self")
    folder = os.fsencode(hour) + b"/caf\xe9"
    os.mkdir(folder)
    gone, denied = ports.file(2, "1,100,2,200,0,0.5"), ports.file(3, "1,100,2,200,0,0.5")
    os.rename(os.fsencode(gone), folder + b"/Leaf-1_1_1.csv")
    gone.symlink_to("nowhere.csv")
    pipe = hour / "x" / "Leaf-1_34.csv"
    os.mkfifo(pipe)  # who opened it would wait for ever
    (hour / "x" / "Leaf-1_35.csv").mkdir()
    (hour / "x" / "Leaf-1_36.csv").symlink_to("/dev/zero")

    def refuse_to_hash(path: Path, *arguments: Any, **options: Any) -> Any:
        """Root may read everything, so that opening a file is made to fail."""
        if path == denied:
            raise PermissionError(13, "Permission denied", str(path))
        return open(path, *arguments, **options)  # noqa: PTH123 - what is replaced

    monkeypatch.setattr(hashing, "open", refuse_to_hash, raising=False)
    skipped = "SELECT release_path, reason FROM raw.files WHERE status = 'skipped' ORDER BY ALL"
    for follow in ((), ("--follow-links",)):
        done(ports.build(*follow))
        assert ports.ask(skipped) == [
            ("c/trafficinfo/2024052400/caf\\xe9/Leaf-1_1_1.csv", "its path is not UTF-8 text"),
            ("c/trafficinfo/2024052400/self", "cannot be read: Too many levels of symbolic links"),
            *((f"c/trafficinfo/2024052400/x/Leaf-1_{n}.csv", "cannot be read: not a regular file") for n in (34, 36)),
            ("c/trafficinfo/2024052402/x/Leaf-1_1_1.csv", "cannot be read: No such file or directory"),
            ("c/trafficinfo/2024052403/x/Leaf-1_1_1.csv", "cannot be read: Permission denied"),
        ]
    assert rows(ports) == ROWS
    told = done(call("doctor", "--all", "-d", ports.data, cwd=ports.base)).out
    assert "/self\n    cannot be read: Too many levels of symbolic links" in told
    assert "its path is not UTF-8 text" in told


@pytest.mark.parametrize("kinds", [NAMES, GLOBS, BACKSLASHES], ids=["writable", "globs", "backslashes"])
def test_folders_may_have_any_name(ports: Tiny, kinds: dict[str, list[str]]) -> None:
    """Around release and target, one in the other; the first of a kind is also a cluster's, the last a switch's."""
    around = ports.base.joinpath(*(name for names in kinds.values() for name in names))
    around.mkdir(parents=True)
    for names in kinds.values():
        cluster = shutil.copytree(ports.data / "c", around / "data" / names[0])
        for hour in (cluster / "trafficinfo").iterdir():
            (hour / "x").rename(hour / names[-1])
    ports.data, ports.target = around / "data", around / "target"
    if kinds is not NAMES:
        fails(ports.build(), "a target's path cannot hold `")
        ports.target = ports.base / "target"
    done(ports.build())
    clusters = sorted(names[0] for names in kinds.values())
    assert rows(ports) == [(cluster, *row[1:]) for cluster in clusters for row in ROWS]
    assert ports.ask("SELECT count(DISTINCT filename) FROM raw.port_counters") == [(2 * len(kinds),)]
    told = done(call("doctor", "--all", "-d", ports.data, cwd=ports.base)).out
    assert told.count("port_counters: 1 of 1 file read of 1 switch") == 2 * len(kinds)
    assert told.replace("\n", "").isprintable()


def test_a_release_can_be_given_as_its_archive(ports: Tiny) -> None:
    folder, ports.data = ports.data, ports.base / "download.tar.gz"
    with tarfile.open(ports.data, "w:gz") as package:
        package.add(folder, "release")
    done(ports.build())
    assert done(ports.build()).err.startswith("Up to date")
    assert rows(ports) == ROWS
    assert done(call("doctor", "-d", ports.data, cwd=ports.base)).out.count("1 of 1 file read") == 2
    shutil.rmtree(next(folder.rglob("2024052401")))
    with tarfile.open(ports.data, "w:gz") as package:
        package.add(folder, "release")
    done(ports.build())
    assert rows(ports) == ROWS[:1]

    ports.data.write_bytes(ports.data.read_bytes()[:-100])
    for said in (ports.build(), call("doctor", "-d", ports.data, cwd=ports.base)):
        fails(said, str(ports.data), "truncated or damaged")
    assert rows(ports) == ROWS[:1]


def test_a_folder_without_data_is_an_error_and_the_last_warehouse_stays(ports: Tiny) -> None:
    done(ports.build())
    ports.data = ports.base / "other"
    fails(ports.build(), f"no such data folder: {ports.data}")
    ports.data.mkdir()
    fails(ports.build(), f"no files in {ports.data}")
    (ports.data / "data.bin").write_bytes(bytes(100))
    fails(ports.build(), f"nothing readable in {ports.data}: 1 file, none recognised")
    assert rows(ports) == ROWS
    pipe = ports.base / "pipe"
    os.mkfifo(pipe)
    fails(call("build", "-d", pipe, "-t", ports.target, cwd=ports.base), "not a regular file")
    assert "1 file not recognised" in done(call("doctor", "-d", ports.data, cwd=ports.base)).out


def test_a_target_among_the_data_is_not_taken_for_data(ports: Tiny) -> None:
    ports.target = ports.data / "build" / "warehouse"
    ports.file(0, "1,100,2,200,0,0.5", "1,x,2,200,0,0.5")  # so that the target holds a repaired copy
    done(ports.build())
    assert ports.ask("SELECT count(*) FROM raw.files") == [(2,)]
    assert '"changed": false' in done(ports.build("--json")).out
    ports.target = ports.data.parent
    fails(ports.build(), "lies inside the target")
