"""Port counters: files that are claimed, fields taken from their rows, and lines that are rejected."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from tests.scanning import scan
from warehouse.formats.base import PARTIAL, READ, SKIPPED, RawFile
from warehouse.formats.zhejiang.port_counters import HEADER, PORT_COUNTERS

DEVICE = "NH-DC-NM129-B03-ROCE-Leaf-1.GPU.S9825"
PORT = "TwoHundredGigE1/0/1:1"
MakeFile = Callable[..., RawFile]


def row(second: int, *, device: str = DEVICE, port: str = PORT, hour: int = 0, tail: str = "1,100,2,200,0,0.5") -> str:
    """Return a row at this second of an hour of 2024-05-24, local time; midnight is 1716480000000 ms."""
    time_ms = 1716480000000 + hour * 3_600_000 + second * 1000 + 914
    clock = f"2024/05/24 星期五 {hour:02}:{second // 60:02}:{second % 60:02}.914"
    return f"{clock},{time_ms},{device},{port},{tail}"


@pytest.fixture
def make(tmp_path: Path) -> MakeFile:
    """Return a function that writes a file with these lines below the header, and returns its `RawFile`."""

    def write(*lines: str, name: str = "Leaf-1_1_1.csv", folder: str = "2024052400/x", end: str = "\n") -> RawFile:
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((end.join([HEADER, *lines]) + end).encode())
        return RawFile(path, f"c/{name}", 0, 0, format=PORT_COUNTERS.name)

    return write


PORT_NAMES = ("Leaf-1_0.csv", "Leaf-20_30_2.csv", "leaf-1_64.csv", "Leaf-1_1_1.csv.gz", "Leaf-1_1_1.csv.zst")
OTHER_NAMES = (
    "2024052400_flow.csv", "Leaf-1.csv", "Leaf-1_1_1.csv.bz2", "Leaf-1_1_1.txt", "Leaf-1_1_1_1.csv", "a.csv",
)  # fmt: skip


def test_files_are_claimed_by_name() -> None:
    names = (*PORT_NAMES, *OTHER_NAMES)
    assert tuple(name for name in names if PORT_COUNTERS.claims(Path("any") / name)) == PORT_NAMES


@pytest.mark.parametrize(
    ("device", "switch"), [(DEVICE, "Leaf-1"), ("NH-DC-NM224-J05-ROCE-ST-leaf-1.GPU.S9825", "ST-leaf-1")]
)
def test_device_port_and_hour_come_from_the_rows_and_never_from_the_name(
    make: MakeFile, device: str, switch: str
) -> None:
    found = PORT_COUNTERS.inspect(make(row(1, device=device), name="leaf-9_64.csv", folder="anywhere"))
    assert (found.status, found.reason) == (READ, None)
    assert (found.switch, found.device, found.port) == (switch, device, PORT)
    assert found.hour_utc == datetime(2024, 5, 23, 16)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("device", "port", "reason"),
    [
        *((device, PORT, "does not name a leaf") for device in ("x-Leaf-1b", "x; DROP y-Leaf-1", "-Leaf-" + "1" * 100)),
        *((DEVICE, port, "is not of the form") for port in ("eth0", "TwoHundredGigE1/0/1:1'", "TwoHundredGigE1/0/x")),
    ],
)  # fmt: skip
def test_a_device_or_port_of_another_kind_is_skipped(make: MakeFile, device: str, port: str, reason: str) -> None:
    found = PORT_COUNTERS.inspect(make(row(1, device=device, port=port)))
    assert found.status == SKIPPED
    assert reason in (found.reason or "")


def test_the_folder_must_state_the_hour_of_the_rows(make: MakeFile) -> None:
    assert PORT_COUNTERS.inspect(make(row(1, hour=3), folder="2024052403/x")).status == READ
    assert PORT_COUNTERS.inspect(make(row(1, hour=3), folder="2024052404/x")).status == SKIPPED
    assert PORT_COUNTERS.inspect(make(row(1, hour=3), folder="9999999999/x")).status == READ  # states no hour


def test_years_before_1970_hold_no_rows(make: MakeFile) -> None:
    time_ms = -(365 * 24 + 8) * 3_600_000
    found = PORT_COUNTERS.inspect(make(f"1969/01/01 星期五 00:00:00.000,{time_ms},{DEVICE},{PORT},1,100,2,200,0,0"))
    assert found.reason == "no readable row below the header: line 2: SaveTimeUTC is before 1970"
    assert PORT_COUNTERS.inspect(make(row(1), folder="0001010100/x")).status == READ  # states no hour


def test_a_stray_first_row_does_not_name_the_file(make: MakeFile) -> None:
    found = PORT_COUNTERS.inspect(make(row(1, port="TwoHundredGigE1/0/9:1"), row(2), row(3)))
    assert (found.status, found.port) == (PARTIAL, PORT)


def repaired(file: RawFile, tmp_path: Path) -> tuple[list[tuple[int, str]], list[str]]:
    """Return the (line, reason) of rejected lines, and the lines below the header of the repaired copy."""
    clean = tmp_path / "clean.csv"
    rejected = [(one.line, one.reason) for one in PORT_COUNTERS.repair(PORT_COUNTERS.inspect(file), clean)]
    header, *lines = clean.read_bytes().decode().splitlines()
    assert header == HEADER
    return rejected, lines


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_repair_of_a_good_file_changes_nothing(make: MakeFile, tmp_path: Path, end: str) -> None:
    file = make(row(1), row(2), row(3, tail="0,0,0,-4294885894,0,-8.68"), end=end)
    assert list(PORT_COUNTERS.repair(PORT_COUNTERS.inspect(file), tmp_path / "clean.csv")) == []
    assert (tmp_path / "clean.csv").read_bytes() == file.path.read_bytes()


def test_line_ends_become_those_of_the_header(make: MakeFile, tmp_path: Path) -> None:
    file = make(row(1) + "\r", row(2) + "\r\r", row(3))
    assert repaired(file, tmp_path) == ([], [row(1), row(2), row(3)])


BAD = {
    "": "blank line",
    "x": "1 fields instead of 10",
    row(5) + ",": "11 fields instead of 10",
    row(5, tail="1,1e3,2,200,0,0.5"): "InOctets is not a number: '1e3'",
    row(5, tail="1,１２,2,200,0,0.5"): "InOctets is not a number: '１２'",
    row(5, tail=f"1,{'9' * 9999},2,200,0,0.5"): f"InOctets is not a number: '{'9' * 40}'",
    row(5, tail="1,1324856.24,2,200,0,0"): "InOctets is not a whole number: '1324856.24'",
    row(5, tail="1,100,2.,200,0,0"): "OutPkts is not a whole number: '2.'",
    row(5).replace(f",{DEVICE}", f".5,{DEVICE}"): "SaveTimeUTC is not a whole number: '1716480005914.5'",
    row(5, tail=f"1,{'9' * 19},2,200,0,0.5"): f"InOctets is beyond all bounds: '{'9' * 19}'",
    row(5, tail="1,100,2,200,0,nan"): "OutRatio is not a number: 'nan'",
    row(5, tail="1,100,2,200,,0"): "InRatio is not a number: ''",
    row(5, device=""): "DeviceName is blank",
    row(5).replace("星期五 ", ""): "SaveTime is not SaveTimeUTC + 8 h",
    row(5).replace(".914,", ".915,"): "SaveTime is not SaveTimeUTC + 8 h",
    row(5).replace("2024/05/24", "2024/02/30"): "SaveTime is not SaveTimeUTC + 8 h",
    row(5).replace("2024/05/24", "0001/01/01"): "SaveTime is not SaveTimeUTC + 8 h",
    row(5).replace(" 00:", " 24:"): "SaveTime is not SaveTimeUTC + 8 h",
    row(5).replace(",17164", ",9917164"): "SaveTime is not SaveTimeUTC + 8 h",
    row(5).replace(",17164", ",9999917164"): "SaveTime is not SaveTimeUTC + 8 h",
    row(5).replace(",17164", ",-17164"): "SaveTimeUTC is before 1970",
    row(5, hour=1): "its time, 2024-05-23 17:00:05 UTC, is outside the file's hour",
    row(5, port="TwoHundredGigE1/0/1:2"): f"a row of {DEVICE} TwoHundredGigE1/0/1:2 in the file of {DEVICE} {PORT}",
    row(1): "a second row of the same time",
}


@pytest.mark.parametrize("line", BAD, ids=range(len(BAD)))
def test_a_bad_line_is_rejected_with_its_number_and_the_others_stay(make: MakeFile, tmp_path: Path, line: str) -> None:
    assert repaired(make(row(1), row(2), line, row(9)), tmp_path) == (
        [(4, BAD[line])],
        [row(1), row(2), row(9)],
    )


def looks_odd(file: RawFile) -> bool:
    watch = PORT_COUNTERS.watch()
    watch(file.path.read_bytes())
    return watch.is_odd()


@pytest.mark.real
def test_every_real_file_is_whole_and_repair_rejects_no_line_of_one(real: Path, tmp_path: Path) -> None:
    files = [file for file in scan([real / "zhejiang"], [PORT_COUNTERS]).files if file.format]
    assert files
    assert not any(looks_odd(file) for file in files)
    assert {(file.status, file.reason) for file in files} == {(READ, None)}
    assert len({(file.switch, file.port, file.hour_utc) for file in files}) == len(files)
    assert list(PORT_COUNTERS.repair(files[0], tmp_path / "clean.csv")) == []
    assert (tmp_path / "clean.csv").read_bytes() == files[0].path.read_bytes()
