"""A release of which few leaves are loaded: findings say what their numbers leave out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import warehouse
from tests.conftest import call
from warehouse.sample import SampleOptions, write_sample

if TYPE_CHECKING:
    from pathlib import Path


def shown(target: Path, *arguments: str) -> str:
    """Return what a named query prints as a table, on one line."""
    return " ".join(call("sql", "-q", *arguments, "--format", "table", "-t", target, cwd=target.parent).out.split())


def test_the_bytes_of_a_group_are_those_at_loaded_leaves(tmp_path: Path) -> None:
    """GPU-1 and GPU-2 train together; two of the four leaves that they are plugged into are loaded."""
    write_sample(tmp_path / "whole", SampleOptions(hours=1, seconds=1200, utilization=False, jobs=False))
    for file in (*tmp_path.rglob("*.xlsx"), *tmp_path.rglob("Leaf-1_*.csv"), *tmp_path.rglob("Leaf-2_*.csv")):
        place = tmp_path / "data" / file.relative_to(tmp_path / "whole")
        place.parent.mkdir(parents=True, exist_ok=True)
        file.rename(place)
    two_leaves = tmp_path / "target"
    warehouse.build(tmp_path / "data", two_leaves)
    found = json.loads(call("findings", "--json", "-t", two_leaves, cwd=two_leaves.parent).out)
    said = {one["kind"]: one["sentence"] for one in found}
    assert " at their NICs on loaded leaves (2 of 4 per server), " in said["job_trades_most"]
    assert said["fullest_link"].startswith("Of the links observed (2 of 9 leaves), the fullest is ")


@pytest.mark.real
def test_two_servers_whose_ports_no_sheet_tells_apart_have_a_name_together(real_output: tuple[Path, str]) -> None:
    target, _ = real_output
    assert "TwoHundredGigE1/0/2:2" in shown(target, "nic", "--server", "GPU-123/124")
