"""A manifest is read back, its unchanged lines are copied, and a damaged one ends in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from warehouse.base.errors import WarehouseError
from warehouse.store.manifest import Manifest, read_head, read_manifest
from warehouse.store.part_records import Part

HEAD = Manifest("b", "duckdb", (), (), ("/data",), "2024-05-23T16:00:00", number=7)


def part(relation: str, partition: str, fingerprint: str = "f") -> Part:
    file = f"/target/parts/{relation}/{partition}/{fingerprint}.parquet"
    return Part(relation, partition, fingerprint, f"digest of {fingerprint}", 3, 5, file)


PARTS = [
    part("metrics.b", "2024-05-23T17"),
    part("metrics.a", "all"),
    part("metrics.a", "2024-05-24T00"),
    part("metrics.c", "file_group=x"),
    part("metrics.a", "2024-05-23T16"),
]


@pytest.mark.parametrize("text", ["null", "[]", "{", '{"build": 1}', '{"build": "x", "engine": "y", "parts": null}'])
def test_a_damaged_manifest_is_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(text, encoding="utf-8")
    for read in (read_manifest, read_head):
        with pytest.raises(WarehouseError, match=r"manifest\.json cannot be read: it is damaged"):
            read(path)


def test_a_missing_manifest_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="No such file or directory"):
        read_manifest(tmp_path / "manifest.json")


def test_a_manifest_is_read_back_by_day_and_its_head_alone(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    HEAD.write(path, PARTS)
    found = read_manifest(path)
    assert [(one["model"], one["partition"]) for one in found.parts] == [
        ("metrics.a", "2024-05-23T16"),
        ("metrics.b", "2024-05-23T17"),
        ("metrics.a", "2024-05-24T00"),
        ("metrics.a", None),
        ("metrics.c", "file_group=x"),
    ]
    assert found.parts[1] == {
        "model": "metrics.b", "partition": "2024-05-23T17", "fingerprint": "f", "digest": "digest of f",
        "rows": 3, "bytes": 5, "path": "parts/metrics.b/2024-05-23T17/f.parquet",
    }  # fmt: skip
    assert list(found.blocks) == ["2024-05-23", "2024-05-24", "all"]
    assert read_head(path) == found._replace(parts=())
    assert found._replace(parts=(), blocks={}) == HEAD._replace(blocks={})


def test_lines_of_unchanged_days_are_copied_and_others_written(tmp_path: Path) -> None:
    first, second, fresh = (tmp_path / name for name in ("first", "second", "fresh"))
    HEAD.write(first, PARTS)
    later = [*PARTS[1:], part("metrics.b", "2024-05-23T17", "other")]
    marked = first.read_bytes().replace(b'"rows":3', b'"rows":4')  # of all lines, so that copies can be told
    first.write_bytes(marked)
    HEAD.write(second, later, first)
    HEAD.write(fresh, later)
    assert second.read_bytes() == fresh.read_bytes(), "a changed line is not copied"
    HEAD.write(first, PARTS)
    HEAD.write(second, later, first)
    assert second.read_bytes() == fresh.read_bytes()
    copied = set(first.read_text().splitlines()) & set(second.read_text().splitlines())
    assert len(copied) == 3  # two lines of parts, and the end


def test_a_manifest_of_an_earlier_release_is_read(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    entry = {"model": "metrics.a", "partition": None, "fingerprint": "f", "digest": "d", "rows": 1, "bytes": 1,
             "path": "parts/metrics.a/all/f.parquet"}  # fmt: skip
    content = {"build": "b", "engine": "e", "parts": [entry], "stale": [], "data": [], "published_utc": ""}
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
    assert read_head(path).build == read_manifest(path).build == "b"
    assert read_manifest(path).parts == (entry,)
    HEAD.write(tmp_path / "next.json", PARTS, path)
    assert len(read_manifest(tmp_path / "next.json").parts) == len(PARTS)


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
        lambda lines: [lines[0], lines[1], *lines[1:]],
        lambda lines: [*lines[:2], lines[2].replace(b'"rows":3', b'"rows":4'), *lines[3:]],
    ],
    ids=["a day is missing", "days are swapped", "a day is there twice", "another number"],
)
def test_a_manifest_with_other_lines_than_written_is_damaged(
    tmp_path: Path, damage: Callable[[list[bytes]], list[bytes]]
) -> None:
    path = tmp_path / "manifest.json"
    HEAD.write(path, PARTS)
    whole = path.read_bytes()
    path.write_bytes(b"".join(damage(whole.splitlines(keepends=True))))
    assert path.read_bytes() != whole
    with pytest.raises(WarehouseError, match=r"manifest\.json cannot be read: it is damaged"):
        read_manifest(path)


def test_a_manifest_without_parts_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    HEAD.write(path)
    assert read_manifest(path)._replace(blocks={}) == HEAD._replace(blocks={})
