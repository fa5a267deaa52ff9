"""List of a build's raw files: lines of unchanged folders, lists of earlier releases, damage."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.tiny import HOURS, Tiny
from warehouse.formats import known_formats
from warehouse.ingest import file_list
from warehouse.ingest.file_list import FileList, Listed, changes, read_listing, write_listing
from warehouse.ingest.inventory import RawFiles
from warehouse.store.parts import Store

PORTS = "raw.port_counters"


def listed(tiny: Tiny) -> FileList:
    return RawFiles([tiny.data], known_formats(), Store(tiny.target)).listing()


def stored(found: FileList, target: Path) -> FileList | None:
    folder = target / "builds" / ("0" * 32)
    folder.mkdir(parents=True, exist_ok=True)
    write_listing(folder, found)
    return read_listing(target, "0" * 32)


def test_a_list_is_read_as_written(tiny: Tiny, tmp_path: Path) -> None:
    (tiny.data / "c" / "notes").touch()
    found = listed(tiny)
    again = stored(found, tmp_path)
    assert again is not None
    assert again.files == found.files
    name = "c/trafficinfo/2024052401/x/Leaf-1_1_1.csv"
    assert found.files[name].feeds == ("raw.files", PORTS)
    assert {"format=zhejiang.port_counters", HOURS[1], "switch=Leaf-1"} < set(found.files[name].partitions)
    assert any(one.startswith("port=") for one in found.files[name].partitions)
    assert found.files["c/notes"] == Listed("unknown", ("raw.files",), ("cluster=c",))
    json.loads((tmp_path / "builds" / ("0" * 32) / "files.json").read_text(encoding="utf-8"))


def test_only_lines_that_differ_are_decoded(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    before = listed(tiny)
    tiny.file(1, "1,999,2,200,0,0.5")
    tiny.file(2, "1,7,2,200,0,0.5")
    after = listed(tiny)
    decoded: list[bytes] = []
    usual = file_list._decoded

    def decoding(lines: Iterable[bytes]) -> dict[str, Listed]:
        decoded.extend(found := list(lines))
        return usual(found)

    monkeypatch.setattr(file_list, "_decoded", decoding)
    found = {(one.change, one.release_path.split("/")[2]) for one in changes(before, after, PORTS)}
    assert found == {("changed", "2024052401"), ("added", "2024052402")}
    assert {(one.change, one.is_in(HOURS[0])) for one in changes(after, before, PORTS)} == {
        ("changed", False),
        ("removed", False),
    }
    assert not any(b"2024052400" in line for line in decoded)


def test_a_list_of_an_earlier_release_is_compared_with_a_new_one(tiny: Tiny, tmp_path: Path) -> None:
    now = listed(tiny)
    digests = {
        file.release_path: file.digest
        for file in RawFiles([tiny.data], known_formats(), Store(tiny.target)).inventory.files
    }
    older = {path: [digests[path], one.feeds, one.partitions[::-1]] for path, one in now.files.items()}
    folder = tmp_path / "builds" / ("0" * 32)
    folder.mkdir(parents=True)
    (folder / "files.json").write_text(json.dumps(older), encoding="utf-8")
    before = read_listing(tmp_path, "0" * 32)
    assert before is not None
    assert list(changes(before, now, PORTS)) == []
    tiny.file(2, "1,7,2,200,0,0.5")
    assert [one.change for one in changes(before, listed(tiny), PORTS)] == ["added"]


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "no list"])
def test_a_damaged_list_is_no_list(tiny: Tiny, tmp_path: Path, damage: str) -> None:
    assert stored(listed(tiny), tmp_path) is not None
    path = tmp_path / "builds" / ("0" * 32) / "files.json"
    content = path.read_bytes()
    damaged = {"cut": content[:-20], "flipped": content.replace(b"2024052401", b"2024052402"), "empty": b""}
    path.write_bytes(damaged.get(damage, b"[]"))
    assert read_listing(tmp_path, "0" * 32) is None
