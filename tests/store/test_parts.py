"""Parts are either complete or absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from warehouse.base import hashing
from warehouse.store.layout import ALL
from warehouse.store.parts import Store


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


def test_notes_added_later_are_found_with_the_part(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.annotate(store.write("staging.a", ALL, "f1", make(b"abc"), {"first": 1}), second=2)
    found = store.find("staging.a", ALL, "f1")
    assert found is not None
    assert found.notes == {"first": 1, "second": 2}
