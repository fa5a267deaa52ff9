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
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from conftest import Command, Said

import warehouse

LEAF = "NH-DC-NM129-B03-ROCE-Leaf-1_GPU_S9825"
STORAGE = "NH-DC-NM224-J05-ROCE-ST-leaf-1_GPU_S9825"
HOUR = "2024052400"
PORTS = {LEAF: ("Leaf-1_0", "Leaf-1_1_1", "Leaf-1_33"), STORAGE: ("leaf-1_0", "leaf-1_55")}
HEADER = b"SaveTime,SaveTimeUTC,DeviceName,PortName,InPkts,InOctets,OutPkts,OutOctets,InRatio,OutRatio"
Rows = list[tuple[object, ...]]
Spoil = Callable[[list[bytes]], list[bytes]]
"""Lines of a CSV, the header first and each with its newline, to the lines that are there instead."""


class Release:
    """A small release, its target, and the commands that are tried on them."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "release"
        self.cluster = self.root / "cluster"
        self.hour = self.cluster / "trafficinfo" / HOUR
        self.access = self.hour / LEAF / "Leaf-1_1_1.csv"
        self.uplink = self.hour / LEAF / "Leaf-1_33.csv"
        self.workbook = self.cluster / "cluster.xlsx"
        self.target = base / "target"

    def build(self, *options: str | Path, data: Path | None = None) -> Said:
        return call("build", "-d", data or self.root, "-t", self.target, *options, cwd=self.base)

    def doctor(self, data: Path | None = None) -> Said:
        return call("doctor", "--all", "-d", data or self.root, "-t", self.target, cwd=self.base)

    def ask(self, sql: str) -> Rows:
        with warehouse.open(self.target) as connection:
            return connection.execute(sql).fetchall()

    def listed(self, path: Path) -> tuple[object, ...]:
        """(status, reason) of a file in `raw.files`."""
        (row,) = self.ask(f"SELECT status, reason FROM raw.files WHERE path = '{path}'")
        return row

    def rows(self) -> Rows:
        """What the warehouse says of the ports."""
        return self.ask("SELECT switch, port, polls, in_bytes, out_bytes FROM metrics.port_hour ORDER BY ALL")

    def access_rows(self) -> int:
        """How many rows of the 200G port are in."""
        ((count,),) = self.ask("SELECT count(*) FROM staging.port_counters WHERE port = 'TwoHundredGigE1/0/1:1'")
        assert isinstance(count, int)
        return count

    def state(self) -> Rows:
        """What a reader of the warehouse sees: which build it is, and what it says."""
        return self.ask("SELECT build_id, published_utc::VARCHAR FROM meta.build") + self.rows()


def lay_out(sample: Path, base: Path) -> Release:
    found = Release(base)
    cluster = sample / "zhejiang" / "cluster_sample"
    for switch, ports in PORTS.items():
        (found.hour / switch).mkdir(parents=True)
        for port in ports:
            shutil.copy(cluster / "trafficinfo" / HOUR / switch / f"{port}.csv", found.hour / switch)
    shutil.copy(cluster / "cluster_sample.xlsx", found.workbook)
    return found


@pytest.fixture
def release(sample: Path, tmp_path: Path) -> Release:
    """The release as it should be, not built."""
    return lay_out(sample, tmp_path)


@pytest.fixture
def published(release: Release) -> Release:
    """The same, built: what a failing build must not touch."""
    assert release.build().status == 0
    return release


@pytest.fixture(scope="module")
def expected(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """What the release says when nothing is wrong with it."""
    whole = lay_out(sample, tmp_path_factory.mktemp("whole"))
    assert whole.build().status == 0
    return whole.rows()


def spoil(path: Path, change: Spoil) -> int:
    """Change the lines of a CSV; returns how many rows it had."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(change(list(lines))))
    return len(lines) - 1


def done(said: Said) -> Said:
    assert said.status == 0, said
    return said


def fails(said: Said, *words: str, status: int = 2) -> None:
    """The command ended with this status and one sentence that holds these words."""
    assert said.status == status, said
    assert said.out == ""
    assert said.err.count("error: ") == 1
    told = said.err[said.err.index("error: ") :]
    for word in words:
        assert word in told


