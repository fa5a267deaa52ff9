"""The files of a published build: complete and synced before the rename, and no file of an earlier build changed."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import warehouse.runner.publish as publishing
from warehouse.base.errors import WarehouseError
from warehouse.store.atomic import temporary_path
from warehouse.store.layout import CATALOG
from warehouse.store.manifest import Manifest
from warehouse.store.part_records import Part

A, B = "a" * 16, "b" * 16
ENTRIES: Any = [
    SimpleNamespace(name="staging.a", kind="table", reads=()),
    SimpleNamespace(name="topology.v", kind="view", reads=("staging.a",)),
    SimpleNamespace(name="raw.files", kind="raw", reads=()),
]


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A target with one part; the catalog is the text of its build and of the build that it begins with."""

    def write_catalog(path: Path, _: object, about: dict[str, str], __: object, base: str | None) -> None:
        path.write_text(f"{about['build_id']} after {base}")

    def write_stamps(folder: Path, _: Path, __: object, layout: Any) -> None:
        (folder / "stamps.json").write_text(f"{layout.views} {layout.copied}")

    monkeypatch.setattr(publishing, "write_catalog", write_catalog)
    monkeypatch.setattr(publishing, "write_stamps", write_stamps)
    monkeypatch.setattr(publishing, "write_listing", lambda folder, _: (folder / "files.json").touch())
    monkeypatch.setattr(publishing, "read_base", lambda folder: folder.name)
    (tmp_path / "parts" / "staging.a" / "all").mkdir(parents=True)
    return tmp_path


def publish(target: Path, build: str, *, number: int = 1, fresh: bool = False) -> Path:
    """Publish a build; return its folder."""
    manifest = Manifest(build, "duckdb", (), (), (), "", number=number)
    parts = [Part("staging.a", "all", "f", "d", 1, 1, f"{target}/parts/staging.a/all/f.parquet")]
    nothing: Any = None
    publishing.publish(target, ENTRIES, manifest, parts, nothing, nothing, {}, lambda: None, new=parts, fresh=fresh)
    return target / "builds" / build


def test_a_build_that_is_refused_at_the_end_is_not_published(target: Path) -> None:
    def refuse() -> None:
        raise WarehouseError("a file changed")

    publish(target, A)
    nothing: Any = None
    with pytest.raises(WarehouseError):
        publishing.publish(target, ENTRIES, Manifest(B, "duckdb", (), (), (), ""), [], nothing, nothing, {}, refuse)
    assert (target / "builds" / "current").read_text() == f"{A}\n"
    assert not (target / "builds" / B).exists()


def hidden(target: Path) -> list[Path]:
    return list(target.rglob(".*"))


def test_the_folder_of_a_build_is_complete_and_its_catalog_is_read_only(target: Path) -> None:
    folder = publish(target, A)
    assert sorted(path.name for path in folder.iterdir()) == [
        CATALOG, "files.json", "manifest.json", "stamps.json",
    ]  # fmt: skip
    assert (folder / "stamps.json").read_text() == "{'topology.v': ('staging.a',)} ['staging.a']"
    assert stat.S_IMODE((folder / CATALOG).stat().st_mode) == 0o444
    assert (target / "warehouse.duckdb").samefile(folder / CATALOG)
    assert (target / "builds" / "current").read_text() == f"{A}\n"
    assert hidden(target) == []


def test_a_catalog_begins_with_that_of_the_current_build_unless_fresh(target: Path) -> None:
    assert (publish(target, A) / CATALOG).read_text() == f"{A} after {A}"
    assert (publish(target, B) / CATALOG).read_text() == f"{B} after {A}"
    assert (publish(target, A, fresh=True) / CATALOG).read_text() == f"{A} after None"
    assert hidden(target) == []


def test_every_file_and_folder_is_synced_before_the_rename_that_needs_it(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    replace = Path.replace

    def renamed(path: Path, to: Path) -> Path:
        events.append(f"rename {to.name}")
        return replace(path, to)

    monkeypatch.setattr(publishing, "sync", lambda path: events.append(path.name))
    monkeypatch.setattr(Path, "replace", renamed)
    publish(target, A)
    at = events.index(f"rename {A}")
    files = {CATALOG, "files.json", "manifest.json", "stamps.json"}
    assert set(events[:at]) == {*files, "all", "staging.a", "parts"}
    assert events[at + 1 :] == ["builds", "rename warehouse.duckdb", target.name, "rename current"]


def test_a_publish_that_failed_does_not_stop_the_next_one(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("full")

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "write_listing", full)
        with pytest.raises(OSError, match="full"):
            publish(target, A)
    assert not (target / "warehouse.duckdb").exists()
    publish(target, A)
    assert hidden(target) == []


def test_a_leftover_link_to_the_catalog_of_another_build_is_not_written_through(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = publish(target, A) / CATALOG
    publish(target, B)
    leftover = temporary_path(target / "warehouse.duckdb")
    monkeypatch.setattr(publishing, "temporary_path", lambda _: leftover)
    os.link(first, leftover)
    (target / "warehouse.duckdb.wal").touch()
    publishing.make_current(target, B)
    assert first.read_text().startswith(A)
    assert (target / "warehouse.duckdb").read_text().startswith(B)
    assert not (target / "warehouse.duckdb.wal").exists()
    publishing.make_current(target, B)  # both names are links to one file
    assert hidden(target) == []


def test_a_file_system_without_hard_links_has_a_copy(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(os, "link", refused)
    folder = publish(target, A)
    assert (target / "warehouse.duckdb").read_text() == (folder / CATALOG).read_text()


def test_the_newest_builds_and_the_current_one_are_kept(target: Path) -> None:
    folders = [publish(target, letter * 16, number=number) for number, letter in enumerate("cab")]
    publishing.make_current(target, "c" * 16)
    publishing.keep_last(target, 1)
    assert [folder.exists() for folder in folders] == [True, False, True]


def test_pipes_and_files_in_the_place_of_folders_are_quarantined(target: Path) -> None:
    publish(target, A)
    (target / "cache" / "clean").mkdir(parents=True)
    (target / "cache" / "words.json").touch()
    assert list(publishing.quarantine_misplaced(target)) == []
    odd = [f"builds/{B}", "builds/current", "cache/clean", "cache/x.msgpack"]
    (target / "builds" / "current").unlink()
    os.mkfifo(target / "builds" / "current")
    (target / "builds" / B).touch()
    (target / "cache" / "clean").rmdir()
    (target / "cache" / "clean").touch()
    (target / "cache" / "x.msgpack").symlink_to("nowhere")
    assert sorted(publishing.quarantine_misplaced(target)) == odd
    assert all(os.path.lexists(target / "damaged" / name) for name in odd)
    assert not any(os.path.lexists(target / name) for name in odd)
