"""A room of a test's own, and one that tests of a file share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import Restored
from tests.security.room import Room, make, opened


@pytest.fixture
def room(restored: Restored) -> Iterator[Room]:
    """Open a room of the test's own."""
    with opened(restored("room", make)) as found:
        yield found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """Open one room for tests that must not change it."""
    base = tmp_path_factory.mktemp("shared")
    make(base)
    with opened(base) as found:
        yield found
