"""Utilization in the form of AcmeTrace: wide files (whole, split and empty) and power of servers, with all traps.

It covers one hour of a few servers, at the turn of a month. Cells are whole thousandths until they are written, so that
truth and files cannot differ by rounding. The writers return the totals of the written rows.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path

from warehouse.sample.basics import Row, draw, draw_one, write_csv

ROWS = 240
STEP = 15
START = datetime(2023, 7, 31, 23, 30)  # noqa: DTZ001 - local time, written with its offset
OFFSET = "+08:00"
ODD = {"1e400": "beyond what is measured", "n/a": "no number"}
"""Rejected cells, and why."""
COVERED = 8
"""Rows of the second split file whose times are also in the first file."""

Cells = list[list[int | None]]
"""One list per row, in thousandths."""


def write_utilization(directory: Path, seed: int) -> Row:
    """Write `utilization/` under `directory`; return its truth."""
    root = directory / "utilization"
    groups = [_kalos(root / "kalos", seed), _seren(root / "seren", seed), _network(root / "seren", seed)]
    header = "Time,172.31.0.1-0,172.31.0.1-1\n"
    (root / "kalos" / "DRAM_ACTIVE.csv").write_bytes(header.encode())
    return {
        "groups": groups,
        "without_rows": ["kalos/DRAM_ACTIVE.csv"],
        "power": _power(root / "ipmi", seed),
    }


def _kalos(folder: Path, seed: int) -> Row:
    """Write one whole file: idle, full and partial load, a gap, a repeated time, and cells that are not numbers."""
    names = [f"172.31.0.{server}-{gpu}" for server in range(1, 5) for gpu in range(8)]
    cells = _gpu_cells(seed, "kalos", names)
    lines = _lines(cells, decimals=1)
    rejected = []
    for place, (text, why) in zip((40, 90), ODD.items(), strict=True):
        cells[place][5] = None
        lines[place][1 + 5] = text
        rejected.append({"line": place + 2, "cell": text, "column": names[5], "why": why})
    lines[60][1 + 7] = "nan"
    cells[60][7] = None
    gap = slice(100, 120)
    # After the odd cells, whose line numbers are all before the gap.
    del lines[gap], cells[gap]
    lines.append(lines[10])
    rejected.append({"line": len(lines) + 1, "cell": None, "column": None, "why": "the time of line 12 again"})
    _write(folder / "GPU_UTIL.csv", names, lines)
    return {
        **_truth("kalos", "GPU_UTIL", cells),
        "files": [_file("kalos/GPU_UTIL.csv", names, len(cells), longest_gap=21 * STEP)],
        "nan_cells": 1,
        "rejected": rejected,
    }


def _seren(folder: Path, seed: int) -> Row:
    """Write the same metric split at the end of a month; the second file overlaps the first."""
    names = [f"10.140.0.{server}-{gpu}" for server in (131, 9, 10) for gpu in range(8)]
    cells = _gpu_cells(seed, "seren", names)
    lines = _lines(cells, decimals=1)
    half = ROWS // 2
    columns = names[::-1]  # column order differs between files
    reversed_lines = [[time, *cells[::-1]] for time, *cells in lines[half - COVERED :]]
    _write(folder / "GPU_UTIL-2023-07.csv", names, lines[:half])
    _write(folder / "GPU_UTIL-2023-08.csv", columns, reversed_lines)
    return {
        **_truth("seren", "GPU_UTIL", cells),
        "files": [
            _file("seren/GPU_UTIL-2023-07.csv", names, half),
            _file("seren/GPU_UTIL-2023-08.csv", columns, ROWS - half + COVERED, covered=COVERED),
        ],
        "nan_cells": 0,
        "rejected": [],
    }


def _network(folder: Path, seed: int) -> Row:
    """Write a metric of servers: columns named after NICs, and an address of five parts."""
    names = ["10.140.0.131-mlx5_0", "10.140.0.9-mlx5_0", "10.140.0.131.1"]
    cells = _cells(seed, "ib", len(names), high=20_000_000, idle=60)
    _write(folder / "NODE_IB_SEND.csv", names, _lines(cells, decimals=3))
    return {
        **_truth("seren", "NODE_IB_SEND", cells),
        "files": [_file("seren/NODE_IB_SEND.csv", names, ROWS, in_doubt=["10.140.0.131.1"])],
        "nan_cells": 0,
        "rejected": [],
    }


MEASURES = {"Sys_Total_Power": (1_400, 6_500), "CPU_Power": (200, 600), "MEM_Power": (60, 180)}
SERVERS = {"10-140-0-131": "A", "10-140-0-9": "B", "10-140-0-10": "A", "10-140-1-1": "D"}
"""Servers with power, each with its type: A and B have GPUs."""
READINGS = 12


def _power(folder: Path, seed: int) -> list[Row]:
    """Write a reading every five minutes for two types of GPU servers and for CPU servers."""
    folder.mkdir(parents=True)
    found = []
    for kind, letters, measures in (("cpu", "D", ["Sys_Total_Power"]), ("gpu", "AB", [*MEASURES])):
        rows = [["Time", *measures, "node"]]
        for server in (one for one, letter in SERVERS.items() if letter in letters):
            for reading in range(READINGS):
                time = (START + timedelta(minutes=5 * reading)).isoformat(" ") + OFFSET
                watts = [_watts(seed, server, measure, reading) for measure in measures]
                rows.append([time, *("" if one is None else f"{one}.0" for one in watts), f"SH-{server}"])
        write_csv(folder / f"{kind.upper()}_{letters}_Power.csv", rows)
        for letter, measure in product(letters, sorted(measures)):
            servers = [server for server in SERVERS if SERVERS[server] == letter]
            drawn = [_watts(seed, server, measure, reading) for server in servers for reading in range(READINGS)]
            known = [watts for watts in drawn if watts is not None]
            totals = {"samples": len(known), "sum": sum(known), "median": statistics.median(known or [0])}
            found.append(
                {"server_kind": kind, "server_type": letter, "measure": measure, "servers": len(servers), **totals}
            )
    return [row for row in found if row["samples"]]


def _watts(seed: int, server: str, measure: str, reading: int) -> int | None:
    """Return one reading: one type of GPU server has no memory power, and one reading is 0."""
    if SERVERS[server] == "B" and measure == "MEM_Power":
        return None
    drawn = draw_one(seed, f"ipmi/{server}/{measure}/{reading}", *MEASURES[measure])
    return 0 if (server, reading) == ("10-140-0-9", 3) else drawn


def _gpu_cells(seed: int, label: str, names: Sequence[str]) -> Cells:
    """Return whole percentages: 30% of the cells are 0, and 40% are 100."""
    cells = _cells(seed, label, len(names), high=100, idle=30)
    full = draw(seed, f"util/{label}/full", ROWS * len(names), 1, 100).reshape(ROWS, len(names)) <= 57
    return [
        [
            cell if cell in (0, None) else 100_000 if is_full else (cell or 0) * 1000
            for cell, is_full in zip(*both, strict=True)
        ]
        for both in zip(cells, full.tolist(), strict=True)
    ]


def _cells(seed: int, label: str, columns: int, *, high: int, idle: int) -> Cells:
    """Return cells drawn uniformly from 1 to `high`; `idle` percent are 0, and one percent is empty."""
    count = ROWS * columns
    values = draw(seed, f"util/{label}/value", count, 1, high).tolist()
    kinds = draw(seed, f"util/{label}/kind", count, 1, 100).tolist()
    flat = [None if kind == 100 else 0 if kind <= idle else value for value, kind in zip(values, kinds, strict=True)]
    return [flat[at : at + columns] for at in range(0, count, columns)]


def _lines(cells: Cells, *, decimals: int) -> list[list[str]]:
    """Return lines in the format of pandas: `43.0`, with at least one digit after the point."""
    return [[_time(place), *(_text(cell, decimals) for cell in row)] for place, row in enumerate(cells)]


def _time(place: int) -> str:
    return (START + timedelta(seconds=STEP * place)).isoformat(" ") + OFFSET


def _text(cell: int | None, decimals: int) -> str:
    if cell is None:
        return ""
    whole, rest = divmod(cell, 1000)
    return f"{whole}.{f'{rest:03}'[:decimals].rstrip('0') or '0'}"


def _write(path: Path, names: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_csv(path, [["Time", *names], *lines])


def _file(path: str, names: Sequence[str], rows: int, *, covered: int = 0, longest_gap: int = STEP,
          in_doubt: Sequence[str] = ()) -> Row:  # fmt: skip
    return {
        "path": path,
        "rows": rows,
        "columns": len(names),
        "covered_rows": covered,
        "longest_gap_seconds": longest_gap,
        "columns_in_doubt": list(in_doubt),
    }


def _truth(cluster: str, metric: str, cells: Cells) -> Row:
    samples = [cell for row in cells for cell in row if cell is not None]
    return {
        "cluster": cluster,
        "metric": metric,
        "samples": len(samples),
        "zero_samples": samples.count(0),
        "sum_thousandths": sum(samples),
        "median": statistics.median(samples) / 1000,
        "max": max(samples) / 1000,
        "minutes": len({place // 4 for place, row in enumerate(cells) if any(cell is not None for cell in row)}),
    }
