"""Figures of the report: chart and sentences match the rows; test_report_file checks that the rows match the query."""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import warehouse
from tests.report.conftest import Figures, values
from warehouse.report.figures import jobs_in_hour, minutes, step, traffic

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
    for row in (row for row in values(one) if row["one_way_uplinks"]):
        moved = f"h.{row['direction']}_bytes"
        with warehouse.open(built) as asked:
            [(fullest, mean, far)] = asked.execute(
                f"SELECT max({moved}) FILTER (u.spine = $2), avg({moved}), any_value(u.spine_port) FILTER "
                "(h.port LIKE $3) FROM metrics.port_hour AS h JOIN topology.hour_uplinks AS u "
                "ON (u.leaf, u.leaf_port, u.hour_utc) = (h.switch, h.port, h.hour_utc) "
                "WHERE h.switch = $1 AND h.hour_utc = '2024-05-23 17:00:00' AND u.spine IS NOT NULL",
                [row["leaf"], row["spine"], f"%{row['one_way_uplinks']}"],
            ).fetchall()
        assert float(row["fullest_over_mean"]) == pytest.approx(fullest / mean, abs=0.001)
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


def test_bars_and_points_are_at_their_values(figures: Figures) -> None:
    rects = [mark for mark in figures["servers"]["marks"] if mark["tag"] == "rect" and mark["tip"]]
    rows = values(figures["servers"])[:10]
    rates = [(way, float(row[one])) for row in rows for way, one in (("in", "rx_gbps"), ("out", "tx_gbps"))]
    assert [mark["class"] for mark in rects] == [way for way, _ in rates], "side by side, never on top of each other"
    unit = max(float(mark["width"]) for mark in rects) / max(rate for _, rate in rates)
    assert [float(mark["width"]) for mark in rects] == pytest.approx([unit * rate for _, rate in rates], abs=0.2)
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
        "switch": "Leaf-1", "loaded": "true", "minutes": "g" + "." * 58 + "-", "opening_gap_seconds": 30.0,
        "in_gbps": [5.0, *[7.0] * 30, None, *[7.0] * 27, None], "out_gbps": [None] * 60,
        "highest_in_gbps": 7.0, "highest_out_gbps": None,
    }  # fmt: skip
    [_, panel] = minutes([row])
    [line] = re.findall(r'class="line in"[^>]* d="(.*?)"', panel.svg())
    assert (line.count("M"), line.count("L"), panel.svg().count('class="hatch"')) == (2, 58 - 2 + 1 - 1, 2)


def test_what_was_not_measured_is_not_drawn() -> None:
    row = {"task": "a", "tx_bytes": 466e12, "expected_nominal_bytes": 3.8e10, "expected_implemented_bytes": 3.8e10,
           "tasks_on_nic": 1, "nics": 4, "nics_seen": 4, "observed_iterations": 9}  # fmt: skip
    outside = {**row, "task": "b", "tx_bytes": None}
    [_, panel] = traffic([row, outside])
    assert re.findall(r'<text class="v"[^>]*>(.*?)</text>', panel.svg()) == ["466", "0.038"]
    assert traffic([outside]) == []
    job = {"job": "GPU-1", "job_id": 1, "servers": 2, "bytes_percent": 50.0, "bytes": 10**12, "period": None,
           "on_leaves": "Leaf-1", "which": "GPU-1 b", "opening_gap_seconds": 240.0, "highest_gbps": None,
           "gbps": None}  # fmt: skip
    [_, panel] = jobs_in_hour([job])
    assert "the minutes of this hour were dropped" in panel.svg()
    assert 'class="access"' not in panel.svg()


def test_jobs_in_an_hour_are_those_of_the_tables(figures: Figures, built: Path) -> None:
    rows = values(figures["jobs-in-hour"])
    jobs = {row["job_id"]: row for row in rows if row["job_id"]}
    with warehouse.open(built) as asked:
        known = asked.execute(
            "SELECT group_id::VARCHAR, bytes, servers, leaves, period_seconds, period_error_seconds, access_share "
            "FROM metrics.traffic_jobs WHERE hour_utc = '2024-05-23 17:00:00'"
        ).fetchall()
    assert {job for job, *_ in known} == jobs.keys() != set()
    for job, moved, servers, leaves, period, error, share in known:
        row = jobs[job]
        assert (int(row["bytes"]), int(row["servers"]), len(row["on_leaves"].split())) == (moved, servers, leaves)
        assert float(row["bytes_percent"]) == pytest.approx(100 * share, abs=0.051)
        assert bool(row["period"]) == (period is not None)
        if period is not None:
            told, about = map(float, row["period"].removesuffix(" s").split(" ± "))
            assert about == pytest.approx(error, rel=0.5)
            assert told == pytest.approx(period, abs=about / 2 + 1e-9)
    for row in rows:
        rates = json.loads(row["gbps"])
        assert (len(rates), max(rates)) == (60, float(row["highest_gbps"]))
        assert sum(rates) * 60 / 8 * 1e9 == pytest.approx(int(row["bytes"]), rel=0.002, abs=2e10)


