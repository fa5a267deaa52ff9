"""What a target knows of raw files: unchanged ones are not opened; rows are those of a target that knows nothing."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ingest.listed import raw_files_of
from tests.tiny import HOURS, Tiny
from warehouse.base import hashing
from warehouse.formats.base import RawFile
from warehouse.formats.zhejiang.port_counters import PORT_COUNTERS
from warehouse.ingest import look
from warehouse.ingest.look import of_content
from warehouse.ingest.raw_files import Listed, RawFiles, list_files, read_listing, write_listing

PORTS = "raw.port_counters"
BOTH = ["Leaf-1_1_1.csv"] * 2


class Calls:
    """Names of the files that were inspected and hashed since the last question."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._inspected: list[str] = []
        self._hashed: list[str] = []
        inspect = PORT_COUNTERS.inspect

        def inspecting(_: object, file: RawFile) -> RawFile:
            self._inspected.append(file.path.name)
            return inspect(file)

        def hashing_file(path: Path, watch: hashing.Watch) -> str:
            self._hashed.append(path.name)
            return of_content(path, watch)

        patch.setattr(type(PORT_COUNTERS), "inspect", inspecting)
        patch.setattr(look, "of_content", hashing_file)

    def taken(self) -> tuple[list[str], list[str]]:
        found = sorted(self._inspected), sorted(self._hashed)
        self._inspected, self._hashed = [], []
        return found


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


def listed(tiny: Tiny, environment: str = "", *, paranoid: bool = False) -> RawFiles:
    return raw_files_of(tiny.data, tiny.target, environment, paranoid=paranoid)


