"""Whatever lies in a data folder: rows are in or visibly left out, an error is a sentence, the last build stays.

Each test has a release of five ports of its own to spoil: the management port, a 200G port and an uplink of
Leaf-1, the management port and an uplink of ST-leaf-1, for one hour.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import zstandard

from tests.release import HEADER, HOUR, LEAF, Release, Rows, Spoil, done, fails, lay_out, spoil
from warehouse.base import hashing
from warehouse.project.project import Project


@pytest.fixture(scope="module")
def small_project(fabric_project: Project) -> Iterator[None]:
    """Build the module's releases with the models of ports and NICs alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: fabric_project)
        yield


@pytest.fixture(scope="module")
def expected(sample: Path, tmp_path_factory: pytest.TempPathFactory, small_project: None) -> Rows:
    """What the release says when nothing is wrong with it."""
    whole = lay_out(sample, tmp_path_factory.mktemp("whole"))
    assert whole.build().status == 0
    return whole.rows()


# files that cannot be used ------------------------------------------------------------------------


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
    "semicolons": (lambda lines: [line.replace(b",", b";") for line in lines], FOREIGN),
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


def an_hour_later(line: bytes) -> bytes:
    fields = line.split(b",")
    fields[0] = fields[0].replace(b" 00:", b" 01:")
    fields[1] = str(int(fields[1]) + 3_600_000).encode()
    return b",".join(fields)


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


# lines that cannot be used ------------------------------------------------------------------------


def row_100(change: Callable[[bytes], bytes]) -> Spoil:
    """Line 101 of the file is changed."""
    return lambda lines: [*lines[:100], change(lines[100]), *lines[101:]]


def field(position: int, value: bytes) -> Spoil:
    """Line 101 has another value in this field, counted from 0."""

    def change(line: bytes) -> bytes:
        fields = line.rstrip(b"\n").split(b",")
        fields[position] = value
        return b",".join(fields) + b"\n"

    return row_100(change)


def swap(old: bytes, new: bytes) -> Spoil:
    return row_100(lambda line: line.replace(old, new))


