"""What is known of raw files: unchanged folders are not decoded, changed ones are looked at as far as needed."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.tiny import HOURS, Tiny
from warehouse.base import hashing
from warehouse.formats import known_formats
from warehouse.formats.base import RawFile
from warehouse.formats.zhejiang.port_counters import PORT_COUNTERS
from warehouse.ingest import content_hashes, file_index, known_folders
from warehouse.ingest.inventory import RawFiles
from warehouse.ingest.known_folders import NAME, Record
from warehouse.store import content_hash
from warehouse.store.parts import Store
from warehouse.store.signatures import stamp


class Calls:
    """Files that were inspected and hashed, and folders that were decoded."""

    def __init__(self) -> None:
        self.inspected: list[str] = []
        self.hashed: list[str] = []
        self.decoded: list[str] = []

    def taken(self) -> tuple[list[str], list[str], list[str]]:
        found = sorted(self.inspected), sorted(self.hashed), sorted(self.decoded)
        self.__init__()  # type: ignore[misc]
        return found


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    found = Calls()
    inspect, of_content, decoded = PORT_COUNTERS.inspect, content_hash.of_content, known_folders.decoded

    def inspecting(_: object, file: RawFile) -> RawFile:
        found.inspected.append(file.path.name)
        return inspect(file)

    def hashing_file(path: Path, watch: hashing.Watch) -> str:
        found.hashed.append(path.name)
        return of_content(path, watch)

    def decoding(record: Record) -> list[RawFile]:
        found.decoded.append(Path(os.fsdecode(record.key)).parent.name)
        return decoded(record)

    monkeypatch.setattr(type(PORT_COUNTERS), "inspect", inspecting)
    monkeypatch.setattr(content_hashes, "of_content", hashing_file)
    monkeypatch.setattr(file_index, "decoded", decoding)
    return found


def listed(tiny: Tiny, environment: str = "") -> RawFiles:
    return RawFiles([tiny.data], known_formats(), Store(tiny.target), environment=environment)


def test_an_unchanged_folder_is_neither_opened_nor_decoded(tiny: Tiny, calls: Calls, old: None) -> None:
    before = listed(tiny)
    assert calls.taken()[:2] == (["Leaf-1_1_1.csv"] * 2,) * 2
    after = listed(tiny)
    assert after.inventory.count == 2
    assert after.listing().lines == before.listing().lines
    assert after.partitions("raw.port_counters", "hour_utc") == set(HOURS)
    assert after.partition_digest(HOURS[0]) == before.partition_digest(HOURS[0])
    assert calls.taken() == ([], [], [])
    assert after.digest("raw.port_counters", HOURS[0]) == before.digest("raw.port_counters", HOURS[0])
    assert set(calls.taken()[2]) == {"2024052400"}
    assert after.inventory.files == before.inventory.files


def test_a_new_file_beside_others_costs_no_hash_of_them(tiny: Tiny, calls: Calls, old: None) -> None:
    """The format of a file may depend on the names beside it, its content does not."""
    listed(tiny)
    calls.taken()
    path = tiny.file(0, "1,100,2,200,0,0.5")
    shutil.copy(path, path.with_name("Leaf-1_1_2.csv"))
    path.with_name("Leaf-1_1_2.csv").write_text(
        path.read_text(encoding="utf-8").replace("1/0/1:1", "1/0/1:2"), encoding="utf-8"
    )
    path = next(tiny.data.rglob("2024052401/*/*.csv"))
    path.with_name("notes.bin").touch()
    assert listed(tiny).inventory.count == 4
    inspected, hashed, _ = calls.taken()
    assert inspected == ["Leaf-1_1_1.csv", "Leaf-1_1_1.csv", "Leaf-1_1_2.csv"]
    assert hashed == ["Leaf-1_1_1.csv", "Leaf-1_1_2.csv"], "the file that was written again, and the new one"


def test_files_as_new_as_the_build_are_opened_again(tiny: Tiny, calls: Calls) -> None:
    listed(tiny)
    calls.taken()
    listed(tiny)
    assert calls.taken()[:2] == (["Leaf-1_1_1.csv"] * 2,) * 2


def test_another_package_or_format_inspects_again_and_keeps_the_hashes(
    tiny: Tiny, calls: Calls, old: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed(tiny)
    calls.taken()
    listed(tiny, environment="another package")
    assert calls.taken()[:2] == (["Leaf-1_1_1.csv"] * 2, [])
    monkeypatch.setattr(type(PORT_COUNTERS), "version", 99)
    listed(tiny, environment="another package")
    assert calls.taken()[:2] == (["Leaf-1_1_1.csv"] * 2, [])


def test_another_cluster_gives_other_rows(tiny: Tiny, calls: Calls, old: None) -> None:
    """A sign in a folder above changes the release paths of all files below it."""
    listed(tiny)
    (tiny.data / "taskinfo").mkdir()
    (tiny.data / "c" / "trafficinfo").rename(tiny.data / "trafficinfo")
    assert {file.cluster for file in listed(tiny).inventory.files} == {"data"}


def test_a_file_that_could_not_be_opened_is_opened_again(
    tiny: Tiny, calls: Calls, old: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(content_hashes, "of_content", lambda *_: (_ for _ in ()).throw(PermissionError(13, "denied")))
        assert listed(tiny).inventory.statuses() == {"skipped": 2}
    assert listed(tiny).inventory.statuses() == {"read": 2}
    calls.taken()
    listed(tiny)
    assert calls.taken() == ([], [], [])


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "gone"])
def test_a_damaged_cache_costs_only_time(tiny: Tiny, calls: Calls, old: None, damage: str) -> None:
    files = listed(tiny).inventory.files
    calls.taken()
    path = tiny.target / "cache" / NAME
    content = path.read_bytes()
    changed = {"cut": content[:-9], "flipped": content.replace(b"Leaf-1", b"Leaf-2"), "empty": b""}
    path.write_bytes(changed.get(damage, b""))
    if damage == "gone":
        path.unlink()
    assert listed(tiny).inventory.files == files
    assert len(calls.taken()[1]) == 2


def test_caches_of_earlier_releases_are_removed(tiny: Tiny) -> None:
    cache = tiny.target / "cache"
    cache.mkdir(parents=True)
    for name in ("digests.json", "memo.msgpack", "snapshot.json"):
        (cache / name).write_text("[1", encoding="utf-8")
    listed(tiny)
    assert [path.name for path in cache.iterdir() if path.is_file()] == [NAME]


def test_content_hashes_of_an_earlier_release_are_used_once(tiny: Tiny, calls: Calls, old: None) -> None:
    cache = tiny.target / "cache"
    cache.mkdir(parents=True)
    first, second = sorted(tiny.data.rglob("*.csv"))
    files: dict[str, list[Any]] = {str(path): [*stamp(path.stat()), "0" * 31 + "1"] for path in (first, second)}
    files[str(second)][1] += 1
    (cache / "digests.json").write_text(json.dumps({"looked_ns": time.time_ns(), "files": files}), encoding="utf-8")
    assert [file.digest == "0" * 31 + "1" for file in listed(tiny).inventory.files] == [True, False]
    assert calls.taken()[1] == [second.name]
    assert not (cache / "digests.json").exists()


# digests of partitions ----------------------------------------------------------------------------


def digests(tiny: Tiny) -> list[str]:
    found = listed(tiny)
    return [found.partition_digest(partition) for partition in (*HOURS, "all", "format=zhejiang.port_counters")]


def test_the_digest_of_a_partition_covers_names_and_content_of_its_files_alone(tiny: Tiny) -> None:
    first, second, everything, of_format = digests(tiny)
    path = tiny.file(0, "1,101,2,200,0,0.5")
    assert [one == other for one, other in zip(digests(tiny), [first, second, everything, of_format], strict=True)] == [
        False, True, False, False,
    ]  # fmt: skip
    tiny.file(0, "1,100,2,200,0,0.5")
    assert digests(tiny) == [first, second, everything, of_format]
    path.rename(path.with_name("Leaf-1_1_9.csv"))
    assert digests(tiny)[:2] != [first, second]


def test_the_digest_of_a_partition_does_not_cover_places_and_times(tiny: Tiny) -> None:
    before = digests(tiny)
    for path in tiny.data.rglob("*.csv"):
        os.utime(path, (1, 1))
    tiny.data = tiny.data.rename(tiny.data.with_name("moved"))
    assert digests(tiny) == before


def test_the_digest_of_a_partition_covers_repairs_and_duplicates(tiny: Tiny) -> None:
    before = digests(tiny)
    path = tiny.file(0, "1,100,2,200,0,0.5")
    copy = path.parent.with_name("y") / path.name
    copy.parent.mkdir()
    shutil.copy(path, copy)
    duplicate = digests(tiny)
    assert (duplicate[0] != before[0], duplicate[1]) == (True, before[1])
    copy.unlink()
    path.write_text(path.read_text(encoding="utf-8") + "torn", encoding="utf-8")
    assert digests(tiny)[0] not in (before[0], duplicate[0])
