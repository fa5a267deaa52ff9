"""Build for tests of `warehouse diff`."""

from __future__ import annotations

import pytest

from tests.conftest import Restored
from tests.history.diffing import POLL_COLUMNS, POLLS
from tests.tiny import Tiny


@pytest.fixture
def polls(tiny: Tiny, restored: Restored) -> Tiny:
    """Polls by hour, a view on them, and a sum; built once."""
    return tiny.restore(restored, "polls-to-compare", _write_polls)


def _write_polls(tiny: Tiny) -> None:
    tiny.model("staging.polls", POLLS, POLL_COLUMNS, "partition: hour_utc", "grain: [hour_utc, ms]")
    tiny.model(
        "metrics.large",
        "SELECT hour_utc, ms, in_bytes FROM staging.polls WHERE in_bytes > 0",
        POLL_COLUMNS,
        "partition: hour_utc",
        "grain: [hour_utc, ms]",
        "materialize: view",
    )
    tiny.model(
        "metrics.hours",
        "SELECT hour_utc, CAST(sum(in_bytes) AS BIGINT) AS in_bytes FROM staging.polls GROUP BY hour_utc",
        {"hour_utc": "TIMESTAMP", "in_bytes": "BIGINT"},
        "partition: hour_utc",
    )