CLOCKS = "SaveTime is not SaveTimeUTC + 8 h"
REPAIRED: dict[str, tuple[Spoil, int, str]] = {
    "a garbled number": (field(5, b"12x4"), 101, "InOctets is not a number: '12x4'"),
    "a number with a comma": (field(5, b"1,234"), 101, "11 fields instead of 10"),
    "a field less": (row_100(lambda line: line.rpartition(b",")[0] + b"\n"), 101, "9 fields instead of 10"),
    "a blank counter": (field(5, b""), 101, "InOctets is not a number: ''"),
    "a blank ratio": (field(8, b""), 101, "InRatio is not a number: ''"),
    "a blank port": (field(3, b""), 101, "PortName is blank"),
    "a number that no column holds": (field(5, b"9" * 30), 101, "InOctets is beyond all bounds: '9999"),
    "a number that no sum holds": (field(5, b"%d" % (2**63 - 1)), 101, "InOctets is beyond all bounds: '9223372036"),
    "as many packets": (field(6, b"%d" % (2**63 - 1)), 101, "OutPkts is beyond all bounds: '9223372036"),
    "as many less": (field(7, b"%d" % -(2**63)), 101, "OutOctets is beyond all bounds: '-9223372036"),
    "more than a port can move": (field(5, b"1" + b"0" * 15), 101, "InOctets is beyond all bounds: '1000000"),
    "the year 30000": (field(1, b"884541340800000"), 101, CLOCKS),
    "a time beyond all calendars": (field(1, b"9" * 18), 101, CLOCKS),
    "bytes that are no text": (field(2, b"\xff\xfe"), 101, "not UTF-8 text"),
    "zero bytes": (row_100(lambda line: bytes(len(line) - 1) + b"\n"), 101, "1 fields instead of 10"),
    "a line that never ends": (row_100(lambda _: b"7" * 3_000_000 + b"\n"), 101, "longer than 262,144 bytes"),
    "a fraction": (field(5, b"1324856.24"), 101, "InOctets is not a whole number: '1324856.24'"),
    "a fraction of nought": (field(7, b"12.0"), 101, "OutOctets is not a whole number: '12.0'"),
    "a fraction of packets": (field(4, b".5"), 101, "InPkts is not a whole number: '.5'"),
    "a point at the end": (field(6, b"12."), 101, "OutPkts is not a whole number: '12.'"),
    "a clock with a fraction": (swap(b"0,NH-", b"0.4,NH-"), 101, "SaveTimeUTC is not a whole number: '17164"),
    "an exponent": (field(5, b"1e3"), 101, "InOctets is not a number: '1e3'"),
    "a hexadecimal number": (field(5, b"0x10"), 101, "InOctets is not a number: '0x10'"),
    "a number with separators": (field(4, b"1_000"), 101, "InPkts is not a number: '1_000'"),
    "a number with a sign": (field(6, b"+12"), 101, "OutPkts is not a number: '+12'"),
    "a blank before a number": (field(7, b" 12"), 101, "OutOctets is not a number: ' 12'"),
    "a ratio that is no number": (field(8, b"nan"), 101, "InRatio is not a number: 'nan'"),
    "an infinite ratio": (field(9, b"inf"), 101, "OutRatio is not a number: 'inf'"),
    "a comma at the end": (row_100(lambda line: line[:-1] + b",\n"), 101, "11 fields instead of 10"),
    "no weekday": (swap(" 星期五".encode(), b""), 101, CLOCKS),
    "another port": (swap(b"E1/0/1:1", b"E1/0/2:1"), 101, "TwoHundredGigE1/0/2:1 in the file of NH-DC-NM129"),
    "another switch": (swap(b"Leaf-1", b"Leaf-2"), 101, "a row of NH-DC-NM129-B03-ROCE-Leaf-2.GPU.S9825"),
    "SQL for a port": (field(3, b"'; DROP TABLE x; --"), 101, "'; DROP TABLE x; -- in the file of"),
    "a wrong clock": (swap(b"2024/05/24", b"2024/05/23"), 101, CLOCKS),
    "a day that no calendar has": (swap(b"2024/05/24", b"2024/13/24"), 101, CLOCKS),
    "the next hour": (row_100(an_hour_later), 101, "its time, 2024-05-23 17:0"),
    "a first row of another port": (
        lambda lines: [lines[0], lines[1].replace(b"E1/0/1:1", b"E1/0/2:1"), *lines[2:]],
        2,
        "TwoHundredGigE1/0/2:1 in the file of",
    ),
    "a first row of the next hour": (
        lambda lines: [lines[0], an_hour_later(lines[1]), *lines[2:]],
        2,
        "is outside the file's hour",
    ),
    "a torn last line": (
        lambda lines: [*lines[:-1], lines[-1][:-8]],
        -1,
        "torn: the file ends without a final newline",
    ),
}


def place_of_port(release: Release, case: str) -> Path:
    """Return the file of a case, each of a port of its own from 1/0/3:1 on."""
    number, half = divmod(list(REPAIRED).index(case), 2)
    return release.access.with_name(f"Leaf-1_{number + 3}_{half + 1}.csv")


@pytest.fixture(scope="module")
def spoiled(
    sample: Path, tmp_path_factory: pytest.TempPathFactory, small_project: None
) -> tuple[Release, dict[str, int]]:
    """A release with a file for each such line, built; and the rows that each file had."""
    release = lay_out(sample, tmp_path_factory.mktemp("spoiled"))
    rows = {}
    for case, (change, _, _) in REPAIRED.items():
        path = place_of_port(release, case)
        path.write_bytes(release.access.read_bytes())
        rows[case] = spoil(path, change)
        _, number, half = path.stem.split("_")
        path.write_bytes(path.read_bytes().replace(b"GigE1/0/1:1", f"GigE1/0/{number}:{half}".encode()))
    assert f"{len(REPAIRED)} lines rejected" in done(release.build()).told
    return release, rows


