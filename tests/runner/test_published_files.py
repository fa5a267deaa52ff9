"""The files of a published build: complete and synced before the rename, and no file of an earlier build changed."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from tests.tiny import Tiny
from warehouse.runner import publish
from warehouse.store import atomic
from warehouse.store.layout import CATALOG

COLUMNS = {"port": "VARCHAR", "speed": "BIGINT"}


def builds(tiny: Tiny, count: int, first: int = 1) -> list[Path]:
    """Build so many times, each time with other rows; return the folders of the builds."""
    found = []
    for speed in range(first, first + count):
        tiny.reference("speeds", COLUMNS, f"eth0,{speed}")
        assert tiny.build("--keep", "9").status == 0
        found.append(tiny.target / "builds" / current(tiny))
    return found


def current(tiny: Tiny) -> str:
    return (tiny.target / "builds" / "current").read_text(encoding="utf-8").strip()


def hidden(tiny: Tiny) -> list[Path]:
    return [*tiny.target.rglob(".*"), *(tiny.target / "tmp").iterdir()]


def test_the_folder_of_a_build_is_complete_and_its_catalog_is_read_only(tiny: Tiny) -> None:
    (folder,) = builds(tiny, 1)
    assert sorted(path.name for path in folder.iterdir()) == [CATALOG, "files.json", "manifest.json"]
    assert stat.S_IMODE((folder / CATALOG).stat().st_mode) == 0o444
    assert (tiny.target / "warehouse.duckdb").samefile(folder / CATALOG)
    assert hidden(tiny) == []


def test_every_file_and_folder_is_synced_before_the_rename_that_needs_it(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    replace = Path.replace

    def renamed(path: Path, to: Path) -> Path:
        events.append(f"rename {to.name}")
        return replace(path, to)

    monkeypatch.setattr(publish, "sync", lambda path: events.append(path.name))
    monkeypatch.setattr(Path, "replace", renamed)
    (folder,) = builds(tiny, 1)
    at = events.index(f"rename {folder.name}")
    needed = {CATALOG, "files.json", "manifest.json", "all", "staging.ports", "metrics.total", "parts"}
    assert needed <= set(events[:at])
    assert events[at + 1 :] == ["builds", "rename warehouse.duckdb", tiny.target.name, "rename current"]


def test_a_publish_that_failed_does_not_stop_the_next_one(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(publish, "write_listing", full)
        assert tiny.build().status == 2
    assert not (tiny.target / "warehouse.duckdb").exists()
    assert tiny.build().status == 0
    assert hidden(tiny) == []


def test_a_leftover_link_to_the_catalog_of_another_build_is_not_written_through(tiny: Tiny) -> None:
    first, second = builds(tiny, 2)
    before = (first / CATALOG).read_bytes()
    os.link(first / CATALOG, atomic.temporary_path(tiny.target / "warehouse.duckdb"))
    (tiny.target / "warehouse.duckdb.wal").touch()
    builds(tiny, 1, first=3)
    assert (first / CATALOG).read_bytes() == before
    assert not (tiny.target / "warehouse.duckdb.wal").exists()
    publish.make_current(tiny.target, second.name)
    publish.make_current(tiny.target, second.name)  # both names are links to one file
    assert (tiny.target / "warehouse.duckdb").samefile(second / CATALOG)
    assert hidden(tiny) == []


def test_a_file_system_without_hard_links_has_a_copy(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(os, "link", refused)
    (folder,) = builds(tiny, 1)
    assert (tiny.target / "warehouse.duckdb").read_bytes() == (folder / CATALOG).read_bytes()


def test_the_newest_builds_and_the_current_one_are_kept(tiny: Tiny) -> None:
    folders = builds(tiny, 3)
    publish.make_current(tiny.target, folders[0].name)
    publish._keep_last(tiny.target, 1)
    assert [folder.exists() for folder in folders] == [True, False, True]


def test_pipes_and_files_in_the_place_of_folders_are_quarantined(tiny: Tiny) -> None:
    builds(tiny, 1)
    assert list(atomic.quarantine_misplaced(tiny.target)) == []
    other = "b" * 16
    odd = [f"builds/{other}", "builds/current", "cache/clean"]
    (tiny.target / "builds" / "current").unlink()
    os.mkfifo(tiny.target / "builds" / "current")
    (tiny.target / "builds" / other).touch()
    (tiny.target / "cache" / "clean").touch()
    assert sorted(atomic.quarantine_misplaced(tiny.target)) == odd
    assert all(os.path.lexists(tiny.target / "damaged" / name) for name in odd)
    assert not any(os.path.lexists(tiny.target / name) for name in odd)