# a file that cannot be used as a whole ------------------------------------------------------------


def with_header(header: bytes) -> Spoil:
    return lambda lines: [header + b"\n", *lines[1:]]


def in_every_row(old: bytes, new: bytes) -> Spoil:
    return lambda lines: [lines[0], *(line.replace(old, new) for line in lines[1:])]


SWAPPED = HEADER.replace(b"InPkts,InOctets", b"InOctets,InPkts")
LOST = {
    "a picture": (lambda _: [b"\x89PNG\r\n\x1a\n", bytes(range(256)) * 20], "not a text file"),
    "zeros": (lambda _: [bytes(5000)], "the header is not that of port counters"),
    "a zero-byte file": (lambda _: [], "empty file"),
    "the header only": (lambda lines: lines[:1], "no readable row below the header: the file ends there"),
    "a header without newline": (lambda _: [HEADER], "no readable row below the header"),
    "one torn row": (lambda lines: [lines[0], lines[1][:40]], "no readable row below the header"),
    "no header": (lambda lines: lines[1:], "the header is not that of port counters"),
    "UTF-16": (lambda lines: [b"".join(lines).decode().encode("utf-16")], "not a text file"),
    "a byte order mark": (lambda lines: [b"\xef\xbb\xbf", *lines], "byte order mark"),
    "quotes": (with_header(HEADER.replace(b",", b'","')), "the header is not that of port counters"),
    "semicolons": (
        lambda lines: [line.replace(b",", b";") for line in lines],
        "the header is not that of port counters",
    ),
    "columns re-ordered": (with_header(SWAPPED), "the columns are re-ordered: SaveTime,SaveTimeUTC"),
    "a column missing": (with_header(HEADER.removesuffix(b",OutRatio")), "without OutRatio"),
    "a column more": (with_header(HEADER + b",Errors"), "with Errors"),
    "a column renamed": (
        with_header(HEADER.replace(b"InOctets", b"InBytes")),
        "without InOctets and with InBytes",
    ),
    "a column twice": (with_header(HEADER.replace(b"InPkts", b"InOctets")), "without InPkts"),
    "SQL in the port's name": (
        in_every_row(b"TwoHundredGigE1/0/1:1", b"'; DROP TABLE x; --"),
        "is not of the form TwoHundredGigE1/0/1:1",
    ),
    "SQL in the device's name": (
        in_every_row(b"NH-DC-NM129-B03-ROCE-Leaf-1.GPU.S9825", b"x'); DROP SCHEMA metrics; --Leaf-1"),
        "does not name a leaf or a spine",
    ),
    "a time beyond all calendars": (
        in_every_row(b",17164", b",9999917164"),
        "no readable row below the header: line 2: SaveTime is not SaveTimeUTC + 8 h",
    ),
}


@pytest.mark.parametrize("case", LOST)
def test_a_file_that_cannot_be_used_is_skipped_with_its_reason_and_the_rest_is_built(
    release: Release, case: str
) -> None:
    change, reason = LOST[case]
    spoil(release.access, change)
    said = release.build()
    assert said.status == 0, said
    assert "1 skipped" in said.err
    status, why = release.listed(release.access)
    assert status == "skipped"
    assert reason in str(why)
    assert release.rows("SELECT count(*) FROM metrics.port_hour") == [(4,)]
    told = release.doctor()
    assert told.status == 0
    assert "1 file skipped" in told.out
    assert f"cluster/trafficinfo/{HOUR}/{LEAF}/Leaf-1_1_1.csv\n    {why}\n" in told.out


def test_a_file_of_another_hour_than_its_folder_is_skipped(release: Release) -> None:
    other = release.hour.with_name("2024052407")
    release.hour.rename(other)
    said = release.build()
    assert said.status == 0, said  # the workbook is read
    assert "5 skipped" in said.err
    assert release.listed(other / LEAF / "Leaf-1_33.csv") == (
        "skipped",
        "the folder is 2024-05-23 23:00 UTC, its first row is of 2024-05-23 16:00 UTC",
    )


# lines that cannot be used ------------------------------------------------------------------------


