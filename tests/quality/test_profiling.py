"""`build --profile` says what each part cost, and costs nothing where nobody asks."""

from __future__ import annotations

import json
import re
import sys
import time

import pytest

from tests.tiny import Tiny

ROWS = 50_000


def test_each_part_that_was_made_has_its_cost_and_is_the_same_as_without(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.model(
        "metrics.busy",
        "SELECT make_timestamp(min(SaveTimeUTC) // 3600000 * 3600000000) AS hour_utc, i, i * 7919 % 50021 AS h\n"
        f"FROM raw.port_counters, range({ROWS}) AS r(i) GROUP BY i",
        {"hour_utc": "TIMESTAMP", "i": "BIGINT", "h": "BIGINT"},
        "partition: hour_utc",
        "grain: [i]",
    )
    monkeypatch.delitem(sys.modules, "warehouse.quality.profiling", raising=False)
    tiny.made()
    assert "warehouse.quality.profiling" not in sys.modules

    other = tiny.base / "other"
    lines = tiny.build("--profile", "--quiet", "-t", other).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].split()[0] == "metrics.busy"
    assert f"{2 * ROWS:,}" in lines[1]
    at = next(place for place, line in enumerate(lines) if line.startswith("3 models, 4 parts"))
    costs = [float(line[43:51]) for line in lines[1:at]]
    assert costs == sorted(costs, reverse=True), "a line a model, the costliest first"
    outside = [re.split(r"  +", line)[0] for line in lines[at + 2 :]]
    assert (outside[0], outside[-1]) == ("start", "whole process")
    assert {"models", "raw files", "catalog"} <= set(outside)
    plain, profiled = (
        {path.relative_to(target): path.read_bytes() for path in (target / "parts").rglob("*.parquet")}
        for target in (tiny.target, other)
    )
    assert plain == profiled

    tiny.model("metrics.total", "SELECT 'sum' AS name, 1 AS speed", {"name": "VARCHAR", "speed": "BIGINT"})
    tiny.file(2, "1,100,2,200,0,0.5")
    said = json.loads(tiny.build("--profile", "--json").out)
    parts = {(one["model"], one["partition"]): one for one in said["profile"]["parts"]}
    assert parts.keys() == {(one["model"], one["partition"]) for one in said["made"]}
    assert parts.keys() == {("metrics.total", "all"), ("metrics.busy", "2024-05-23T18")}
    one = parts["metrics.busy", "2024-05-23T18"]
    assert (one["rows"], one["cpu"] > 0, one["memory"] > 0) == (ROWS, True, True)
    assert sum(one["cpu"] for one in [*parts.values(), *said["profile"]["outside"]]) <= time.process_time()
    assert "-t DIR" in tiny.build("--profile").err, "nothing was built"
