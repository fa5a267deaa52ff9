"""Wide utilization files: every cell is read, and every unusable cell or line is named with its file and line."""

from __future__ import annotations

import csv
import gzip
import json
import random
import statistics
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import zstandard

import warehouse
from warehouse.base.settings import settle
from warehouse.formats import torn_lines
from warehouse.formats.acme.utilization_wide import WIDE
from warehouse.formats.base import RawFile
from warehouse.kernels.utilization_minutes import summary
from warehouse.runner.build import build
from warehouse.runner.options import BuildOptions
from warehouse.runner.reporter import Reporter

HEADER = "Time,10.140.1.10-0,10.140.1.10-1,10.140.1.9-0"
ROWS = (
    "2023-07-01 08:00:00+08:00,43.0,0.0,100.0",
    "2023-07-01 08:00:15+08:00,43.5,,99.0",
    "2023-07-01 08:01:30+08:00,1,2.125,-3.5",
)


class Wide:
    """Data folder of wide files, and the target of its build."""

    def __init__(self, base: Path) -> None:
        self.data, self.target = base / "data", base / "target"

    def write(self, content: str | bytes, name: str = "kalos/GPU_UTIL.csv") -> Path:
        path = self.data / "utilization" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def lines(self, *lines: str, name: str = "kalos/GPU_UTIL.csv") -> Path:
        return self.write("".join(f"{line}\n" for line in lines), name)

    def build(self, *, kernels: bool = True) -> None:
        build(settle({"data": [str(self.data)], "target": str(self.target)}), Reporter(), BuildOptions(kernels=kernels))

    def ask(self, sql: str) -> list[tuple[object, ...]]:
        with warehouse.open(self.target) as reader:
            return reader.execute(sql).fetchall()

    def values(self) -> list[tuple[object, ...]]:
        return self.ask(
            "SELECT strftime(time_utc, '%H:%M:%S'), column_name, value FROM staging.utilization "
            "ORDER BY time_utc, position"
        )

    def rejected(self) -> list[tuple[object, ...]]:
        return self.ask("SELECT line, reason, text FROM staging.rejected_rows ORDER BY line")

    def file(self) -> tuple[object, ...]:
        return self.ask("SELECT status, reason FROM raw.files WHERE format = 'acme.utilization'")[0]


@pytest.fixture
def wide(tmp_path: Path) -> Wide:
    return Wide(tmp_path)


def seen(path: Path) -> RawFile:
    about = path.stat()
    return WIDE.inspect(RawFile(path, path.name, about.st_size, about.st_mtime_ns, format=WIDE.name, cluster="unknown"))


# every cell ---------------------------------------------------------------------------------------


def test_every_cell_is_read_with_its_time_server_and_gpu(wide: Wide) -> None:
    wide.lines(HEADER, *ROWS)
    wide.build()

    assert wide.ask(
        "SELECT cluster, metric, host_ip, gpu, time_utc, value FROM staging.utilization ORDER BY time_utc, position"
    ) == [
        ("kalos", "GPU_UTIL", host, gpu, datetime.fromisoformat(f"2023-07-01 {time}"), value)
        for time, values in (("00:00:00", (43, 0, 100)), ("00:00:15", (43.5, None, 99)), ("00:01:30", (1, 2.125, -3.5)))
        for (host, gpu), value in zip((("10.140.1.10", 0), ("10.140.1.10", 1), ("10.140.1.9", 0)), values, strict=True)
    ]
    assert wide.rejected() == []


def test_the_offset_of_each_row_counts(wide: Wide) -> None:
    wide.lines(
        HEADER,
        "2023-07-01 08:00:00+08:00,1,1,1",
        "2023-07-01 01:00:15+01:00,1,1,1",
        "2023-06-30 23:30:30.5-00:30,1,1,1",
    )
    wide.build()

    assert wide.ask("SELECT CAST(time_utc AS VARCHAR) FROM staging.utilization_rows ORDER BY ALL") == [
        ("2023-07-01 00:00:00",), ("2023-07-01 00:00:15",), ("2023-07-01 00:00:30.5",),
    ]  # fmt: skip


