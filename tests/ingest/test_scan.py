"""The file inventory: each file once, with its format and release path, wherever the scan starts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

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


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """`release/cluster_a`, a cluster by its folder `taskinfo`, next to a folder that is none."""
    root = tmp_path / "release"
    files = {
        "README.md": "for people",
        "cluster_a/taskinfo/one.note": "red",
        "cluster_a/taskinfo/two.note": "blue",
        "cluster_a/taskinfo/three.note": "green",
        "cluster_a/taskinfo/.DS_Store": "a stray",
        "cluster_a/taskinfo/four.bin": "what is this",
        "else/five.note": "red",
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return root


def seen(inventory: Inventory) -> dict[str, tuple[str, str | None, str | None]]:
    return {file.release_path: (file.status, file.format, file.reason) for file in inventory.files}


def test_every_file_is_listed_with_its_format(release: Path) -> None:
    assert seen(scan([release], FORMATS)) == {
        "cluster_a/taskinfo/.DS_Store": (
            IGNORED,
            None,
            "left behind by a desktop, not a part of the release",
        ),
        "cluster_a/taskinfo/four.bin": (UNKNOWN, None, "no known format has such a name"),
        "cluster_a/taskinfo/one.note": (READ, "test.red", None),
        "cluster_a/taskinfo/three.note": (SKIPPED, "test.red", "no red"),
        "cluster_a/taskinfo/two.note": (READ, "test.blue", None),
        "README.md": (IGNORED, None, "a text for people"),
        "else/five.note": (READ, "test.red", None),
    }


@pytest.mark.parametrize(
    "start",
    [".", "..", "cluster_a", "cluster_a/taskinfo", "cluster_a/taskinfo/one.note"],
    ids=["root", "parent", "cluster", "part", "file"],
)
def test_a_file_has_the_same_release_path_wherever_the_scan_begins(release: Path, start: str) -> None:
    (file,) = (one for one in scan([release / start], FORMATS).files if one.path.name == "one.note")
    assert (file.cluster, file.release_path) == ("cluster_a", "cluster_a/taskinfo/one.note")


def test_the_given_name_applies_to_files_outside_of_clusters(release: Path) -> None:
    clusters = {file.release_path: file.cluster for file in scan([release], FORMATS, cluster="mine").files}
    assert clusters["mine/else/five.note"] == "mine"
    assert clusters["cluster_a/taskinfo/one.note"] == "cluster_a"


@pytest.mark.parametrize(
    ("marker", "cluster"),
    [("trafficinfo/x", "place"), ("taskinfo/x", "place"), ("place.xlsx", "place"), ("other.xlsx", "unknown")],
)
def test_a_cluster_is_recognized_by_its_folders(tmp_path: Path, marker: str, cluster: str) -> None:
    path = tmp_path / "place" / marker
    path.parent.mkdir(parents=True)
    path.touch()
    (file,) = scan([tmp_path], ()).files
    assert file.cluster == cluster


def test_the_workbook_of_an_hour_does_not_make_the_hour_a_cluster(tmp_path: Path) -> None:
    hour = tmp_path / "c" / "trafficinfo" / "2024052400"
    hour.mkdir(parents=True)
    (hour / "2024052400.xlsx").touch()
    (file,) = scan([tmp_path], ()).files
    assert (file.cluster, file.release_path) == ("c", "c/trafficinfo/2024052400/2024052400.xlsx")


def test_overlapping_folders_give_each_file_once(release: Path) -> None:
    both = scan([release, release / "cluster_a", release / "else" / "five.note"], FORMATS)
    assert seen(both) == seen(scan([release], FORMATS))


def test_symlinks_are_followed_and_a_loop_ends(tmp_path: Path, release: Path) -> None:
    start = tmp_path / "start"
    start.mkdir()
    (start / "there").symlink_to(release / "cluster_a")
    (release / "cluster_a" / "taskinfo" / "up").symlink_to(release / "cluster_a")
    names = [file.path.name for file in scan([start], FORMATS, follow_links=True).files if file.format]
    assert sorted(names) == ["one.note", "three.note", "two.note"]


def test_a_link_out_of_the_data_folders_is_listed_and_not_followed(tmp_path: Path, release: Path) -> None:
    start = tmp_path / "start"
    start.mkdir()
    (start / "there").symlink_to(release / "cluster_a")
    (start / "root").symlink_to("/")
    out = (IGNORED, None, "link out of the data folder: --follow-links reads it")
    assert seen(scan([start], FORMATS)) == {"root": out, "there": out}
    both = scan([start, release], FORMATS)  # a link from one given folder into the other is followed
    assert {"one.note", "two.note"} < {file.path.name for file in both.files if file.path.is_relative_to(start)}


def test_a_data_folder_that_is_a_link_is_its_target(tmp_path: Path, release: Path) -> None:
    (tmp_path / "link").symlink_to(release)
    names = [file.path.name for file in scan([tmp_path / "link"], FORMATS).files if file.format]
    assert names == [file.path.name for file in scan([release], FORMATS).files if file.format]


@pytest.mark.parametrize("follow_links", [False, True])
def test_files_of_the_kernel_are_never_opened(tmp_path: Path, follow_links: bool) -> None:
    (tmp_path / "proc").symlink_to("/proc")
    (tmp_path / "self").symlink_to("/proc/self/environ")
    found = scan([tmp_path], FORMATS, follow_links=follow_links)
    assert {file.reason for file in found.files} == {"link out of the data folder"}
    with pytest.raises(DataError, match="folder of the kernel"):
        scan([tmp_path / "proc"], FORMATS)


def test_excluded_files_are_not_listed_under_any_name(tmp_path: Path, release: Path) -> None:
    (release / "again").symlink_to(release / "cluster_a")
    listed = scan([release], FORMATS, leave_out=[release / "again", tmp_path / "not there"])
    assert set(seen(listed)) == {"README.md", "else/five.note"}


def test_unreadable_files_are_skipped_with_the_reason(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> RawFile:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Notes, "inspect", refuse)
    (release / "dangling").symlink_to("nowhere")
    found = seen(scan([release], FORMATS))
    assert found["dangling"] == (SKIPPED, None, "cannot be read: No such file or directory")
    assert found["else/five.note"] == (SKIPPED, "test.red", "cannot be read: Permission denied")


def test_a_folder_that_cannot_be_listed_is_skipped_with_the_reason(
    release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refuse(folder: str, flags: int) -> object:
        if Path(folder).name == "else":
            raise PermissionError(13, "Permission denied")
        return opened(folder, flags)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        found = scan([release], FORMATS)
    assert seen(found)["else"] == (SKIPPED, None, "cannot be read: Permission denied")


def test_a_path_that_is_not_utf8_is_skipped_and_shown_escaped(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.note")).write_text("red", encoding="utf-8")
    (file,) = scan([tmp_path], FORMATS).files
    assert (file.release_path, file.status) == ("caf\\xe9.note", SKIPPED)
    assert str(file.path) == str(tmp_path / "caf\\xe9.note")


# duplicates ---------------------------------------------------------------------------------------

HOUR = datetime(2024, 5, 23, 16)  # noqa: DTZ001


def raw(path: str, digest: str, *, port: str | None = None, status: str = READ) -> RawFile:
    """Return a file of a port and hour, or of neither; its release path starts below the first folder."""
    release_path = path.split("/", 1)[1]
    hour = HOUR if port else None
    return RawFile(
        Path(path),
        release_path,
        1,
        1,
        "f",
        "c",
        hour,
        "Leaf-1" if port else None,
        port=port,
        status=status,
        digest=digest,
    )


def settled(*files: RawFile) -> list[str]:
    return [file.reason or file.status for file in settle_duplicates(files)]


def test_equal_content_at_one_place_is_read_once() -> None:
    assert settled(raw("a/x.csv", "1", port="p"), raw("a/y.csv.gz", "1", port="p")) == [
        "read",
        "the same content as x.csv",
    ]
    assert settled(raw("a/book", "1"), raw("b/book", "1")) == ["read", "the same content as book"]


def test_other_content_at_one_place_is_an_error_that_names_both() -> None:
    with pytest.raises(DataError, match="two different files hold Leaf-1 p at 2024-05-23 16:00:00 UTC") as ports:
        settled(raw("a/x.csv", "1", port="p"), raw("b/y.csv", "2", port="p"))
    assert ports.value.details == ("  a/x.csv", "  b/y.csv")
    with pytest.raises(DataError, match="two different files hold book"):
        settled(raw("a/book", "1"), raw("b/book", "2"))


def test_files_of_different_places_and_unread_files_do_not_conflict() -> None:
    assert settled(raw("a/x", "1", port="p"), raw("a/y", "2", port="q"), raw("a/z", "1")) == ["read"] * 3
    assert settled(raw("a/x", "1", port="p", status=SKIPPED), raw("a/y", "2", port="p")) == [
        "skipped",
        "read",
    ]
