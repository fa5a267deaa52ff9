"""Tables of small parts have the rows of the parts in the same order, and follow every change of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from warehouse.base import hashing
from warehouse.engine.base import Parts
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.duckdb_sql import held_as, source_sql
from warehouse.graph import small_parts
from warehouse.graph.small_parts import FILE, NAMES, SmallParts
from warehouse.project.contract import Column
from warehouse.store.part_records import Part

COLUMNS = (Column("hour_utc", "TIMESTAMP"), Column("bytes", "BIGINT"))
RELATION = "metrics.hour"
HOURS = [f"2024-05-18T{hour:02}" for hour in range(12)]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[DuckDBEngine]:
    with closing(DuckDBEngine(threads=2, memory_bytes=2**29, spill=tmp_path / "spill")) as engine:
        yield engine


def part(folder: Path, partition: str, first: int = 0, count: int = 3) -> Part:
    """Return a part of some rows in descending order, so that sorting would show."""
    path = folder / "parts" / RELATION / partition / f"{first}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = f"SELECT TIMESTAMP '{partition}:00:00' AS hour_utc, {first} - i AS bytes FROM range({count}) AS t (i)"
    duckdb.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    return Part(RELATION, partition, "f", hashing.of_file(path), count, path.stat().st_size, str(path))


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Part]:
    folder = tmp_path_factory.mktemp("parts")
    return [part(folder, hour, count=number % 4) for number, hour in enumerate(HOURS)]


def files_of(some: Sequence[Part]) -> tuple[str, ...]:
    return tuple(one.file for one in some)


def is_held(engine: DuckDBEngine, some: Sequence[Part]) -> bool:
    return held_as(files_of(some)) in engine.held


def check(engine: DuckDBEngine, some: Sequence[Part]) -> None:
    """Check that the engine reads these parts from their table, and that it has their rows in order."""
    assert is_held(engine, some)
    with engine.scratch({RELATION: Parts(COLUMNS, files_of(some))}) as scratch:
        found = scratch.rows(f"FROM {RELATION}")
    assert found == duckdb.execute(f"FROM read_parquet({list(files_of(some))!r})").fetchall()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Files that are read into the tables."""
    found: list[str] = []
    usual = source_sql

    def noted(source: Parts) -> str:
        found.extend(map(str, source.paths))
        return usual(source)

    monkeypatch.setattr(small_parts, "source_sql", noted)
    return found


def build(target: Path, some: Sequence[Part], *, fresh: bool = False, fails: bool = False) -> None:
    """Read some parts in a build of its own."""
    with (
        closing(DuckDBEngine(threads=2, memory_bytes=2**29, spill=target / "spill")) as engine,
        closing(SmallParts(engine, target, fresh=fresh)) as small,
    ):
        small.hold(RELATION, COLUMNS, some)
        check(engine, some)
        if not fails:
            small.keep()