@pytest.mark.parametrize("case", REPAIRED)
def test_a_bad_line_is_left_out_with_its_number_and_the_rows_around_it_are_in(
    spoiled: tuple[Release, dict[str, int]], case: str
) -> None:
    release, rows_of = spoiled
    path, rows = place_of_port(release, case), rows_of[case]
    _, number, reason = REPAIRED[case]
    number = rows + 1 if number < 0 else number
    name = path.relative_to(release.root).as_posix()
    port = path.stem.removeprefix("Leaf-1_").replace("_", ":")
    ((line, why),) = release.ask(f"SELECT line, reason FROM staging.rejected_rows WHERE file = '{name}'")
    assert line == number
    assert reason in str(why)
    assert release.listed(path) == ("partial", f"line {line}: {why}")
    assert release.ask(f"SELECT count(*) FROM staging.port_counters WHERE port LIKE '%GigE1/0/{port}'") == [(rows - 1,)]


def test_doctor_counts_bad_lines(spoiled: tuple[Release, dict[str, int]]) -> None:
    assert f"{len(REPAIRED)} lines could not be read" in spoiled[0].doctor().out


def test_the_most_that_a_counter_may_say_is_read(release: Release) -> None:
    """Every row at its bound: nothing overflows on the way, though the port would be above line rate."""
    rows = spoil(release.access, lambda lines: [lines[0], *map(at_the_bounds, lines[1:])])
    done(release.build())
    most = rows * (10**15 - 1)
    assert release.ask("SELECT count(*) FROM staging.rejected_rows") == [(0,)]
    assert release.ask("SELECT in_bytes, out_bytes FROM metrics.port_hour WHERE port = 'TwoHundredGigE1/0/1:1'") == [
        (most, most)
    ]


def at_the_bounds(line: bytes) -> bytes:
    return b",".join([*line.split(b",")[:4], *[b"9" * 15] * 4, b"0", b"0\n"])


@pytest.mark.parametrize(
    ("value", "wraps", "resets"),
    [(-(2**32) - 1, 0, 0), (-(2**32), 1, 0), (81_402 - 2**32, 1, 0), (10**9 - 2**32, 0, 1), (-5, 0, 1)],
)
def test_a_32_bit_counter_falls_by_no_more_than_it_holds(release: Release, value: int, wraps: int, resets: int) -> None:
    """At 1 Gbit/s no second has 1e9 B; a fall by 5 B is no 4.29 GB."""
    management = release.hour / LEAF / "Leaf-1_0.csv"
    before = management.read_bytes().count(b",-")
    spoil(management, field(7, b"%d" % value))
    done(release.build())
    asked = "SELECT wraps, resets FROM metrics.port_hour WHERE switch = 'Leaf-1' AND port LIKE 'M-%'"
    assert release.ask(asked) == [(before + wraps, resets)]
    reason = f"{value} bytes are no wrap of a 32-bit counter"
    assert release.ask("SELECT line, reason FROM staging.rejected_rows") == ([] if wraps or resets else [(101, reason)])


def test_a_poll_at_the_very_begin_of_the_hour_is_read(release: Release) -> None:
    """Its window is the first millisecond, which no other window may have."""

    def begin(lines: list[bytes]) -> list[bytes]:
        fields = lines[1].split(b",")
        clock = fields[0].rpartition(b" ")[0] + b" 00:00:00.000"
        return [lines[0], b",".join([clock, b"1716480000000", *fields[2:4], b"1,7,1,7,0,0\n"]), *lines[2:]]

    spoil(release.access, begin)
    done(release.build())
    second = "FROM metrics.port_second WHERE port = 'TwoHundredGigE1/0/1:1' ORDER BY second_utc LIMIT 1"
    assert release.ask(f"SELECT covered_ms {second}") == [(1000,)]


LENIENT = {b"0012": 12, b"-0": 0}


