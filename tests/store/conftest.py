"""Project whose polls have a part per hour, for tests of what a target knows of its builds."""

from __future__ import annotations

import pytest

from tests.conftest import Restored
from tests.tiny import Tiny

HOURLY = {"hour_utc": "TIMESTAMP", "bytes": "BIGINT"}


@pytest.fixture
def hours(tiny: Tiny, restored: Restored) -> Tiny:
    """A part per hour with checks, and a view on it; built."""
    return tiny.restore(restored, "part-per-hour", _write_hours)


def _write_hours(tiny: Tiny) -> None:
    tiny.model(
        "staging.hour",
        "SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, sum(InOctets) AS bytes\n"
        "FROM raw.port_counters GROUP BY ALL",
        HOURLY,
        "partition: hour_utc",
        "checks:",
        "  - bytes > 0",
        "  - warn: bytes > 100",
    )
    view = ("materialize: view", "checks:", "  - rows >= 1")
    tiny.model("metrics.view", "SELECT hour_utc, bytes FROM staging.hour", HOURLY, *view)
