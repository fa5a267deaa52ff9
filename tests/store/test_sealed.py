"""Sealed files are read as they were written, or not at all."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from warehouse.store.manifest import read_sealed, write_sealed

CONTENTS: list[object] = [
    None, True, 0, "", "ü\n\"'\\", [], {}, {"a": [1, 2.5, {"b": None}]}, '{"hash":"x","content":1}', "}\n",
]  # fmt: skip


@pytest.mark.parametrize("content", CONTENTS, ids=range(len(CONTENTS)))
def test_a_value_is_read_as_written(tmp_path: Path, content: object) -> None:
    path = tmp_path / "x.json"
    write_sealed(path, content)
    assert read_sealed(path) == content
    assert json.loads(path.read_text(encoding="utf-8"))["content"] == content, "any other program can read it"


def test_equal_values_are_equal_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_sealed(tmp_path / name, {"b": 1, "a": 2})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_any_other_file_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_sealed(path, {"rows": [1, 20, 300], "name": "ü"})
    whole = path.read_bytes()
    chance = random.Random(3)
    for place in range(len(whole)):
        for damaged in (
            whole[:place],
            whole[:place] + bytes([whole[place] ^ 1 << chance.randrange(8)]) + whole[place + 1 :],
            whole[:place] + b" " + whole[place:],
        ):
            path.write_bytes(damaged)
            with pytest.raises(ValueError):  # noqa: PT011 - UnicodeDecodeError, too
                read_sealed(path)
    for damaged in (whole + b"x", whole + whole, b"\0" * len(whole), b"[]", b"{}"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="damaged"):
            read_sealed(path)


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("pipe", "link", "missing", "."):
        with pytest.raises(OSError):  # noqa: PT011
            read_sealed(tmp_path / name)
