"""Named queries about single minutes and seconds, against plain Python over the polls and seconds of the sample."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import warehouse

HOUR = "2024-05-23 16:00:00"


def ask(built: Path, name: str, **parameters: Any) -> list[dict[str, Any]]:
    relation = warehouse.query(name, target=built, hour=HOUR, **parameters)
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


def rows_of(built: Path, sql: str) -> list[Any]:
    with warehouse.open(built) as connection:
        return connection.execute(sql).fetchall()


def test_the_fullest_seconds_are_of_observed_seconds(built: Path) -> None:
    found = ask(built, "fullest-seconds", limit=5)
    seconds = rows_of(
        built,
        f"SELECT s.switch, s.port, s.second_utc, s.in_bytes, s.out_bytes, h.line_rate_bps "
        f"FROM metrics.port_second AS s JOIN metrics.port_hour AS h USING (cluster, switch, port, hour_utc) "
        f"WHERE h.port_class <> 'management' AND quality <> 'gap' AND hour_utc = '{HOUR}'",
    )
    both = [(way * 8 / rate, switch, port) for switch, port, _, i, o, rate in seconds for way in (i, o)]
    expected = sorted(both, reverse=True)[:5]
    assert [row["utilization"] for row in found] == [round(one[0], 4) for one in expected]
    assert (found[0]["switch"], found[0]["port"]) == expected[0][1:]
    most = max(max(i, o) for _, _, _, i, o, _ in seconds)
    assert ask(built, "fullest-seconds", by="bytes", limit=1)[0]["bytes"] == most


def test_lost_polls_stand_beside_the_traffic_at_that_time(built: Path) -> None:
    found = ask(built, "lost-polls", limit=3)
    (first, *_) = found
    missing = rows_of(
        built,
        f"SELECT max(missing_polls) FROM metrics.port_hour WHERE hour_utc = '{HOUR}' HAVING max(missing_polls) > 0",
    )
    assert [(first["missing_polls"],)] == missing
    port = f"switch = '{first['switch']}' AND port = '{first['port']}' AND hour_utc = '{HOUR}'"
    ((key, rate),) = rows_of(
        built,
        f"SELECT file_key, line_rate_bps FROM staging.port_files WHERE {port}",
    )
    stored = {
        at
        for (at,) in rows_of(
            built, f"SELECT offset_ms FROM staging.port_readings WHERE file_key = {key} AND hour_utc = '{HOUR}'"
        )
    }
    polls = rows_of(
        built, f"SELECT offset_ms FROM staging.switch_polls WHERE switch = '{first['switch']}' AND hour_utc = '{HOUR}'"
    )
    lost = {at // 1000 for (at,) in polls if at not in stored}
    by_loss: dict[bool, list[int]] = defaultdict(list)
    for second, moved in rows_of(
        built,
        f"SELECT second, greatest(in_bytes, out_bytes) FROM staging.port_seconds "
        f"WHERE file_key = {key} AND hour_utc = '{HOUR}' AND longest_ms <= 10000",
    ):
        by_loss[second in lost].append(moved)
    for name, is_lost in (("at_lost", True), ("at_other", False)):
        values = by_loss[is_lost]
        expected = round(sum(values) / len(values) * 8 / rate, 4) if values else None
        assert first[name] == pytest.approx(expected, abs=1e-4), name


def test_every_minute_of_a_leaf_is_listed_and_a_gap_says_so(built: Path) -> None:
    found = ask(built, "uplink-minutes", leaf="Leaf-1")
    table = rows_of(
        built,
        "SELECT strftime(minute_utc, '%H:%M'), total_bytes, quality FROM metrics.uplink_balance_minute "
        f"WHERE switch = 'Leaf-1' AND direction = 'out' AND hour_utc = '{HOUR}' ORDER BY ALL",
    )
    assert [(row["minute"], row["total_bytes"], row["quality"]) for row in found] == table
    assert {row["cov"] for row in found if row["quality"] == "gap"} <= {None}
