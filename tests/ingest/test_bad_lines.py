"""Lines of port files that cannot be used: each is listed with its number, and the others are read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

import warehouse
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


def copy_port(release: Release, number: int, half: int, change: Spoil) -> int:
    """Copy the 200G port to another one with changed lines; return the number of rows before."""
    path = release.access.with_name(f"Leaf-1_{number}_{half}.csv")
    shutil.copy(release.access, path)
    rows = spoil(path, change)
    path.write_bytes(path.read_bytes().replace(b"GigE1/0/1:1", f"GigE1/0/{number}:{half}".encode()))
    return rows


class Spoiled(NamedTuple):
    """A built release with a file for each such line, and what its tables say by file."""

    release: Release
    rows: dict[str, int]
    rejected: dict[object, list[tuple[object, ...]]]
    listed: dict[object, tuple[object, ...]]
    loaded: dict[object, object]


def port_of_case(case: str) -> tuple[int, int]:
    """Return number and half of the port of a case, each of a port of its own from 1/0/3:1 on."""
    number, half = divmod(list(REPAIRED).index(case), 2)
    return number + 3, half + 1


@pytest.fixture(scope="module")
def spoiled(sample: Path, tmp_path_factory: pytest.TempPathFactory, small_project: None) -> Spoiled:
    release = lay_out(sample, tmp_path_factory.mktemp("spoiled"))
    rows = {case: copy_port(release, *port_of_case(case), change) for case, (change, _, _) in REPAIRED.items()}
    assert f"{len(REPAIRED)} lines rejected" in done(release.build()).err_text
    rejected: dict[object, list[tuple[object, ...]]] = {}
    with warehouse.open(release.target) as opened:
        for file, *row in opened.execute("SELECT file, line, reason FROM staging.rejected_rows").fetchall():
            rejected.setdefault(file, []).append(tuple(row))
        listed = opened.execute("SELECT release_path, status, reason FROM raw.files").fetchall()
        loaded = opened.execute("SELECT port, count(*) FROM staging.port_counters GROUP BY port").fetchall()
    return Spoiled(release, rows, rejected, {file: tuple(row) for file, *row in listed}, dict(loaded))


@pytest.mark.parametrize("case", REPAIRED)
def test_a_bad_line_is_left_out_with_its_number_and_the_rows_around_it_are_in(spoiled: Spoiled, case: str) -> None:
    number, half = port_of_case(case)
    _, at, reason = REPAIRED[case]
    path = spoiled.release.access.with_name(f"Leaf-1_{number}_{half}.csv")
    name = path.relative_to(spoiled.release.root).as_posix()
    ((line, why),) = spoiled.rejected[name]
    assert line == (spoiled.rows[case] + 1 if at < 0 else at)
    assert reason in str(why)
    assert spoiled.listed[name] == ("partial", f"line {line}: {why}")
    assert spoiled.loaded[f"TwoHundredGigE1/0/{number}:{half}"] == spoiled.rows[case] - 1


def test_doctor_counts_bad_lines(spoiled: Spoiled) -> None:
    assert f"{len(REPAIRED)} lines could not be read" in spoiled.release.doctor().out


def at_the_bounds(line: bytes) -> bytes:
    return b",".join([*line.split(b",")[:4], *[b"9" * 15] * 4, b"0", b"0\n"])


def at_the_begin(lines: list[bytes]) -> list[bytes]:
    """A first poll whose window is the first millisecond of the hour, which no other window may have."""
    fields = lines[1].split(b",")
    clock = fields[0].rpartition(b" ")[0] + b" 00:00:00.000"
    return [lines[0], b",".join([clock, b"1716480000000", *fields[2:4], b"1,7,1,7,0,0\n"]), *lines[2:]]


def beside_a_bad_line(number: bytes) -> Spoil:
    return lambda lines: [*field(5, number)(lines), b"x\n"]


LENIENT = {b"0012": 12, b"-0": 0}
ODD: dict[str, Spoil] = {
    "at the bounds": lambda lines: [lines[0], *map(at_the_bounds, lines[1:])],
    "at the begin": at_the_begin,
    "a blank line": lambda lines: [*lines[:100], b"\n", *lines[100:]],
    "many bad lines": lambda lines: [*lines[:100], b"x\n", b"y\n", b"z\n", *lines[100:]],
    "a doubled row": lambda lines: [*lines[:101], lines[100], *lines[101:]],
    "out of order": lambda lines: [lines[0], *reversed(lines[1:])],
    "every line ends so": lambda lines: [line.replace(b"\n", b"\r\n") for line in lines],
    "one line ends so": row_100(lambda line: line.replace(b"\n", b"\r\n")),
    **{f"{number.decode()} alone": field(5, number) for number in LENIENT},
    **{f"{number.decode()} beside a bad line": beside_a_bad_line(number) for number in LENIENT},
}  # fmt: skip
"""Files of which all lines are read but for the bad ones, each of a port of its own from 1/0/3:1 on."""


class Odd(NamedTuple):
    """A built release with such files, and the rows of the port that they are copies of."""

    release: Release
    rows: int

    def path(self, case: str) -> Path:
        return self.release.access.with_name(f"Leaf-1_{list(ODD).index(case) + 3}_1.csv")

    def ask(self, case: str, columns: str, table: str) -> Rows:
        """Return columns of the port of a case."""
        port = f"TwoHundredGigE1/0/{list(ODD).index(case) + 3}:1"
        return self.release.ask(f"SELECT {columns} FROM {table} WHERE port = '{port}' ORDER BY ALL")

    def rejected(self, case: str) -> Rows:
        """Return the rejected lines of the file of a case."""
        name = self.path(case).relative_to(self.release.root).as_posix()
        return self.release.ask(f"SELECT line, reason FROM staging.rejected_rows WHERE file = '{name}' ORDER BY ALL")

    def is_whole(self, case: str) -> bool:
        """Return True if the port has all values of the intact one."""
        columns = "polls, in_bytes, out_bytes"
        intact = f"SELECT {columns} FROM metrics.port_hour WHERE port = 'TwoHundredGigE1/0/1:1'"
        return self.ask(case, columns, "metrics.port_hour") == self.release.ask(intact)


@pytest.fixture(scope="module")
def odd(sample: Path, tmp_path_factory: pytest.TempPathFactory, small_project: None) -> Odd:
    release = lay_out(sample, tmp_path_factory.mktemp("odd"))
    (rows,) = {copy_port(release, number, 1, change) for number, change in enumerate(ODD.values(), start=3)}
    assert f"{1 + 3 + 1 + len(LENIENT)} lines rejected" in done(release.build()).err
    return Odd(release, rows)


def test_the_most_that_a_counter_may_say_is_read(odd: Odd) -> None:
    """Every row at its bound: nothing overflows on the way, though the port would be above line rate."""
    most = odd.rows * (10**15 - 1)
    assert odd.rejected("at the bounds") == []
    assert odd.ask("at the bounds", "in_bytes, out_bytes", "metrics.port_hour") == [(most, most)]


def test_a_poll_at_the_very_begin_of_the_hour_is_read(odd: Odd) -> None:
    assert odd.ask("at the begin", "second_utc, covered_ms", "metrics.port_second")[0][1] == 1000


def test_some_numbers_are_read_in_other_forms_than_the_published_one(odd: Odd) -> None:
    """As the page of the format says: read as this, whatever else is in the file."""
    for number, value in LENIENT.items():
        for beside, count in (("alone", 0), ("beside a bad line", 1)):
            case = f"{number.decode()} {beside}"
            assert len(odd.rejected(case)) == count
            assert odd.ask(case, "time_utc, in_bytes_raw", "staging.port_counters")[99][1] == value


def test_a_blank_line_is_rejected(odd: Odd) -> None:
    assert odd.rejected("a blank line") == [(101, "blank line")]
    assert odd.is_whole("a blank line")


def test_many_bad_lines_are_counted(odd: Odd) -> None:
    reason = "line 101: 1 fields instead of 10 and 2 more lines"
    assert odd.release.listed(odd.path("many bad lines")) == ("partial", reason)


def test_of_a_doubled_row_one_is_in(odd: Odd) -> None:
    assert odd.rejected("a doubled row") == [(102, "a second row of the same time")]
    assert odd.is_whole("a doubled row")


def test_rows_out_of_order_are_all_in(odd: Odd) -> None:
    assert odd.is_whole("out of order")


@pytest.mark.parametrize("mixed", [False, True], ids=["every line", "one line"])
def test_line_ends_of_another_system_change_no_row(odd: Odd, mixed: bool) -> None:
    case = "one line ends so" if mixed else "every line ends so"
    assert odd.is_whole(case)
    reason = "its lines do not all end alike: read from a mended copy" if mixed else None
    assert odd.release.listed(odd.path(case)) == ("read", reason)


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
    shutil.rmtree(release.target)
    assert done(release.build("--json")).out.splitlines()[1] == first.splitlines()[1]  # the build's id
