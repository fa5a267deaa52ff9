"""Two files or rows of one place: equal ones count once, different ones are an error or named."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.ingest.spoiling import PACK, pack
from tests.release import HOUR, Release, Rows, done


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
