"""Hours are independent: two processes with an hour each write the same parts as one process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import warehouse
from tests.conftest import SETTINGS
from warehouse.history.diff.sides import part_files
from warehouse.store.manifest import last_manifest

PROJECT = Path(__file__).parents[1] / "fixtures" / "two_hours" / "project"
DATA = Path(__file__).parents[1] / "fixtures" / "two_hours" / "data" / "c" / "trafficinfo"
HOURS = {"2024052400": "2024-05-23T16", "2024052401": "2024-05-23T17"}


def parts(target: Path) -> dict[tuple[str, str], bytes]:
    manifest = last_manifest(target)
    assert manifest is not None
    files = part_files(target, manifest)
    return {(model, name): part.path.read_bytes() for model, those in files.items() for name, part in those.items()}


def test_two_processes_make_the_parts_of_two_hours(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    running = []
    for hour in HOURS:
        data = tmp_path / hour / "c" / "trafficinfo"
        data.mkdir(parents=True)
        (data / hour).symlink_to(DATA / hour)
        words = [
            "build",
            "-d",
            str(tmp_path / hour),
            "-t",
            str(tmp_path / f"target-{hour}"),
            "--project",
            str(PROJECT),
            "--follow-links",
        ]
        running.append(subprocess.Popen([sys.executable, "-m", "warehouse", *words, "--quiet"], env=environment))
    assert [process.wait(120) for process in running] == [0, 0]
    warehouse.build(DATA.parents[1], tmp_path / "both", project=PROJECT)
    both = parts(tmp_path / "both")
    for hour, partition in HOURS.items():
        alone = {key: content for key, content in parts(tmp_path / f"target-{hour}").items() if key[1] == partition}
        assert alone == {key: content for key, content in both.items() if key[1] == partition}
        assert {model for model, _ in alone} == {"staging.polls", "metrics.port_hour"}
