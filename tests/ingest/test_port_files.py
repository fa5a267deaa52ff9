"""Port files with bad lines, of odd forms, packed or of no use: all in one release, which is built once.

A bad line is listed with its number and the lines around it are read. A file of no use is listed with its reason and
changes no row.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard

import warehouse
from tests.release import LEAF, Release, Rows, Spoil, done, lay_out, spoil
from tests.tiny import Tiny
from warehouse.project.project import Project


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


def an_hour_later(line: bytes) -> bytes:
    fields = line.split(b",")
    fields[0] = fields[0].replace(b" 00:", b" 01:")
    fields[1] = str(int(fields[1]) + 3_600_000).encode()
    return b",".join(fields)


BAD: dict[str, tuple[Spoil, int, str]] = {
    "a garbled number": (field(5, b"12x4"), 101, "InOctets is not a number: '12x4'"),
    "a number with a comma": (field(5, b"1,234"), 101, "11 fields instead of 10"),
    "a number that no column holds": (field(5, b"9" * 30), 101, "InOctets is beyond all bounds: '9999"),
    "a number that no sum holds": (field(6, b"%d" % (2**63 - 1)), 101, "OutPkts is beyond all bounds: '9223372036"),
    "more than a port can move": (field(5, b"1" + b"0" * 15), 101, "InOctets is beyond all bounds: '1000000"),
    "bytes that are no text": (field(2, b"\xff\xfe"), 101, "not UTF-8 text"),
    "zero bytes": (row_100(lambda line: bytes(len(line) - 1) + b"\n"), 101, "1 fields instead of 10"),
    "a line that never ends": (row_100(lambda _: b"7" * 3_000_000 + b"\n"), 101, "longer than 262,144 bytes"),
    "a fraction": (field(5, b"1324856.24"), 101, "InOctets is not a whole number: '1324856.24'"),
    "an exponent": (field(5, b"1e3"), 101, "InOctets is not a number: '1e3'"),
    "a number with separators": (field(4, b"1_000"), 101, "InPkts is not a number: '1_000'"),
    "another port": (
        row_100(lambda line: line.replace(b"E1/0/1:1", b"E1/0/40:1")),
        101,
        "TwoHundredGigE1/0/40:1 in the file of NH-DC-NM129",
    ),
    "a wrong clock": (
        row_100(lambda line: line.replace(b"/05/24", b"/05/23")),
        101,
        "SaveTime is not SaveTimeUTC + 8 h",
    ),
    "the next hour": (row_100(an_hour_later), 101, "its time, 2024-05-23 17:0"),
    "a first row of another port": (
        lambda lines: [lines[0], lines[1].replace(b"E1/0/1:1", b"E1/0/40:1"), *lines[2:]],
        2,
        "TwoHundredGigE1/0/40:1 in the file of",
    ),
    "a torn last line": (
        lambda lines: [*lines[:-1], lines[-1][:-8]],
        -1,
        "torn: the file ends without a final newline",
    ),
}
"""Change of a port's file, the line that is rejected for it (-1: the last one), and the begin of the reason."""

NAMED = "compressed by name only"
LOST: dict[str, tuple[Spoil, str]] = {
    "a picture": (lambda _: [b"\x89PNG\r\n\x1a\n", bytes(range(256)) * 20], "not a text file"),
    "a zero-byte file": (lambda _: [], "empty file"),
    "the header only": (lambda lines: lines[:1], "no readable row below the header: the file ends there"),
    "a byte order mark": (lambda lines: [b"\xef\xbb\xbf", *lines], "byte order mark"),
    "semicolons": (lambda lines: [line.replace(b",", b";") for line in lines], "the separator is `;`, not a comma"),
    "columns re-ordered": (
        lambda lines: [lines[0].replace(b"InPkts,InOctets", b"InOctets,InPkts"), *lines[1:]],
        "the columns are re-ordered: SaveTime,SaveTimeUTC,DeviceName,PortName,InOctets,InPkts",
    ),
    "a column renamed": (
        lambda lines: [lines[0].replace(b"InOctets", b"InBytes"), *lines[1:]],
        "without InOctets and with InBytes",
    ),
    "SQL for a port": (
        lambda lines: [line.replace(b"TwoHundredGigE1/0/1:1", b"'; DROP TABLE x; --") for line in lines],
        'PortName "\'; DROP TABLE x; --" is not of the form TwoHundredGigE1/0/1:1',
    ),
    "another hour than the folder's": (
        lambda lines: [lines[0], *map(an_hour_later, lines[1:])],
        "the folder is 2024-05-23 16:00 UTC, its first row is of 2024-05-23 17:00 UTC",
    ),
    **{f"{NAMED} {suffix}": (list, "cannot be decompressed") for suffix in (".gz", ".zst")},
}
"""Files of no use, each beside the good ones and at first equal to the 200G port, and the reason that is listed."""


def at_the_bounds(line: bytes) -> bytes:
    return b",".join([*line.split(b",")[:4], *[b"9" * 15] * 4, b"0", b"0\n"])


