"""The file inventory: each file once, with its format and release path, wherever the scan starts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.scanning import scan
from warehouse.base.errors import DataError
from warehouse.formats.base import IGNORED, READ, SKIPPED, UNKNOWN, Inventory, RawFile, RawRelation
from warehouse.ingest.look import settle_duplicates


class Notes:
    """A format of files `*.note` that start with a certain word."""

    version = 1
    relations: Sequence[RawRelation] = ()

    def __init__(self, word: str) -> None:
        self.name = f"test.{word}"
        self._word = word

    def claims(self, path: Path) -> bool:
        return path.suffix == ".note"

    def inspect(self, file: RawFile) -> RawFile:
        if file.path.read_text(encoding="utf-8").startswith(self._word):
            return file.but(status=READ)
        return file.but(status=SKIPPED, reason=f"no {self._word}")


FORMATS = (Notes("red"), Notes("blue"))
FILES: dict[str, tuple[str, tuple[str, str | None, str | None]]] = {
    "README.md": ("for people", (IGNORED, None, "a text for people")),
    "cluster_a/taskinfo/one.note": ("red", (READ, "test.red", None)),
    "cluster_a/taskinfo/two.note": ("blue", (READ, "test.blue", None)),
    "cluster_a/taskinfo/three.note": ("green", (SKIPPED, "test.red", "no red")),
    "cluster_a/taskinfo/.DS_Store": ("", (IGNORED, None, "left behind by a desktop, not a part of the release")),
    "cluster_a/taskinfo/four.bin": ("what is this", (UNKNOWN, None, "no known format has such a name")),
    "else/five.note": ("red", (READ, "test.red", None)),
}
"""Content of the files of a release, and their status, format and reason."""


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """`release/cluster_a`, a cluster by its folder `taskinfo`, next to a folder that is none."""
    for name, (content, _) in FILES.items():
        path = tmp_path / "release" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return tmp_path / "release"


def seen(inventory: Inventory) -> dict[str, tuple[str, str | None, str | None]]:
    return {file.release_path: (file.status, file.format, file.reason) for file in inventory.files}


def test_every_file_is_listed_once_with_its_format(release: Path) -> None:
    assert seen(scan([release], FORMATS)) == {name: listed for name, (_, listed) in FILES.items()}
    overlapping = [release, release / "cluster_a", release / "else" / "five.note"]
    assert seen(scan(overlapping, FORMATS)) == seen(scan([release], FORMATS))


def test_a_file_has_the_same_release_path_wherever_the_scan_begins(release: Path) -> None:
    for start in (".", "..", "cluster_a", "cluster_a/taskinfo", "cluster_a/taskinfo/one.note"):
        (file,) = (one for one in scan([release / start], FORMATS).files if one.path.name == "one.note")
        assert (file.cluster, file.release_path) == ("cluster_a", "cluster_a/taskinfo/one.note"), start
    clusters = {file.release_path: file.cluster for file in scan([release], FORMATS, cluster="mine").files}
    assert clusters["mine/else/five.note"] == "mine"
    assert clusters["cluster_a/taskinfo/one.note"] == "cluster_a"


def test_a_cluster_is_recognized_by_its_folders(tmp_path: Path) -> None:
    markers = {
        "a/trafficinfo/x": "a", "b/taskinfo/x": "b", "c/c.xlsx": "c", "d/other.xlsx": "unknown",
        "e/trafficinfo/2024052400/2024052400.xlsx": "e",
    }  # fmt: skip
    for marker in markers:
        path = tmp_path / marker
        path.parent.mkdir(parents=True)
        path.touch()
    assert {file.release_path: file.cluster for file in scan([tmp_path], ()).files} == markers


def test_links_are_followed_if_asked_and_a_loop_ends(tmp_path: Path, release: Path) -> None:
    start = tmp_path / "start"
    start.mkdir()
    (start / "there").symlink_to(release / "cluster_a")
    (start / "root").symlink_to("/")
    out = (IGNORED, None, "link out of the data folder: --follow-links reads it")
    assert seen(scan([start], FORMATS)) == {"root": out, "there": out}
    both = scan([start, release], FORMATS)  # a link from one given folder into the other is followed
    assert {"one.note", "two.note"} < {file.path.name for file in both.files if file.path.is_relative_to(start)}
    (tmp_path / "link").symlink_to(release)  # a data folder may be a link
    assert seen(scan([tmp_path / "link"], FORMATS)) == seen(scan([release], FORMATS))
    (start / "root").unlink()
    (release / "cluster_a" / "taskinfo" / "up").symlink_to(release / "cluster_a")
    names = [file.path.name for file in scan([start], FORMATS, follow_links=True).files if file.format]
    assert sorted(names) == ["one.note", "three.note", "two.note"]


def test_files_of_the_kernel_are_never_opened(tmp_path: Path) -> None:
    (tmp_path / "proc").symlink_to("/proc")
    (tmp_path / "self").symlink_to("/proc/self/environ")
    found = scan([tmp_path], FORMATS, follow_links=True)
    assert {file.reason for file in found.files} == {"link out of the data folder"}
    with pytest.raises(DataError, match="folder of the kernel"):
        scan([tmp_path / "proc"], FORMATS)


def test_what_cannot_be_read_is_skipped_with_the_reason(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> RawFile:
        raise PermissionError(13, "Permission denied")

    def refuse_else(folder: str) -> Any:
        return entries(folder) if Path(folder).name != "else" else refuse()

    entries = os.scandir
    monkeypatch.setattr(Notes, "inspect", refuse)
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse_else)
        found = seen(scan([release], FORMATS))
    assert found["cluster_a/taskinfo/one.note"] == (SKIPPED, "test.red", "cannot be read: Permission denied")
    assert found["else"] == (SKIPPED, None, "cannot be read: Permission denied")


def raw(path: str, digest: str, *, port: str | None = None, status: str = READ) -> RawFile:
    """Return a file of a port and hour, or of neither; its release path starts below the first folder."""
    hour = datetime(2024, 5, 23, 16)  # noqa: DTZ001
    place = {"hour_utc": hour, "switch": "Leaf-1", "port": port} if port else {}
    return RawFile(Path(path), path.split("/", 1)[1], 1, 1, "f", "c").but(status=status, digest=digest, **place)


def settled(*files: RawFile) -> list[str]:
    return [file.reason or file.status for file in settle_duplicates(files)]


def test_files_of_one_place_are_read_once_or_are_an_error_that_names_both() -> None:
    both = settled(raw("a/x.csv", "1", port="p"), raw("a/y.csv.gz", "1", port="p"))
    assert both == ["read", "the same content as x.csv"]
    assert settled(raw("a/book", "1"), raw("b/book", "1")) == ["read", "the same content as book"]
    with pytest.raises(DataError, match="two different files hold Leaf-1 p at 2024-05-23 16:00:00 UTC") as ports:
        settled(raw("a/x.csv", "1", port="p"), raw("b/y.csv", "2", port="p"))
    assert ports.value.details == ("  a/x.csv", "  b/y.csv")
    with pytest.raises(DataError, match="two different files hold book"):
        settled(raw("a/book", "1"), raw("b/book", "2"))
    assert settled(raw("a/x", "1", port="p"), raw("a/y", "2", port="q"), raw("a/z", "1")) == ["read"] * 3
    assert settled(raw("a/x", "1", port="p", status=SKIPPED), raw("a/y", "2", port="p")) == ["skipped", "read"]