def at_row_100(change: Callable[[bytes], bytes]) -> Spoil:
    """Line 101 of the file is changed."""
    return lambda lines: [*lines[:100], change(lines[100]), *lines[101:]]


def field(position: int, value: bytes) -> Callable[[bytes], bytes]:
    """The line with another value in this field, counted from 0."""

    def change(line: bytes) -> bytes:
        fields = line.rstrip(b"\n").split(b",")
        fields[position] = value
        return b",".join(fields) + b"\n"

    return change


OTHER_DAY = at_row_100(
    lambda line: line.replace(b"2024/05/24", b"2024/05/25").replace(b",17164", b",17165").replace(b",17165", b",17165")
)


def an_hour_later(line: bytes) -> bytes:
    fields = line.split(b",")
    fields[0] = fields[0].replace(b" 00:", b" 01:")
    fields[1] = str(int(fields[1]) + 3_600_000).encode()
    return b",".join(fields)


MENDED = {
    "a garbled number": (at_row_100(field(5, b"12x4")), 101, "InOctets is not a number: '12x4'"),
    "a number with a comma": (at_row_100(field(5, b"1,234")), 101, "11 fields instead of 10"),
    "a field less": (at_row_100(lambda line: line.rpartition(b",")[0] + b"\n"), 101, "9 fields instead of 10"),
    "a blank counter": (at_row_100(field(5, b"")), 101, "InOctets is not a number: ''"),
    "a blank ratio": (at_row_100(field(8, b"")), 101, "InRatio is not a number: ''"),
    "a blank port": (at_row_100(field(3, b"")), 101, "PortName is blank"),
    "a number that no column holds": (at_row_100(field(5, b"9" * 30)), 101, "InOctets is not a number"),
    "a time beyond all calendars": (at_row_100(field(1, b"9" * 18)), 101, "SaveTime is not SaveTimeUTC + 8 h"),
    "bytes that are no text": (at_row_100(field(2, b"\xff\xfe")), 101, "not UTF-8 text"),
    "zero bytes": (at_row_100(lambda line: bytes(len(line) - 1) + b"\n"), 101, "1 fields instead of 10"),
    "a line that never ends": (at_row_100(lambda _: b"7" * 3_000_000 + b"\n"), 101, "longer than 262,144 bytes"),
    "a row of another port": (
        at_row_100(lambda line: line.replace(b"E1/0/1:1", b"E1/0/2:1")),
        101,
        "a row of NH-DC-NM129-B03-ROCE-Leaf-1.GPU.S9825 TwoHundredGigE1/0/2:1 in the file of",
    ),
    "a row of another switch": (at_row_100(lambda line: line.replace(b"Leaf-1", b"Leaf-2")), 101, "in the file of"),
    "SQL in a port's name": (at_row_100(field(3, b"'; DROP TABLE x; --")), 101, "a row of NH-DC-NM129"),
    "a clock that is wrong": (
        at_row_100(lambda line: line.replace(b"2024/05/24", b"2024/05/23")),
        101,
        "SaveTime is not SaveTimeUTC + 8 h",
    ),
    "a day that no calendar has": (
        at_row_100(lambda line: line.replace(b"2024/05/24", b"2024/13/24")),
        101,
        "SaveTime is not SaveTimeUTC + 8 h",
    ),
    "a row of the next hour": (at_row_100(an_hour_later), 101, "is outside the file's hour"),
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
    "a torn last line": (lambda lines: [*lines[:-1], lines[-1][:-8]], 0, "torn: the file ends without a final newline"),
}


@pytest.mark.parametrize("case", MENDED)
def test_a_bad_line_is_left_out_with_its_number_and_the_rows_around_it_are_in(
    release: Release, case: str
) -> None:
    change, number, reason = MENDED[case]
    rows = spoil(release.access, change)
    said = release.build()
    assert said.status == 0, said
    assert "lines rejected" in said.err
    found = release.rows("SELECT file, line, reason FROM staging.rejected_rows")
    assert len(found) == 1, found
    file, line, why = found[0]
    assert file == f"cluster/trafficinfo/{HOUR}/{LEAF}/Leaf-1_1_1.csv"
    assert line == (number or rows + 1)
    assert reason in str(why)
    assert release.listed(release.access) == ("partial", f"line {line}: {why}")
    assert release.rows(
        "SELECT count(*) FROM staging.port_counters WHERE port = 'TwoHundredGigE1/0/1:1'"
    ) == [(rows - 1,)]
    assert "1 line could not be read" in release.doctor().out
    again = release.build("--json")
    assert '"changed": false' in again.out


