"""Wide utilization files: every cell is read; files and columns."""

from __future__ import annotations

import gzip
import json
import math
import random
import statistics
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from tests.formats.wide import HEADER, ROWS, Wide, seen
from warehouse.formats.acme.utilization import WIDE

MODELS = (
    "metrics.utilization_distribution",
    "metrics.utilization_minute",
    "metrics.utilization_quality",
    "metrics.utilization_shares",
    "staging.rejected_rows",
    "staging.utilization",
)
pytestmark = pytest.mark.usefixtures("only_own_models")


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


def test_minutes_of_odd_cells_in_two_files_match_numpy(wide: Wide) -> None:
    """Rows are unordered, two files share minutes, some rows are covered, and cells exceed three decimals."""
    chance = random.Random(3)
    cells = ["", "nan", "0.0", "-1.5", "123456789.123456789", "5e-07", "100.0", "0.0000005", "-0.0000005", "33.333"]
    lines = [
        f"2023-07-01 08:{n // 4:02}:{n % 4 * 15:02}+08:00," + ",".join(chance.choices(cells, k=9)) for n in range(120)
    ]
    chance.shuffle(lines)
    header = ",".join(["Time", *(f"10.0.0.{n}-0" for n in range(9))])
    wide.lines(header, *lines[:70], name="kalos/GPU_UTIL-2023-07.csv")
    wide.lines(header, *lines[70:], name="kalos/GPU_UTIL-2023-08.csv")
    wide.build()

    times = sorted(line[:19] for line in lines[:70])
    covered = [line for line in lines[70:] if times[0] <= line[:19] <= times[-1]]
    by_minute: dict[str, list[float]] = defaultdict(list)
    for line in (line for line in lines if line not in covered):
        by_minute[line[14:16]] += [
            millionths(cell) for cell in line.split(",")[1:] if cell and not math.isnan(float(cell))
        ]
    expected: list[tuple[Any, ...]] = []
    for minute, cells_of in sorted(by_minute.items()):
        if cells_of:
            counts = len(cells_of), cells_of.count(0)
            quantiles = [float(one) for one in np.quantile(cells_of, [0.25, 0.5, 0.75, 0, 1])]
            expected.append((minute, *counts, math.fsum(cells_of) / len(cells_of), *quantiles))
    found = wide.ask(
        "SELECT strftime(minute_utc, '%M'), samples, zero_samples, mean, p25, p50, p75, min_value, max_value "
        "FROM metrics.utilization_minute ORDER BY minute_utc"
    )
    assert len(found) > 25
    assert [row[:3] for row in found] == [row[:3] for row in expected]
    for row, other in zip(found, expected, strict=True):
        assert row[3:] == pytest.approx([value / 1e6 for value in other[3:]], rel=1e-12)


def millionths(cell: str) -> float:
    """Return a cell in whole millionths; halves away from 0, as SQL rounds."""
    return math.copysign(math.floor(abs(float(cell)) * 1e6 + 0.5), float(cell))


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
    "a header that does not end": (HEADER.encode(), "no rows below the header"),
    "no time": (b"time,10.0.0.1-0\nx,1\n", "the header is not that of acme.utilization: time,10.0.0.1-0"),
    "another first column": (b"10.0.0.1-0,Time\n1,x\n", "the first column is '10.0.0.1-0', not Time"),
    "the time alone": (b"Time\n2023-07-01 08:00:00+08:00\n", "no column is named like a server or GPU: Time"),
    "columns of something else": (
        b"Time,load,user\nx,1,2\n",
        "no column is named like a server or GPU: Time,load,user",
    ),
    "no text": (b"Time,\xff\xfe\n1\n", "the header: not UTF-8 text"),
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
