"""List of a build's raw files: what changed since an earlier build, and damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ingest.listed import raw_files_of
from tests.tiny import HOURS, Tiny
from warehouse.ingest.raw_files import FileList, Listed, changes, list_files, read_listing, write_listing

PORTS = "raw.port_counters"
BUILD = "0" * 16


def listed(tiny: Tiny) -> FileList:
    return list_files(raw_files_of(tiny.data, tiny.target))


def stored(found: FileList, target: Path) -> FileList | None:
    folder = target / "builds" / BUILD
    folder.mkdir(parents=True, exist_ok=True)
    write_listing(folder, found)
    return read_listing(target, BUILD)


def test_a_list_is_read_as_written(tiny: Tiny, tmp_path: Path) -> None:
    (tiny.data / "c" / "notes").touch()
    found = listed(tiny)
    assert stored(found, tmp_path) == found
    name = "c/trafficinfo/2024052401/x/Leaf-1_1_1.csv"
    assert found[name].feeds == ("raw.files", PORTS)
    assert {"format=zhejiang.port_counters", HOURS[1], "switch=Leaf-1"} < set(found[name].partitions)
    assert any(one.startswith("port=") for one in found[name].partitions)
    assert found["c/notes"] == Listed("unknown", ("raw.files",), ("cluster=c",))


def test_added_removed_and_changed_files_are_named_with_their_partitions(tiny: Tiny) -> None:
    before = listed(tiny)
    tiny.file(1, "1,999,2,200,0,0.5")
    tiny.file(2, "1,7,2,200,0,0.5")
    after = listed(tiny)
    assert list(changes(before, listed(tiny), "raw.nothing")) == []
    found = {(one.change, one.release_path.split("/")[2]) for one in changes(before, after, PORTS)}
    assert found == {("changed", "2024052401"), ("added", "2024052402")}
    assert {(one.change, one.is_in(HOURS[0])) for one in changes(after, before, PORTS)} == {
        ("changed", False),
        ("removed", False),
    }
    (changed,) = (one for one in changes(before, after, PORTS) if one.change == "changed")
    assert changed.is_in(HOURS[1])
    assert changed.is_in(f"{HOURS[1]}/switch=Leaf-1")
    assert not changed.is_in(f"{HOURS[1]}/switch=Leaf-2")
    assert changed.is_in("all")


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "no list", "missing"])
def test_a_damaged_list_is_no_list(tiny: Tiny, tmp_path: Path, damage: str) -> None:
    assert stored(listed(tiny), tmp_path) is not None
    path = tmp_path / "builds" / BUILD / "files.json"
    content = path.read_bytes()
    damaged = {"cut": content[:-20], "flipped": content.replace(b"2024052401", b"2024052402"), "empty": b""}
    path.write_bytes(damaged.get(damage, b"[]"))
    if damage == "missing":
        path.unlink()
    assert read_listing(tmp_path, BUILD) is None