@pytest.mark.parametrize("number", LENIENT)
@pytest.mark.parametrize("another", [False, True], ids=["alone", "beside a bad line"])
def test_some_numbers_are_read_in_other_forms_than_the_published_one(
    release: Release, number: bytes, another: bool
) -> None:
    """As the page of the format says: read as this, whatever else is in the file."""
    spoil(release.access, field(5, number))
    if another:
        spoil(release.access, lambda lines: [*lines, b"x\n"])
    done(release.build())
    assert release.ask("SELECT count(*) FROM staging.rejected_rows") == [(int(another),)]
    rows = "FROM staging.port_counters WHERE port = 'TwoHundredGigE1/0/1:1' ORDER BY time_utc LIMIT 1 OFFSET 99"
    assert release.ask(f"SELECT in_bytes_raw {rows}") == [(LENIENT[number],)]


@pytest.mark.parametrize("column", [1, 4, 5, 6, 7])
def test_a_fraction_is_rejected_without_kernels_too(release: Release, column: int) -> None:
    """The engine alone would round it; points are in ratios too, so that hashing cannot see it."""
    spoil(release.access, row_100(lambda line: b",".join(
        text + b".4" if at == column else text for at, text in enumerate(line.split(b","))
    )))  # fmt: skip
    done(release.build("--plain-sql"))
    ((line, reason),) = release.ask("SELECT line, reason FROM staging.rejected_rows")
    assert (line, "is not a whole number" in str(reason)) == (101, True)


def test_a_blank_line_is_rejected(release: Release) -> None:
    rows = spoil(release.access, lambda lines: [*lines[:100], b"\n", *lines[100:]])
    done(release.build())
    assert release.ask("SELECT line, reason FROM staging.rejected_rows") == [(101, "blank line")]
    assert release.access_rows() == rows


def test_a_line_that_is_odd_in_its_form_alone_is_found_by_every_build(release: Release) -> None:
    """The engine reads it, so that only the hashing can see it, and a second build need not hash again."""
    spoil(release.access, field(5, b"1e3"))
    first = done(release.build("--json")).out
    (release.root / "note.txt").write_text("so that there is something to look at")
    assert '"changed": false' in done(release.build("--json")).out
    assert release.ask("SELECT reason FROM staging.rejected_rows") == [("InOctets is not a number: '1e3'",)]
    shutil.rmtree(release.target / "cache" / "clean")
    (release.root / "note.txt").unlink()
    assert done(release.build("--json")).out.splitlines()[1] == first.splitlines()[1]


def test_a_repaired_file_gives_the_same_build_again(release: Release) -> None:
    spoil(release.access, field(5, b"x"))
    first = done(release.build("--json")).out
    assert '"changed": false' in done(release.build("--json")).out
    shutil.rmtree(release.target)
    again = done(release.build("--json")).out
    assert again.splitlines()[1] == first.splitlines()[1]  # the build's id


def test_many_bad_lines_are_counted(release: Release) -> None:
    spoil(release.access, lambda lines: [*lines[:100], b"x\n", b"y\n", b"z\n", *lines[100:]])
    assert "3 lines rejected" in done(release.build()).err
    assert release.listed(release.access) == ("partial", "line 101: 1 fields instead of 10 and 2 more lines")


def test_of_a_doubled_row_one_is_in(release: Release) -> None:
    rows = spoil(release.access, lambda lines: [*lines[:101], lines[100], *lines[101:]])
    done(release.build())
    assert release.ask("SELECT line, reason FROM staging.rejected_rows") == [(102, "a second row of the same time")]
    assert release.access_rows() == rows


def test_rows_out_of_order_are_all_in(release: Release, expected: Rows) -> None:
    spoil(release.access, lambda lines: [lines[0], *reversed(lines[1:])])
    done(release.build())
    assert release.rows() == expected


@pytest.mark.parametrize("mixed", [False, True], ids=["every line", "one line"])
def test_line_ends_of_another_system_change_no_row(release: Release, expected: Rows, mixed: bool) -> None:
    def change(lines: list[bytes]) -> list[bytes]:
        return [line.replace(b"\n", b"\r\n") if at == 50 or not mixed else line for at, line in enumerate(lines)]

    spoil(release.access, change)
    done(release.build())
    assert release.rows() == expected
    reason = "its lines do not all end alike: read from a mended copy" if mixed else None
    assert release.listed(release.access) == ("read", reason)


