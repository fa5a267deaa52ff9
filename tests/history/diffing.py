"""Project of polls by hour for tests of `warehouse diff`, and calls of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.conftest import Completed, call
from tests.tiny import Tiny
from warehouse.history.builds import builds

SPEEDS = {"port": "VARCHAR", "speed": "BIGINT"}
POLLS = (
    'SELECT f.hour_utc, c."SaveTimeUTC" AS ms, c."InOctets" AS in_bytes '
    "FROM raw.port_counters AS c JOIN raw.files AS f ON f.read_path = c.filename"
)
POLL_COLUMNS = {"hour_utc": "TIMESTAMP", "ms": "BIGINT", "in_bytes": "BIGINT [B]"}
RAW = "c/trafficinfo/2024052401/x/Leaf-1_1_1.csv"


def again(tiny: Tiny) -> str:
    """Build again and return the previous build; the new one must differ."""
    before = builds(tiny.target)[0].build
    said = tiny.build()
    assert said.status == 0, said.err
    assert builds(tiny.target)[0].build != before
    return before


def compare(tiny: Tiny, *arguments: str | Path) -> Completed:
    return call("diff", "-t", tiny.target, *arguments, cwd=tiny.base)


def differing(tiny: Tiny, *arguments: str | Path) -> dict[str, Any]:
    """Return the tables that differ, as `diff --json` reports them."""
    said = compare(tiny, "--json", *arguments)
    found = json.loads(said.out)
    assert found["equal"] == (said.status == 0) == (not found["differing"])
    return {table["name"]: table for table in found["differing"]}
