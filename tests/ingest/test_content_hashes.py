"""Hashing of raw files in threads."""

from __future__ import annotations

import itertools
from contextlib import closing
from pathlib import Path

import pytest

from warehouse.base import hashing
from warehouse.engine.workers import Workers
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


def test_worker_processes_see_the_same_in_files(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_hashes, "FEWEST_BLOCKS", 1)
    seen = []
    for count in (1, 2):
        with closing(Workers(count)) as workers:
            store = Store(tmp_path / str(count))
            files = RawFiles([sample], known_formats(), store, workers=workers).inventory.files
            seen.append([file for file in files if file.path.is_relative_to(sample)])
            assert bool(workers.pids) == (count > 1)
    assert seen[0] == seen[1]
    assert any(file.digest for file in seen[0])