# titles and conclusions: each number once more, from the rows below it

Row = dict[str, str]


def total(rows: Iterable[Row], column: str) -> float:
    return sum(float(row[column] or 0) for row in rows)


def highest(rows: Iterable[Row], column: str) -> Row:
    return max(rows, key=lambda row: float(row[column] or -1))


def said(name: str, rows: list[Row]) -> list[str]:
    """Return parts of the title and the conclusion of a figure, from its rows."""
    match name:
        case "ports":
            fullest = highest(rows, "fuller_percent")
            place = f"{fullest['switch']} {fullest['port']} ({fullest['server']})"
            idle = sum(float(row["fuller_percent"]) < 0.005 for row in rows)
            return [
                f"The fullest link is {place}: {float(fullest['fuller_percent']):.1f} %",
                f"{len(rows)} ports of {len({row['switch'] for row in rows})} switches",
                f"{idle} of them moved nothing",
                f"A ✕ marks a suspect port: {sum(bool(row['suspect']) for row in rows)}.",
            ]
        case "balance":
            judged = [row for row in rows if row["judged"] == "true"]
            uneven = [row for row in judged if float(row["cov_percent"]) >= float(row["threshold_percent"])]
            even = [row for row in judged if row not in uneven]
            return [
                f"standard deviation up to {float(highest(uneven, 'cov_percent')['cov_percent']):.1f} %",
                f"on other leaves at most {float(highest(even, 'cov_percent')['cov_percent']):.1f} %",
                f"{len(uneven)} of {len(judged)} directions of the leaves ({len({row['switch'] for row in judged})})",
                *(f"{row['switch']} {row['direction']}" for row in uneven),
            ]
        case "servers":
            busiest = max(rows, key=lambda row: int(row["rx_bytes"]) + int(row["tx_bytes"]))
            rates = [f"{float(f'{int(busiest[way]) * 8 / 3600 / 1e9:.3g}'):g}" for way in ("rx_bytes", "tx_bytes")]
            moved = f"{rates[0]} Gb/s received, {rates[1]} Gb/s sent"
            return [f"{busiest['server']} is busiest: {moved}", f"of {len(rows)} servers"]
        case "matrix":
            sent = [row for row in rows if row["src"] != "outside"]
            width = [int(row["bytes_high"]) - int(row["bytes_low"]) for row in sent]
            proven = [row for row, one in zip(sent, width, strict=True) if one <= 0.1 * int(row["bytes_estimate"])]
            local = [row for row in sent if row["src"] == row["dst"]]
            of_sent = 100 / total(sent, "bytes_estimate")
            return [
                f"{total(local, 'bytes_estimate') * of_sent:.0f} % of the bytes stay under their leaf",
                f"prove {total(proven, 'bytes_estimate') * of_sent:.1f} % of the bytes",
            ]
        case "coverage":
            loaded = [row for row in rows if row["loaded"] == "true"]
            most = highest(loaded, "gap_bytes_percent")
            longest = float(highest(loaded, "opening_gap_seconds")["opening_gap_seconds"])
            return [
                f"{len(loaded)} of {len(rows)} leaves loaded",
                f"up to {longest:.0f} s without a poll",
                f"the largest share at {most['switch']}: {float(most['gap_bytes_percent']):g} %",
                f"{total(loaded, 'missing_port_polls'):.0f} polls of single ports are missing",
            ]
        case "conservation":
            leaves = [row for row in rows if row["kind"] == "leaf"]
            apart = max(abs(int(row["in_bytes"]) / int(row["out_bytes"]) - 1) * 1e6 for row in leaves)
            return [f"agree within {apart:.0f} ppm", f"the switches ({len(rows)})"]
        case _:
            count = Counter(row["verdict"] for row in rows)
            tested = count["reproduced"] + count["differs"] + count["contradicted"]
            return [
                f"{count['reproduced']} of {tested} published figures are reproduced",
                f"{count['differs']} differ, {count['contradicted']} are contradicted",
            ]


def test_a_sentence_has_the_numbers_of_its_rows(figures: Figures) -> None:
    for name in ("ports", "balance", "servers", "matrix", "coverage", "conservation", "claims"):
        hours = [one for one in figures if one == name or one.startswith(f"{name}-20")]
        assert hours, name
        for one in hours:
            text = " ".join(f"{figures[one]['title']} {figures[one]['says']}".split())
            assert [part for part in said(name, values(figures[one])) if part not in text] == [], (one, text)