def test_distributions_match_the_samples(wide: Wide) -> None:
    """Compared with NumPy, which interpolates between ranks like quantile_cont."""
    chance = random.Random(7)
    rows = [[chance.choice(["", "0.0", f"{chance.randrange(100_000) / 1000}"]) for _ in range(7)] for _ in range(501)]
    names = [f"10.0.0.{n}-0" for n in range(7)]
    start = datetime(2023, 7, 1, tzinfo=UTC)
    times = [(start + timedelta(seconds=15 * n)).strftime("%Y-%m-%d %H:%M:%S+00:00") for n in range(len(rows))]
    wide.lines(",".join(["Time", *names]), *(",".join([time, *row]) for time, row in zip(times, rows, strict=True)),
               name="seren/SM_ACTIVE.csv")  # fmt: skip
    wide.build()

    samples = np.array([float(cell) for row in rows for cell in row if cell])
    found = wide.ask(
        "SELECT samples, min_value, p01, p05, p10, p25, p50, p75, p90, p95, p99, max_value, mean, zero_share, unit "
        "FROM metrics.utilization_distribution"
    )[0]
    quantiles = [float(one) for one in np.quantile(samples, [0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1])]
    expected = [len(samples), *quantiles, float(samples.mean()), float((samples == 0).mean())]
    assert found[:-1] == pytest.approx(tuple(expected), rel=1e-12)
    assert found[-1] == "%"
    assert wide.ask("SELECT at_most_share FROM metrics.utilization_shares WHERE meaning = 'idle'") == [
        (pytest.approx(float((samples == 0).mean())),)
    ]
    by_minute = [[float(cell) for row in rows[at : at + 4] for cell in row if cell] for at in range(0, len(rows), 4)]
    minutes = wide.ask(
        "SELECT samples, zero_samples, mean, p25, p50, p75, min_value, max_value FROM metrics.utilization_minute "
        "ORDER BY minute_utc"
    )
    for found_minute, given in zip(minutes, by_minute, strict=True):
        quartiles = statistics.quantiles(given, n=4, method="inclusive")
        assert found_minute == pytest.approx(
            (len(given), given.count(0), statistics.fmean(given), *quartiles, min(given), max(given)), rel=1e-12
        )


def test_the_kernel_returns_the_rows_of_the_select(tmp_path: Path) -> None:
    """Rows are unordered, two files share minutes, some minutes have one sample, and cells exceed three decimals."""
    chance = random.Random(3)
    cells = ["", "nan", "0.0", "-1.5", "123456789.123456789", "5e-07", "100.0", "0.0000005", "-0.0000005", "33.333"]
    lines = [
        f"2023-07-01 08:{n // 4:02}:{n % 4 * 15:02}+08:00," + ",".join(chance.choices(cells, k=9)) for n in range(120)
    ]
    chance.shuffle(lines)
    header = ",".join(["Time", *(f"10.0.0.{n}-0" for n in range(9))])
    query = "FROM metrics.utilization_minute ORDER BY ALL"
    found = []
    for kernels in (True, False):
        wide = Wide(tmp_path / str(kernels))
        wide.lines(header, *lines[:70], name="kalos/GPU_UTIL-2023-07.csv")
        wide.lines(header, *lines[70:], name="kalos/GPU_UTIL-2023-08.csv")
        wide.build(kernels=kernels)
        found.append(wide.ask(query))
    assert len(found[0]) > 25
    assert found[0] == found[1]


def test_the_summary_without_samples_is_none() -> None:
    assert summary(np.array([np.nan])) is None
    assert summary(np.array([2.0, np.nan])) == (1, 0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0)


# files --------------------------------------------------------------------------------------------


