"""Day files have the rows of a day's parts in the same order, and follow every change of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from warehouse.base import hashing
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.graph import day_files
from warehouse.graph.day_files import DayFiles
from warehouse.project.contract import Column
from warehouse.store.part_records import Part

COLUMNS = (Column("hour_utc", "TIMESTAMP"), Column("bytes", "BIGINT"))
RELATION = "metrics.hour"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDBEngine]:
    with closing(DuckDBEngine(threads=2, memory_bytes=2**29, spill=tmp_path_factory.mktemp("spill"))) as engine:
        yield engine


@pytest.fixture
def days(engine: DuckDBEngine, tmp_path: Path) -> DayFiles:
    return DayFiles(engine, tmp_path / "days")


def part(folder: Path, partition: str, first: int = 0) -> Part:
    """Return a part of three rows, in descending order, so that sorting would show."""
    path = folder / "parts" / RELATION / partition / f"{first}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = f"SELECT TIMESTAMP '{partition}:00:00' AS hour_utc, {first} - i AS bytes FROM range(3) AS t (i)"
    duckdb.sql(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    return Part(RELATION, partition, "f", hashing.of_file(path), 3, path.stat().st_size, path)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Part]:
    """Parts of two days and an hour."""
    folder = tmp_path_factory.mktemp("parts")
    hours = [f"2024-05-{23 + hour // 24}T{hour % 24:02}" for hour in range(49)]
    return [part(folder, hour) for hour in hours]


def rows(paths: tuple[Path, ...]) -> list[tuple[object, ...]]:
    listed = ", ".join(f"'{path}'" for path in paths)
    return duckdb.execute(f"FROM read_parquet([{listed}])").fetchall()


def test_whole_days_are_one_file_each_with_equal_rows_in_order(days: DayFiles, parts: list[Part]) -> None:
    found = days.paths(RELATION, COLUMNS, parts)
    assert [path.name[:10] for path in found[:2]] == ["2024-05-23", "2024-05-24"]
    assert found[2:] == (parts[-1].path,)  # the last day is not over
    assert rows(found) == rows(tuple(one.path for one in parts))


def test_known_day_files_are_not_written_again(days: DayFiles, parts: list[Part]) -> None:
    found = days.paths(RELATION, COLUMNS, parts)
    before = [path.stat().st_mtime_ns for path in found]
    assert days.paths(RELATION, COLUMNS, parts) == found
    assert [path.stat().st_mtime_ns for path in found] == before


def test_another_part_gives_another_day_file_in_place_of_the_old_one(
    days: DayFiles, parts: list[Part], tmp_path: Path
) -> None:
    first = days.paths(RELATION, COLUMNS, parts)
    changed = [*parts[:5], part(tmp_path, parts[5].partition, first=9), *parts[6:]]
    found = days.paths(RELATION, COLUMNS, changed)
    assert found[0] != first[0]
    assert found[1:] == first[1:]
    assert rows(found) == rows(tuple(one.path for one in changed))
    assert not first[0].exists()


def test_another_type_of_a_column_gives_another_day_file(days: DayFiles, parts: list[Part]) -> None:
    columns = (COLUMNS[0], Column("bytes", "DOUBLE"))
    assert days.paths(RELATION, columns, parts)[0] != days.paths(RELATION, COLUMNS, parts)[0]


@pytest.mark.parametrize("content", [b"", b"x" * 100])
def test_a_damaged_day_file_is_written_again(content: bytes, days: DayFiles, parts: list[Part]) -> None:
    found = days.paths(RELATION, COLUMNS, parts)
    found[0].write_bytes(content)
    again = days.paths(RELATION, COLUMNS, parts)
    assert rows(again) == rows(tuple(one.path for one in parts))


def test_few_or_large_parts_and_those_without_an_hour_are_read_as_they_are(
    days: DayFiles, parts: list[Part], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_they_are(some: list[Part]) -> bool:
        return days.paths(RELATION, COLUMNS, some) == tuple(one.path for one in some)

    assert as_they_are(parts[:12])
    assert as_they_are([*parts[:11], *parts[24:35], parts[48]])  # 11 hours of each day
    whole = Part(RELATION, "all", "f", "d", 3, 1, tmp_path / "all.parquet")
    assert as_they_are([whole])
    groups = [Part(RELATION, f"file_group={n}", "f", "d", 3, 1, tmp_path / f"{n}.parquet") for n in range(20)]
    assert as_they_are(groups)
    monkeypatch.setattr(day_files, "MOST_BYTES", 1000)
    assert as_they_are(parts)
    assert not (tmp_path / "days").exists()
