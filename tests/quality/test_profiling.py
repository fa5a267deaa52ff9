"""`build --profile` says what each part cost, and costs nothing where nobody asks."""

from __future__ import annotations

import json
import re
import sys
import time
from itertools import pairwise

import pytest

from tests.tiny import HOURS, Tiny
from warehouse.engine.observed import Statement
from warehouse.graph.plan import Key
from warehouse.quality import profiling
from warehouse.quality.profiling import Clocks, Profile
from warehouse.runner.reporter import Reporter
from warehouse.store.manifest import Part
from warehouse.store.partitions import folder_of

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


def test_a_line_a_model_the_costliest_first_and_what_lies_outside(hours: Tiny) -> None:
    said = hours.build("--profile", "--quiet")
    assert said.status == 0, said
    lines = said.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[2].split()[0] == "metrics.busy"
    assert f"{2 * ROWS:,}" in lines[2]
    at = next(place for place, line in enumerate(lines) if line.startswith("3 models, 4 parts"))
    costs = [float(line[31:38]) for line in lines[2:at]]
    assert costs == sorted(costs, reverse=True)
    outside = [re.split(r"  +", line)[0] for line in lines[at + 2 :]]
    assert outside[0] == "start"
    assert {"models", "raw files", "catalog"} <= set(outside)
    assert outside[-1] == "whole process"


def test_parts_are_told_apart_and_add_up(hours: Tiny) -> None:
    by_part = hours.build("--profile", "parts", "--quiet", "-t", hours.base / "other")
    assert {f"metrics.busy {hour}" for hour in HOURS} <= {line[:31].strip() for line in by_part.out.splitlines()}

    said = json.loads(hours.build("--profile", "--json").out)
    parts = {(one["model"], one["partition"]): one for one in said["profile"]["parts"]}
    assert parts.keys() == {(one["model"], one["partition"]) for one in said["made"]}
    for hour in HOURS:
        one = parts["metrics.busy", hour]
        (file,) = (hours.target / "parts" / "metrics.busy" / folder_of(hour)).glob("*.parquet")
        assert one["rows"] == ROWS
        assert one["cpu"] > 0
        assert one["memory"] > 0
        assert one["written"] >= file.stat().st_size
        assert one["read"] > 0, "the raw file, and the part for its checks"


def test_parts_that_were_there_are_not_told_as_made(hours: Tiny) -> None:
    hours.made()
    hours.model(
        "metrics.total", "SELECT 'sum' AS name, sum(speed) AS speed FROM staging.ports",
        {"name": "VARCHAR", "speed": "BIGINT"},
    )  # fmt: skip
    said = json.loads(hours.build("--profile", "--json").out)
    assert [one["model"] for one in said["profile"]["parts"]] == ["metrics.total"]
    assert sum(one["cpu"] for one in [*said["profile"]["parts"], *said["profile"]["outside"]]) <= time.process_time()


def test_nothing_to_do_is_said_with_what_to_do(hours: Tiny) -> None:
    hours.made()
    said = hours.build("--profile")
    assert (said.status, said.out) == (0, "")
    assert "-t DIR" in said.err


def test_parts_are_the_same_bytes_as_without(hours: Tiny) -> None:
    hours.made()
    hours.build("--profile", "--quiet", "-t", hours.base / "other")
    plain, profiled = (
        {path.relative_to(target): path.read_bytes() for path in (target / "parts").rglob("*.parquet")}
        for target in (hours.target, hours.base / "other")
    )
    assert plain == profiled


def test_without_it_nothing_of_it_is_loaded(hours: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("warehouse.quality.profiling", "warehouse.engine.observed")
    for name in names:
        monkeypatch.delitem(sys.modules, name)
    hours.made()
    assert not any(name in sys.modules for name in names)


# what goes to whom, with figures that are given ---------------------------------------------------


def test_what_is_used_goes_to_what_the_build_is_at(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = [Clocks(float(at * at), 10.0 * at) for at in range(1, 9)]
    given = iter(readings)
    monkeypatch.setattr(Clocks, "now", staticmethod(lambda: next(given)))
    profile = Profile(Reporter())
    profile.stage_started("models")
    profile.part_started("a.made", "all")
    profile.statement_finished(Statement(memory=7, spill=5, read=60, written=1000))
    profile.statement_finished(Statement(memory=3, spill=0, read=40))
    profile.part_finished(Part("a.made", "all", "", "", 42, 1, "", [], {}), 0.0, reused=False)
    profile.part_started("a.there", "all")
    profile.part_finished(Part("a.there", "all", "", "", 43, 1, "", [], {}), 0.0, reused=True)
    profile.stage_started("catalog")
    profile.stage_started("models")

    steps = [later.cpu - earlier.cpu for earlier, later in pairwise(readings)]
    (made,) = profile.parts.items()
    assert made[0] == Key("a.made", "all")
    assert (made[1].cpu, made[1].wall, made[1].rows) == (steps[2], 10.0, 42)
    assert (made[1].read, made[1].written, made[1].memory, made[1].spill) == (100, 1000, 7, 5)
    assert profile.stages["models"].cpu == steps[1]
    assert profile.stages[profiling.RUNNER].cpu == steps[3] + steps[4] + steps[5]
    assert profile.stages["catalog"].cpu == steps[6]
    shown = [float(line[31:38]) for line in profile.table() if line and not line.startswith(" ")]
    assert shown[0] == shown[1] == made[1].cpu
    assert shown[-1] == readings[-1].cpu, "all of it, from the start of the process"
