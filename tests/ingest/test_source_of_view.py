"""Source of a view over raw CSV files: one pattern for a folder of files that are alike, all others by name."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import cast

import duckdb
import pytest

from tests.tiny import HEADER, Tiny
from warehouse.engine.base import CsvFiles, Engine
from warehouse.engine.duckdb_sql import source_sql
from warehouse.formats import known_formats
from warehouse.ingest.inventory import RawFiles
from warehouse.store.parts import Store

NO_ENGINE = cast("Engine", None)


def source(tiny: Tiny) -> CsvFiles:
    """Return the source, after a second look, which knows the folders of the first one."""
    for _ in range(2):
        found = RawFiles([tiny.data], known_formats(), Store(tiny.target)).source_of_view(
            "raw.port_counters", NO_ENGINE
        )
    assert isinstance(found, CsvFiles)
    return found


def rows(tiny: Tiny) -> int:
    with duckdb.connect() as connection:
        return len(connection.execute(source_sql(source(tiny), globs=True)).fetchall())


def test_a_folder_of_files_that_are_alike_is_one_pattern(tiny: Tiny) -> None:
    found = source(tiny)
    folders = sorted({path.parent for path in tiny.data.rglob("*.csv")})
    assert sorted(found.globs) == [f"{folder}/*.csv" for folder in folders]
    assert found.paths == ()
    assert rows(tiny) == 2


@pytest.mark.parametrize("kind", ["torn", "columns", "note", "subfolder", "hidden", "not text", "empty"])
def test_files_of_other_folders_are_listed(tiny: Tiny, kind: str) -> None:
    path = tiny.file(0, "1,100,2,200,0,0.5")
    beside = path.with_name("Leaf-1_1_2.csv")
    other = path.read_text(encoding="utf-8").replace("/1:1", "/1:2")
    match kind:
        case "torn":
            path.write_text(path.read_text(encoding="utf-8") + "torn", encoding="utf-8")
        case "columns":
            beside.write_text("".join(f"{line},1\n" for line in other.splitlines()), encoding="utf-8")
        case "note":
            path.with_name("note.csv").write_text("not,ours\n1,2\n", encoding="utf-8")
        case "subfolder":
            path.with_name("sub.csv").mkdir()
        case "hidden":
            path.with_name(".note.csv").write_text(f"{HEADER}\n", encoding="utf-8")
        case "not text":
            Path(os.fsdecode(os.fsencode(path.parent) + b"/caf\xe9.csv")).write_text(other, encoding="utf-8")
        case "empty":
            beside.touch()
    found = source(tiny)
    assert len(found.globs) == 1, "the other hour"
    assert f"{path.parent}/" not in found.globs[0]
    assert rows(tiny) == 2


def test_an_ignored_duplicate_is_in_no_pattern(tiny: Tiny) -> None:
    path = tiny.file(0, "1,100,2,200,0,0.5")
    copy = path.parent.with_name("y") / path.name
    copy.parent.mkdir()
    shutil.copy(path, copy)
    assert rows(tiny) == 2


def test_a_single_file_as_data_folder_is_listed(tiny: Tiny) -> None:
    path = tiny.file(0, "1,100,2,200,0,0.5")
    raw_files = RawFiles([path], known_formats(), Store(tiny.target), cluster="c")
    found = raw_files.source_of_view("raw.port_counters", NO_ENGINE)
    assert isinstance(found, CsvFiles)
    assert (found.globs, found.paths) == ((), (path,))
