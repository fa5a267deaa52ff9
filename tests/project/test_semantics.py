"""Semantics: all forms are parsed, errors name their line, and `meta` and `show` have the results."""

from __future__ import annotations

import pytest

from tests.conftest import Command
from tests.tiny import Tiny
from warehouse.base.errors import ModelError
from warehouse.project.contract import is_number
from warehouse.project.model import LAYERS
from warehouse.project.project import Project

COLUMNS = {
    "port": "VARCHAR",
    "hour_utc": "TIMESTAMP",
    "in_bytes": "BIGINT [B]",
    "out_bytes": "BIGINT [B]",
    "share": "DOUBLE [1]",
}
SELECT = "SELECT port, NULL AS hour_utc, speed AS in_bytes, speed AS out_bytes, 0.5e0 AS share FROM staging.ports"


def say(tiny: Tiny, *lines: str) -> str:
    """Give `metrics.total` these lines, from line 4 on; return its path."""
    return tiny.model("metrics.total", SELECT, COLUMNS, *lines)


GOOD = (
    "time: hour_utc",
    "dimensions: [port]",
    "measures:",
    "  in_bytes: sum except over port, hour_utc, shown in GB",
    "  share: in_bytes / out_bytes, shown in %",
    "  others: max",
)


def test_semantics_are_in_meta_and_in_show(tiny: Tiny, command: Command) -> None:
    say(tiny, *GOOD)
    assert tiny.build().status == 0
    assert tiny.ask("SELECT * EXCLUDE (model) FROM meta.measures WHERE model = 'metrics.total'") == [
        ("in_bytes", "sum", ["port", "hour_utc"], None, None, "GB", 1e9),
        ("out_bytes", "max", [], None, None, "B", 1.0),
        ("share", "ratio", [], "in_bytes", "out_bytes", "%", 0.01),
    ]
    assert tiny.ask("SELECT column_name, is_time FROM meta.dimensions") == [("hour_utc", True), ("port", False)]
    told = " ".join(command("show", "metrics.total", "-t", tiny.target).out.split())
    assert "time: hour_utc group by: hour_utc, port" in told
    assert "in_bytes BIGINT B sum, not over port, hour_utc" in told
    assert "share DOUBLE 1 sum(in_bytes) / sum(out_bytes)" in told


# lines from line 4 on -> message
WRONG = {
    ("time: hour", "measures:", "  others: sum"): ":4:1: `time`: no column hour\nnearest: hour_utc",
    ("time: port", "measures:", "  others: sum"): ":4:1: port is VARCHAR, no time",
    ("dimensions: [prt]", "measures:", "  others: sum"): ":4:1: `dimensions`: no column prt\nnearest: port",
    ("measures: sum",): ":4:1: `measures` is not a list of `key: value`",
    ("measures:", "  in_byte: sum"): ":5:3: `measures`: no column in_byte\nnearest: in_bytes",
    ("measures:", "  in_bytes: add"): ":5:3: `in_bytes` is not sum, mean, min, max, none or a / b, then",
    ("measures:", "  port: sum", "  others: sum"): ":5:3: measure port is VARCHAR, no number",
    ("measures:", "  in_bytes: sum except over prt"): ":5:3: prt is no dimension\nnearest: port",
    ("measures:", "  share: none, shown in GB"): ":5:3: share is in 1, which cannot be shown in GB",
    ("measures:", "  in_bytes: sum"): ":4:1: `measures` does not say how to sum out_bytes\nout_bytes: none",
    ("measures:", "  in_bytes, share: sum", "  share: none", "  others: sum"): ":6:3: `measures` says twice how",
}


@pytest.mark.parametrize("lines", WRONG, ids=lambda lines: WRONG[lines][:50])
def test_an_error_is_one_sentence_at_its_line(tiny: Tiny, lines: tuple[str, ...]) -> None:
    shown = say(tiny, "grain: [port]", *lines)  # in line 3
    with pytest.raises(ModelError) as raised:
        _ = tiny.project.models
    assert str(raised.value).startswith(f"{shown}{WRONG[lines]}")


def test_every_shipped_metric_declares_its_measures() -> None:
    for name, model in Project.open().models.items():
        if model.layer != LAYERS[-1]:
            continue
        said = model.semantics
        named = {*model.grain, *said.dimensions, *(one.column for one in said.measures)}
        assert {one.name for one in model.columns if is_number(one)} <= named, name
        times = [one.name for one in model.columns if one.name in ("hour_utc", "minute_utc", "second_utc")]
        assert said.time or not times, f"{name} says no time"
        # both sides of a ratio are additive; a share is never summed over its own dimension
        for measure in said.measures:
            sums = {one.column for one in said.measures if one.how == "sum"}
            assert measure.how != "ratio" or {measure.above, measure.below} <= sums, f"{name}.{measure.column}"
