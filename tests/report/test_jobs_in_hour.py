"""Figure of the jobs of an hour: rates, leaves and periods match the tables, and the drawing matches the rates."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import warehouse
from tests.report.test_report_file import _Figures, values
from warehouse.report.job_hour_figures import ALONE, JOBS_IN_HOUR, LEFT, MOST, STRIP
from warehouse.report.svg import WIDTH

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from warehouse.report.figure import Values
    from warehouse.report.svg import Panel


def _drawn(rows: Sequence[Values]) -> list[Panel]:
    assert JOBS_IN_HOUR.chart is not None
    return JOBS_IN_HOUR.chart(rows)


@pytest.fixture(scope="module")
def figure(report: Path) -> dict[str, Any]:
    return _Figures(report.read_text(encoding="utf-8")).found["jobs-in-hour"]


def _job(name: str, **given: object) -> Values:
    told = {"job": name, "job_id": 1, "servers": 2, "bytes_percent": 50.0, "bytes": 10**12, "period": None,
            "on_leaves": "Leaf-1", "which": f"{name} b", "opening_gap_seconds": 240.0, "highest_gbps": 8.0,
            "gbps": [8.0] * 60}  # fmt: skip
    return told | given


def _steps(path: str, base: float) -> list[tuple[float, float]]:
    """Return the height and width of each step of a profile."""
    start = float(path[1:].split(" ")[0])
    found = []
    for top, end in re.findall(r"V([\d.]+)H([\d.]+)", path):
        found.append((base - float(top), float(end) - start))
        start = float(end)
    return found


def test_a_row_has_the_job_of_the_tables(figure: dict[str, Any], built: Path) -> None:
    rows = values(figure)
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


def test_profiles_have_the_height_of_their_rates_and_the_gap_is_hatched(figure: dict[str, Any]) -> None:
    rows = values(figure)
    for row in rows:
        name = row["job"] if row["job_id"] else "in no job"
        marks = [mark for mark in figure["marks"] if mark.get("tip", "").startswith(f"{name}: ")]
        unseen, seen = [mark for mark in marks if mark["tag"] == "path"]
        base = float(re.findall(r" ([\d.]+)V", seen["d"])[0])
        assert (unseen["class"], seen["class"]) == (("u2", "access") if row["job_id"] else ("u0", "none"))
        assert seen["data-s"] == row["which"]
        minute = (WIDTH - 2 * LEFT) / 60
        gap = float(row["opening_gap_seconds"]) / 60
        assert 4 < gap < 5, "the gap of the sample"
        rates = json.loads(row["gbps"])
        pixels = STRIP / max(rates)
        known = [(rate * pixels, minute) for rate in rates]
        cut = 5 - gap
        early = [*known[:4], (known[4][0], minute * (1 - cut))]
        for drawn, expected in ((unseen, early), (seen, [(known[4][0], minute * cut), *known[5:]])):
            steps = _steps(drawn["d"], base)
            assert len(steps) == len(expected)
            for step, wanted in zip(steps, expected, strict=True):
                assert step == pytest.approx(wanted, abs=0.16)
        [hatched] = [mark for mark in marks if "no poll" in mark["tip"]]
        assert float(hatched["width"]) == pytest.approx(gap * minute, abs=0.11)


def test_many_jobs_are_two_panels_and_the_smallest_are_left_to_the_table() -> None:
    few = [_job(f"GPU-{at}") for at in range(ALONE)]
    assert len(_drawn(few)) == 2
    many = [_job(f"GPU-{at}") for at in range(MOST + 3)] + [_job("", job_id=None)]
    _, first, second = _drawn(many)
    drawn = re.findall(r">(GPU-\d+|in no job)<", first.body + second.body)
    assert drawn == [*(f"GPU-{at}" for at in range(MOST)), "in no job"]


def test_minutes_that_were_dropped_are_hatched() -> None:
    [_, panel] = _drawn([_job("GPU-1", gbps=None, highest_gbps=None)])
    assert "the minutes of this hour were dropped" in panel.body
    assert 'class="access"' not in panel.body