def at_the_begin(lines: list[bytes]) -> list[bytes]:
    """A first poll whose window is the first millisecond of the hour, which no other window may have."""
    fields = lines[1].split(b",")
    clock = fields[0].rpartition(b" ")[0] + b" 00:00:00.000"
    return [lines[0], b",".join([clock, b"1716480000000", *fields[2:4], b"1,7,1,7,0,0\n"]), *lines[2:]]


LENIENT = {b"0012": 12, b"-0": 0}
"""Numbers that are read as the page of the format says, whatever else is in the file."""
ODD: dict[str, Spoil] = {
    "at the bounds": lambda lines: [lines[0], *map(at_the_bounds, lines[1:])],
    "at the begin": at_the_begin,
    "a blank line": lambda lines: [*lines[:100], b"\n", *lines[100:]],
    "many bad lines": lambda lines: [*lines[:100], b"x\n", b"y\n", b"z\n", *lines[100:]],
    "a doubled row": lambda lines: [*lines[:101], lines[100], *lines[101:]],
    "out of order": lambda lines: [lines[0], *reversed(lines[1:])],
    "every line ends in CR LF": lambda lines: [line.replace(b"\n", b"\r\n") for line in lines],
    "one line ends in CR LF": row_100(lambda line: line.replace(b"\n", b"\r\n")),
    "0012 alone": field(5, b"0012"),
    "-0 alone": field(5, b"-0"),
    "0012 beside a bad line": lambda lines: [*field(5, b"0012")(lines), b"x\n"],
    "-0 beside a bad line": lambda lines: [*field(5, b"-0")(lines), b"x\n"],
    "packed .gz": list,
    "packed .zst": list,
    "cut .gz": list,
    "cut .zst": list,
}
WHOLE = ("a blank line", "a doubled row", "out of order", "every line ends in CR LF", "one line ends in CR LF",
         "packed .gz", "packed .zst")  # fmt: skip
"""Cases whose port has all values of the intact one."""
REJECTED: dict[str, Rows] = {
    "at the bounds": [],
    "a blank line": [(101, "blank line")],
    "a doubled row": [(102, "a second row of the same time")],
    "0012 alone": [],
    "-0 alone": [],
}
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


class Spoiled(NamedTuple):
    """A built release with a file for each case; the ports are copies of one."""

    release: Release
    files: dict[str, Path]
    ports: dict[str, str]
    lines: list[bytes]
    """Lines of the file that the others are copies of."""
    ask: Callable[[str], Rows]

    def port(self, case: str, columns: str, table: str = "metrics.port_hour") -> Rows:
        """Return columns of the port of a case."""
        return self.ask(f"SELECT {columns} FROM {table} WHERE port = '{self.ports[case]}' ORDER BY ALL")

    def rejected(self, case: str) -> Rows:
        """Return the rejected lines of the file of a case."""
        name = self.files[case].relative_to(self.release.root).as_posix()
        return self.ask(f"SELECT line, reason FROM staging.rejected_rows WHERE file = '{name}' ORDER BY ALL")

    def listed(self, case: str) -> tuple[object, ...]:
        """Return status and reason of the file of a case."""
        (row,) = self.ask(f"SELECT status, reason FROM raw.files WHERE path = '{self.files[case]}'")
        return row


