"""Lines of port files that cannot be used: each is listed with its number, and the others are read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.ingest.spoiling import an_hour_later, field, row_100, swap
from tests.release import LEAF, Release, Rows, Spoil, done, lay_out, spoil

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
    assert f"{len(REPAIRED)} lines rejected" in done(release.build()).err_text
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


FALLS = {
    -(2**32) - 1: (0, 0), -(2**32): (1, 0), 81_402 - 2**32: (1, 0), 10**9 - 2**32: (0, 1), -5: (0, 1),
}  # fmt: skip
"""Value of a counter -> wraps and resets. At 1 Gbit/s no second has 1e9 B; a fall by 5 B is no 4.29 GB."""


def test_a_32_bit_counter_falls_by_no_more_than_it_holds(release: Release) -> None:
    management = (release.hour / LEAF / "Leaf-1_0.csv").read_bytes()
    for number, value in enumerate(FALLS, start=2):
        path = release.hour / LEAF.replace("Leaf-1_", f"Leaf-{number}_") / f"Leaf-{number}_0.csv"
        path.parent.mkdir()
        path.write_bytes(management.replace(b"Leaf-1.", b"Leaf-%d." % number))
        spoil(path, field(7, b"%d" % value))
    done(release.build())
    for number, (wraps, resets) in enumerate(FALLS.values(), start=2):
        asked = f"SELECT wraps, resets FROM metrics.port_hour WHERE switch = 'Leaf-{number}' AND port LIKE 'M-%'"
        assert release.ask(asked) == [(management.count(b",-") + wraps, resets)]
    reason = f"{next(iter(FALLS))} bytes are no wrap of a 32-bit counter"
    assert release.ask("SELECT line, reason FROM staging.rejected_rows") == [(101, reason)]


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


def copy_port(release: Release, number: int) -> Path:
    """Copy the 200G port to another one and return its file."""
    path = release.access.with_name(f"Leaf-1_{number}_1.csv")
    path.write_bytes(release.access.read_bytes().replace(b"GigE1/0/1:1", f"GigE1/0/{number}:1".encode()))
    return path


def test_some_numbers_are_read_in_other_forms_than_the_published_one(release: Release) -> None:
    """As the page of the format says: read as this, whatever else is in the file."""
    for place, number in enumerate(LENIENT, start=3):
        spoil(copy_port(release, place), field(5, number))
        beside = copy_port(release, place + 10)
        spoil(beside, field(5, number))
        spoil(beside, lambda lines: [*lines, b"x\n"])
    done(release.build())
    assert release.ask("SELECT count(*) FROM staging.rejected_rows") == [(len(LENIENT),)]
    for place, value in enumerate(LENIENT.values(), start=3):
        for port in (place, place + 10):
            rows = f"FROM staging.port_counters WHERE port = 'TwoHundredGigE1/0/{port}:1' ORDER BY time_utc"
            assert release.ask(f"SELECT in_bytes_raw {rows} LIMIT 1 OFFSET 99") == [(value,)]


def test_fractions_are_rejected_without_kernels_too(release: Release) -> None:
    """The engine alone would round them; points are in ratios too, so that hashing cannot see them."""
    columns = (1, 4, 5, 6, 7)
    for place, column in enumerate(columns, start=3):
        spoil(copy_port(release, place), row_100(lambda line, column=column: b",".join(  # type: ignore[misc]
            text + b".4" if at == column else text for at, text in enumerate(line.split(b","))
        )))  # fmt: skip
    done(release.build("--plain-sql"))
    found = release.ask("SELECT file, line, reason FROM staging.rejected_rows ORDER BY file")
    assert [(str(file).rpartition("/")[2], line) for file, line, _ in found] == [
        (f"Leaf-1_{place}_1.csv", 101) for place, _ in enumerate(columns, start=3)
    ]
    assert all("is not a whole number" in str(reason) for _, _, reason in found)


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
