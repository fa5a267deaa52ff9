"""Parts are either complete or absent."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from warehouse.base import hashing
from warehouse.store import parts
from warehouse.store.manifest import ALL, INPUTS, Part, problem_of
from warehouse.store.parts import Store, Written
from warehouse.store.signatures import stamp

HOUR = "2024-05-23T16"


def building(target: Path, said: Callable[[str], None] = print) -> Store:
    """Return the store of a build."""
    return Store(target, on_damage=said)


def put(
    store: Store,
    fingerprint: str,
    content: bytes = b"abc",
    partition: str = ALL,
    notes: dict[str, Any] | None = None,
) -> Part:
    """Write a part of `staging.a`."""
    path = store.temporary("parquet")
    path.write_bytes(content)
    return store.take_in("staging.a", partition, fingerprint, Written(path, 3, hashing.of_file(path)), notes or {})


def test_a_part_lies_in_the_folder_of_its_partition_and_is_found_by_its_whole_name_alone(tmp_path: Path) -> None:
    partition = f"{HOUR}/switch=Leaf%2F1"
    store = building(tmp_path)
    written = put(store, "f1", partition=partition, notes={"note": [1, "ü"]})
    folders = "hour_utc=2024-05-23%2016%3A00%3A00/switch=Leaf%2F1"
    assert written.file == f"{tmp_path}/parts/staging.a/{folders}/f1.parquet"
    assert put(store, "f1").path == tmp_path / "parts" / "staging.a" / "all" / "f1.parquet"
    assert (written.rows, written.bytes, written.digest) == (3, 3, hashing.of_file(written.path))
    read = Store(tmp_path)
    assert read.find("staging.a", partition, "f1") == written
    for name in (("staging.a", partition, "f2"), ("staging.a", HOUR, "f1"), ("staging.b", partition, "f1")):
        assert read.find(*name) is None
    store.keep(written._replace(notes={**written.notes, "second": 2}))
    for one in (store, Store(tmp_path)):
        found = one.find("staging.a", partition, "f1")
        assert found is not None
        assert found.notes == {"note": [1, "ü"], "second": 2}


def test_a_file_without_a_row_is_no_part(tmp_path: Path) -> None:
    """A build was killed between the two: nothing says that the file is whole."""
    store = building(tmp_path)
    path = store.path("staging.a", ALL, "f1")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"abc")
    assert store.find("staging.a", ALL, "f1") is None
    assert put(store, "f1", b"abcd").bytes == 4


def test_a_new_signature_of_equal_bytes_is_recorded_once_by_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(building(tmp_path), "f1").path
    os.utime(path, (1, 1))
    hashed: list[Path] = []

    def seen(one: Path, *about: Any) -> str | None:
        hashed.append(one)
        return problem_of(one, *about)

    monkeypatch.setattr(parts, "problem_of", seen)
    for open_store in (Store, building, building):  # a reader records nothing
        assert open_store(tmp_path).find("staging.a", ALL, "f1") is not None
    assert len(hashed) == 2, "an equal signature is believed"
    monkeypatch.setattr(parts, "problem_of", lambda *_: "rot")
    assert Store(tmp_path).find("staging.a", ALL, "f1") is not None
    assert Store(tmp_path, paranoid=True).find("staging.a", ALL, "f1") is None


def test_the_signature_of_a_part_is_that_of_the_moment_when_it_was_written_or_found(tmp_path: Path) -> None:
    """A part that is damaged later is then known as damaged: its file has another signature."""
    writer = building(tmp_path)
    path = put(writer, "f1").path
    finder = Store(tmp_path)
    assert finder.find("staging.a", ALL, "f1") is not None
    written = stamp(path.stat())
    path.write_bytes(b"abcd")
    assert written != stamp(path.stat())
    for store in (writer, finder):
        found = store.find("staging.a", ALL, "f1")
        assert found is not None
        assert found.stamp == written
    assert Store(tmp_path).find("staging.a", ALL, "f1") is None


def test_rows_of_parts_that_are_gone_are_forgotten_when_told_and_keep_the_inputs_until_then(tmp_path: Path) -> None:
    store = building(tmp_path)
    kept, gone = put(store, "f1"), put(store, "f2", partition=HOUR, notes={INPUTS: {"select": 2}})
    gone.path.unlink()
    assert Store(tmp_path).inputs("staging.a", HOUR, "f2") == {"select": 2}
    assert Store(tmp_path).inputs("staging.a", HOUR, "f1") is None
    building(tmp_path).forget_missing()
    assert Store(tmp_path).find_row("staging.a", ALL, "f1") == kept
    assert Store(tmp_path).find_row("staging.a", HOUR, "f2") is None
