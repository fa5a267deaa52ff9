"""Walks over data folders: packed folders differ if anything in them differs; trusted folders are not looked at."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tiny import HOURS, Tiny
from warehouse.store.folders import LINK_OUT, Walk, walk_data


class Spy:
    """Replacement of `os.scandir` that counts the stats of entries."""

    def __init__(self) -> None:
        self.stats = 0
        self._scandir = os.scandir

    def __call__(self, path: str) -> Spy:
        self._entries = self._scandir(path)
        return self

    def __enter__(self) -> Iterator[Any]:
        return (self._counted(entry) for entry in self._entries)

    def __exit__(self, *_: object) -> None:
        self._entries.close()

    def _counted(self, entry: os.DirEntry[str]) -> Any:
        def stat() -> os.stat_result:
            self.stats += 1
            return entry.stat()

        kind = type("Entry", (), {"name": entry.name, "path": entry.path, "is_symlink": lambda _: entry.is_symlink()})
        found = kind()
        found.stat = stat
        return found


@pytest.fixture
def spy(tmp_path: Path) -> Iterator[Spy]:
    """Count the looks at files; ends before the folder of the test is removed, which lists it, too."""
    assert tmp_path.is_dir()
    with pytest.MonkeyPatch.context() as patch:
        found = Spy()
        patch.setattr(os, "scandir", found)
        yield found


@pytest.fixture
def release(tmp_path: Path) -> Path:
    for name in ("a/1.csv", "a/2.csv", "b/c/3.csv", "b/4.csv"):
        path = tmp_path / "release" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    return tmp_path / "release"


def walked(release: Path) -> dict[str, tuple[bytes, bytes, bytes]]:
    return {os.path.relpath(folder.key, release): folder.packed for folder in walk_data([release], [])}


CHANGES: dict[str, Callable[[Path], object]] = {
    "new": lambda a: (a / "3.csv").touch(),
    "gone": lambda a: (a / "1.csv").unlink(),
    "renamed": lambda a: (a / "1.csv").rename(a / "0.csv"),
    "longer": lambda a: (a / "1.csv").write_text("longer", encoding="utf-8"),
    "touched": lambda a: os.utime(a / "1.csv", (1, 1)),
    "other mode": lambda a: (a / "1.csv").chmod(0o600),
    "folder": lambda a: (a / "3").mkdir(),
    "link": lambda a: (a / "3").symlink_to("nowhere"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_in_its_folder_alone(release: Path, change: str) -> None:
    before = walked(release)
    assert walked(release) == before
    assert set(before) == {".", "a", "b", "b/c"}
    CHANGES[change](release / "a")
    after = walked(release)
    assert {key for key in before if before[key] != after[key]} == {"a"}


def test_signatures_and_reasons_are_unpacked(release: Path) -> None:
    (release / "a" / os.fsdecode(b"caf\xe9")).touch()
    (release / "a" / "gone").symlink_to("nowhere")
    (release / "a" / "root").symlink_to("/")
    folder = walk_data([release], []).folders()[str(release / "a")]
    about = (release / "a" / "1.csv").stat()
    assert folder.stamps()["1.csv"] == [about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino]
    assert list(folder.stamps()) == ["1.csv", "2.csv", os.fsdecode(b"caf\xe9")]
    assert dict(folder.others()) == {
        "gone": "cannot be read: No such file or directory",
        "root": f"{LINK_OUT}: --follow-links reads it",
    }
    assert folder.count == 3


def test_a_pipe_is_listed_with_the_reason_why_it_is_not_read(release: Path) -> None:
    os.mkfifo(release / "a" / "pipe")
    folders = walk_data([release, release / "a" / "pipe"], []).folders()
    assert dict(folders[str(release / "a")].others()) == {"pipe": "cannot be read: not a regular file"}
    alone = walk_data([release / "a" / "pipe"], []).folders()
    assert [dict(folder.others()) for folder in alone.values()] == [{"pipe": "cannot be read: not a regular file"}]


def test_every_file_is_listed_once(release: Path) -> None:
    roots = [release / "b" / "4.csv", release / "b", release, release / "a" / "1.csv"]
    found = [path for folder in walk_data(roots, []) for path in folder.signatures() if path.endswith(".csv")]
    assert sorted(found) == sorted(map(str, release.rglob("*.csv")))


def test_equal_folders_are_in_memory_once(release: Path) -> None:
    walk = walk_data([release], [])
    both = list(walk.again(walk.folders()))
    assert len(both) == len(walk.folders())
    assert all(now is not None and now.numbers is before.numbers for before, now in both)


# trusted folders ----------------------------------------------------------------------------------


def trusted(release: Path, before: Walk) -> Walk:
    time.sleep(0.001)
    return walk_data([release], [], known=before.folders().get, trust=True)


def test_files_of_trusted_folders_are_not_looked_at(release: Path, spy: Spy, old: None) -> None:
    before = walk_data([release], [])
    before.folders()
    assert spy.stats == 7  # four files, three subfolders
    spy.stats = 0
    after = trusted(release, before)
    assert {key: one.packed for key, one in after.folders().items()} == {
        key: one.packed for key, one in before.folders().items()
    }
    assert spy.stats == 0
    (release / "b" / "5.csv").touch()
    again = trusted(release, after)
    assert again.folders()[str(release / "b")].count == 2
    assert spy.stats == 3


def test_a_new_folder_is_not_trusted(release: Path, spy: Spy) -> None:
    """Its times would not show another change in the same two seconds."""
    before = walk_data([release], [])
    before.folders()
    trusted(release, before).folders()
    assert spy.stats == 14


def test_a_walk_at_the_end_looks_at_what_the_walk_at_the_beginning_looked_at(
    release: Path, spy: Spy, old: None
) -> None:
    first = walk_data([release], [])
    first.folders()
    (release / "b" / "5.csv").touch()
    begin = trusted(release, first)
    begin.folders()
    spy.stats = 0
    list(begin.again(begin.folders()))
    assert spy.stats == 3, "the changed folder alone"


def rewrite(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace(",100,", ",999,"), encoding="utf-8")


def test_a_file_changed_in_place_is_not_noticed_in_a_trusted_folder(tiny: Tiny, old: None) -> None:
    tiny.model(
        "staging.hour",
        "SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, sum(InOctets) AS bytes\n"
        "FROM raw.port_counters GROUP BY ALL",
        {"hour_utc": "TIMESTAMP", "bytes": "BIGINT"},
        "partition: hour_utc",
    )
    tiny.made()
    path = next(tiny.data.rglob("2024052401/*/*.csv"))
    rewrite(path)
    assert tiny.build("--trust-folders").err.startswith("Up to date")
    tiny.reference("speeds", {"port": "VARCHAR", "speed": "BIGINT"}, "eth0,11")
    assert tiny.made("--trust-folders") == {"staging.ports", "metrics.total"}
    assert tiny.made("--trust-folders", "--paranoid") == {f"staging.hour {HOURS[1]}"}
    (path.parent / "new.txt").touch()
    assert not tiny.build("--trust-folders").err.startswith("Up to date")


def test_a_build_without_trust_notices_what_a_trusting_one_did_not(tiny: Tiny, old: None) -> None:
    tiny.made()
    rewrite(next(tiny.data.rglob("*.csv")))
    assert tiny.build("--trust-folders").err.startswith("Up to date")
    assert not tiny.build().err.startswith("Up to date")
