"""Two files or rows of one place: equal ones count once, different ones are an error or named."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from tests.ingest.spoiling import PACK, pack
from tests.release import HOUR, Release, Rows, done, fails


def test_a_plain_and_a_compressed_copy_of_a_port_are_read_once(release: Release, expected: Rows) -> None:
    plain = (release.access, release.uplink)
    packed = []
    for path, suffix in zip(plain, PACK, strict=True):
        copy = shutil.copy(path, release.base)
        packed.append(pack(path, suffix))
        shutil.move(copy, path)
    done(release.build())
    assert release.rows() == expected
    for path, copy in zip(plain, packed, strict=True):
        shown = path.relative_to(release.root).as_posix()
        assert release.listed(copy) == ("ignored", f"the same content as {shown}")


def test_the_same_release_given_twice_is_read_once(release: Release, expected: Rows) -> None:
    shutil.copytree(release.hour, release.cluster / "backup" / HOUR)
    copy = shutil.copytree(release.root, release.base / "copy")
    assert " ignored" in done(release.build("-d", copy, "-d", release.hour)).err
    assert release.rows() == expected


@pytest.mark.parametrize("suffix", ["", *PACK])
def test_two_different_files_of_one_port_and_hour_are_an_error_that_names_both(published: Release, suffix: str) -> None:
    before = published.state()
    other = published.cluster / "backup" / published.access.name
    other.parent.mkdir()
    other.write_bytes(published.access.read_bytes().replace(b",0,0,0,0,0,0\n", b",0,0,0,0,1,0\n"))
    other = pack(other, suffix) if suffix else other
    for said in (published.build(), published.doctor()):
        fails(
            said,
            "two different files hold Leaf-1 TwoHundredGigE1/0/1:1 at 2024-05-23 16:00:00 UTC",
            str(published.access),
            str(other),
        )
    assert published.state() == before


def test_two_different_workbooks_of_one_cluster_are_an_error_that_names_both(published: Release) -> None:
    before = published.state()
    copy = shutil.copytree(published.root, published.base / "copy") / "cluster" / "cluster.xlsx"
    with zipfile.ZipFile(copy, "a") as package:
        package.writestr("docProps/note.txt", "changed")
    said = published.build("-d", copy.parent)
    fails(said, "two different files hold cluster/cluster.xlsx", str(copy), str(published.workbook))
    assert published.state() == before


def test_contradicting_rows_of_links_count_as_none_and_are_said(release: Release, sample: Path) -> None:
    header, first = next(sample.rglob(f"{HOUR}_link.csv")).read_text(encoding="utf-8").splitlines()[:2]
    assert "Leaf-1.GPU.S9825,400GE1/0/33," in first
    assert "spine-1.GPU.S9825,FourHundredGigE1/0/1," in first
    elsewhere = first.replace("spine-1.", "spine-7.")
    (release.hour / f"{HOUR}_link.csv").write_text("\n".join([header, first, elsewhere, ""]), encoding="utf-8")
    assert "link tables name 2 different other ends, so none of them is used" in done(release.build()).err_text
    asked = "SELECT spine, spine_port, source, ends_stated FROM topology.uplinks WHERE leaf = 'Leaf-1'"
    assert release.ask(asked) == [("spine-1", "FourHundredGigE1/0/1", "inferred:uplink_formula", 2)]
    assert release.ask("SELECT device_name FROM topology.switches WHERE switch = 'spine-7'") == [
        ("NH-DC-NM129-E01-ROCE-spine-7.GPU.S9825",)
    ]
