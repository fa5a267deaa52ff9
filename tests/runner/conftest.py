"""A model with a part per hour."""

from __future__ import annotations

import pytest

from tests.tiny import HOUR_COLUMNS, Tiny

COLUMNS = {"port": "VARCHAR", "speed": "BIGINT"}


@pytest.fixture
def hours(tiny: Tiny) -> Tiny:
    """`staging.hour` with a part per hour, and `metrics.hours` over all of them."""
    tiny.by_hour()
    over_all = "SELECT max(hour_utc) AS hour_utc, sum(bytes) AS bytes FROM staging.hour"
    tiny.model("metrics.hours", over_all, HOUR_COLUMNS)
    return tiny
