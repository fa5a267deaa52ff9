"""Port files that cannot be used: each is listed with its reason and changes no row."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ingest.spoiling import an_hour_later
from tests.release import HEADER, Release, Rows, Spoil, done, lay_out, spoil


def with_header(header: bytes) -> Spoil:
    return lambda lines: [header + b"\n", *lines[1:]]


def in_every_row(old: bytes, new: bytes) -> Spoil:
    return lambda lines: [lines[0], *(line.replace(old, new) for line in lines[1:])]


FOREIGN = "the header is not that of port counters"
LOST: dict[str, tuple[Spoil, str]] = {
    "a picture": (lambda _: [b"\x89PNG\r\n\x1a\n", bytes(range(256)) * 20], "not a text file"),
    "zeros": (lambda _: [bytes(5000)], FOREIGN),
    "a zero-byte file": (lambda _: [], "empty file"),
    "the header only": (lambda lines: lines[:1], "no readable row below the header: the file ends there"),
    "a header without newline": (lambda _: [HEADER], "no readable row below the header"),
    "one torn row": (lambda lines: [lines[0], lines[1][:40]], "no readable row below the header"),
    "no header": (lambda lines: lines[1:], FOREIGN),
    "UTF-16": (lambda lines: [b"".join(lines).decode().encode("utf-16")], "not a text file"),
    "a byte order mark": (lambda lines: [b"\xef\xbb\xbf", *lines], "byte order mark"),
    "quoted names": (with_header(b'"' + HEADER.replace(b",", b'","') + b'"'), FOREIGN),
    "semicolons": (lambda lines: [line.replace(b",", b";") for line in lines], "the separator is `;`, not a comma"),
    "columns re-ordered": (
        with_header(HEADER.replace(b"InPkts,InOctets", b"InOctets,InPkts")),
        "the columns are re-ordered: SaveTime,SaveTimeUTC,DeviceName,PortName,InOctets,InPkts",
    ),
    "a column missing": (with_header(HEADER.removesuffix(b",OutRatio")), "without OutRatio"),
    "a column more": (with_header(HEADER + b",Errors"), "with Errors"),
    "a column renamed": (
        with_header(HEADER.replace(b"InOctets", b"InBytes")),
        "without InOctets and with InBytes",
    ),
    "a column twice": (with_header(HEADER.replace(b"InPkts", b"InOctets")), "without InPkts"),
    "SQL for a port": (
        in_every_row(b"TwoHundredGigE1/0/1:1", b"'; DROP TABLE x; --"),
        'PortName "\'; DROP TABLE x; --" is not of the form TwoHundredGigE1/0/1:1',
    ),
    "SQL for a device": (
        in_every_row(b"NH-DC-NM129-B03-ROCE-Leaf-1.GPU.S9825", b"x'); DROP SCHEMA metrics; ---Leaf-1"),
        "does not name a leaf",
    ),
    "a time beyond all calendars": (
        in_every_row(b",17164", b",9999917164"),
        "no readable row below the header: line 2: SaveTime is not SaveTimeUTC + 8 h",
    ),
    "another hour than the folder's": (
        lambda lines: [lines[0], *map(an_hour_later, lines[1:])],
        "the folder is 2024-05-23 16:00 UTC, its first row is of 2024-05-23 17:00 UTC",
    ),
}


def place_of(release: Release, case: str) -> Path:
    """Each case has a file of its own beside the good ones, all of which hold the same port at first."""
    return release.access.with_name(f"Leaf-1_{list(LOST).index(case)}_9.csv")


@pytest.fixture(scope="module")
def littered(sample: Path, tmp_path_factory: pytest.TempPathFactory, small_project: None) -> Release:
    """A release with a file of each such kind, built."""
    release = lay_out(sample, tmp_path_factory.mktemp("littered"))
    for case, (change, _) in LOST.items():
        place_of(release, case).write_bytes(release.access.read_bytes())
        spoil(place_of(release, case), change)
    said = done(release.build())
    assert f"{len(LOST)} skipped" in said.err
    return release


@pytest.mark.parametrize("case", LOST)
def test_a_file_that_cannot_be_used_is_listed_with_its_reason(littered: Release, case: str) -> None:
    path = place_of(littered, case)
    status, reason = littered.listed(path)
    assert status == "skipped"
    assert LOST[case][1] in str(reason)
    told = done(littered.doctor()).out
    assert f"{len(LOST)} files skipped" in told
    assert f"  {path.relative_to(littered.root).as_posix()}\n    {reason}\n" in told


def test_files_that_cannot_be_used_change_no_row(littered: Release, expected: Rows) -> None:
    assert littered.rows() == expected
