"""Port counters: names and fields of files. Damaged files and lines: `tests/ingest/test_port_files.py`, in a build."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from tests.scanning import scan
from warehouse.formats.base import READ, SKIPPED, RawFile
from warehouse.formats.streams import UniformLines
from warehouse.formats.zhejiang.port_counters import HEADER, PORT_COUNTERS

DEVICE = "NH-DC-NM129-B03-ROCE-Leaf-1.GPU.S9825"
PORT = "TwoHundredGigE1/0/1:1"
CLOCKS = "SaveTime is not SaveTimeUTC + 8 h"
MakeFile = Callable[..., RawFile]


def row(second: int, *, device: str = DEVICE, port: str = PORT, tail: str = "1,100,2,200,0,0.5") -> str:
    """Return a row at this second of the first hour of 2024-05-24, local time; midnight is 1716480000000 ms."""
    clock = f"2024/05/24 星期五 00:{second // 60:02}:{second % 60:02}.914"
    return f"{clock},{1716480000914 + second * 1000},{device},{port},{tail}"


@pytest.fixture
def make(tmp_path: Path) -> MakeFile:
    """Return a function that writes a file with these lines below the header, and returns its `RawFile`."""

    def write(*lines: str, name: str = "Leaf-1_1_1.csv", folder: str = "2024052400/x") -> RawFile:
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes("".join(f"{line}\n" for line in (HEADER, *lines)).encode())
        return RawFile(path, f"c/{name}", 0, 0, format=PORT_COUNTERS.name)

    return write


NAMES = ("Leaf-1_0.csv", "Leaf-20_30_2.csv", "leaf-1_64.csv", "Leaf-1_1_1.csv.gz", "Leaf-1_1_1.csv.zst")
OTHERS = ("2024052400_flow.csv", "Leaf-1.csv", "Leaf-1_1_1.csv.bz2", "Leaf-1_1_1.txt", "Leaf-1_1_1_1.csv", "a.csv")


def test_files_are_claimed_by_name() -> None:
    assert tuple(name for name in (*NAMES, *OTHERS) if PORT_COUNTERS.claims(Path("any") / name)) == NAMES


@pytest.mark.parametrize(
    ("device", "switch"), [(DEVICE, "Leaf-1"), ("NH-DC-NM224-J05-ROCE-ST-leaf-1.GPU.S9825", "ST-leaf-1")]
)
def test_device_port_and_hour_come_from_the_rows_and_never_from_the_name(
    make: MakeFile, device: str, switch: str
) -> None:
    """The folders 9999999999 and 0001010100 state no hour."""
    for folder in ("anywhere", "2024052400/x", "9999999999/x", "0001010100/x"):
        found = PORT_COUNTERS.inspect(make(row(1, device=device), name="leaf-9_64.csv", folder=folder))
        assert (found.status, found.reason) == (READ, None)
        assert (found.switch, found.device, found.port) == (switch, device, PORT)
        assert found.hour_utc == datetime(2024, 5, 23, 16)  # noqa: DTZ001


@pytest.mark.parametrize("device", ["x-Leaf-1b", "-Leaf-" + "1" * 100])
def test_a_device_of_another_kind_is_skipped(make: MakeFile, device: str) -> None:
    found = PORT_COUNTERS.inspect(make(row(1, device=device)))
    assert found.status == SKIPPED
    assert "does not name a leaf" in (found.reason or "")


BAD = {
    row(5, tail="1,１２,2,200,0,0.5"): "InOctets is not a number: '１２'",
    row(5, tail=f"1,{'9' * 9999},2,200,0,0.5"): f"InOctets is not a number: '{'9' * 40}'",
    row(5, device=""): "DeviceName is blank",
    row(5).replace("星期五 ", ""): CLOCKS,
    row(5).replace(".914,", ".915,"): CLOCKS,
    row(5).replace("2024/05/24", "2024/02/30"): CLOCKS,
    row(5).replace("2024/05/24", "0001/01/01"): CLOCKS,
    row(5).replace(" 00:", " 24:"): CLOCKS,
    row(5).replace(",17164", ",9999917164"): CLOCKS,
    row(5).replace(",17164", ",-17164"): "SaveTimeUTC is before 1970",
}


def test_bad_lines_are_rejected_and_line_ends_become_those_of_the_header(make: MakeFile, tmp_path: Path) -> None:
    clean = tmp_path / "clean.csv"
    file = PORT_COUNTERS.inspect(make(row(1), row(2) + "\r", row(3) + "\r\r", *BAD, row(9)))
    rejected = [(one.line, one.reason) for one in PORT_COUNTERS.repair(file, clean)]
    assert rejected == list(enumerate(BAD.values(), start=5))
    assert clean.read_bytes().decode() == "".join(f"{line}\n" for line in (HEADER, row(1), row(2), row(3), row(9)))


@pytest.mark.real
def test_every_real_file_is_whole_and_repair_rejects_no_line_of_one(real: Path, tmp_path: Path) -> None:
    files = [file for file in scan([real / "zhejiang"], [PORT_COUNTERS]).files if file.format]
    assert files
    for file in files:
        lines = UniformLines()
        lines(file.path.read_bytes())
        assert not lines.is_odd(), file
    assert {(file.status, file.reason) for file in files} == {(READ, None)}
    assert len({(file.switch, file.port, file.hour_utc) for file in files}) == len(files)
    assert list(PORT_COUNTERS.repair(files[0], tmp_path / "clean.csv")) == []
    assert (tmp_path / "clean.csv").read_bytes() == files[0].path.read_bytes()