def test_files_of_a_split_metric_may_overlap(wide: Wide) -> None:
    """A time that an earlier file of the group covers is kept as a row, but counts once."""
    wide.lines(HEADER, *ROWS, name="kalos/GPU_UTIL-2023-07.csv")
    wide.lines("Time,10.140.9.9-7", f"{ROWS[1][:25]},7", "2023-07-02 08:00:00+08:00,8.0", name="kalos/GPU_UTIL.csv")
    wide.build()

    assert wide.values()[-1] == ("00:00:00", "10.140.9.9-7", 8.0)
    assert wide.ask("SELECT samples, max_value FROM metrics.utilization_distribution") == [(9, 100.0)]
    assert wide.ask("SELECT rows, covered_rows, cells FROM metrics.utilization_quality ORDER BY file") == [
        (3, 0, 9), (2, 1, 1),
    ]  # fmt: skip
    assert wide.ask("SELECT DISTINCT file_group FROM raw.files") == [("kalos.GPU_UTIL",)]


def test_joins_stream_the_lines(wide: Wide) -> None:
    """Lines are the large side: a join builds its hash table from the other side and streams the lines."""
    names = [f"10.0.{n}.1-0" for n in range(20)]
    for month in (7, 8, 9):
        row = f"2023-0{month}-01 08:%02d:00+08:00,{','.join('7' for _ in names)}"
        lines = [row % minute for minute in range(60)]
        wide.lines(",".join(["Time", *names]), *lines, name=f"kalos/GPU_UTIL-2023-0{month}.csv")
    wide.build()

    ((_, plan),) = wide.ask("EXPLAIN (FORMAT json) SELECT max(value), max(host_ip) FROM staging.utilization")
    waiting, streamed = json.loads(str(plan)), 0
    while waiting:
        node = waiting.pop()
        waiting += node["children"]
        if "JOIN" in node["name"]:
            passing, kept = (json.dumps(side) for side in node["children"])
            assert "READ_CSV" not in kept
            streamed += "READ_CSV" in passing
    assert streamed == 2  # with files, with columns


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_file_can_be_compressed(wide: Wide, suffix: str) -> None:
    content = "\n".join([HEADER, *ROWS, ""]).encode()
    packed = gzip.compress(content) if suffix == ".gz" else zstandard.ZstdCompressor().compress(content)
    wide.write(packed, f"seren/GPU_UTIL.csv{suffix}")
    wide.build()
    assert len(wide.values()) == 9


def test_groups_are_built_separately(wide: Wide) -> None:
    """A new file rebuilds only its own group."""
    wide.lines(HEADER, *ROWS)
    wide.lines(HEADER, *ROWS, name="seren/GPU_UTIL.csv")
    wide.build()
    part = next((wide.target / "parts" / "staging.utilization_values" / "file_group=seren.GPU_UTIL").glob("*.parquet"))
    before = part.stat().st_mtime_ns
    wide.lines(HEADER, *ROWS[:1], name="kalos/GPU_UTIL.csv")
    wide.build()
    assert part.stat().st_mtime_ns == before
    assert wide.ask("SELECT cluster, samples FROM metrics.utilization_distribution ORDER BY ALL") == [
        ("kalos", 3), ("seren", 8),
    ]  # fmt: skip


FILES = {
    "empty": (b"", "empty file"),
    "a header alone": (f"{HEADER}\n".encode(), "no rows below the header"),
    "a header and a blank line": (f"{HEADER}\n\n".encode(), "no rows below the header"),
    "a header that does not end": (HEADER.encode(), "no end of a header in the first"),
    "no time": (b"time,10.0.0.1-0\nx,1\n", "no column 'Time': time,10.0.0.1-0"),
    "another first column": (b"10.0.0.1-0,Time\n1,x\n", "the first column is '10.0.0.1-0', not Time"),
    "the time alone": (b"Time\n2023-07-01 08:00:00+08:00\n", "no column beside Time"),
    "columns of something else": (
        b"Time,load,user\nx,1,2\n",
        "no column is named like a server or GPU: Time,load,user",
    ),
    "no text": (b"Time,\xff\xfe\n1\n", "not a text file"),
    "gzip that is none": (b"Time,", "cannot be decompressed"),
}