# compressed files ---------------------------------------------------------------------------------

PACK: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".zst": zstandard.compress}


def pack(path: Path, suffix: str, cut: int = 0) -> Path:
    """Compress a file in two frames, as parallel compressors do, and cut some bytes off."""
    content = path.read_bytes()
    half = len(content) // 2
    packed = PACK[suffix](content[:half]) + PACK[suffix](content[half:])
    path.unlink()
    found = Path(f"{path}{suffix}")
    found.write_bytes(packed[: len(packed) - cut])
    return found


@pytest.mark.parametrize("suffix", PACK)
def test_a_compressed_hour_gives_the_same_rows(release: Release, expected: Rows, suffix: str) -> None:
    for path in list(release.hour.rglob("*.csv")):
        pack(path, suffix)
    done(release.build())
    assert release.rows() == expected


@pytest.mark.parametrize("suffix", PACK)
def test_a_truncated_compressed_file_keeps_the_rows_before_the_cut(release: Release, suffix: str) -> None:
    path = pack(release.access, suffix, cut=9)
    done(release.build())
    status, reason = release.listed(path)
    assert status == "partial"
    assert "the compressed stream is damaged here" in str(reason)
    assert release.access_rows() > 100
    assert "1 file read in part" in release.doctor().out


@pytest.mark.parametrize("suffix", PACK)
def test_a_file_that_is_compressed_by_name_only_is_skipped(release: Release, suffix: str) -> None:
    path = release.access.rename(f"{release.access}{suffix}")
    done(release.build())
    status, reason = release.listed(path)
    assert status == "skipped"
    assert "cannot be decompressed" in str(reason)


# the same place twice -----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", PACK)
def test_a_plain_and_a_compressed_copy_of_a_port_are_read_once(release: Release, expected: Rows, suffix: str) -> None:
    copy = shutil.copy(release.access, release.base)
    path = pack(release.access, suffix)
    shutil.move(copy, release.access)
    done(release.build())
    assert release.rows() == expected
    shown = release.access.relative_to(release.root).as_posix()
    assert release.listed(path) == ("ignored", f"the same content as {shown}")


def test_the_same_hour_twice_is_read_once(release: Release, expected: Rows) -> None:
    shutil.copytree(release.hour, release.cluster / "backup" / HOUR)
    said = done(release.build())
    assert "5 ignored" in said.err
    assert release.rows() == expected


def test_the_same_release_given_twice_is_read_once(release: Release, expected: Rows) -> None:
    copy = shutil.copytree(release.root, release.base / "copy")
    done(release.build("-d", copy, "-d", release.hour))
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


# workbooks ----------------------------------------------------------------------------------------


