"""Power of servers: columns by name, types of servers, bad lines and cells."""

from __future__ import annotations

from pathlib import Path

import pytest

import warehouse
from warehouse.formats.acme.utilization import POWER
from warehouse.formats.base import RawFile

MODELS = ("staging.server_power", "staging.rejected_rows")
pytestmark = pytest.mark.usefixtures("only_own_models")
AB = """\
Time,Sys_Total_Power,CPU_Power,MEM_Power,node
2023-07-01 08:00:00+08:00,2930.0,300,120.0,SH-IDC1-10-140-0-131
2023-07-01 08:00:00+08:00,3000.0,310,,SH-IDC1-10-140-0-132
2023-07-01 08:05:00+08:00,2000.0,301,121.0,SH-IDC1-10-140-0-131
2023-07-01 08:05:00+08:00,0.0,311,nan,SH-IDC1-10-140-0-132
"""
CPU = "node,Other_Power,Sys_Total_Power,Time\nhost7,7,540.5,2023-07-01 08:00:00+08:00\n"


class Power:
    def __init__(self, base: Path) -> None:
        self.data, self.target = base / "data", base / "target"

    def build(self, **files: str) -> None:
        for name, content in files.items():
            path = self.data / "ipmi" / f"{name}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        warehouse.build(self.data, self.target)

    def ask(self, sql: str) -> list[tuple[object, ...]]:
        with warehouse.open(self.target) as reader:
            return reader.execute(sql).fetchall()


@pytest.fixture
def power(tmp_path: Path) -> Power:
    return Power(tmp_path)


def test_every_measurement_is_read_by_column_name(power: Power) -> None:
    power.build(GPU_AB_Power=AB, CPU_D_Power=CPU)

    assert power.ask(
        "SELECT server_kind, server_type, node, host_ip, strftime(time_utc, '%H:%M'), measure, watts "
        "FROM staging.server_power WHERE server_kind = 'cpu' OR time_utc > '2023-07-01 00:00:00' ORDER BY ALL"
    ) == [
        ("cpu", "D", "host7", None, "00:00", "Other_Power", 7.0),
        ("cpu", "D", "host7", None, "00:00", "Sys_Total_Power", 540.5),
        ("gpu", "A", "SH-IDC1-10-140-0-131", "10.140.0.131", "00:05", "CPU_Power", 301.0),
        ("gpu", "A", "SH-IDC1-10-140-0-131", "10.140.0.131", "00:05", "MEM_Power", 121.0),
        ("gpu", "A", "SH-IDC1-10-140-0-131", "10.140.0.131", "00:05", "Sys_Total_Power", 2000.0),
        ("gpu", "B", "SH-IDC1-10-140-0-132", "10.140.0.132", "00:05", "CPU_Power", 311.0),
        ("gpu", "B", "SH-IDC1-10-140-0-132", "10.140.0.132", "00:05", "MEM_Power", None),
        ("gpu", "B", "SH-IDC1-10-140-0-132", "10.140.0.132", "00:05", "Sys_Total_Power", 0.0),
    ]


LINES = {
    "a cell that is none": ("h,abc,1,2023-07-01 09:00:00+08:00", "a cell is no number, of Other_Power: 'abc'"),
    "a cell beyond any power": ("h,1e400,1,2023-07-01 09:00:00+08:00", "a cell is no number, of Other_Power: '1e400'"),
    "the same server and time": ("host7,1,2,2023-07-01 08:00:00+08:00", "the same time and server as in line 2"),
    "the same moment in words of another zone": ("host7,1,2,2023-07-01 00:00:00+00:00", None),
    "no server": (",1,2,2023-07-01 09:00:00+08:00", "node is not a name of letters, digits"),
    "a cell more": ("h,1,2,2023-07-01 09:00:00+08:00,3", "5 fields instead of 4"),
    "a cell less": ("h,1,2023-07-01 09:00:00+08:00", "3 fields instead of 4"),
    "a time without offset": ("h,1,2,2023-07-01 09:00:00", "Time is no time with an offset"),
    "an hour that no day has": ("h,1,2,2023-07-01 24:00:00+08:00", "Time is no time with an offset"),
    "an offset that no zone has": ("h,1,2,2023-07-01 09:00:00+25:00", "Time is no time with an offset"),
    "a hexadecimal cell": ("h,0x10,1,2023-07-01 09:00:00+08:00", "a cell is no number, of Other_Power: '0x10'"),
    "a cell after a blank": ("h, 7,1,2023-07-01 09:00:00+08:00", "a cell is no number, of Other_Power: ' 7'"),
    "a server with a quote": ('"host7",1,2,2023-07-01 09:00:00+08:00', """node is not a name of letters, digits"""),
    "a server with an apostrophe": ("host7',1,2,2023-07-01 09:00:00+08:00", "node is not a name of letters, digits"),
    "a blank line": ("", "blank line"),
    "the header again": ("node,Other_Power,Sys_Total_Power,Time", "the header again"),
}


