"""The report counts polls: a switch that was polled is observed, whatever it moved."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import warehouse
from tests.release import STORAGE, Release

QUERY = Path(__file__).parents[2] / "sql" / "report" / "observation.sql"
HOUR_MS = 1_716_480_000_000


def expected(folder: Path) -> str:
    """Return a letter a minute from the poll times of the raw files: polled, in a gap, after the last poll."""
    times: set[int] = set()
    for path in folder.glob("*.csv"):
        with path.open(encoding="utf-8") as stream:
            times |= {int(row["SaveTimeUTC"]) - HOUR_MS for row in csv.DictReader(stream)}
    polls = [0, *sorted(times)]
    gaps = [(a, b) for a, b in itertools.pairwise(polls) if b - a > 10_000]
    return "".join(
        "g" if any(a < minute + 60_000 and b > minute for a, b in gaps) else "-" if minute > polls[-1] else "."
        for minute in range(0, 3_600_000, 60_000)
    )


def test_a_polled_switch_without_a_byte_at_its_servers_is_observed(published: Release) -> None:
    sql = QUERY.read_text(encoding="utf-8").split("--- */")[1]
    with warehouse.open(published.target) as asked:
        place = {"cluster": "cluster", "hour": "2024-05-23 16:00:00"}
        rows = asked.sql(f"SELECT switch, minutes, in_gbps FROM ({sql}) WHERE loaded", params=place).fetchall()
    minutes = {switch: (shown, rates) for switch, shown, rates in rows}
    shown, rates = minutes["ST-leaf-1"]
    assert shown == expected(published.hour / STORAGE)
    assert "." in shown
    assert "-" in shown
    assert [rate for rate, state in zip(rates, shown, strict=True) if state == "."] == [0.0] * shown.count(".")
    assert [rate for rate, state in zip(rates, shown, strict=True) if state == "-"] == [None] * shown.count("-")