def test_a_workbook_that_would_burst_is_skipped(release: Release) -> None:
    with zipfile.ZipFile(release.workbook, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("xl/workbook.xml", bytes(50_000_000))
    done(release.build())
    status, reason = release.listed(release.workbook)
    assert status == "skipped"
    assert "200" in str(reason)  # times its size, which is refused
    assert len(release.rows()) == 5


def test_a_workbook_that_is_no_workbook_is_skipped(release: Release) -> None:
    release.workbook.write_bytes(b"PK\x03\x04 and then nothing")
    done(release.build())
    assert release.listed(release.workbook)[0] == "skipped"
    assert "cluster/cluster.xlsx" in release.doctor().out


def test_a_workbook_without_one_sheet_is_read_in_part(release: Release) -> None:
    book = openpyxl.load_workbook(release.workbook)
    del book["GPU NIC info"]
    book.save(release.workbook)
    book.close()
    done(release.build())
    reason = "only sheet 'cluster topology' is read; no sheet 'GPU NIC info'"
    assert release.listed(release.workbook) == ("partial", reason)
    assert release.ask("SELECT count(*) FROM staging.gpu_nics") == [(0,)]
    assert release.ask("SELECT count(*) > 0 FROM staging.cluster_topology") == [(True,)]


# hour tables --------------------------------------------------------------------------------------


def test_contradicting_rows_of_links_count_as_none_and_are_said(release: Release, sample: Path) -> None:
    header, first = next(sample.rglob(f"{HOUR}_link.csv")).read_text(encoding="utf-8").splitlines()[:2]
    assert "Leaf-1.GPU.S9825,400GE1/0/33," in first
    assert "spine-1.GPU.S9825,FourHundredGigE1/0/1," in first
    elsewhere = first.replace("spine-1.", "spine-7.")
    (release.hour / f"{HOUR}_link.csv").write_text("\n".join([header, first, elsewhere, ""]), encoding="utf-8")
    assert "link tables name 2 different other ends, so none of them is used" in done(release.build()).told
    asked = "SELECT spine, spine_port, source, ends_stated FROM topology.uplinks WHERE leaf = 'Leaf-1'"
    assert release.ask(asked) == [("spine-1", "FourHundredGigE1/0/1", "inferred:uplink_formula", 2)]
    assert release.ask("SELECT device_name FROM topology.switches WHERE switch = 'spine-7'") == [
        ("NH-DC-NM129-E01-ROCE-spine-7.GPU.S9825",)
    ]


# folders and names --------------------------------------------------------------------------------


def test_a_symlink_loop_ends(release: Release, expected: Rows) -> None:
    (release.hour / "loop").symlink_to(release.root, target_is_directory=True)
    (release.hour / "self").symlink_to(release.hour / "self")
    done(release.build())
    assert release.rows() == expected
    assert "/self\n    cannot be read: Too many levels of symbolic links" in release.doctor().out


def test_what_cannot_be_opened_is_skipped_and_listed(release: Release) -> None:
    release.access.unlink()
    release.access.symlink_to("nowhere.csv")
    pipe = release.hour / LEAF / "Leaf-1_34.csv"
    os.mkfifo(pipe)  # who opened it would wait for ever
    (release.hour / LEAF / "Leaf-1_35.csv").mkdir()
    done(release.build())
    assert release.listed(release.access) == ("skipped", "cannot be read: No such file or directory")
    assert release.listed(pipe) == ("skipped", "cannot be read: not a regular file")
    assert len(release.rows()) == 4
    assert "2 files skipped" in release.doctor().out


@pytest.mark.parametrize("before", [0, 2], ids=["when it is inspected", "when it is hashed"])
def test_a_file_that_may_not_be_read_is_skipped_and_listed(
    release: Release, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """Root may read everything, so that opening the file is made to fail, after it went well some times."""
    opened = Path.open
    allowed = [True] * before

    def refuse(path: Path, *arguments: Any, **options: Any) -> Any:
        if path == release.access and not (allowed and allowed.pop()):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **options)

    def refuse_to_hash(path: Path, *arguments: Any, **options: Any) -> Any:
        if path == release.access:
            raise PermissionError(13, "Permission denied", str(path))
        return open(path, *arguments, **options)  # noqa: PTH123 - what is replaced

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(hashing, "open", refuse_to_hash, raising=False)
    done(release.build())
    assert release.listed(release.access) == ("skipped", "cannot be read: Permission denied")
    assert len(release.rows()) == 4


NAMES = {
    "quotes": ["it's", 'a "b"', "`c`", "'; DROP TABLE x; --"],
    "blanks": [" two  blanks ", "tab\there", "line\nbreak", "\x1b[31mred", "\u202eturned"],
    "brackets": ["[1]", "[!a]", "{a,b}", "(x)", "{{ x }}", "[*]"],
    "marks": ["100%", "a%20b", "year=2024", "$HOME", "~", "#1", "a:b", "-d", "a;b", "a&b", "x.csv", "ünï 中"],
    "globs": ["*", "?", "**", "[a-z]*?"],
    "backslashes": ["a\\b", "\\"],
}


@pytest.mark.parametrize("kind", NAMES)
def test_folders_may_have_any_name(sample: Path, tmp_path: Path, expected: Rows, kind: str) -> None:
    """Around release and target, one in the other; the first is also the cluster's and the last a switch's."""
    names = NAMES[kind]
    release = lay_out(sample, tmp_path.joinpath(*names))
    release.cluster = release.cluster.rename(release.root / names[0])
    (release.cluster / "trafficinfo" / HOUR / LEAF).rename(release.cluster / "trafficinfo" / HOUR / names[-1])
    if set("\\?*") & set("".join(names)):  # DuckDB does not write into these
        fails(release.build(), "a target's path cannot hold `")
        release.target = tmp_path / "target"
    done(release.build())
    assert release.rows() == expected
    assert release.ask("SELECT DISTINCT cluster FROM metrics.port_hour") == [(names[0],)]
    assert release.ask("SELECT count(DISTINCT filename) FROM raw.port_counters") == [(5,)]
    told = done(release.doctor()).out
    assert "port_counters: 5 of 5 files read of 2 switches" in told
    assert told.replace("\n", "").isprintable()


def test_a_name_that_is_no_text_is_skipped_and_listed(release: Release) -> None:
    folder = os.fsencode(release.hour) + b"/caf\xe9"
    os.mkdir(folder)
    os.rename(os.fsencode(release.access), folder + b"/Leaf-1_1_1.csv")
    done(release.build())
    assert release.ask("SELECT release_path, status, reason FROM raw.files WHERE status = 'skipped'") == [
        (f"cluster/trafficinfo/{HOUR}/caf\\xe9/Leaf-1_1_1.csv", "skipped", "its path is not UTF-8 text")
    ]
    assert "its path is not UTF-8 text" in done(release.doctor()).out


def test_an_empty_folder_is_an_error_and_the_last_warehouse_stays(published: Release) -> None:
    before = published.state()
    empty = published.base / "empty"
    empty.mkdir()
    fails(published.build(data=empty), f"no files in {empty}")
    assert published.state() == before
    assert f"no files in {empty}" in done(published.doctor(empty)).out


def test_a_folder_of_other_things_is_an_error_and_the_last_warehouse_stays(published: Release) -> None:
    before = published.state()
    other = published.base / "other"
    other.mkdir()
    (other / "data.bin").write_bytes(bytes(100))
    fails(
        published.build(data=other),
        f"nothing readable in {other}: 1 file, none recognised",
        "warehouse doctor",
    )
    assert published.state() == before
    assert "1 file not recognised" in done(published.doctor(other)).out


def test_a_missing_folder_is_an_error_and_the_last_warehouse_stays(published: Release) -> None:
    before = published.state()
    missing = published.base / "missing"
    for said in (published.build(data=missing), published.doctor(missing)):
        fails(said, f"no such data folder: {missing}")
    assert published.state() == before


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


def test_one_file_alone_can_be_given(release: Release) -> None:
    done(release.build(data=release.access))
    assert release.ask("SELECT cluster, port FROM metrics.port_hour") == [("cluster", "TwoHundredGigE1/0/1:1")]


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


# archives -----------------------------------------------------------------------------------------


def as_zip(folder: Path, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for file in sorted(folder.rglob("*.*")):
            package.write(file, file.relative_to(folder))


def as_tar(folder: Path, path: Path) -> None:
    with tarfile.open(path, "w:gz") as package:
        package.add(folder, "release")


ARCHIVES = {"download.zip": as_zip, "download.tar.gz": as_tar}


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_release_can_be_given_as_its_archive(release: Release, expected: Rows, name: str) -> None:
    archive = release.base / name
    ARCHIVES[name](release.root, archive)
    shutil.rmtree(release.root)
    done(release.build(data=archive))
    assert release.rows() == expected
    assert release.ask("SELECT count(*) > 0 FROM raw.port_counters") == [(True,)]
    assert "5 of 5 files read" in done(release.doctor(archive)).out


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_damaged_archive_is_an_error_and_the_last_warehouse_stays(published: Release, name: str) -> None:
    before = published.state()
    archive = published.base / name
    ARCHIVES[name](published.root, archive)
    content = archive.read_bytes()
    archive.write_bytes(content[: len(content) // 2])
    for said in (published.build(data=archive), published.doctor(archive)):
        fails(said, str(archive), "truncated or damaged")
    assert published.state() == before
