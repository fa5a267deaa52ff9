"""Utilization and power: every cell is read with its time and server, and each line or cell that is not is named."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

import warehouse
from warehouse.formats.acme import POWER, WIDE
from warehouse.formats.base import RawFile
from warehouse.formats.streams import LINE_BYTES, LONE_CR, TORN
from warehouse.project.project import Project

MODELS = (
    *("metrics.utilization_distribution", "metrics.utilization_minute", "metrics.utilization_quality"),
    *("staging.utilization", "staging.server_power", "staging.rejected_rows"),
)
Rows = list[tuple[Any, ...]]
Ask = Callable[[str], Rows]
HEADER = "Time,10.140.1.10-0,10.140.1.10-1,10.140.1.9-0"
ROWS = (
    "2023-07-01 08:00:00+08:00,43.0,0.0,100.0",
    "2023-07-01 08:00:15+08:00,43.5,,99.0",
    "2023-07-01 08:01:30+08:00,1,2.125,-3.5",
)
CELLS = {
    "": None, "43.0": 43, "43": 43, "43.": 43, "0": 0, "-0.0": 0, "nan": None, "NaN": None, "1e-05": 1e-05, "007": 7,
    "238.871": 238.871, "999999999.999999": 999999999.999999, "0.1234567890123456": 0.1234567890123456,
}  # fmt: skip
NO_CELLS = [
    "1e400", "inf", "-inf", "Infinity", "1e5", "abc", " 43.0", "43.0 ", "+5", ".5", "0x10", "1_000", "4 3", "1.2.3",
    "--5", "1234567890", '"43.0"', "NULL", "true", "٣", "-", "1e-", "\x01",
]  # fmt: skip
NO_TIME, LATE = "Time is no time with an offset: ", "2023-07-01 09:00:00"
LINES = {
    f"{LATE}+08:00,5,5": "3 fields instead of 4",
    f"{LATE}+08:00,5,5,5,5": "5 fields instead of 4",
    f"{ROWS[0][:25]},7,7,7": "the same time as in line 2",
    "2023-07-01 02:00:00+02:00,7,7,7": "the same time as in line 2",
    f"{LATE},5,5,5": f"{NO_TIME}'2023-07-01 09:00:00'",
    "2023-02-30 09:00:00+08:00,5,5,5": f"{NO_TIME}'2023-02-30",
    "2023-07-01 24:00:00+08:00,5,5,5": f"{NO_TIME}'2023-07-01 24",
    f"{LATE}+25:00,5,5,5": f"{NO_TIME}'2023-07-01 09",
    "": "blank line",
    HEADER: "the header again",
    f"{LATE}+08:00,{'5' * LINE_BYTES},5,5": f"longer than {LINE_BYTES:,} bytes",
    f"{LATE}+08:00,5,\udcff,5": "not UTF-8 text",
    f"{LATE}+08:00,\r5,5,5": LONE_CR,
}
"""Line of a wide file -> begin of its reason."""
POWER_HEADER = "node,Other_Power,Sys_Total_Power,Time"
POWER_ROW = "host7,7,540.5,2023-07-01 08:00:00+08:00"
POWER_LINES = {
    f"h1,1e400,1,{LATE}+08:00": "a cell is no number, of Other_Power: '1e400'",
    f"h2, 7,1,{LATE}+08:00": "a cell is no number, of Other_Power: ' 7'",
    "host7,1,2,2023-07-01 08:00:00+08:00": "the same time and server as in line 2",
    "host7,1,2,2023-07-01 00:00:00+00:00": "the same time and server as in line 2",
    f",1,2,{LATE}+08:00": "node is not a name of letters, digits",
    f'"host7",1,2,{LATE}+08:00': "node is not a name of letters, digits",
    f"h3,1,2,{LATE}+08:00,3": "5 fields instead of 4",
    f"h4,1,2,{LATE}": NO_TIME,
    POWER_HEADER: "the header again",
}
"""Line of a file of power -> begin of its reason."""


def text(*lines: str, end: str = "\n") -> bytes:
    return "".join(f"{line}{end}" for line in lines).encode("utf-8", "surrogateescape")


def spread(*lines: str, cell: str = "{}") -> list[str]:
    """Return each line before a good one, whose time is its own."""
    return [one for at, line in enumerate(lines) for one in (line, cell.format(f"2023-07-01 10:{at:02}:00+08:00"))]


def on_day(day: int) -> list[str]:
    """Return the rows on another day: a metric in several files has a row a time."""
    return [row.replace("2023-07-01", f"2023-07-{day:02}") for row in ROWS]


OTHER = "Time,10.0.0.1-0,10.0.0.2-0,10.0.0.3-0"
FILES = {
    "WHOLE": text(HEADER, *ROWS),
    "LINES": text(HEADER, ROWS[0], *spread(*LINES, cell="{},5,5,5")),
    "CELLS": text("Time,10.0.0.1-0", *(f"2023-07-01 08:00:{n:02}+08:00,{cell}" for n, cell in enumerate(CELLS))),
    "NO_CELLS": text(HEADER, *(f"2023-07-01 08:00:{n:02}+08:00,1.0,{cell},2.0" for n, cell in enumerate(NO_CELLS))),
    "OFFSETS": text(HEADER, "2023-07-01 01:00:15+01:00,1,1,1", "2023-06-30 23:30:30.5-00:30,1,1,1"),
    "ANOTHER": text(HEADER, ROWS[0], OTHER, *ROWS[1:]),
    "TORN": text(HEADER, *ROWS)[:-1],
    "FORMS-2023-07-02_BOM": b"\xef\xbb\xbf" + text(HEADER, *on_day(2), "x,1,1,1"),
    "FORMS-2023-07-03_CRLF": text(HEADER, *on_day(3), end="\r\n"),
    "FORMS-2023-07-04_MIXED": text(HEADER, on_day(4)[0], end="\r\n") + text(*on_day(4)[1:]),
    "FORMS-2023-07-05.csv.gz": gzip.compress(text(HEADER, *on_day(5))),
    "FORMS-2023-07-06.csv.zst": zstandard.ZstdCompressor().compress(text(HEADER, *on_day(6))),
    "BLANK": text(HEADER, "2023-07-01 08:00:00+08:00,,nan,"),
}
"""Name of a file, which begins with its metric -> content."""
POWERS = {
    "CPU_D_Power": text(POWER_HEADER, POWER_ROW, *spread(*POWER_LINES, cell="host8,8,9,{}")),
    "GPU_AB_Power": text(
        ",Unnamed: 0,Time,Sys_Total_Power,MEM_Power,node,",
        "0,n/a,2023-07-01 08:00:00+08:00,2930.0,120.0,SH-IDC1-10-140-0-131,",
        "1,n/a,2023-07-01 08:00:00+08:00,3000.0,nan,SH-IDC1-10-140-0-132,",
    ),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, own_models: Project) -> Ask:
    """Return a function that asks a build of all these files."""
    folder = tmp_path_factory.mktemp("utilization")
    files = {f"kalos/{name if '.csv' in name else f'{name}.csv'}": content for name, content in FILES.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: own_models)
        return build(folder, files | {f"ipmi/{name}.csv": content for name, content in POWERS.items()})


def build(folder: Path, files: dict[str, bytes]) -> Ask:
    """Build these files; return a function that asks for rows."""
    for name, content in files.items():
        path = folder / "data" / "utilization" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    warehouse.build(folder / "data", folder / "target")

    def ask(sql: str) -> Rows:
        with warehouse.open(folder / "target") as reader:
            return reader.execute(sql).fetchall()

    return ask


def test_a_file_of_empty_cells_is_a_warning(built: Ask) -> None:
    counts = "SELECT cells, values, nan_cells FROM metrics.utilization_quality WHERE metric = 'BLANK'"
    assert built(counts) == [(3, 0, 1)]
    assert ("warned",) in built("SELECT status FROM meta.checks WHERE check_text = 'values > 0'")


def values(ask: Ask, metric: str) -> list[float | None]:
    asked = f"SELECT value FROM staging.utilization WHERE metric = '{metric}' ORDER BY time_utc, position"
    return [value for (value,) in ask(asked)]


def rejected(ask: Ask, name: str) -> Rows:
    asked = f"SELECT line, reason FROM staging.rejected_rows WHERE file LIKE '%/{name}.csv%' ORDER BY line"
    return ask(asked)


def refuse_others(found: Rows, lines: dict[str, str]) -> None:
    """Fail unless each of these lines, of which every second is good, is rejected for its reason."""
    assert [line for line, _ in found] == [3 + 2 * at for at in range(len(lines))]
    for (_, said), reason in zip(found, lines.values(), strict=True):
        assert said.startswith(reason)


def test_every_cell_is_read_with_its_time_server_and_gpu(built: Ask) -> None:
    whole = [43, 0, 100, 43.5, None, 99, 1, 2.125, -3.5]
    found = built(
        "SELECT host_ip, gpu, strftime(time_utc, '%H:%M:%S'), value FROM staging.utilization "
        "WHERE metric = 'WHOLE' ORDER BY time_utc, position"
    )
    assert found == [
        (("10.140.1.10", 0), ("10.140.1.10", 1), ("10.140.1.9", 0))[at % 3]
        + (("00:00:00", "00:00:15", "00:01:30")[at // 3], value)
        for at, value in enumerate(whole)
    ]
    assert values(built, "FORMS") == whole * 5
    assert [line for form in ("BOM", "CRLF", "MIXED") for line, _ in rejected(built, f"FORMS%{form}")] == [5]


def test_the_offset_of_each_row_counts(built: Ask) -> None:
    asked = "SELECT DISTINCT CAST(time_utc AS VARCHAR) FROM staging.utilization WHERE metric = 'OFFSETS' ORDER BY ALL"
    assert built(asked) == [("2023-07-01 00:00:15",), ("2023-07-01 00:00:30.5",)]


def test_a_cell_is_a_number_or_is_named_and_the_rest_of_its_line_is_read(built: Ask) -> None:
    assert values(built, "CELLS") == list(CELLS.values())
    assert rejected(built, "CELLS") == []
    assert values(built, "NO_CELLS") == [1.0, None, 2.0] * len(NO_CELLS)
    assert rejected(built, "NO_CELLS") == [
        (line, f"a cell is no number, of 10.140.1.10-1: {cell!r}; the rest of the line is read")
        for line, cell in enumerate(NO_CELLS, start=2)
    ]


def test_bad_lines_are_named_and_the_others_are_read(built: Ask) -> None:
    refuse_others(rejected(built, "LINES"), LINES)
    assert len(values(built, "LINES")) == 3 * (1 + len(LINES))
    refuse_others(rejected(built, "CPU_D_Power"), POWER_LINES)
    assert built("SELECT count(DISTINCT time_utc) FROM staging.server_power WHERE node = 'host8'") == [
        (len(POWER_LINES),)
    ]


def test_lines_below_another_header_and_a_torn_line_are_rejected(built: Ask) -> None:
    """Below another header, a column may be another server's."""
    below = "below another header, in line 3"
    assert rejected(built, "ANOTHER") == [(3, "another header"), (4, below), (5, below)]
    assert len(values(built, "ANOTHER")) == 3
    assert rejected(built, "TORN") == [(4, TORN)]
    assert len(values(built, "TORN")) == 6
    listed = built("SELECT status, reason FROM raw.files WHERE path LIKE '%/TORN.csv'")
    assert listed == [("partial", f"line 4: {TORN}")]