@pytest.mark.parametrize("form", FILES)
def test_a_file_without_rows_of_ours_is_skipped_with_the_reason(form: str, tmp_path: Path) -> None:
    content, reason = FILES[form]
    path = tmp_path / ("GPU_UTIL.csv" + ".gz" * form.startswith("gzip"))
    path.write_bytes(content)
    found = seen(path)
    assert found.status == "skipped"
    assert found.reason is not None
    assert found.reason.startswith(reason)


def test_names_and_folders_say_what_a_file_is(tmp_path: Path) -> None:
    for name, group in {
        "seren/GPU_UTIL.csv": "seren.GPU_UTIL",
        "Kalos/NODE_IB_SEND-2023-07-01.csv": "kalos.NODE_IB_SEND",
        "kalos/old/XID_ERRORS-2023-07.csv": "kalos.XID_ERRORS",
        "GPU_TEMP.csv": "unknown.GPU_TEMP",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([HEADER, *ROWS, ""]))
        assert WIDE.claims(path)
        assert seen(path).file_group == group
    assert not any(
        WIDE.claims(Path(name)) for name in ("gpu_util.csv", "GPU_AB_Power.csv", "GPU_UTIL.txt", "notes.csv")
    )


# columns ------------------------------------------------------------------------------------------


def test_server_and_device_of_a_column(wide: Wide) -> None:
    names = [
        "10.0.0.1",
        "10.0.0.1-mlx5_0",
        "172.31.15.112-6",
        "10.140.0.131.1",
        "10.0.0.2-0.1",
        "10.0.0.1",
        "total",
        "",
    ]
    wide.lines(",".join(["Time", *names]), f"2023-07-01 08:00:00+08:00,{',' * 7}")
    wide.build()

    assert wide.ask(
        "SELECT name, host_ip, device, gpu, problem FROM staging.utilization_columns ORDER BY position"
    ) == [
        ("10.0.0.1", "10.0.0.1", None, None, "twice"),
        ("10.0.0.1-mlx5_0", "10.0.0.1", "mlx5_0", None, None),
        ("172.31.15.112-6", "172.31.15.112", "6", 6, None),
        ("10.140.0.131.1", "10.140.0.131", None, None, "five_parts"),
        ("10.0.0.2-0.1", "10.0.0.2", "0.1", None, "five_parts"),
        ("10.0.0.1", "10.0.0.1", None, None, "twice"),
        ("total", None, None, None, "no_address"),
        ("", None, None, None, "no_address"),
    ]


def test_a_file_of_empty_cells_is_a_finding(wide: Wide) -> None:
    wide.lines(HEADER, "2023-07-01 08:00:00+08:00,,nan,")
    wide.build()

    assert wide.ask("SELECT cells, values, nan_cells FROM metrics.utilization_quality") == [(3, 0, 1)]
    assert wide.ask("SELECT status FROM meta.checks WHERE check_text = 'values > 0'") == [("warned",)]
    assert wide.ask("SELECT count(*) FROM metrics.utilization_distribution") == [(0,)]


# cells --------------------------------------------------------------------------------------------

CELLS = {
    "": None, "43.0": 43, "43": 43, "43.": 43, "0": 0, "-0.0": 0, "nan": None, "NaN": None, "1e-05": 1e-05, "007": 7,
    "238.871": 238.871, "999999999.999999": 999999999.999999, "0.1234567890123456": 0.1234567890123456,
}  # fmt: skip
NO_CELLS = [
    "1e400", "inf", "-inf", "Infinity", "1e5", "abc", " 43.0", "43.0 ", "+5", ".5", "0x10", "1_000", "4 3", "1.2.3",
    "--5", "1234567890", '"43.0"', "NULL", "true", "٣", "-", "1e-",
]  # fmt: skip


@pytest.mark.parametrize("cell", CELLS)
def test_a_valid_cell_is_read(wide: Wide, cell: str) -> None:
    wide.lines("Time,10.0.0.1-0,10.0.0.1-1", f"2023-07-01 08:00:00+08:00,{cell},1.0")
    wide.build()
    assert [row[2] for row in wide.values()] == [CELLS[cell], 1.0]
    assert wide.ask("SELECT sum(samples) FROM staging.utilization_values") == [(2,)]
    assert wide.rejected() == []


