"""Parts are either complete or absent."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from warehouse.base import hashing
from warehouse.store import parts
from warehouse.store.layout import ALL
from warehouse.store.parts import Store
from warehouse.store.signatures import stamp


def make(content: bytes, rows: int = 3):  # type: ignore[no-untyped-def]
    """Return a writer of a part with these bytes and this row count."""

    def write(path: Path) -> int:
        path.write_bytes(content)
        return rows

    return write


def test_a_written_part_is_found_with_its_notes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    written = store.write("staging.a", ALL, "f1", make(b"abc"), {"note": [1, "ü"]})
    assert written.path == tmp_path / "parts" / "staging.a" / "all" / "f1.parquet"
    assert (written.rows, written.bytes, written.digest) == (3, 3, hashing.of_file(written.path))
    found = Store(tmp_path).find("staging.a", ALL, "f1")
    assert found == written
    assert found is not None
    assert found.notes == {"note": [1, "ü"]}


def test_a_part_of_another_name_is_not_found(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write("staging.a", "2024-05-23T16", "f1", make(b"abc"))
    assert store.find("staging.a", "2024-05-23T16", "f2") is None
    assert store.find("staging.a", "2024-05-23T17", "f1") is None
    assert store.find("staging.b", "2024-05-23T16", "f1") is None


@pytest.mark.parametrize(
    ("suffix", "content"),
    [
        (".parquet", None),
        (".json", None),
        (".parquet", "ab"),
        (".json", "{"),
        (".json", "[]"),
        (".json", "null"),
        (".json", '{"bytes": 3}'),
        (".json", ""),
    ],
)
def test_a_damaged_part_is_not_found(tmp_path: Path, suffix: str, content: str | None) -> None:
    store = Store(tmp_path)
    path = store.write("staging.a", ALL, "f1", make(b"abc")).path.with_suffix(suffix)
    path.unlink()
    if content is not None:
        path.write_text(content, encoding="utf-8")
    assert store.find("staging.a", ALL, "f1") is None
    store.write("staging.a", ALL, "f1", make(b"abc"))
    assert store.find("staging.a", ALL, "f1") is not None


def test_a_failed_part_leaves_no_file(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def fail(path: Path) -> int:
        path.write_bytes(b"half of it")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.write("staging.a", ALL, "f1", fail)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_part_that_fails_before_its_first_byte_raises_its_own_error(tmp_path: Path) -> None:
    def fail(_: Path) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path).write("staging.a", ALL, "f1", fail)


def test_parts_of_one_relation_are_beside_each_other_and_each_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bytes] = []
    monkeypatch.setattr(parts, "sync", lambda path: synced.append(path.read_bytes()))
    store = Store(tmp_path)
    store.write("staging.a", ALL, "f1", make(b"abc"), {"made_of": {"select": 1}})
    store.write("staging.a", ALL, "f2", make(b"defg"), {"made_of": {"select": 2}})
    assert synced == [b"abc", b"defg"]
    assert not (tmp_path / "damaged").exists()
    assert sorted(one["select"] for one in store.inputs_of_parts("staging.a", ALL)) == [1, 2]
    second = store.find_equivalent("staging.a", ALL, lambda made: made["select"] == 2)
    assert second == store.find("staging.a", ALL, "f2")
    assert second is not None
    second.path.write_bytes(b"damaged")
    assert store.find_equivalent("staging.a", ALL, lambda made: made["select"] == 2) is None
    assert store.notes("staging.a", ALL, "f3") == {}


def test_a_damaged_part_is_quarantined_if_someone_is_told(tmp_path: Path) -> None:
    path = Store(tmp_path).write("staging.a", ALL, "f1", make(b"abc")).path
    path.write_bytes(b"ab")
    assert Store(tmp_path).find("staging.a", ALL, "f1") is None
    assert path.exists()
    messages: list[str] = []
    assert Store(tmp_path, on_damage=messages.append).find("staging.a", ALL, "f1") is None
    assert not path.exists()
    assert (tmp_path / "damaged" / path.relative_to(tmp_path)).read_bytes() == b"ab"
    name = path.relative_to(tmp_path).as_posix()
    assert messages == [f"{name} is damaged (2 bytes, not 3): moved to damaged/, rebuilt"]


def test_a_new_signature_of_equal_bytes_is_recorded_once_by_a_build(tmp_path: Path) -> None:
    path = Store(tmp_path).write("staging.a", ALL, "f1", make(b"abc")).path
    notes = path.with_suffix(".json")
    os.utime(path, (1, 1))
    inode = notes.stat().st_ino
    assert Store(tmp_path).find("staging.a", ALL, "f1") is not None
    assert notes.stat().st_ino == inode
    build = Store(tmp_path, on_damage=lambda _: None)
    assert build.find("staging.a", ALL, "f1") is not None
    assert json.loads(notes.read_text())["stamp"][1] == 10**9
    recorded = notes.stat().st_ino, notes.stat().st_mtime_ns
    assert build.find("staging.a", ALL, "f1") is not None
    assert (notes.stat().st_ino, notes.stat().st_mtime_ns) == recorded


def test_bytes_are_hashed_only_if_the_signature_differs_or_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store(tmp_path).write("staging.a", ALL, "f1", make(b"abc"))
    monkeypatch.setattr(parts, "problem_of", lambda *_: "rot")
    assert Store(tmp_path).find("staging.a", ALL, "f1") is not None
    assert Store(tmp_path, paranoid=True).find("staging.a", ALL, "f1") is None


def test_notes_of_an_earlier_release_have_size_and_time_as_the_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Store(tmp_path).write("staging.a", ALL, "f1", make(b"abc")).path
    notes = path.with_suffix(".json")
    content = json.loads(notes.read_text())
    content["mtime_ns"] = content.pop("stamp")[1]
    notes.write_text(json.dumps(content))
    monkeypatch.setattr(parts, "problem_of", lambda *_: "rot")
    assert Store(tmp_path).find("staging.a", ALL, "f1") is not None


def test_odd_files_in_the_way_of_a_part_are_quarantined(tmp_path: Path) -> None:
    store = Store(tmp_path)
    odd = tmp_path / "parts" / "staging.a"
    odd.parent.mkdir()
    odd.touch()
    store.write("staging.a", ALL, "f1", make(b"abc"))
    path = store.path("staging.a", ALL, "f2")
    path.mkdir()
    path.with_suffix(".json").symlink_to("nowhere")
    assert store.write("staging.a", ALL, "f2", make(b"abc")) == store.find("staging.a", ALL, "f2")
    damaged = tmp_path / "damaged" / "parts"
    assert (damaged / "staging.a.1").is_file()  # made way for the folder
    assert (damaged / "staging.a" / ALL / "f2.parquet").is_dir()
    assert (damaged / "staging.a" / ALL / "f2.json").is_symlink()


def test_notes_added_later_are_found_with_the_part(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.annotate(store.write("staging.a", ALL, "f1", make(b"abc"), {"first": 1}), second=2)
    found = store.find("staging.a", ALL, "f1")
    assert found is not None
    assert found.notes == {"first": 1, "second": 2}


def seen(path: Path) -> list[int]:
    return stamp(path.stat())


def test_the_signature_of_a_part_is_that_of_the_moment_when_it_was_written_or_found(tmp_path: Path) -> None:
    """A part that is damaged later is then known as damaged: its file has another signature."""
    writer = Store(tmp_path)
    path = writer.write("staging.a", ALL, "f1", make(b"abc")).path
    finder, other = Store(tmp_path), Store(tmp_path)
    assert finder.find("staging.a", ALL, "f1") is not None
    written = seen(path)
    path.write_bytes(b"abcd")
    assert written != seen(path)
    assert writer.signature(str(path)) == finder.signature(str(path)) == written
    assert other.signature(str(path)) == seen(path)
    with pytest.raises(FileNotFoundError):
        other.signature(f"{path}.gone")


def test_a_signature_that_was_not_known_is_recorded_by_a_build_alone(tmp_path: Path) -> None:
    path = Store(tmp_path).write("staging.a", ALL, "f1", make(b"abc")).path
    os.utime(path, (1, 1))
    reader, build = Store(tmp_path), Store(tmp_path, on_damage=lambda _: None)
    for store in (reader, build):
        assert store.find("staging.a", ALL, "f1") is not None
    found = seen(path)
    os.utime(path, (2, 2))
    assert reader.signature(str(path)) == seen(path)
    assert build.signature(str(path)) == found


def test_a_part_with_its_signature_is_intact(tmp_path: Path) -> None:
    path = Store(tmp_path).write("staging.a", ALL, "f1", make(b"abc")).path
    store, written = Store(tmp_path), seen(path)
    assert not store.is_intact(str(path), [*written[:3], written[3] + 1])
    assert not store.is_intact(f"{path}.gone", written)
    os.utime(path, (1, 1))
    assert not store.is_intact(str(path), written)
    assert store.signature(str(path)) == seen(path), "it was not intact, so its signature is not kept"
    found = seen(path)
    assert store.is_intact(str(path), found)
    os.utime(path, (2, 2))
    assert store.signature(str(path)) == found


def test_size_and_time_in_old_notes_are_no_signature(tmp_path: Path) -> None:
    path = Store(tmp_path).write("staging.a", ALL, "f1", make(b"abc")).path
    notes = path.with_suffix(".json")
    content = json.loads(notes.read_text())
    content["mtime_ns"] = content.pop("stamp")[1]
    notes.write_text(json.dumps(content))
    store = Store(tmp_path)
    assert store.find("staging.a", ALL, "f1") is not None
    os.utime(path, (1, 1))
    assert store.signature(str(path)) == seen(path)


@pytest.mark.parametrize("share", ["1/2", None])
def test_a_part_of_a_share_is_on_disk_before_its_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: str | None
) -> None:
    done: list[str] = []
    replace = Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: done.append(f"flush {Path(f'/proc/self/fd/{handle}').readlink()}"))

    def rename(one: Path, to: Path) -> Path:
        done.append(f"rename {to}")
        return replace(one, to)

    monkeypatch.setattr(Path, "replace", rename)
    part = Store(tmp_path, share=share).write("staging.a", ALL, "f1", make(b"abc"))
    folder, notes = part.path.parent, part.path.with_suffix(".json")
    steps = [line if line.endswith((str(folder), ".parquet", ".json")) else line.rpartition("/")[2] for line in done]
    temporary, steps[0] = steps[0], "flush the part"
    assert temporary.startswith(".f1.parquet")
    if share is None:  # a build flushes folders before it publishes
        assert steps == ["flush the part", f"rename {part.path}", f"rename {notes}"]
        return
    assert steps[3].startswith(".f1.json")
    assert steps[:3] + steps[4:] == [
        "flush the part", f"rename {part.path}", f"flush {folder}", f"rename {notes}", f"flush {folder}",
    ]  # fmt: skip
