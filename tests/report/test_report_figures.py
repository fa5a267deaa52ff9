"""Figures of the report: table, chart and sentence all match the rows of the query.

test_report_file checks that the rows match the query.
"""

from __future__ import annotations

import csv
import itertools
import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import warehouse
from tests.report.conftest import Figures, values
from warehouse.report import job_figures, observation_figures
from warehouse.report.job_hour_figures import JOBS_IN_HOUR
from warehouse.report.theme import step

if TYPE_CHECKING:
    from pathlib import Path


def test_every_row_of_the_matrix_is_a_cell(figures: Figures) -> None:
    one = figures["links"]
    cells = [mark for mark in one["marks"] if mark["tag"] == "text" and mark.get("data-l")]
    cells = [cell for cell in cells if "m" in cell.get("class", "").split()]
    rows = values(one)
    assert len(cells) == len(rows) > 0
    by_leaf: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: row["direction"] != "out"):
        off = float(row["off_even_percent"] or 0)
        text = f"{off:+.0f}" if round(off) else "0"
        if row["one_way_uplinks"]:
            text = f"✕ max {float(row['fullest_over_mean']):.2f}x"
        by_leaf.setdefault(row["leaf"], []).append(text)
    for leaf, texts in by_leaf.items():
        assert [cell["text"] for cell in cells if cell["data-l"] == leaf] == texts
    for row in rows:  # even means the mean over the leaf's uplinks
        of = [other for other in rows if (other["leaf"], other["direction"]) == (row["leaf"], row["direction"])]
        uplinks = sum(int(other["uplinks"]) for other in of)
        even = sum(int(other["bytes"]) for other in of) / uplinks * int(row["uplinks"])
        assert float(row["off_even_percent"]) == pytest.approx(100 * (int(row["bytes"]) / even - 1), abs=0.051)


def test_a_cell_with_an_uplink_without_data_tells_the_far_end_and_the_fullest(figures: Figures, built: Path) -> None:
    one = figures["links"]
    one_way = [row for row in values(one) if row["one_way_uplinks"]]
    with warehouse.open(built) as asked:
        for row in one_way:
            ways, uplinks = row["direction"], "metrics.port_hour AS h JOIN topology.hour_uplinks AS u ON "
            uplinks += "(u.leaf, u.leaf_port, u.hour_utc) = (h.switch, h.port, h.hour_utc)"
            hour = f"h.switch = '{row['leaf']}' AND h.hour_utc = '2024-05-23 17:00:00'"
            [(fullest, mean)] = asked.execute(
                f"SELECT max({ways}_bytes) FILTER (u.spine = '{row['spine']}'), avg({ways}_bytes) FROM {uplinks} "
                f"WHERE {hour} AND u.spine IS NOT NULL"
            ).fetchall()
            assert float(row["fullest_over_mean"]) == pytest.approx(fullest / mean, abs=0.001)
            [(far,)] = asked.execute(
                f"SELECT u.spine_port FROM {uplinks} WHERE {hour} AND h.port LIKE '%{row['one_way_uplinks']}'"
            ).fetchall()
            end = f"{row['leaf']} {row['one_way_uplinks']} → {row['spine']} {far[far.index('1/') :]}"
            assert end in one["title"]
            [tip] = [mark["tip"] for mark in one["marks"] if mark.get("class") == "lost" and end in mark["tip"]]
            assert f"carries {float(row['fullest_over_mean']):g} times the mean" in tip


def test_every_port_is_on_the_map_with_its_server(figures: Figures) -> None:
    one = figures["ports"]
    rows = {f"{row['switch']} {row['port']}": row for row in values(one)}
    assert len(rows) == len(one["rows"]), "one row a port"
    marks: dict[str, dict[str, Any]] = {}
    for mark in one["marks"]:
        if mark["tag"] == "rect" and mark["tip"]:
            [name] = re.findall(r"^(\S+ \S+) (?:storage )?(?:access|uplink|spare),", mark["tip"])
            marks[name] = mark
    assert set(marks) == set(rows)
    for name, mark in marks.items():
        row = rows[name]
        assert mark["class"] == f"p {step(float(row['fuller_percent']))}"
        assert mark.get("data-s", "") == row["server"]
        assert f"{row['server']} {row['nic']}".strip() in mark["tip"]
        assert f"in {float(row['in_percent']):g} %" in mark["tip"]
    crosses = [mark for mark in one["marks"] if mark.get("class") == "cross" and mark["tip"]]
    assert len(crosses) == len([row for row in rows.values() if row["suspect"]]) > 0
    places = [(mark["data-l"], mark["x"], mark["y"]) for mark in marks.values()]
    assert len(set(places)) == len(places), "no port lies on another"