def test_of_a_doubled_row_one_is_in(release: Release) -> None:
    rows = spoil(release.access, lambda lines: [*lines[:101], lines[100], *lines[101:]])
    assert release.build().status == 0
    assert release.rows("SELECT line, reason FROM staging.rejected_rows") == [(102, "a second row of the same time")]
    assert release.rows(
        "SELECT count(*) FROM staging.port_counters WHERE port = 'TwoHundredGigE1/0/1:1'"
    ) == [(rows,)]


def test_rows_out_of_order_are_all_in(release: Release) -> None:
    rows = spoil(release.access, lambda lines: [lines[0], *reversed(lines[1:])])
    assert release.build().status == 0
    assert release.rows(
        "SELECT count(*) FROM staging.port_counters WHERE port = 'TwoHundredGigE1/0/1:1'"
    ) == [(rows,)]


@pytest.mark.parametrize("mixed", [False, True], ids=["every line", "one line"])
def test_line_ends_of_another_system_change_no_row(release: Release, mixed: bool) -> None:
    release.build()
    before = release.state()[1:]
    spoil(
        release.access,
        lambda lines: [
            line.replace(b"\n", b"\r\n") if number == 50 or not mixed else line for number, line in enumerate(lines)
        ],
    )
    assert release.build().status == 0
    assert release.state()[1:] == before
    status, reason = release.listed(release.access)
    assert status == "read"
    assert reason == ("its lines do not all end alike: read from a mended copy" if mixed else None)


def test_many_bad_lines_are_counted(release: Release) -> None:
    spoil(release.access, lambda lines: [*lines[:100], b"x\n", b"y\n", b"z\n", *lines[100:]])
    assert "3 lines rejected" in release.build().err
    assert release.listed(release.access) == ("partial", "line 101: 1 fields instead of 10 and 2 more lines")


# compressed files ---------------------------------------------------------------------------------

PACK: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".zst": zstandard.compress}


@pytest.mark.parametrize("suffix", PACK)
def test_a_compressed_hour_gives_the_same_rows(release: Release, suffix: str) -> None:
    release.build()
    before = release.state()[1:]
    for path in release.hour.rglob("*.csv"):
        content = path.read_bytes()
        half = len(content) // 2  # two frames, as parallel compressors write them
        Path(f"{path}{suffix}").write_bytes(PACK[suffix](content[:half]) + PACK[suffix](content[half:]))
        path.unlink()
    assert release.build().status == 0
    assert release.state()[1:] == before


@pytest.mark.parametrize("suffix", PACK)
def test_a_truncated_compressed_file_keeps_the_rows_before_the_cut(release: Release, suffix: str) -> None:
    content = release.access.read_bytes()
    half = len(content) // 2
    path = Path(f"{release.access}{suffix}")
    path.write_bytes(PACK[suffix](content[:half]) + PACK[suffix](content[half:])[:-9])
    release.access.unlink()
    said = release.build()
    assert said.status == 0, said
    status, reason = release.listed(path)
    assert status == "partial"
    assert "the compressed stream is damaged here" in str(reason)
    (kept,) = release.rows("SELECT count(*) FROM staging.port_counters WHERE port = 'TwoHundredGigE1/0/1:1'")
    assert kept > (100,)
    assert "1 file read in part" in release.doctor().out


@pytest.mark.parametrize("suffix", PACK)
def test_a_file_that_is_compressed_by_name_only_is_skipped(release: Release, suffix: str) -> None:
    path = release.access.rename(f"{release.access}{suffix}")
    assert release.build().status == 0
    status, reason = release.listed(path)
    assert status == "skipped"
    assert "cannot be decompressed" in str(reason)


