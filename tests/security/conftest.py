"""A room of a test's own, and one that tests of a file share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.room import Room, opened


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """Open a room of the test's own."""
    with opened(tmp_path / "room") as found:
        yield found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """Open one room for tests that must not change it."""
    with opened(tmp_path_factory.mktemp("shared") / "room") as found:
        yield found
