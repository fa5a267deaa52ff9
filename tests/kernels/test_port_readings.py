"""A file as published is read to the bit; of any other form, it is left to the SELECT."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest

import warehouse
from tests.conftest import call
from tests.release import Spoil, done, lay_out, spoil
from warehouse.kernels import UnsupportedError
from warehouse.kernels.csv_bytes import Text
from warehouse.kernels.port_readings import PortHour, readings

MODELS = ("metrics.port_hour",)
OF = PortHour(datetime(2024, 5, 23, 16), "NH-X-Leaf-5.GPU.S9825", "TwoHundredGigE1/0/22:2", is_management=False)  # noqa: DTZ001
MANAGEMENT = OF._replace(is_management=True)
HEADER = "SaveTime,SaveTimeUTC,DeviceName,PortName,InPkts,InOctets,OutPkts,OutOctets,InRatio,OutRatio\n"
BEGINS = "2024/05/24 星期五 "
NAMES = f",{OF.device},{OF.port},"
LINES = [
    f"{BEGINS}00:00:00.622,1716480000622{NAMES}0,0,0,0,0,0\n",
    f"{BEGINS}00:04:08.599,1716480248599{NAMES}64,11060,197,2250149956912,0,100\n",
    f"{BEGINS}00:04:13.169,1716480253169{NAMES}0,0,3,328,1.5,12.25\n",
    f"{BEGINS}00:59:59.999,1716483599999{NAMES}1,0,0,0,0,0\n",
]
TEXT = HEADER + "".join(LINES)


def _read(folder: Path, content: str, of: PortHour = OF) -> list[tuple[float, ...]]:
    path = folder / "port.csv"
    path.write_text(content, newline="")
    text = Text()
    text.load(path)
    found = readings(text, of)
    assert list(found) == [
        "offset_ms",
        "in_packets",
        "in_bytes_raw",
        "out_packets",
        "out_bytes_raw",
        "published_in_ratio",
        "published_out_ratio",
    ]
    return list(zip(*(values.tolist() for values in found.values()), strict=True))


def test_a_file_as_published(tmp_path: Path) -> None:
    assert _read(tmp_path, TEXT) == [
        (622, 0, 0, 0, 0, 0.0, 0.0),
        (248_599, 64, 11_060, 197, 2_250_149_956_912, 0.0, 100.0),
        (253_169, 0, 0, 3, 328, 1.5, 12.25),
        (3_599_999, 1, 0, 0, 0, 0.0, 0.0),
    ]


@pytest.mark.parametrize("device", ["D", "D" * 7, "D" * 8, "D" * 99])
def test_names_of_any_length(device: str, tmp_path: Path) -> None:
    rows = _read(tmp_path, TEXT.replace(OF.device, device), OF._replace(device=device))
    assert rows == _read(tmp_path, TEXT)


def test_a_counter_that_wrapped(tmp_path: Path) -> None:
    wrapped = TEXT.replace("3,328,1.5,", "3,-4294885894,-8.68,")
    assert _read(tmp_path, wrapped, MANAGEMENT)[2] == (253_169, 0, 0, 3, -4_294_885_894, -8.68, 12.25)
    too_low = TEXT.replace("3,328,", "3,-4294967297,")
    assert _read(tmp_path, too_low)[2][4] == -4_294_967_297
    with pytest.raises(UnsupportedError, match="fewer bytes"):
        _read(tmp_path, too_low, MANAGEMENT)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (HEADER, "", "header"),
        ("SaveTime,", "Savetime,", "header"),
        ("\n", "\r\n", "header"),
        (TEXT, HEADER, "no lines"),
        (LINES[-1], LINES[-1].rstrip("\n"), "newline"),
        (LINES[1], LINES[1].replace("\n", "\r\n"), "ratio|no number"),
        (LINES[0], LINES[0].replace("2024/05/24", "2024/05/23"), "first line"),
        (LINES[0], LINES[0].replace(" 00:00", " 01:00"), "first line"),
        (LINES[0], LINES[0].replace("00.622", "00,622"), "first line"),
        (LINES[0], LINES[0].replace("00:00.622", "00-00.622"), "first line"),
        (LINES[0], LINES[0].replace("Leaf-5", "Leaf-6"), "first line"),
        (LINES[0], LINES[0].replace("22:2", "22:1"), "first line"),
        (LINES[0], LINES[0].replace("17164800", "17164836"), "times"),
        (LINES[2], LINES[2].replace("Leaf-5", "Leaf-6"), "another port"),
        (LINES[2], LINES[2].replace("22:2", "22:1"), "another port"),
        (LINES[2], LINES[2].replace("2024/05/24", "2024/05/23"), "another port or date"),
        (LINES[2], LINES[2].replace("星期五", "星期六"), "another port or date"),
        (LINES[2], LINES[2].replace("00:04:13", "01:04:13"), "another port or date"),
        (LINES[2], LINES[2].replace(".169,", ",169,"), "another port"),
        (LINES[2], LINES[2].replace(".169,", ".170,"), "disagree"),
        (LINES[2], LINES[2].replace("04:13", "05:13"), "disagree"),
        (LINES[2], LINES[2].replace("04:13", "03:73"), "disagree"),
        (LINES[2], LINES[2].replace("53169", "5316x"), "out of order|disagree|no number"),
        (LINES[2], LINES[1], "out of order"),
        (LINES[2], LINES[3] + LINES[2], "out of order"),
        (LINES[2], "\n", "too short"),
        (LINES[2], LINES[2].replace(",12.25", ""), "."),
        (LINES[2], LINES[2].replace(",12.25", ",12.25,"), "."),
        (LINES[2], LINES[2].replace(",328", ",328,0"), "."),
        (LINES[2], LINES[2].replace(",328", ",3e2"), "no number"),
        (LINES[2], LINES[2].replace(",328", ",+328"), "no number"),
        (LINES[2], LINES[2].replace(",328", ", 328"), "no number"),
        (LINES[2], LINES[2].replace(",328", ',"328"'), "no number"),
        (LINES[2], LINES[2].replace(",328", ",328.0"), "no number"),
        (LINES[2], LINES[2].replace(",328", ",32\n8"), "."),
        (LINES[2], LINES[2].replace(",328", ",1000000000000000"), "16 digits"),
        (LINES[2], LINES[2].replace(",1.5", ",1.555"), "no number"),
        (LINES[2], LINES[2].replace(",1.5", ","), "ratio"),
    ],
)
def test_any_other_form_is_declined(old: str, new: str, why: str, tmp_path: Path) -> None:
    assert old in TEXT
    with pytest.raises(UnsupportedError, match=why):
        _read(tmp_path, TEXT.replace(old, new))


def _rows(target: Path) -> list[tuple[object, ...]]:
    with warehouse.open(target) as built:
        return built.execute("SELECT * FROM staging.port_readings ORDER BY file_key, offset_ms").fetchall()


FORMS: dict[str, Spoil] = {
    "CRLF": lambda lines: [line.replace(b"\n", b"\r\n") for line in lines],
    "three decimals": lambda lines: [lines[0], *(re.sub(rb",[^,]+$", b",0.555\n", line) for line in lines[1:])],
    "out of order": lambda lines: [lines[0], *reversed(lines[1:])],
}


@pytest.mark.usefixtures("only_own_models")
@pytest.mark.parametrize("form", FORMS)
def test_a_file_of_another_form_is_read_by_the_select_and_that_is_told(form: str, sample: Path, tmp_path: Path) -> None:
    release = lay_out(sample, tmp_path)
    spoil(release.uplink, FORMS[form])
    said = done(release.build())
    assert "staging.port_readings is made by its SELECT" in " ".join(said.err.split())
    rows = _rows(release.target)
    done(call("build", "-d", release.root, "-t", tmp_path / "plain", "--plain-sql", cwd=tmp_path))
    assert rows == _rows(tmp_path / "plain")


@pytest.mark.usefixtures("only_own_models")
def test_a_file_as_published_needs_no_select(sample: Path, tmp_path: Path) -> None:
    assert "SELECT" not in done(lay_out(sample, tmp_path).build()).err
