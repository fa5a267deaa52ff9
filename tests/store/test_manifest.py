"""A damaged manifest ends in one sentence, whatever its content."""

from __future__ import annotations

from pathlib import Path

import pytest

from warehouse.base.errors import WarehouseError
from warehouse.store.manifest import read_manifest


@pytest.mark.parametrize("text", ["null", "[]", "{", '{"build": 1}', '{"build": "x", "engine": "y", "parts": null}'])
def test_a_damaged_manifest_is_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(WarehouseError, match=r"manifest\.json cannot be read: it is damaged"):
        read_manifest(path)


def test_a_missing_manifest_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="No such file or directory"):
        read_manifest(tmp_path / "manifest.json")
