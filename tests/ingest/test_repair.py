"""Records of repairs: they name the partition, so that the next build looks at its files alone."""

from __future__ import annotations

from pathlib import Path

from tests.tiny import HOURS, Tiny
from warehouse.formats import known_formats
from warehouse.formats.zhejiang.port_counters import PORT_COUNTERS
from warehouse.ingest.inventory import RawFiles
from warehouse.ingest.repair import LineRepair
from warehouse.store.parts import Store


def recorded(folder: Path) -> LineRepair:
    return LineRepair(folder, {PORT_COUNTERS.name: PORT_COUNTERS}, paranoid=False, max_rejected=1)


def test_a_record_names_format_and_partition(tiny: Tiny, tmp_path: Path) -> None:
    files = RawFiles([tiny.data], known_formats(), Store(tiny.target)).files_of("raw.port_counters", HOURS[0])
    repair = recorded(tmp_path)
    assert repair.recorded() == set()
    repair.record(files, HOURS[0])
    assert repair.is_recorded(files)
    assert repair.recorded() == {(PORT_COUNTERS.name, HOURS[0])}


def test_a_record_of_an_earlier_release_may_be_of_any_partition(tmp_path: Path) -> None:
    (tmp_path / f"{'0' * 32}.mended").touch()
    assert recorded(tmp_path).recorded() == {None}