@pytest.mark.parametrize("suffix", PACK)
def test_a_plain_and_a_compressed_copy_of_a_port_are_read_once(release: Release, suffix: str) -> None:
    release.build()
    before = release.state()[1:]
    path = Path(f"{release.access}{suffix}")
    path.write_bytes(PACK[suffix](release.access.read_bytes()))
    said = release.build()
    assert said.status == 0, said
    assert release.state()[1:] == before
    assert release.listed(path)[0] == "ignored"
    assert "the same content as cluster/trafficinfo" in release.doctor().out


# the same place twice -----------------------------------------------------------------------------


def test_the_same_hour_twice_is_read_once(release: Release) -> None:
    release.build()
    before = release.state()[1:]
    shutil.copytree(release.hour, release.cluster / "backup" / HOUR)
    said = release.build()
    assert said.status == 0, said
    assert "5 ignored" in said.err
    assert release.state()[1:] == before


@pytest.mark.parametrize("suffix", ["", *PACK])
def test_two_different_files_of_one_port_and_hour_are_an_error_that_names_both(
    release: Release, suffix: str
) -> None:
    release.build()
    before = release.state()
    content = release.access.read_bytes().replace(b",0,0,0,0,0,0\n", b",0,0,0,0,1,0\n")
    other = release.cluster / "backup" / f"{release.access.name}{suffix}"
    other.parent.mkdir()
    other.write_bytes(PACK[suffix](content) if suffix else content)
    for said in (release.build(), release.doctor()):
        fails(release, said, "two different files hold Leaf-1 TwoHundredGigE1/0/1:1 at 2024-05-23 16:00:00 UTC")
        assert str(release.access) in said.err
        assert str(other) in said.err
    assert release.state() == before


def test_the_same_release_given_twice_is_read_once(release: Release, tmp_path: Path) -> None:
    release.build()
    before = release.state()[1:]
    copy = shutil.copytree(release.root, tmp_path / "copy")
    assert release.build("-d", copy).status == 0
    assert release.state()[1:] == before
    assert release.build("-d", release.hour).status == 0  # a part of what is given already
    assert release.state()[1:] == before


def test_two_different_workbooks_of_one_cluster_are_an_error_that_names_both(release: Release, tmp_path: Path) -> None:
    copy = shutil.copytree(release.root, tmp_path / "copy")
    with zipfile.ZipFile(copy / "cluster" / "cluster.xlsx", "a") as package:
        package.writestr("docProps/note.txt", "changed")
    fails(release, release.build("-d", copy), "two different files hold cluster/cluster.xlsx")


# workbooks ----------------------------------------------------------------------------------------


