"""Figures of the report: table, chart and sentence all match the rows of the query.

test_report_file checks that the rows match the query.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

import pytest

import warehouse
from tests.report.test_report_file import _Figures, values
from warehouse.report import job_figures, observation_figures
from warehouse.report.charts import Curve, distribution
from warehouse.report.theme import CATEGORIES, DARK, LIGHT, step

if TYPE_CHECKING:
    from pathlib import Path

ROLES = {"access", "uplink", "storage access", "storage uplink", "spare"}
Table = list[list[str]]


@pytest.fixture(scope="module")
def shown(report: Path) -> dict[str, dict[str, Any]]:
    found = _Figures(report.read_text(encoding="utf-8")).found
    return {name: one for name, one in found.items() if one["sql"]}


def test_every_row_of_the_matrix_is_a_cell(shown: dict[str, dict[str, Any]]) -> None:
    one = shown["links"]
    cells = [
        mark
        for mark in one["marks"]
        if mark["tag"] == "text" and "m" in mark.get("class", "").split() and mark.get("data-l")
    ]
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
    assert "A cell is the sum of all uplinks to a spine" in one["says"]
    for row in rows:  # even means the mean over the leaf's uplinks
        of = [other for other in rows if (other["leaf"], other["direction"]) == (row["leaf"], row["direction"])]
        even = (
            sum(int(other["bytes"]) for other in of) / sum(int(other["uplinks"]) for other in of) * int(row["uplinks"])
        )
        assert float(row["off_even_percent"]) == pytest.approx(100 * (int(row["bytes"]) / even - 1), abs=0.051)


def test_a_cell_with_an_uplink_without_data_tells_the_far_end_and_the_fullest(
    shown: dict[str, dict[str, Any]], built: Path
) -> None:
    one = shown["links"]
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


def test_every_port_is_on_the_map_with_its_server(shown: dict[str, dict[str, Any]]) -> None:
    one = shown["ports"]
    rows = {f"{row['switch']} {row['port']}": row for row in values(one)}
    marks = {
        mark["tip"].rpartition(f" {_role(mark['tip'])},")[0]: mark
        for mark in one["marks"]
        if mark["tag"] == "rect" and mark["tip"]
    }
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


def test_ports_have_labels_at_their_blocks_and_names_at_their_crosses(shown: dict[str, dict[str, Any]]) -> None:
    one = shown["ports"]
    suspects = [row for row in values(one) if row["suspect"]]
    texts = [mark for mark in one["marks"] if mark["tag"] == "text"]
    names = [mark["text"] for mark in texts if re.fullmatch(r"\d/\d/\d+(:\d)?", mark["text"])]
    assert sorted(names) == sorted(row["port"] for row in suspects)
    assert names
    switch, labels = "", []
    starts: dict[Any, Any] = {}
    for mark in one["marks"]:
        switch = mark["data-l"] if mark["tag"] == "svg" and mark.get("data-l") else switch
        if mark["tag"] == "rect" and mark["tip"]:
            starts.setdefault((switch, _role(mark["tip"])), set()).add(float(mark["x"]))
        elif mark["tag"] == "text" and mark["text"] in ROLES:
            labels.append((switch, mark["text"], float(mark["x"])))
    assert {label[:2] for label in labels} == set(starts), "the idle block, too"
    assert all(x in starts[name, role] for name, role, x in labels)


def _role(tip: str) -> str:
    return next(
        role for role in ("storage access", "storage uplink", "access", "uplink", "spare") if f" {role}," in tip
    )


def test_bars_are_as_long_as_their_values(shown: dict[str, dict[str, Any]]) -> None:
    one = shown["conservation"]
    drawn = [float(mark["width"]) for mark in one["marks"] if mark["tag"] == "rect" and mark["tip"]]
    told = [float(row["apart_ppm"]) for row in values(one)][: len(drawn)]
    unit = max(drawn) / max(told) if max(told) else 1  # all zero where every switch is exact
    assert drawn == pytest.approx([unit * one for one in told], abs=0.2)
    rects = [mark for mark in shown["servers"]["marks"] if mark["tag"] == "rect" and mark["tip"]]
    rates = [
        (kind, float(row[column]))
        for row in values(shown["servers"])[:10]
        for kind, column in (("in", "rx_gbps"), ("out", "tx_gbps"))
    ]
    assert [mark["class"] for mark in rects] == [kind for kind, _ in rates], "side by side, never on top of each other"
    unit = max(float(mark["width"]) for mark in rects) / max(rate for _, rate in rates)
    assert [float(mark["width"]) for mark in rects] == pytest.approx([unit * rate for _, rate in rates], abs=0.2)


def test_points_of_balance_are_at_their_values(shown: dict[str, dict[str, Any]]) -> None:
    one = shown["balance"]
    places = [float(mark["cx"]) for mark in one["marks"] if mark["tag"] == "circle"]
    told = [float(row["cov_percent"]) for row in values(one)]
    assert len(places) == len(told) > 4
    low, high = told.index(min(told)), told.index(max(told))
    unit = (places[high] - places[low]) / (told[high] - told[low])
    assert places == pytest.approx([places[low] + unit * (one - told[low]) for one in told], abs=0.2)


def test_minutes_without_a_poll_are_hatched_and_not_zero(shown: dict[str, dict[str, Any]]) -> None:
    rows = values(shown["coverage"])
    for row in rows:
        if row["loaded"] == "true":
            assert row["minutes"].startswith("ggggg"), "the gap of the sample is four minutes and some seconds"
            assert float(row["opening_gap_seconds"]) > 240
    hatched = [mark["tip"] for mark in shown["coverage"]["marks"] if "no poll" in mark.get("tip", "")]
    assert len(hatched) >= len([row for row in rows if row["loaded"] == "true"])
    lines = [
        mark
        for mark in shown["minutes"]["marks"]
        if mark["tag"] == "path" and mark.get("class", "").startswith("line ") and mark["tip"]
    ]
    assert len(lines) == 2 * len([row for row in rows if row["loaded"] == "true"])
    panels = [mark for mark in shown["minutes"]["marks"] if mark["tag"] == "svg" and mark.get("data-l")]
    told = [mark["tip"] for mark in shown["minutes"]["marks"] if ", 0:00 to " in mark.get("tip", "")]
    gaps = [float(row["opening_gap_seconds"]) for row in rows if row["loaded"] == "true"]
    ends = [re.findall(r" to (\d+):(\d\d): ", tip)[0] for tip in told]
    assert len(told) == len(panels) == len(gaps)
    assert [60 * int(minutes) + int(seconds) for minutes, seconds in ends] == pytest.approx(gaps, abs=0.6)
    bars = [mark for mark in shown["coverage"]["marks"] if mark["tag"] == "rect" and " to " in mark["tip"]]
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


def test_a_distribution_steps_at_its_values() -> None:
    [_, panel] = distribution([Curve("c", "in", [0.0, 1.0, 10.0, 100.0])], "d", "%", "ports")
    [line] = re.findall(r'class="line in" d="M([\d.]+) ([\d.]+)(.*?)"', panel.body)
    steps = [(float(x), float(y)) for x, y in re.findall(r"H([\d.]+)V([\d.]+)", line[2])]
    left, bottom = float(line[0]), float(line[1])
    height = (bottom - steps[-1][1]) / 4
    assert [y for _, y in steps] == pytest.approx([bottom - height * at for at in (1, 2, 3, 4)], abs=0.2)
    xs = [x for x, _ in steps]
    assert xs[0] == left, "zeros stand at the edge"
    assert xs[2] - xs[1] == pytest.approx(xs[3] - xs[2], abs=0.2), "decades are equally far apart"


def test_a_small_expectation_is_not_zero_and_no_measurement_draws_no_axis() -> None:
    [figure] = [one for one in job_figures.TASKS.figures if one.query == "task-traffic"]
    row = {"task": "a", "tx_bytes": 466e12, "expected_nominal_bytes": 328e12, "expected_implemented_bytes": 491e12,
           "tasks_on_nic": 1, "nics": 4, "nics_seen": 4, "observed_iterations": 9}  # fmt: skip
    expected = dict.fromkeys(("expected_nominal_bytes", "expected_implemented_bytes"), 3.8e10)
    small, outside = {**row, **expected, "task": "b", "tx_bytes": 2.1e12}, {**row, "task": "c", "tx_bytes": None}
    assert figure.chart is not None
    [_, panel] = figure.chart([row, small, outside])
    assert re.findall(r'<text class="v"[^>]*>(.*?)</text>', panel.body) == ["466", "491", "2.1", "0.038"]
    assert figure.chart([outside]) == []


def test_labels_do_not_overlap(report: Path) -> None:
    for name, one in _Figures(report.read_text(encoding="utf-8")).found.items():
        rows: dict[tuple[int, str], list[tuple[float, float, str]]] = {}
        panel = 0
        for mark in one["marks"]:
            panel += mark["tag"] == "svg"
            if mark["tag"] == "text":
                width, x = 5.2 * len(mark["text"]), float(mark["x"])
                kinds = mark.get("class", "").split()
                start = x - width if "e" in kinds else x - width / 2 if "m" in kinds else x
                rows.setdefault((panel, mark["y"]), []).append((start, start + width, mark["text"]))
        for texts in rows.values():
            texts.sort()
            for (_, end, text), (start, _, other) in itertools.pairwise(texts):
                assert end <= start + 1, f"{name}: {text} and {other}"


def test_colors_differ_for_color_blind_people() -> None:
    """Colors are Okabe and Ito's, and steps differ in lightness."""
    assert {LIGHT[name] for name in CATEGORIES} <= {"#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#8a8a8a"}
    for colors, sign in ((LIGHT, -1), (DARK, 1)):
        lightness = [_luminance(colors[f"u{at}"]) * sign for at in range(1, 7)]
        assert lightness == sorted(lightness)
        for name in ("soft", "link", "ink"):
            pair = sorted([_luminance(colors[name]), _luminance(colors["ground"])])
            assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5, name


def _luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