def test_a_cell_that_is_not_a_number_is_named_and_the_rest_of_its_line_is_read(wide: Wide) -> None:
    rows = [f"2023-07-01 08:00:{n:02}+08:00,1.0,{cell},2.0" for n, cell in enumerate(NO_CELLS)]
    wide.lines(HEADER, *rows, "2023-07-01 08:01:00+08:00,a,b,2.0", ROWS[2])
    wide.build()

    assert [row[2] for row in wide.values()] == [*[1.0, None, 2.0] * len(NO_CELLS), None, None, 2.0, 1, 2.125, -3.5]
    column = "10.140.1.10-1"
    assert wide.rejected() == [
        *(
            (line, f"a cell is no number, of {column}: {cell!r}; the rest of the line is read", cell)
            for line, cell in enumerate(NO_CELLS, start=2)
        ),
        (
            len(NO_CELLS) + 2,
            "2 cells are no numbers, the first, of 10.140.1.10-0: 'a'; the rest of the line is read",
            "a,b",
        ),
    ]
    assert wide.file()[0] == "partial"


# lines --------------------------------------------------------------------------------------------

GOOD = "2023-07-01 09:00:00+08:00,5,5,5"
LINES = {
    "a cell less": (f"{GOOD[:25]},5,5", "3 fields instead of 4"),
    "a cell more": (f"{GOOD},5", "5 fields instead of 4"),
    "a time alone": (GOOD[:25], "1 fields instead of 4"),
    "the same time": (f"{ROWS[0][:25]},7,7,7", "the same time as in line 2"),
    "the same moment at another offset": ("2023-07-01 02:00:00+02:00,7,7,7", "the same time as in line 2"),
    "a time without offset": ("2023-07-01 09:00:00,5,5,5", "Time is no time with an offset: '2023-07-01 09:00:00'"),
    "a time in words": ("yesterday,5,5,5", "Time is no time with an offset: 'yesterday'"),
    "no time": (",5,5,5", "Time is no time with an offset: ''"),
    "a day that is none": ("2023-02-30 09:00:00+08:00,5,5,5", "Time is no time with an offset: '2023-02-30"),
    "an hour that no day has": ("2023-07-01 24:00:00+08:00,5,5,5", "Time is no time with an offset: '2023-07-01 24"),
    "an offset that no zone has": ("2023-07-01 09:00:00+25:00,5,5,5", "Time is no time with an offset: '2023-07-01 09"),
    "a time with slashes": ("2023/07/01 09:00:00+08:00,5,5,5", "Time is no time with an offset: '2023/07/01"),
    "a time after a blank": (" 2023-07-01 09:00:00+08:00,5,5,5", "Time is no time with an offset: ' 2023-07-01"),
    "a time in another form": ("2023-07-01T09:00:00+08:00,5,5,5", "Time is no time with an offset: '2023-07-01T"),
    "a blank line": ("", "blank line"),
    "a line of blanks": ("   ", "1 fields instead of 4"),
    "the header again": (HEADER, "the header again"),
    "a longer line": (f"{GOOD[:25]},{'5' * torn_lines.LINE_BYTES},5,5", f"longer than {torn_lines.LINE_BYTES:,} bytes"),
    "a byte that is no text": (f"{GOOD[:25]},5,\x01,5", "a cell is no number"),
}


@pytest.mark.parametrize("form", LINES)
def test_a_bad_line_is_named_and_the_others_are_read(wide: Wide, form: str) -> None:
    line, reason = LINES[form]
    wide.lines(HEADER, ROWS[0], line, *ROWS[1:])
    wide.build()

    rejected = wide.rejected()
    assert [one[0] for one in rejected] == [3]
    assert str(rejected[0][1]).startswith(reason)
    assert len(wide.values()) == (12 if reason == "a cell is no number" else 9)
    assert wide.ask("SELECT file FROM staging.rejected_rows") == [("acme/utilization/kalos/GPU_UTIL.csv",)]