@pytest.mark.usefixtures("only_own_models")
def test_a_new_file_rebuilds_only_its_own_group(tmp_path: Path) -> None:
    build(tmp_path, {"kalos/GPU_UTIL.csv": text(HEADER, *ROWS), "seren/GPU_UTIL.csv": text(HEADER, *ROWS)})
    parts = tmp_path / "target" / "parts" / "staging.utilization_values" / "file_group=seren.GPU_UTIL"
    (part,) = parts.glob("*.parquet")
    before = part.stat().st_mtime_ns
    ask = build(tmp_path, {"kalos/GPU_UTIL.csv": text(HEADER, ROWS[0])})
    assert part.stat().st_mtime_ns == before
    found = ask("SELECT cluster, samples FROM metrics.utilization_distribution ORDER BY ALL")
    assert found == [("kalos", 3), ("seren", 8)]


def test_every_measurement_of_power_is_read_by_column_name(built: Ask) -> None:
    """pandas writes its index as a first column without a name, or as `Unnamed: 0`."""
    assert built(
        "SELECT server_kind, server_type, node, host_ip, measure, watts FROM staging.server_power "
        "WHERE node LIKE 'SH-%' OR node = 'host7' ORDER BY ALL"
    ) == [
        ("cpu", "D", "host7", None, "Other_Power", 7.0),
        ("cpu", "D", "host7", None, "Sys_Total_Power", 540.5),
        ("gpu", "A", "SH-IDC1-10-140-0-131", "10.140.0.131", "MEM_Power", 120.0),
        ("gpu", "A", "SH-IDC1-10-140-0-131", "10.140.0.131", "Sys_Total_Power", 2930.0),
        ("gpu", "B", "SH-IDC1-10-140-0-132", "10.140.0.132", "MEM_Power", None),
        ("gpu", "B", "SH-IDC1-10-140-0-132", "10.140.0.132", "Sys_Total_Power", 3000.0),
    ]
    listed = built("SELECT reason FROM raw.files WHERE path LIKE '%/GPU_AB_Power.csv'")
    assert listed == [("columns ignored: column 1 without a name, Unnamed: 0, column 7 without a name",)]


SKIPPED = {
    "a header and a blank line": (f"{HEADER}\n\n".encode(), "no rows below the header"),
    "another file": (b"Time,load,user\nx,1,2\n", "no column is named like a server or GPU: Time,load,user"),
    "power without a server": (b"Time,Sys_Total_Power\n1,2\n", "no column 'node'"),
    "power without a measurement": (b"Time,node\n1,2\n", "no column beside Time and node"),
}


@pytest.mark.parametrize("form", SKIPPED)
def test_a_file_without_rows_of_ours_is_skipped_with_the_reason(form: str, tmp_path: Path) -> None:
    content, reason = SKIPPED[form]
    one = POWER if form.startswith("power") else WIDE
    path = tmp_path / ("GPU_C_Power.csv" if one is POWER else "GPU_UTIL.csv")
    path.write_bytes(content)
    found = one.inspect(RawFile(path, path.name, 1, 1, format=one.name))
    assert found.status == "skipped"
    assert str(found.reason).startswith(reason)