def test_an_unchanged_file_is_not_opened(tiny: Tiny, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    before = listed(tiny)
    assert calls.taken() == (BOTH, BOTH)
    after = listed(tiny)
    assert calls.taken() == ([], [])
    assert after.inventory.files == before.inventory.files
    assert after.partitions(PORTS, ("hour_utc",)) == set(HOURS)
    listed(tiny, paranoid=True)
    assert calls.taken() == (BOTH, BOTH)
    listed(tiny, "another package")
    assert calls.taken() == (BOTH, []), "the hashes are kept"
    monkeypatch.setattr(type(PORT_COUNTERS), "version", 99)
    listed(tiny, "another package")
    assert calls.taken() == (BOTH, [])


def test_a_new_file_beside_others_costs_no_hash_of_them(tiny: Tiny, calls: Calls) -> None:
    """The format of a file may depend on the names beside it, its content does not."""
    listed(tiny)
    calls.taken()
    path = tiny.file(0, "1,100,2,200,0,0.5")
    path.with_name("Leaf-1_1_2.csv").write_text(
        path.read_text(encoding="utf-8").replace("1/0/1:1", "1/0/1:2"), encoding="utf-8"
    )
    next(tiny.data.rglob("2024052401/*/*.csv")).with_name("notes.bin").touch()
    assert listed(tiny).inventory.count == 4
    inspected, hashed = calls.taken()
    assert inspected == [*BOTH, "Leaf-1_1_2.csv"]
    assert hashed == ["Leaf-1_1_1.csv", "Leaf-1_1_2.csv"], "the file that was written again, and the new one"


def test_a_file_that_could_not_be_opened_is_opened_again(
    tiny: Tiny, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object) -> str:
        raise PermissionError(13, "denied")

    with monkeypatch.context() as patch:
        patch.setattr(look, "of_content", denied)
        assert listed(tiny).inventory.statuses() == {"skipped": 2}
    assert listed(tiny).inventory.statuses() == {"read": 2}
    calls.taken()
    listed(tiny)
    assert calls.taken() == ([], [])


def test_an_interrupt_stops_the_hashing_of_a_long_file(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of 60 GB would otherwise be read to its end first."""
    calls: list[Path] = []

    def endless(path: Path, watch: hashing.Watch) -> str:
        calls.append(path)
        if len(calls) == 2:
            raise KeyboardInterrupt
        while True:
            watch(b"1")

    monkeypatch.setattr(look, "of_content", endless)
    with pytest.raises(KeyboardInterrupt):
        listed(tiny)


def archive(tiny: Tiny) -> None:
    path = tiny.file(5, "1,100,2,200,0,0.5")
    with zipfile.ZipFile(tiny.data / "more.zip", "w") as packed:
        packed.write(path, "c/trafficinfo/2024052406/x/Leaf-1_1_1.csv")


def copy(tiny: Tiny) -> None:
    path = tiny.file(0, "1,100,2,200,0,0.5")
    place = path.parent.with_name("y") / path.name
    place.parent.mkdir()
    shutil.copy(path, place)


def another_cluster(tiny: Tiny) -> None:
    """A sign in a folder above changes the release paths of all files below it."""
    (tiny.data / "taskinfo").mkdir()
    (tiny.data / "c" / "trafficinfo").rename(tiny.data / "trafficinfo")


CHANGES: dict[str, Callable[[Tiny], Any]] = {
    "a new hour": lambda t: t.file(2, "1,100,2,200,0,0.5"),
    "a changed file": lambda t: t.file(0, "1,101,2,200,0,0.5"),
    "a removed hour": lambda t: shutil.rmtree(t.data / "c" / "trafficinfo" / "2024052401"),
    "a file that no format knows": lambda t: (t.data / "c/trafficinfo/2024052400/x/note.bin").touch(),
    "an empty file": lambda t: t.file(1).write_bytes(b""),
    "a torn line": lambda t: t.file(1, "1,100,2,200,0,0.5", "torn"),
    "a copy": copy,
    "an archive": archive,
    "an archive gone": lambda t: (t.data / "more.zip").unlink(),
    "a pipe": lambda t: os.mkfifo(t.data / "c" / "pipe"),
    "a link out": lambda t: (t.data / "c" / "out").symlink_to("/"),
    "no text": lambda t: (t.data / "c" / os.fsdecode(b"caf\xe9.csv")).touch(),
    "another cluster": another_cluster,
}


def without_places(files: RawFiles, target: Path) -> list[dict[str, object]]:
    """Return all rows without times; copies and members of archives lie in each target."""
    rows = []
    for file in files.inventory.files:
        row = {name: value for name, value in file._asdict().items() if name not in ("mtime_ns", "seen")}
        places = {name: str(row[name]).replace(str(target), "") for name in ("path", "clean_path")}
        rows.append(row | places)
    return rows


def test_rows_after_changes_are_those_of_a_target_that_knows_nothing(tiny: Tiny) -> None:
    listed(tiny)
    for number, (name, change) in enumerate(CHANGES.items()):
        change(tiny)
        nothing = tiny.base / f"other-{number}"
        found, expected = listed(tiny), raw_files_of(tiny.data, nothing)
        assert without_places(found, tiny.target) == without_places(expected, nothing), name
        assert found.rejected() == expected.rejected(), name
    assert len(listed(tiny).inventory.files) > 8


def test_the_bytes_of_rejected_lines_are_part_of_a_digest(tiny: Tiny) -> None:
    found = []
    for line in ("torn", "TORN"):
        tiny.file(0, "1,100,2,200,0,0.5", line)
        found.append(listed(tiny).digest(PORTS, HOURS[0]))
    assert found[0] != found[1]


def test_a_digest_of_a_switch_is_of_its_files_alone(tiny: Tiny) -> None:
    path = tiny.file(0, "1,100,2,200,0,0.5")
    other = path.parent.with_name("z") / "Leaf-2_1_1.csv"
    other.parent.mkdir()
    other.write_text(path.read_text(encoding="utf-8").replace("Leaf-1", "Leaf-2"), encoding="utf-8")
    found = listed(tiny)
    names = [f"{HOURS[0]}/switch=Leaf-1", f"{HOURS[0]}/switch=Leaf-2"]
    assert found.partitions(PORTS, ("hour_utc", "switch")) == {*names, f"{HOURS[1]}/switch=Leaf-1"}
    assert [[one.switch for one in found.files_of(PORTS, name)] for name in names] == [["Leaf-1"], ["Leaf-2"]]
    before = [found.digest(PORTS, name) for name in names]
    other.write_text(other.read_text(encoding="utf-8").replace(",100,", ",101,"), encoding="utf-8")
    after = [listed(tiny).digest(PORTS, name) for name in names]
    assert [one == two for one, two in zip(before, after, strict=True)] == [True, False]


# the list of a build's files --------------------------------------------------------------------


def test_a_list_is_read_as_written_or_is_none_if_it_is_damaged(tiny: Tiny, tmp_path: Path) -> None:
    (tiny.data / "c" / "notes").touch()
    found = list_files(listed(tiny))
    name = "c/trafficinfo/2024052401/x/Leaf-1_1_1.csv"
    assert found[name].feeds == ("raw.files", PORTS)
    assert {"format=zhejiang.port_counters", HOURS[1], "switch=Leaf-1"} < set(found[name].partitions)
    assert found["c/notes"] == Listed("unknown", ("raw.files",), ("cluster=c",))
    folder = tmp_path / "builds" / "0"
    folder.mkdir(parents=True)
    assert read_listing(tmp_path, "0") is None
    write_listing(folder, found)
    path = folder / "files.json"
    content = path.read_bytes()
    assert read_listing(tmp_path, "0") == found
    for damaged in (content[:-20], content.replace(b"052401", b"052402"), b"[]"):
        path.write_bytes(damaged)
        assert read_listing(tmp_path, "0") is None