def test_lines_below_another_header_are_rejected(wide: Wide) -> None:
    """Below another header, a column may be another server's."""
    wide.lines(HEADER, ROWS[0], "Time,10.0.0.1-0,10.0.0.2-0,10.0.0.3-0", *ROWS[1:])
    wide.build()
    assert [(line, reason) for line, reason, _ in wide.rejected()] == [
        (3, "another header"), (4, "below another header, in line 3"), (5, "below another header, in line 3"),
    ]  # fmt: skip
    assert len(wide.values()) == 3


def test_a_torn_file_is_read_without_its_last_line(wide: Wide) -> None:
    wide.write("\n".join([HEADER, *ROWS]))
    wide.build()
    assert wide.rejected() == [(4, torn_lines.TORN, ROWS[2])]
    assert len(wide.values()) == 6
    assert wide.file() == ("partial", "line 4: torn: the file ends without a final newline")


@pytest.mark.parametrize("ending", ["\r\n", "mixed"])
def test_other_line_ends_are_accepted(wide: Wide, ending: str) -> None:
    lines = [HEADER, *ROWS, ""]
    wide.write("\r\n".join(lines) if ending == "\r\n" else "\r\n".join(lines[:2]) + "\n" + "\n".join(lines[2:]))
    wide.build()
    assert [row[2] for row in wide.values()] == [43, 0, 100, 43.5, None, 99, 1, 2.125, -3.5]
    assert wide.rejected() == []


def test_lines_that_end_in_carriage_returns_alone_are_one_header(wide: Wide) -> None:
    file = seen(wide.write("\r".join([HEADER, *ROWS, ""]) + "\n" + "\n".join([HEADER, *ROWS, ""])))
    assert (file.status, file.reason) == ("skipped", "holds a carriage return: lines end in LF or CRLF")


def test_a_line_with_a_carriage_return_inside_is_rejected(wide: Wide) -> None:
    wide.lines(HEADER, ROWS[0], ROWS[1].replace(",", ",\r", 1), ROWS[2])
    wide.build()
    assert [row[:2] for row in wide.rejected()] == [(3, "holds a carriage return: lines end in LF or CRLF")]


def test_a_byte_order_mark_is_no_part_of_the_header(wide: Wide) -> None:
    wide.write(("\ufeff" + "\n".join([HEADER, *ROWS, "x,1,1,1", ""])).encode())
    wide.build()
    assert len(wide.values()) == 9
    assert len(wide.rejected()) == 1


def test_invalid_text_rejects_only_its_line(wide: Wide) -> None:
    wide.write("\n".join([HEADER, ROWS[0], ""]).encode() + b"2023-07-01 09:00:00+08:00,\xff,5,5\n")
    wide.build()
    assert [(line, reason) for line, reason, _ in wide.rejected()] == [(3, "not UTF-8 text")]
    assert len(wide.values()) == 3


def test_every_line_is_a_row_or_is_rejected(wide: Wide) -> None:
    """With damage in random places, no line is lost or doubled."""
    chance = random.Random(11)
    lines = [f"2023-07-01 08:{n // 60:02}:{n % 60:02}+08:00,{n}.0,{n}.5,nan" for n in range(600)]
    for place in chance.sample(range(600), 120):
        line = lines[place]
        cut = chance.randrange(len(line))
        start, end = line[:cut], line[cut:]
        other = lines[chance.randrange(600)]
        lines[place] = chance.choice([start, f"{start},{end}", f"{start}x{end}", other, f"{line},", ""])
    wide.lines(HEADER, *lines)
    wide.build()

    rows = wide.ask("SELECT count(*) FROM staging.utilization_rows")[0][0]
    whole = wide.ask("SELECT count(*) FROM staging.rejected_rows WHERE reason NOT LIKE '%rest of the line is read'")[0][
        0
    ]
    assert (rows + whole) == 600  # type: ignore[operator]
    assert wide.ask("SELECT count(*) FROM staging.utilization") == [(rows * 3,)]  # type: ignore[operator]
    good = {cells[0] for cells in csv.reader(lines) if cells}
    assert rows <= len(good)  # type: ignore[operator]
