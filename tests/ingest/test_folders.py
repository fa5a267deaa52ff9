"""Folders and files of any name and kind: rows are in, or the file is listed as skipped."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.ingest.spoiling import field
from tests.release import HOUR, LEAF, Release, Rows, done, fails, lay_out, spoil
from warehouse.base import hashing


def test_what_cannot_be_opened_is_skipped_and_listed(release: Release) -> None:
    (release.hour / "loop").symlink_to(release.root, target_is_directory=True)
    (release.hour / "self").symlink_to(release.hour / "self")
    folder = os.fsencode(release.hour) + b"/caf\xe9"
    os.mkdir(folder)
    os.rename(os.fsencode(release.access), folder + b"/Leaf-1_1_1.csv")
    release.access.symlink_to("nowhere.csv")
    pipe = release.hour / LEAF / "Leaf-1_34.csv"
    os.mkfifo(pipe)  # who opened it would wait for ever
    (release.hour / LEAF / "Leaf-1_35.csv").mkdir()
    done(release.build())
    assert release.listed(release.access) == ("skipped", "cannot be read: No such file or directory")
    assert release.listed(pipe) == ("skipped", "cannot be read: not a regular file")
    no_text = f"cluster/trafficinfo/{HOUR}/caf\\xe9/Leaf-1_1_1.csv"
    asked = f"SELECT status, reason FROM raw.files WHERE release_path = '{no_text}'"
    assert release.ask(asked) == [("skipped", "its path is not UTF-8 text")]
    assert len(release.rows()) == 4
    told = done(release.doctor()).out
    assert "/self\n    cannot be read: Too many levels of symbolic links" in told
    assert "its path is not UTF-8 text" in told
    assert "4 files skipped" in told


def test_a_file_that_may_not_be_read_when_it_is_hashed_is_skipped_and_listed(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may read everything, so that opening the file is made to fail."""

    def refuse_to_hash(path: Path, *arguments: Any, **options: Any) -> Any:
        if path == release.access:
            raise PermissionError(13, "Permission denied", str(path))
        return open(path, *arguments, **options)  # noqa: PTH123 - what is replaced

    monkeypatch.setattr(hashing, "open", refuse_to_hash, raising=False)
    done(release.build())
    assert release.listed(release.access) == ("skipped", "cannot be read: Permission denied")
    assert len(release.rows()) == 4


NAMES = {
    "quotes": ["it's", 'a "b"', "`c`", "'; DROP TABLE x; --"],
    "blanks": [" two  blanks ", "tab\there", "line\nbreak", "\x1b[31mred", "\u202eturned"],
    "brackets": ["[1]", "[!a]", "{a,b}", "(x)", "{{ x }}"],
    "marks": ["100%", "a%20b", "year=2024", "$HOME", "~", "#1", "a:b", "-d", "a;b", "a&b", "x.csv", "ünï 中"],
}
GLOBS = {"stars": ["*", "**", "[*]"], "globs": ["[a-z]*?", "?"]}
BACKSLASHES = {"backslashes": ["a\\b", "\\"]}
"""DuckDB does not write into folders of these names, nor of globs."""


@pytest.mark.parametrize("kinds", [NAMES, GLOBS, BACKSLASHES], ids=["writable", "globs", "backslashes"])
def test_folders_may_have_any_name(
    sample: Path, tmp_path: Path, small_project: None, expected: Rows, kinds: dict[str, list[str]]
) -> None:
    """Around release and target, one in the other; the first of a kind is also a cluster's, the last a switch's."""
    release = lay_out(sample, tmp_path.joinpath(*(name for names in kinds.values() for name in names)))
    for names in kinds.values():
        cluster = shutil.copytree(release.cluster, release.root / names[0])
        (cluster / "trafficinfo" / HOUR / LEAF).rename(cluster / "trafficinfo" / HOUR / names[-1])
    shutil.rmtree(release.cluster)
    if kinds is not NAMES:
        fails(release.build(), "a target's path cannot hold `")
        release.target = tmp_path / "target"
    done(release.build())
    clusters = [names[0] for names in kinds.values()]
    found = release.ask("SELECT cluster, switch, port, polls, in_bytes, out_bytes FROM metrics.port_hour ORDER BY ALL")
    assert found == [(cluster, *row) for cluster in sorted(clusters) for row in expected]
    assert release.ask("SELECT count(DISTINCT filename) FROM raw.port_counters") == [(5 * len(kinds),)]
    told = done(release.doctor()).out
    assert told.count("port_counters: 5 of 5 files read of 2 switches") == len(kinds)
    assert told.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("name", "content", "said", "told"),
    [
        ("empty", None, "no files in {}", "no files in {}"),
        ("data.bin", bytes(100), "nothing readable in {}: 1 file, none recognised", "1 file not recognised"),
        ("missing", None, "no such data folder: {}", None),
    ],
)
def test_a_folder_without_data_is_an_error_and_the_last_warehouse_stays(
    published: Release, name: str, content: bytes | None, said: str, told: str | None
) -> None:
    before, folder = published.state(), published.base / "other"
    if name != "missing":
        folder.mkdir()
    if content:
        (folder / name).write_bytes(content)
    fails(published.build(data=folder), said.format(folder))
    assert published.state() == before
    if told:
        assert told.format(folder) in done(published.doctor(folder)).out


def test_a_release_may_hold_topology_only(release: Release) -> None:
    shutil.rmtree(release.cluster / "trafficinfo")
    done(release.build())
    assert release.ask("SELECT count(*) > 0 FROM topology.nic_ports") == [(True,)]
    assert release.rows() == []
    assert release.ask("SELECT count(*) FROM raw.port_counters") == [(0,)]


def test_a_release_may_hold_traffic_only(release: Release, expected: Rows) -> None:
    release.workbook.unlink()
    done(release.build())
    assert release.rows() == expected
    assert release.ask("SELECT count(*) FROM topology.nic_ports") == [(0,)]


def test_a_target_among_the_data_is_not_taken_for_data(release: Release) -> None:
    release.target = release.root / "build" / "warehouse"
    spoil(release.access, field(5, b"x"))  # so that the target holds a repaired copy
    done(release.build())
    assert release.ask("SELECT count(*) FROM raw.files") == [(6,)]
    assert '"changed": false' in done(release.build("--json")).out
    assert "not recognised" not in release.doctor().out


def test_data_inside_the_target_is_refused(release: Release) -> None:
    release.target.mkdir()
    release.root = release.root.rename(release.target / "release")
    fails(release.build(), "lies inside the target")
