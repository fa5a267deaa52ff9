"""Kills of builds with worker processes; `python -m bench.worker_faults` kills 50 times."""

from __future__ import annotations

from pathlib import Path

from bench.worker_faults import KINDS, kill_many
from warehouse.sample import SampleOptions, write_sample


def test_kills_cost_no_warehouse_no_process_and_no_stray_file(tmp_path: Path) -> None:
    only_ports = SampleOptions(hours=1, seconds=60, hour_tables=False, utilization=False, jobs=False)
    write_sample(tmp_path / "data", only_ports)
    longest = kill_many(tmp_path / "data", tmp_path / "target", kills=len(KINDS), seed=1)
    assert longest.keys() == set(KINDS)