def test_bad_lines_are_named_and_the_others_are_read(power: Power) -> None:
    lines = [line.replace("h,", f"h{at},") if line[:2] == "h," else line for at, (line, _) in enumerate(LINES.values())]
    good = [f"host8,8,9,2023-07-01 10:{at:02}:00+08:00" for at in range(len(lines))]
    power.build(CPU_D_Power=CPU + "".join(f"{bad}\n{row}\n" for bad, row in zip(lines, good, strict=True)))

    rejected = power.ask("SELECT line, reason FROM staging.rejected_rows ORDER BY line")
    assert [line for line, _ in rejected] == [3 + 2 * at for at in range(len(LINES))]
    for (_, said), (_, reason) in zip(rejected, LINES.values(), strict=True):
        assert str(said).startswith(reason or "the same time and server as in line 2")
    read = (
        "SELECT node, count(DISTINCT time_utc) FROM staging.server_power WHERE node LIKE 'host_' GROUP BY 1 ORDER BY 1"
    )
    assert power.ask(read) == [("host7", 1), ("host8", len(LINES))]


def test_columns_without_a_name_are_no_measurement(power: Power) -> None:
    """pandas writes its index as a first column without a name, or as `Unnamed: 0`."""
    lines = AB.splitlines()
    names = [",Unnamed: 0", *(f"{at},n/a" for at in range(4))]
    power.build(GPU_AB_Power="".join(f"{name},{line},\n" for name, line in zip(names, lines, strict=True)))
    assert power.ask("SELECT DISTINCT measure FROM staging.server_power ORDER BY 1") == [
        ("CPU_Power",), ("MEM_Power",), ("Sys_Total_Power",),
    ]  # fmt: skip
    assert power.ask("SELECT status, reason FROM raw.files") == [
        ("read", "columns ignored: column 1 without a name, Unnamed: 0, column 8 without a name")
    ]


def test_a_torn_file_is_read_without_its_last_line(power: Power) -> None:
    power.build(CPU_D_Power=CPU + "host8,8,9,2023-07-01 10:00")
    assert power.ask("SELECT line, reason FROM staging.rejected_rows") == [
        (3, "torn: the file ends without a final newline")
    ]
    assert power.ask("SELECT count(*) FROM staging.server_power") == [(2,)]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("Time,Sys_Total_Power\n1,2\n", "no column 'node'"),
        ("Time,node\n1,2\n", "no column beside Time and node"),
        ("node,Sys_Total_Power\n1,2\n", "the header is not that of acme.ipmi: node,Sys_Total_Power"),
        (CPU.split("\n")[0] + "\n", "no rows below the header"),
        ("", "empty file"),
    ],
)
def test_a_file_without_rows_of_ours_is_skipped_with_the_reason(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "GPU_C_Power.csv"
    path.write_text(content)
    found = POWER.inspect(RawFile(path, path.name, 0, 0, format=POWER.name))
    assert found.status == "skipped"
    assert found.reason is not None
    assert found.reason.startswith(reason)


def test_only_files_of_power_are_claimed() -> None:
    assert POWER.claims(Path("GPU_AB_Power.csv"))
    assert POWER.claims(Path("CPU_D_Power-2023-07.csv.gz"))
    assert not any(POWER.claims(Path(name)) for name in ("POWER_USAGE.csv", "Power.csv", "GPU_AB_Power.pkl"))
