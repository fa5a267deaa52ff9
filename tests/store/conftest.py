"""Project whose polls have a part per hour, for tests of what a target knows of its builds."""

from __future__ import annotations

import pytest

from tests.conftest import Restored
from tests.tiny import HOUR_COLUMNS, Tiny


@pytest.fixture
def hours(tiny: Tiny, restored: Restored) -> Tiny:
    """A part per hour with checks, and a view on it; built."""
    return tiny.restore(restored, "part-per-hour", _write_hours)


def _write_hours(tiny: Tiny) -> None:
    tiny.by_hour("checks: ['bytes > 0', 'warn: bytes > 100']")
    view = ("materialize: view", "checks: ['rows >= 1']")
    tiny.model("metrics.view", "SELECT hour_utc, bytes FROM staging.hour", HOUR_COLUMNS, *view)
