"""Kills of builds with worker processes; `python -m bench.worker_faults` kills 50 times."""

from __future__ import annotations

from pathlib import Path

from bench.worker_faults import KINDS, kill_many
from tests.release import keep_switches
from warehouse.project.project import Project
from warehouse.sample import SampleOptions, write_sample

MODELS = ("staging.port_seconds",)


def test_kills_cost_no_warehouse_no_process_and_no_stray_file(tmp_path: Path, own_models: Project) -> None:
    only_ports = SampleOptions(hours=1, seconds=60, hour_tables=False, utilization=False, jobs=False)
    write_sample(tmp_path / "data", only_ports)
    for hour in (tmp_path / "data").rglob("trafficinfo/*"):
        keep_switches(hour, "ROCE-Leaf-1_")
    (project,) = own_models.folders
    (project / "warehouse.toml").write_text("shipped = false\n", encoding="utf-8")
    longest = kill_many(tmp_path / "data", tmp_path / "target", len(KINDS), 1, "--project", str(project))
    assert longest.keys() == set(KINDS)
