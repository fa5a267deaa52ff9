"""`build --profile` says what each part cost, and costs nothing where nobody asks."""

from __future__ import annotations

import json
import re
import sys
import time

import pytest

from tests.tiny import HOURS, Tiny

ROWS = 50_000


@pytest.fixture
def hours(tiny: Tiny) -> Tiny:
    """With `metrics.busy`, whose parts have work to do."""
    tiny.model(
        "metrics.busy",
        "SELECT make_timestamp(min(SaveTimeUTC) // 3600000 * 3600000000) AS hour_utc, i, i * 7919 % 50021 AS h\n"
        f"FROM raw.port_counters, range({ROWS}) AS r(i) GROUP BY i",
        {"hour_utc": "TIMESTAMP", "i": "BIGINT", "h": "BIGINT"},
        "partition: hour_utc",
        "grain: [i]",
    )
    return tiny


def test_a_line_a_model_the_costliest_first_and_the_same_parts_as_without(
    hours: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "warehouse.quality.profiling", raising=False)
    hours.made()
    assert "warehouse.quality.profiling" not in sys.modules
    said = hours.build("--profile")
    assert (said.status, said.out, "-t DIR" in said.err) == (0, "", True)
    other = hours.base / "other"
    lines = hours.build("--profile", "--quiet", "-t", other).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].split()[0] == "metrics.busy"
    assert f"{2 * ROWS:,}" in lines[1]
    at = next(place for place, line in enumerate(lines) if line.startswith("3 models, 4 parts"))
    costs = [float(line[43:51]) for line in lines[1:at]]
    assert costs == sorted(costs, reverse=True)
    outside = [re.split(r"  +", line)[0] for line in lines[at + 2 :]]
    assert (outside[0], outside[-1]) == ("start", "whole process")
    assert {"models", "raw files", "catalog"} <= set(outside)
    plain, profiled = (
        {path.relative_to(target): path.read_bytes() for path in (target / "parts").rglob("*.parquet")}
        for target in (hours.target, other)
    )
    assert plain == profiled


def test_each_part_that_was_made_has_its_cost(hours: Tiny) -> None:
    said = json.loads(hours.build("--profile", "--json").out)
    parts = {(one["model"], one["partition"]): one for one in said["profile"]["parts"]}
    assert parts.keys() == {(one["model"], one["partition"]) for one in said["made"]}
    one = parts["metrics.busy", HOURS[0]]
    assert (one["rows"], one["cpu"] > 0, one["memory"] > 0) == (ROWS, True, True)
    hours.model("metrics.total", "SELECT 'sum' AS name, 1 AS speed", {"name": "VARCHAR", "speed": "BIGINT"})
    said = json.loads(hours.build("--profile", "--json").out)
    assert [one["model"] for one in said["profile"]["parts"]] == ["metrics.total"]
    assert sum(one["cpu"] for one in [*said["profile"]["parts"], *said["profile"]["outside"]]) <= time.process_time()
