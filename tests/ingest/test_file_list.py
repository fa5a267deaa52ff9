"""List of a build's raw files: what changed since an earlier build, and damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ingest.listed import raw_files_of
from tests.tiny import HOURS, Tiny
from warehouse.ingest.raw_files import FileList, Listed, list_files, read_listing, write_listing

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