def test_bars_are_as_long_as_their_values(figures: Figures) -> None:
    one = figures["conservation"]
    drawn = [float(mark["width"]) for mark in one["marks"] if mark["tag"] == "rect" and mark["tip"]]
    told = [float(row["apart_ppm"]) for row in values(one)][: len(drawn)]
    unit = max(drawn) / max(told) if max(told) else 1  # all zero where every switch is exact
    assert drawn == pytest.approx([unit * one for one in told], abs=0.2)
    rects = [mark for mark in figures["servers"]["marks"] if mark["tag"] == "rect" and mark["tip"]]
    rates = [
        (kind, float(row[column]))
        for row in values(figures["servers"])[:10]
        for kind, column in (("in", "rx_gbps"), ("out", "tx_gbps"))
    ]
    assert [mark["class"] for mark in rects] == [kind for kind, _ in rates], "side by side, never on top of each other"
    unit = max(float(mark["width"]) for mark in rects) / max(rate for _, rate in rates)
    assert [float(mark["width"]) for mark in rects] == pytest.approx([unit * rate for _, rate in rates], abs=0.2)


def test_points_of_balance_are_at_their_values(figures: Figures) -> None:
    one = figures["balance"]
    places = [float(mark["cx"]) for mark in one["marks"] if mark["tag"] == "circle"]
    told = [float(row["cov_percent"]) for row in values(one)]
    assert len(places) == len(told) > 4
    low, high = told.index(min(told)), told.index(max(told))
    unit = (places[high] - places[low]) / (told[high] - told[low])
    assert places == pytest.approx([places[low] + unit * (one - told[low]) for one in told], abs=0.2)


def observed(folder: Path) -> str:
    """Return a letter a minute from the poll times of the raw files: polled, in a gap, after the last poll."""
    begin = int(datetime(2024, 5, 23, 17, tzinfo=UTC).timestamp() * 1000)
    times: set[int] = set()
    for path in folder.glob("*.csv"):
        with path.open(encoding="utf-8") as stream:
            times |= {int(row["SaveTimeUTC"]) - begin for row in csv.DictReader(stream)}
    polls = [0, *sorted(times)]
    gaps = [(a, b) for a, b in itertools.pairwise(polls) if b - a > 10_000]
    return "".join(
        "g" if any(a < minute + 60_000 and b > minute for a, b in gaps) else "-" if minute > polls[-1] else "."
        for minute in range(0, 3_600_000, 60_000)
    )


def test_minutes_without_a_poll_are_hatched_and_not_zero(figures: Figures, sample: Path) -> None:
    """A switch that was polled is observed, whatever it moved."""
    hour = next(sample.rglob("trafficinfo")) / "2024052401"
    rows = [row for row in values(figures["coverage"]) if row["loaded"] == "true"]
    assert len(rows) == 9
    for row in rows:
        [folder] = hour.glob(f"*-{row['switch']}_GPU*")
        assert row["minutes"] == observed(folder)
        assert row["minutes"].startswith("ggggg"), "the gap of the sample is four minutes and some seconds"
        assert float(row["opening_gap_seconds"]) > 240
    marks = figures["minutes"]["marks"]
    lines = [mark for mark in marks if mark["tag"] == "path" and mark.get("class", "").startswith("line ")]
    assert len([line for line in lines if line["tip"]]) == 2 * len(rows)
    gaps = [float(row["opening_gap_seconds"]) for row in rows]
    told = [mark["tip"] for mark in marks if ", 0:00 to " in mark.get("tip", "")]
    ends = [re.findall(r" to (\d+):(\d\d): ", tip)[0] for tip in told]
    assert [60 * int(minutes) + int(seconds) for minutes, seconds in ends] == pytest.approx(gaps, abs=0.6)
    bars = [mark for mark in figures["coverage"]["marks"] if mark["tag"] == "rect" and " to " in mark["tip"]]
    right = max(float(bar["x"]) + float(bar["width"]) for bar in bars)
    drawn = [bar for bar in bars if ", 0:00 to " in bar["tip"] and "the sum is known" in bar["tip"]]
    for gap, bar in zip(gaps, drawn, strict=True):
        assert float(bar["width"]) == pytest.approx((right - float(bar["x"])) * gap / 3600, abs=0.2)


