"""A manifest is read back as it was written, and a damaged one ends in one sentence."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from warehouse.base.errors import WarehouseError
from warehouse.store.manifest import (
    Manifest,
    Part,
    build_id,
    entry_of,
    read_manifest,
    write_sealed,
)

TARGET = Path("/target")
HEAD = Manifest("b", "duckdb", [], [], ["/data"], "2024-05-23T16:00:00", number=7)


def part(relation: str, partition: str) -> Part:
    file = f"{TARGET}/parts/{relation}/{partition}/f.parquet"
    return Part(relation, partition, "f", f"digest of {relation}", 3, 5, file, [5, 1, 2, 3], {})


PARTS = [part("metrics.b", "2024-05-23T17"), part("metrics.a", "all"), part("metrics.d", "2024-05-24T00/switch=Leaf-1")]


def written(path: Path) -> Manifest:
    manifest = HEAD._replace(parts=[entry_of(one, TARGET) for one in PARTS])
    manifest.write(path)
    return manifest


def test_a_missing_or_damaged_manifest_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    with pytest.raises(WarehouseError, match="No such file or directory"):
        read_manifest(path)
    damage = pytest.raises(WarehouseError, match=r"manifest\.json cannot be read: it is damaged")
    contents: list[object] = [None, [], {"build": "x"}, {**HEAD._asdict(), "other": 1}]
    for content in contents:
        write_sealed(path, content)
        with damage:
            read_manifest(path)
    written(path)
    whole = path.read_bytes()
    chance = random.Random(1)
    for _ in range(200):
        place = chance.randrange(len(whole))
        flipped = whole[:place] + bytes([whole[place] ^ 1 << chance.randrange(8)]) + whole[place + 1 :]
        for text in (flipped, whole[:place]):
            path.write_bytes(text)
            with damage:
                read_manifest(path)


def test_the_build_id_depends_on_content_contracts_and_engine_alone() -> None:
    found = build_id(PARTS, ["contract"], "duckdb 2")
    elsewhere = [one._replace(file=f"/other/{one.file}", stamp=[1, 1, 1, 1], fingerprint="g") for one in PARTS]
    assert build_id(elsewhere[::-1], ["contract"], "duckdb 2") == found
    assert build_id([PARTS[0]._replace(digest="other"), *PARTS[1:]], ["contract"], "duckdb 2") != found
    assert build_id(PARTS, ["another"], "duckdb 2") != found
    assert build_id(PARTS, ["contract"], "duckdb 3") != found