@pytest.fixture(scope="module")
def small_project(fabric_project: Project) -> Iterator[None]:
    """Build with the models of ports and NICs alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: fabric_project)
        yield


@pytest.fixture(scope="module")
def spoiled(sample: Path, tmp_path_factory: pytest.TempPathFactory, small_project: None) -> Iterator[Spoiled]:
    release = lay_out(sample, tmp_path_factory.mktemp("spoiled"))
    lines = release.access.read_bytes().splitlines(keepends=True)
    files, ports = {}, {"intact": "TwoHundredGigE1/0/1:1"}
    for at, (case, change) in enumerate({**{case: one[0] for case, one in BAD.items()}, **ODD}.items()):
        name, (how, _, suffix) = f"{3 + at // 2}:{1 + at % 2}", case.partition(" ")
        files[case], ports[case] = (
            release.access.with_name(f"Leaf-1_{name.replace(':', '_')}.csv"),
            f"TwoHundredGigE1/0/{name}",
        )
        files[case].write_bytes(b"".join(change(lines)).replace(b"GigE1/0/1:1", f"GigE1/0/{name}".encode()))
        if suffix in PACK:
            files[case] = pack(files[case], suffix, cut=9 if how == "cut" else 0)
    for at, (case, (change, _)) in enumerate(LOST.items()):
        files[case] = release.access.with_name(f"Leaf-1_{at}_9.csv{case.rpartition(' ')[2] if NAMED in case else ''}")
        files[case].write_bytes(b"".join(change(lines)))
    kept = shutil.copy(release.uplink, release.base)
    files["a copy"] = pack(release.uplink, ".gz")
    shutil.move(kept, release.uplink)
    files["no wrap"] = release.hour / LEAF / "Leaf-1_0.csv"
    spoil(files["no wrap"], field(7, b"%d" % (-(2**32) - 1)))
    assert f"{len(LOST)} skipped" in done(release.build()).err_text
    with warehouse.open(release.target) as connection:
        yield Spoiled(release, files, ports, lines, lambda sql: connection.execute(sql).fetchall())


def test_a_bad_line_is_left_out_with_its_number_and_the_rows_around_it_are_in(spoiled: Spoiled) -> None:
    rows = len(spoiled.lines) - 1
    for case, (_, at, reason) in BAD.items():
        ((line, why),) = spoiled.rejected(case)
        assert (line, reason in str(why)) == (rows + 1 if at < 0 else at, True), case
        assert spoiled.listed(case) == ("partial", f"line {line}: {why}")
        assert spoiled.port(case, "count(*)", "staging.port_counters") == [(rows - 1,)], case
    assert spoiled.listed("many bad lines") == ("partial", "line 101: 1 fields instead of 10 and 2 more lines")
    for suffix in PACK:
        status, why = spoiled.listed(f"cut {suffix}")
        assert (status, "the compressed stream is damaged here" in str(why)) == ("partial", True)
        assert spoiled.port(f"cut {suffix}", "count(*) > 100", "staging.port_counters") == [(True,)]


def test_a_file_of_no_use_is_listed_with_its_reason_and_changes_no_row(spoiled: Spoiled) -> None:
    for case, (_, reason) in LOST.items():
        status, why = spoiled.listed(case)
        assert (status, reason in str(why)) == ("skipped", True), case
    shown = spoiled.release.uplink.relative_to(spoiled.release.root).as_posix()
    assert spoiled.listed("a copy") == ("ignored", f"the same content as {shown}")
    fields = [line.split(b",") for line in spoiled.lines[1:]]
    truth = (len(fields), sum(int(one[5]) for one in fields), sum(int(one[7]) for one in fields))
    assert spoiled.port("intact", "polls, in_bytes, out_bytes") == [truth]
    told = done(spoiled.release.doctor()).out
    [(lines,)] = spoiled.ask("SELECT count(*) FROM staging.rejected_rows")
    assert f"{lines} lines could not be read" in told
    assert f"{len(LOST)} files skipped" in told
    name = spoiled.files["a picture"].relative_to(spoiled.release.root).as_posix()
    assert f"  {name}\n    not a text file" in told


def test_a_port_in_an_odd_form_is_whole_and_only_what_is_bad_is_rejected(spoiled: Spoiled) -> None:
    columns = "polls, in_bytes, out_bytes"
    assert [case for case in WHOLE if spoiled.port(case, columns) != spoiled.port("intact", columns)] == []
    assert {case: spoiled.rejected(case) for case in REJECTED} == REJECTED
    assert spoiled.rejected("no wrap") == [(101, "-4294967297 bytes are no wrap of a 32-bit counter")]
    assert spoiled.listed("every line ends in CR LF") == ("read", None)
    mixed = "its lines do not all end alike: read from a mended copy"
    assert spoiled.listed("one line ends in CR LF") == ("read", mixed)
    for number, value in LENIENT.items():
        for beside in ("alone", "beside a bad line"):
            case = f"{number.decode()} {beside}"
            assert spoiled.port(case, "time_utc, in_bytes_raw", "staging.port_counters")[99][1] == value


def test_values_at_the_bounds_are_read(spoiled: Spoiled) -> None:
    """Every row at its bound: nothing overflows on the way, though the port would be above line rate."""
    most = (len(spoiled.lines) - 1) * (10**15 - 1)
    assert spoiled.port("at the bounds", "in_bytes, out_bytes") == [(most, most)]
    assert spoiled.port("at the begin", "second_utc, covered_ms", "metrics.port_second")[0][1] == 1000


def test_a_line_that_is_odd_in_its_form_alone_is_found_by_every_build(tiny: Tiny) -> None:
    """The engine reads it, so that only the hashing can see it, and a second build need not hash again."""
    tiny.model(
        "metrics.total", "SELECT PortName AS port, InOctets AS bytes FROM raw.port_counters",
        {"port": "VARCHAR", "bytes": "BIGINT"}, "grain: [port, bytes]",
    )  # fmt: skip
    shutil.rmtree(tiny.file(1).parents[1])
    tiny.file(0, "1,100,2,200,0,0.5", "1,1e3,2,200,0,0.5")
    first = done(tiny.build("--json")).out.splitlines()[1]
    (noted,) = (tiny.target / "cache" / "clean").glob("*/lines.json")
    noted.write_bytes(noted.read_bytes()[:-9])  # as after a kill or a loss of power
    (tiny.data / "note.txt").write_text("so that there is something to look at")
    assert '"changed": false' in done(tiny.build("--json")).out
    assert tiny.ask("SELECT reason FROM raw.rejected_rows") == [("InOctets is not a number: '1e3'",)]
    assert tiny.ask("SELECT bytes FROM metrics.total") == [(100,)]
    shutil.rmtree(tiny.target / "cache" / "clean")
    (tiny.data / "note.txt").unlink()
    assert done(tiny.build("--json")).out.splitlines()[1] == first