def test_a_minute_without_a_poll_interrupts_the_line() -> None:
    row = {
        "switch": "Leaf-1", "loaded": "true", "leaves_of_cluster": 2, "minutes": "g" + "." * 58 + "-",
        "gap_bytes_percent": 1.0, "median_poll_ms": 500, "opening_gap_seconds": 30.0,
        "in_gbps": [5.0, *[7.0] * 30, None, *[7.0] * 27, None], "out_gbps": [None] * 60,
        "highest_in_gbps": 7.0, "highest_out_gbps": None, "busiest_place": 1,
    }  # fmt: skip
    series = observation_figures.MINUTES.chart
    assert series is not None
    [_, panel] = series([row])
    [line] = re.findall(r'class="line in"[^>]* d="(.*?)"', panel.body)
    assert line.count("M") == 2
    assert line.count("L") == 58 - 2 + 1 - 1
    assert panel.body.count('class="hatch"') == 2
    coverage = observation_figures.COVERAGE.chart
    assert coverage is not None
    [_, panel] = coverage([row, {**row, "switch": "Leaf-2", "loaded": "false"}])
    assert "Leaf-2: no port counters are loaded" in panel.body


def test_a_small_expectation_is_not_zero_and_no_measurement_draws_no_axis() -> None:
    [figure] = [one for one in job_figures.TASKS.figures if one.query == "task-traffic"]
    row = {"task": "a", "tx_bytes": 466e12, "expected_nominal_bytes": 3.8e10, "expected_implemented_bytes": 3.8e10,
           "tasks_on_nic": 1, "nics": 4, "nics_seen": 4, "observed_iterations": 9}  # fmt: skip
    outside = {**row, "task": "b", "tx_bytes": None}
    assert figure.chart is not None
    [_, panel] = figure.chart([row, outside])
    assert re.findall(r'<text class="v"[^>]*>(.*?)</text>', panel.body) == ["466", "0.038"]
    assert figure.chart([outside]) == []


def test_jobs_in_an_hour_are_those_of_the_tables(figures: Figures, built: Path) -> None:
    rows = values(figures["jobs-in-hour"])
    jobs = [row for row in rows if row["job_id"]]
    assert jobs
    hour = "hour_utc = '2024-05-23 17:00:00'"
    with warehouse.open(built) as asked:
        known = {
            str(one[0]): one[1:]
            for one in asked.execute(
                f"SELECT group_id, bytes, servers, leaves, period_seconds, period_error_seconds, access_share "
                f"FROM metrics.traffic_jobs WHERE {hour}"
            ).fetchall()
        }
        assert set(known) == {row["job_id"] for row in jobs}
        for row in jobs:
            moved, servers, leaves, period, error, share = known[row["job_id"]]
            assert (int(row["bytes"]), int(row["servers"])) == (moved, servers)
            assert len(row["on_leaves"].split()) == leaves
            assert float(row["bytes_percent"]) == pytest.approx(100 * share, abs=0.051)
            if period is None:
                assert row["period"] == ""
            else:
                told, about = re.fullmatch(r"([\d.]+) ± ([\d.]+) s", row["period"]).groups()  # type: ignore[union-attr]
                assert len(about.strip("0.")) <= 2, "the first digit of the error"
                assert float(about) == pytest.approx(error, rel=0.5)
                assert float(told) == pytest.approx(period, abs=float(about) / 2 + 1e-9)
        for row in rows:
            names = "', '".join(row["which"].split())
            [(most,)] = asked.execute(
                "SELECT max(bytes) FROM (SELECT sum(rx_bytes + tx_bytes) AS bytes FROM metrics.server_minute "
                f"WHERE {hour} AND server IN ('{names}') GROUP BY minute_utc)"
            ).fetchall()
            rates = json.loads(row["gbps"])
            assert len(rates) == 60
            assert max(rates) == float(row["highest_gbps"]) == pytest.approx(most * 8e-9 / 60, abs=0.051)
            assert sum(rates) * 60 / 8 * 1e9 == pytest.approx(int(row["bytes"]), rel=0.002, abs=2e10)


def test_minutes_of_jobs_that_were_dropped_are_hatched() -> None:
    row = {"job": "GPU-1", "job_id": 1, "servers": 2, "bytes_percent": 50.0, "bytes": 10**12, "period": None,
           "on_leaves": "Leaf-1", "which": "GPU-1 b", "opening_gap_seconds": 240.0, "highest_gbps": None,
           "gbps": None}  # fmt: skip
    assert JOBS_IN_HOUR.chart is not None
    [_, panel] = JOBS_IN_HOUR.chart([row])
    assert "the minutes of this hour were dropped" in panel.body
    assert 'class="access"' not in panel.body
