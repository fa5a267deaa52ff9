"""The table of all raw files is updated folder by folder, and equals one that is written from nothing."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from tests.tiny import Tiny
from warehouse.formats.base import RawFile
from warehouse.history.clean import clean
from warehouse.ingest import files_table
from warehouse.ingest.schemas import file_row
from warehouse.runner import catalog_entries

ROWS = "FROM raw.files"


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Files whose row was written anew."""
    seen: list[str] = []

    def noted(file: RawFile) -> dict[str, object]:
        seen.append(file.release_path)
        return file_row(file)

    monkeypatch.setattr(files_table, "file_row", noted)
    return seen


@pytest.fixture
def hours(tiny: Tiny) -> Tiny:
    """A model over all raw files, and a published build of four hours."""
    tiny.model(
        "staging.listed", "SELECT release_path, status FROM raw.files", {"release_path": "VARCHAR", "status": "VARCHAR"}
    )
    for hour in (2, 3):
        tiny.file(hour, "1,100,2,200,0,0.5")
    assert tiny.build().status == 0
    return tiny


def equals_a_new_one(tiny: Tiny) -> bool:
    """Return True if the rows and their order are those of a build from nothing."""
    other = Tiny(tiny.base / "other")
    other.folder, other.data = tiny.folder, tiny.data
    assert other.build("--project", tiny.folder).status == 0
    rows = tiny.ask(ROWS)
    return rows == other.ask(ROWS) and rows == sorted(rows, key=lambda row: str(row[1]))


def test_a_new_hour_describes_its_own_files_alone(hours: Tiny, described: list[str]) -> None:
    hours.file(4, "1,100,2,200,0,0.5")
    assert hours.build().status == 0
    assert [Path(name).parent.parent.name for name in described] == ["2024052404"]
    assert equals_a_new_one(hours)


def test_changed_and_removed_folders_are_followed(hours: Tiny, described: list[str]) -> None:
    hours.file(0, "1,100,2,200,0,0.5", "1,101,2,200,0,0.5")
    shutil.rmtree(hours.data / "c" / "trafficinfo" / "2024052401")
    assert hours.build().status == 0
    assert [Path(name).parent.parent.name for name in described] == ["2024052400"]
    assert equals_a_new_one(hours)


def test_a_new_neighbor_that_no_format_knows_is_listed(hours: Tiny) -> None:
    (hours.data / "c" / "trafficinfo" / "2024052401" / "x" / "note.bin").write_bytes(b"")
    assert hours.build().status == 0
    assert hours.ask(f"SELECT count(*) {ROWS} WHERE status = 'unknown'") == [(1,)]
    assert equals_a_new_one(hours)


def test_a_repaired_file_is_listed_with_its_copy(hours: Tiny) -> None:
    hours.file(1, "1,100,2,200,0,0.5", "torn")
    assert hours.build().status == 0
    assert hours.ask(f"SELECT count(*) {ROWS} WHERE status = 'partial' AND read_path <> path") == [(1,)]


def test_members_of_an_archive_follow_it(hours: Tiny) -> None:
    with zipfile.ZipFile(hours.data / "more.zip", "w") as packed:
        packed.write(hours.file(5, "1,100,2,200,0,0.5"), "c/trafficinfo/2024052406/x/Leaf-1_1_1.csv")
    assert hours.build().status == 0
    hours.file(7, "1,100,2,200,0,0.5")
    assert hours.build().status == 0
    other = Tiny(hours.base / "other")
    other.folder, other.data = hours.folder, hours.data
    assert other.build("--project", hours.folder).status == 0
    shown = "SELECT release_path, status FROM raw.files"
    assert hours.ask(shown) == other.ask(shown)


def test_of_many_files_those_of_new_folders_are_a_second_part(
    hours: Tiny, described: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (files_table, catalog_entries):
        monkeypatch.setattr(module, "MANY_FILES", 0)
    monkeypatch.setattr(files_table, "_MOST_LATER", 1)
    parts = hours.target / "parts" / "raw.files" / "all"
    for hour in (4, 5):  # the second part grows until it has as many folders as the first one
        hours.file(hour, "1,100,2,200,0,0.5")
        assert hours.build().status == 0
    assert [Path(name).parent.parent.name for name in described] == ["2024052404", "2024052404", "2024052405"]
    assert len(list(parts.glob("*.parquet"))) == 3
    assert hours.ask("SELECT kind FROM meta.models WHERE model = 'raw.files'") == [("raw",)]
    clean(hours.target, keep=1, dry_run=False)
    assert len(list(parts.glob("*.parquet"))) == 2, "a part that the view reads is kept"
    assert len(hours.ask(ROWS)) == len({row[1] for row in hours.ask(ROWS)}) == 6
    hours.file(0, "1,100,2,200,0,0.5", "1,101,2,200,0,0.5")
    assert hours.build().status == 0
    assert len(list(parts.glob("*.parquet"))) == 3
    assert equals_a_new_one(hours)


def test_rows_that_do_not_add_up_are_written_from_nothing(hours: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_table, "_update", lambda *_: 0)
    hours.file(4, "1,100,2,200,0,0.5")
    assert hours.build().status == 0
    assert hours.ask(f"SELECT count(*) {ROWS}") == [(5,)]


def test_a_copied_target_lists_its_own_copies(hours: Tiny) -> None:
    moved = hours.base / "moved"
    shutil.copytree(hours.target, moved)
    hours.file(1, "1,100,2,200,0,0.5", "torn")
    other = Tiny(hours.base / "again")
    other.folder, other.data, other.target = hours.folder, hours.data, moved
    assert other.build("--project", hours.folder).status == 0
    copies = other.ask(f"SELECT read_path {ROWS} WHERE status = 'partial'")
    assert all(str(path).startswith(str(moved)) for (path,) in copies)
