"""Fixtures that read lines as a log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from warehouse.formats.logs.reader import LogReader

Events = list[dict[str, Any]]
Read = Callable[..., Events]


class Rejects(list[tuple[int, str, str]]):
    """Unreadable lines that a reader reported."""

    def add(self, line: int, reason: str, text: str) -> None:
        self.append((line, reason, text))


@pytest.fixture
def rejects() -> Rejects:
    return Rejects()


@pytest.fixture
def read(tmp_path: Path, rejects: Rejects) -> Read:
    """Return a function that reads lines (text or raw bytes) and returns their events, without NULL columns."""

    def events(*lines: str, raw: bytes | None = None) -> Events:
        path = tmp_path / "x.log"
        path.write_bytes(raw if raw is not None else "".join(f"{line}\n" for line in lines).encode())
        found = LogReader("x.log", rejects.add).read(path)
        return [{name: value for name, value in event.items() if value is not None} for event in found]

    return events