def test_a_workbook_that_would_burst_is_skipped(release: Release) -> None:
    with zipfile.ZipFile(release.workbook, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("xl/workbook.xml", bytes(50_000_000))
    said = release.build()
    assert said.status == 0, said
    status, reason = release.listed(release.workbook)
    assert status == "skipped"
    assert "200" in str(reason)  # the ratio that is refused
    assert release.rows("SELECT count(*) FROM metrics.port_hour") == [(5,)]


def test_a_workbook_without_one_sheet_is_read_in_part(release: Release) -> None:
    from openpyxl import load_workbook

    book = load_workbook(release.workbook)
    del book["GPU NIC info"]
    book.save(release.workbook)
    book.close()
    assert release.build().status == 0
    assert release.listed(release.workbook) == ("partial", "only sheet 'cluster topology' is read; no sheet 'GPU NIC info'")
    assert release.rows("SELECT count(*) FROM staging.gpu_nics") == [(0,)]
    assert release.rows("SELECT count(*) > 0 FROM staging.cluster_topology") == [(True,)]


def test_a_workbook_that_is_no_workbook_is_skipped(release: Release) -> None:
    release.workbook.write_bytes(b"PK\x03\x04 and then nothing")
    assert release.build().status == 0
    assert release.listed(release.workbook)[0] == "skipped"


# folders ------------------------------------------------------------------------------------------


def test_a_symlink_loop_ends(release: Release) -> None:
    release.build()
    before = release.state()
    (release.hour / "loop").symlink_to(release.root, target_is_directory=True)
    (release.hour / "self").symlink_to(release.hour / "self")
    said = release.build()
    assert said.status == 0, said
    assert release.state()[1:] == before[1:]
    assert "self\n    cannot be read: Too many levels of symbolic links" in release.doctor().out


def test_what_cannot_be_opened_is_skipped_and_listed(release: Release) -> None:
    release.access.unlink()
    release.access.symlink_to("nowhere.csv")
    os.mkfifo(release.hour / LEAF / "Leaf-1_34.csv")
    (release.hour / LEAF / "Leaf-1_35.csv").mkdir()  # a folder: what lies in it would be read, nothing does
    said = release.build()
    assert said.status == 0, said
    assert release.listed(release.access) == ("skipped", "cannot be read: No such file or directory")
    assert release.listed(release.hour / LEAF / "Leaf-1_34.csv") == ("skipped", "cannot be read: not a regular file")
    assert release.rows("SELECT count(*) FROM metrics.port_hour") == [(4,)]


@pytest.mark.parametrize("moment", ["when it is inspected", "when it is hashed"])
def test_a_file_that_may_not_be_read_is_skipped_and_listed(
    release: Release, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    opened = Path.open
    asked = 0

    def refuse(path: Path, *arguments: object, **options: object) -> object:
        nonlocal asked
        asked += path == release.access
        if path == release.access and (moment == "when it is inspected" or asked > 2):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    said = release.build()
    assert said.status == 0, said
    assert release.listed(release.access) == ("skipped", "cannot be read: Permission denied")


NAMES = [
    "it's", 'a "b"', "two  blanks ", "[1]", "[!a]", "*?", "{a,b}", "100%", "a%20b", "year=2024", "line\nbreak", "tab\there",
    "back\\slash", "'; DROP TABLE x; --", "$HOME", "~", "#1", "a:b", "-d", "ünï 中", "x.csv", "{{ x }}", "\x1b[31mred",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_folders_may_have_any_name(sample: Path, tmp_path: Path, command: Command, name: str) -> None:
    """The name is that of a folder around release and target, of the cluster, and of a switch's folder."""
    plain = lay_out(sample, tmp_path / "plain", command)
    odd = lay_out(sample, tmp_path / name, command)
    if set(name) & set("\\?*"):  # these, a target cannot have
        fails(odd, odd.build(), "a target's path cannot hold `")
        odd.target = tmp_path / "target"
    odd.cluster = odd.cluster.rename(odd.root / name)
    (odd.cluster / "trafficinfo" / HOUR / LEAF).rename(odd.cluster / "trafficinfo" / HOUR / name)
    for release in (plain, odd):
        said = release.build()
        assert said.status == 0, said
    assert plain.state()[1:] == odd.state()[1:]
    assert odd.rows("SELECT DISTINCT cluster FROM metrics.port_hour") == [(name,)]
    assert odd.rows("SELECT count(*) FROM raw.port_counters") == plain.rows("SELECT count(*) FROM raw.port_counters")
    told = odd.doctor().out
    assert "port_counters: 5 of 5 files read of 2 switches" in told
    assert "\x1b" not in told


def test_a_name_that_is_no_text_is_skipped_and_listed(release: Release) -> None:
    folder = os.fsencode(release.hour) + b"/caf\xe9"
    os.mkdir(folder)
    shutil.copy(release.access, folder + b"/Leaf-1_1_1.csv")
    release.access.unlink()
    said = release.build()
    assert said.status == 0, said
    assert release.rows("SELECT release_path, status, reason FROM raw.files WHERE status = 'skipped'") == [
        (f"cluster/trafficinfo/{HOUR}/caf\\xe9/Leaf-1_1_1.csv", "skipped", "its path is not UTF-8 text")
    ]
    assert "its path is not UTF-8 text" in release.doctor().out


def test_an_empty_folder_is_an_error_and_the_last_warehouse_stays(release: Release, tmp_path: Path) -> None:
    release.build()
    before = release.state()
    (tmp_path / "empty").mkdir()
    fails(release, release.build(data=tmp_path / "empty"), f"no files in {tmp_path / 'empty'}")
    assert release.state() == before
    told = release.doctor(tmp_path / "empty")
    assert told.status == 0
    assert f"no files in {tmp_path / 'empty'}" in told.out


def test_a_folder_of_other_things_is_an_error_and_the_last_warehouse_stays(release: Release, tmp_path: Path) -> None:
    release.build()
    before = release.state()
    other = tmp_path / "other"
    other.mkdir()
    (other / "data.bin").write_bytes(bytes(100))
    fails(release, release.build(data=other), f"nothing readable in {other}: 1 file, none recognised", "warehouse doctor")
    assert release.state() == before
    assert "1 file not recognised" in release.doctor(other).out


def test_a_missing_folder_is_an_error_and_the_last_warehouse_stays(release: Release, tmp_path: Path) -> None:
    release.build()
    before = release.state()
    for said in (release.build(data=tmp_path / "none"), release.doctor(tmp_path / "none")):
        fails(release, said, f"no such data folder: {tmp_path / 'none'}")
    assert release.state() == before


def test_a_release_may_hold_topology_only(release: Release) -> None:
    shutil.rmtree(release.cluster / "trafficinfo")
    said = release.build()
    assert said.status == 0, said
    assert release.rows("SELECT count(*) > 0 FROM topology.nic_ports") == [(True,)]
    assert release.rows("SELECT count(*) FROM metrics.port_hour") == [(0,)]
    assert release.rows("SELECT count(*) FROM raw.port_counters") == [(0,)]


def test_a_release_may_hold_traffic_only(release: Release) -> None:
    release.workbook.unlink()
    said = release.build()
    assert said.status == 0, said
    assert release.rows("SELECT count(*) FROM metrics.port_hour") == [(5,)]
    assert release.rows("SELECT count(*) FROM topology.nic_ports") == [(0,)]


def test_one_file_alone_can_be_given(release: Release) -> None:
    said = release.build(data=release.access)
    assert said.status == 0, said
    assert release.rows("SELECT cluster, port FROM metrics.port_hour") == [("cluster", "TwoHundredGigE1/0/1:1")]


def test_a_target_among_the_data_is_not_taken_for_data(release: Release) -> None:
    release.target = release.root / "build" / "warehouse"
    spoil(release.access, at_row_100(field(5, b"x")))  # so that the target holds a mended copy
    assert release.build().status == 0
    files = release.rows("SELECT count(*) FROM raw.files")
    said = release.build("--json")
    assert '"changed": false' in said.out
    assert release.rows("SELECT count(*) FROM raw.files") == files == [(6,)]
    assert "not recognised" not in release.doctor().out


def test_data_inside_the_target_is_refused(release: Release) -> None:
    release.target.mkdir()
    release.root = release.root.rename(release.target / "release")
    fails(release, release.build(), "lies inside the target")


# archives -----------------------------------------------------------------------------------------


def as_zip(release: Path, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for file in sorted(release.rglob("*.*")):
            package.write(file, file.relative_to(release))


def as_tar(release: Path, path: Path) -> None:
    with tarfile.open(path, "w:gz") as package:
        package.add(release, "release")


ARCHIVES = {"download.zip": as_zip, "download.tar.gz": as_tar}


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_release_can_be_given_as_its_archive(release: Release, tmp_path: Path, name: str) -> None:
    release.build()
    before = release.state()[1:]
    ARCHIVES[name](release.root, tmp_path / name)
    shutil.rmtree(release.root)
    said = release.build(data=tmp_path / name)
    assert said.status == 0, said
    assert release.state()[1:] == before
    assert release.rows("SELECT count(*) > 0 FROM raw.port_counters") == [(True,)]
    assert "5 of 5 files read" in release.doctor(tmp_path / name).out


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_damaged_archive_is_an_error_and_the_last_warehouse_stays(
    release: Release, tmp_path: Path, name: str
) -> None:
    release.build()
    before = release.state()
    ARCHIVES[name](release.root, tmp_path / name)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) // 2])
    for said in (release.build(data=tmp_path / name), release.doctor(tmp_path / name)):
        fails(release, said, str(tmp_path / name), "truncated or damaged")
    assert release.state() == before
