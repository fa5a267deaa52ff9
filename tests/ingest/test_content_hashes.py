"""Hashing of raw files in threads."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from warehouse.base import hashing
from warehouse.formats import known_formats
from warehouse.ingest import content_hashes
from warehouse.ingest.inventory import RawFiles
from warehouse.store.parts import Store


def test_an_interrupt_stops_the_hashing_of_a_long_file(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of 60 GB would otherwise be read to its end first."""
    calls = itertools.count()

    def endless(_path: Path, watch: hashing.Watch) -> str:
        if next(calls) == 0:
            raise KeyboardInterrupt
        while True:
            watch(b"1")

    monkeypatch.setattr(content_hashes, "of_content", endless)
    with pytest.raises(KeyboardInterrupt):
        RawFiles([sample], known_formats(), Store(tmp_path), threads=2)