Change = Callable[[list[Part], Callable[[str], Part]], list[Part]]
CHANGES: dict[str, tuple[Change, int]] = {
    "no change": (lambda some, new: some, 0),
    "a later hour": (lambda some, new: [*some, new("2024-05-19T00")], 1),
    "an earlier hour": (lambda some, new: [new("2024-05-17T00"), *some], 1),
    "a corrected hour": (lambda some, new: [*some[:5], new(HOURS[5]), *some[6:]], 1),
    "a longer first hour": (lambda some, new: [new(HOURS[0]), *some[1:]], 1),
    "a longer last hour": (lambda some, new: [*some[:-1], new(HOURS[-1])], 1),
    "an hour between": (lambda some, new: [*some[:5], *some[6:]], 0),
    "a hour less at the end": (lambda some, new: some[:-1], 0),
    "two corrected hours": (lambda some, new: [*some[:3], new(HOURS[3]), *some[4:7], new(HOURS[7]), *some[8:]], 5),
    "others": (lambda some, new: [new(hour) for hour in HOURS], len(HOURS)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_table_follows_its_parts_and_few_files_are_read(
    tmp_path: Path, parts: list[Part], change: str, opened: list[str]
) -> None:
    build(tmp_path, parts)
    assert opened == list(files_of(parts))
    changed, count = CHANGES[change]
    opened.clear()
    later = changed(parts, lambda hour: part(tmp_path, hour, first=9, count=5))
    for _ in range(2):
        build(tmp_path, later)
        assert len(opened) == count
    opened.clear()
    build(tmp_path, parts)
    assert len(opened) <= len(parts)


def test_parts_that_change_within_a_build_are_read_again(
    engine: DuckDBEngine, tmp_path: Path, parts: list[Part]
) -> None:
    changed = [*parts[:5], part(tmp_path, HOURS[5], first=9), *parts[6:]]
    with closing(SmallParts(engine, tmp_path)) as small:
        small.hold(RELATION, COLUMNS, parts)
        small.hold(RELATION, COLUMNS, changed)
        check(engine, changed)
        assert not is_held(engine, parts)


def test_another_type_of_a_column_makes_the_table_again(tmp_path: Path, parts: list[Part], opened: list[str]) -> None:
    build(tmp_path, parts)
    opened.clear()
    with (
        closing(DuckDBEngine(threads=2, memory_bytes=2**29, spill=tmp_path / "spill")) as engine,
        closing(SmallParts(engine, tmp_path)) as small,
    ):
        small.hold(RELATION, (COLUMNS[0], Column("bytes", "INTEGER")), parts)
    assert len(opened) == len(parts)


def damaged(target: Path) -> None:
    content = bytearray((target / FILE).read_bytes())
    content[len(content) // 2] ^= 1
    (target / FILE).write_bytes(content)


def folder(target: Path) -> None:
    (target / FILE).unlink()
    (target / FILE).mkdir()


def pipe(target: Path) -> None:
    (target / NAMES).unlink()
    os.mkfifo(target / NAMES)


SPOILED: dict[str, Callable[[Path], object]] = {
    "damaged": damaged,
    "gone": lambda target: (target / FILE).unlink(),
    "a folder": folder,
    "no names": lambda target: (target / NAMES).unlink(),
    "names that are a pipe": pipe,
    "other names": lambda target: (target / NAMES).write_text("[]"),
    "of another engine": lambda target: (target / NAMES).write_text(
        (target / NAMES).read_text().replace(duckdb.__version__, "1.0.0")
    ),
    "with a log of a killed build": lambda target: Path(f"{target / FILE}.wal").write_bytes(b"x"),
}


@pytest.mark.parametrize("how", SPOILED)
def test_a_file_that_is_not_as_it_was_kept_is_made_again(
    tmp_path: Path, parts: list[Part], how: str, opened: list[str]
) -> None:
    build(tmp_path, parts)
    SPOILED[how](tmp_path)
    opened.clear()
    build(tmp_path, parts)
    assert len(opened) == (0 if "log" in how else len(parts))


def test_after_a_failed_build_and_in_a_paranoid_one_the_file_is_made_again(
    tmp_path: Path, parts: list[Part], opened: list[str]
) -> None:
    build(tmp_path, parts)
    build(tmp_path, parts, fails=True)
    assert opened == list(files_of(parts))
    for options in ({}, {"fresh": True}):
        opened.clear()
        build(tmp_path, parts, **options)
        assert len(opened) == len(parts)


def test_rows_that_are_still_in_the_log_of_the_file_are_not_noted(
    engine: DuckDBEngine, tmp_path: Path, parts: list[Part]
) -> None:
    build(tmp_path, parts[:6])
    with closing(SmallParts(engine, tmp_path)) as small, closing(engine.connection()) as reader:
        small.hold(RELATION, COLUMNS, parts)
        reader.execute(f'BEGIN; FROM _small_parts.main."{RELATION}"')  # with it, DuckDB leaves the log
        small.keep()
        assert Path(f"{tmp_path / FILE}.wal").exists()
        assert not (tmp_path / NAMES).exists()


def test_few_or_large_parts_and_those_of_a_share_are_read_as_they_are(
    engine: DuckDBEngine, tmp_path: Path, parts: list[Part], monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(SmallParts(engine, tmp_path)) as small, closing(SmallParts(engine, None)) as of_share:
        small.hold(RELATION, COLUMNS, parts[:3])
        of_share.hold(RELATION, COLUMNS, parts)
        monkeypatch.setattr(small_parts, "SMALL_BYTES", 100)
        small.hold(RELATION, COLUMNS, parts)
    assert not engine.held
    assert not (tmp_path / FILE).exists()


def test_on_a_full_disk_the_parts_are_read(engine: DuckDBEngine, tmp_path: Path, parts: list[Part]) -> None:
    (tmp_path / "cache").touch()  # no folder can be made
    with closing(SmallParts(engine, tmp_path)) as small:
        small.hold(RELATION, COLUMNS, parts)
        assert not is_held(engine, parts)
        small.keep()


def test_merged_files_of_an_earlier_release_are_removed(tmp_path: Path, parts: list[Part]) -> None:
    (tmp_path / "cache" / "merged" / RELATION).mkdir(parents=True)
    build(tmp_path, parts)
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["small_parts.duckdb", "small_parts.json"]
