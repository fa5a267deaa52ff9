"""A model with a part per hour."""

from __future__ import annotations

import pytest

from tests.tiny import Tiny

COLUMNS = {"port": "VARCHAR", "speed": "BIGINT"}
HOUR_COLUMNS = {"hour_utc": "TIMESTAMP", "bytes": "BIGINT"}


@pytest.fixture
def hours(tiny: Tiny) -> Tiny:
    """`staging.hour` with a part per hour, and `metrics.hours` over all of them."""
    tiny.model(
        "staging.hour",
        "SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, sum(InOctets) AS bytes\n"
        "FROM raw.port_counters GROUP BY ALL",
        HOUR_COLUMNS,
        "partition: hour_utc",
    )
    tiny.model(
        "metrics.hours",
        "SELECT max(hour_utc) AS hour_utc, sum(bytes) AS bytes FROM staging.hour",
        HOUR_COLUMNS,
    )
    return tiny
