"""Merged files have the rows of their parts in the same order, and follow every change of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from warehouse.base import hashing
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.graph import merged_parts
from warehouse.graph.merged_parts import MergedParts
from warehouse.project.contract import Column
from warehouse.store.part_records import Part

COLUMNS = (Column("hour_utc", "TIMESTAMP"), Column("bytes", "BIGINT"))
RELATION = "metrics.hour"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDBEngine]:
    with closing(DuckDBEngine(threads=2, memory_bytes=2**29, spill=tmp_path_factory.mktemp("spill"))) as engine:
        yield engine


@pytest.fixture
def merged(engine: DuckDBEngine, tmp_path: Path) -> MergedParts:
    return MergedParts(engine, tmp_path / "merged")


def part(folder: Path, partition: str, first: int = 0) -> Part:
    """Return a part of three rows, in descending order, so that sorting would show."""
    path = folder / "parts" / RELATION / partition / f"{first}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = f"SELECT TIMESTAMP '{partition}:00:00' AS hour_utc, {first} - i AS bytes FROM range(3) AS t (i)"
    duckdb.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    return Part(RELATION, partition, "f", hashing.of_file(path), 3, path.stat().st_size, str(path))


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Part]:
    """Parts from 2024-05-18T00 to 2024-05-22T13."""
    folder = tmp_path_factory.mktemp("parts")
    hours = [f"2024-05-{18 + hour // 24}T{hour % 24:02}" for hour in range(4 * 24 + 14)]
    return [part(folder, hour) for hour in hours]


def rows(paths: Sequence[str]) -> list[tuple[object, ...]]:
    listed = ", ".join(f"'{path}'" for path in paths)
    return duckdb.execute(f"FROM read_parquet([{listed}])").fetchall()


def later_build(merged: MergedParts) -> MergedParts:
    return MergedParts(merged._engine, merged._folder)


def names(paths: Sequence[str]) -> list[str]:
    return [Path(path).name.partition(".")[0] for path in paths]


def test_blocks_but_the_last_are_one_file_each_with_equal_rows_in_order(merged: MergedParts, parts: list[Part]) -> None:
    found = merged.paths(RELATION, COLUMNS, parts)
    # two days are too few to merge, and so are the first days of a block of ten
    assert names(found[:5]) == ["2024-05-18", "2024-05-19", "2024-05-20", "2024-05-21", "2024-05-22T0"]
    assert found[5:] == tuple(one.file for one in parts[-4:])
    assert rows(found) == rows([one.file for one in parts])


def test_ten_days_are_one_file(merged: MergedParts, parts: list[Part], tmp_path: Path) -> None:
    later = [*parts[2 * 24 :], part(tmp_path, "2024-05-30T00")]
    found = merged.paths(RELATION, COLUMNS, later)
    assert names(found) == ["2024-05-2", "0"]
    assert rows(found) == rows([one.file for one in later])


def test_known_files_are_not_written_again(merged: MergedParts, parts: list[Part]) -> None:
    found = merged.paths(RELATION, COLUMNS, parts)
    before = [Path(path).stat().st_mtime_ns for path in found]
    assert later_build(merged).paths(RELATION, COLUMNS, parts) == found
    assert [Path(path).stat().st_mtime_ns for path in found] == before


def test_another_part_gives_another_file_in_place_of_the_old_one(
    merged: MergedParts, parts: list[Part], tmp_path: Path
) -> None:
    first = merged.paths(RELATION, COLUMNS, parts)
    changed = [*parts[:5], part(tmp_path, parts[5].partition, first=9), *parts[6:]]
    found = merged.paths(RELATION, COLUMNS, changed)
    assert found[0] != first[0]
    assert found[1:] == first[1:]
    assert rows(found) == rows([one.file for one in changed])
    assert not Path(first[0]).exists()


def test_another_type_of_a_column_gives_another_file(merged: MergedParts, parts: list[Part]) -> None:
    columns = (COLUMNS[0], Column("bytes", "DOUBLE"))
    assert merged.paths(RELATION, columns, parts)[0] != merged.paths(RELATION, COLUMNS, parts)[0]


@pytest.mark.parametrize("content", [b"", b"x" * 100])
def test_a_damaged_file_is_written_again(content: bytes, merged: MergedParts, parts: list[Part]) -> None:
    found = merged.paths(RELATION, COLUMNS, parts)
    Path(found[0]).write_bytes(content)
    again = later_build(merged).paths(RELATION, COLUMNS, parts)
    assert rows(again) == rows([one.file for one in parts])


def test_few_or_large_parts_and_those_without_an_hour_are_read_as_they_are(
    merged: MergedParts, parts: list[Part], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_they_are(some: list[Part]) -> bool:
        return merged.paths(RELATION, COLUMNS, some) == tuple(one.file for one in some)

    assert as_they_are(parts[:10])  # the last block
    assert as_they_are(parts[::24])  # one hour a day
    whole = Part(RELATION, "all", "f", "d", 3, 1, str(tmp_path / "all.parquet"))
    assert as_they_are([whole])
    groups = [Part(RELATION, f"file_group={n}", "f", "d", 3, 1, str(tmp_path / f"{n}.parquet")) for n in range(20)]
    assert as_they_are(groups)
    monkeypatch.setattr(merged_parts, "MOST_BYTES", 1000)
    assert as_they_are(parts)
    assert not (tmp_path / "merged").exists()


def _folder_for_file(folder: Path) -> None:
    for path in list((folder / RELATION).glob("*.parquet")):
        path.unlink()
        path.mkdir()
        (path / "something").touch()


def _file_for_folder(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.touch()


def _file_for_relation(folder: Path) -> None:
    shutil.rmtree(folder / RELATION)
    (folder / RELATION).touch()


@pytest.mark.parametrize("spoil", [_folder_for_file, _file_for_folder, _file_for_relation])
def test_what_is_in_the_way_of_a_merged_file_is_removed(
    merged: MergedParts, parts: list[Part], spoil: Callable[[Path], None]
) -> None:
    first = merged.paths(RELATION, COLUMNS, parts)
    spoil(merged._folder)
    again = later_build(merged).paths(RELATION, COLUMNS, parts)
    assert again == first
    assert rows(again) == rows([part.file for part in parts])
