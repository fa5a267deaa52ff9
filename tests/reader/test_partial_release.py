"""A release of which few leaves are loaded: answers say what their numbers leave out."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

import warehouse
from tests.conftest import call
from warehouse.sample import SampleOptions, write_sample

if TYPE_CHECKING:
    from pathlib import Path

OBSERVED = re.compile(r"observed: (?:up)?links of 2 of 9 leaves; the others have no counters in this hour")


def shown(target: Path, *arguments: str) -> str:
    """Return what a named query prints as a table, on one line."""
    return " ".join(call("sql", "-q", *arguments, "--format", "table", "-t", target, cwd=target.parent).out.split())


@pytest.mark.parametrize("query", ["hottest-uplinks", "busiest-ports"])
def test_the_fullest_links_are_those_of_the_loaded_leaves(two_leaves: Path, built: Path, query: str) -> None:
    assert OBSERVED.search(shown(two_leaves, query))
    assert "observed: " not in shown(built, query)


def test_one_leaf_asked_for_needs_no_other(two_leaves: Path) -> None:
    assert "observed: " not in shown(two_leaves, "hottest-uplinks", "--leaf", "Leaf-1")
    assert "observed: " not in shown(two_leaves, "busiest-ports", "--switch", "Leaf-1")


def test_links_of_leaves_without_counters_are_not_judged(two_leaves: Path, built: Path) -> None:
    assert "not judged: one-way and idle links of the 7 leaves without counters" in shown(two_leaves, "suspect-links")
    said = shown(built, "suspect-links")
    assert "not judged: ports of ST-leaf-1 other than uplinks: no sheet says what is plugged in there" in said
    assert "without counters" not in said


def test_the_bytes_of_a_group_are_those_at_loaded_leaves(tmp_path: Path, built: Path) -> None:
    """GPU-1 and GPU-2 train together; two of the four leaves that they are plugged into are loaded."""
    write_sample(tmp_path / "whole", SampleOptions(hours=1, seconds=1200, utilization=False, jobs=False))
    for file in (*tmp_path.rglob("*.xlsx"), *tmp_path.rglob("Leaf-1_*.csv"), *tmp_path.rglob("Leaf-2_*.csv")):
        place = tmp_path / "data" / file.relative_to(tmp_path / "whole")
        place.parent.mkdir(parents=True, exist_ok=True)
        file.rename(place)
    two_leaves = tmp_path / "target"
    warehouse.build(tmp_path / "data", two_leaves)
    assert "bytes: at NICs on loaded leaves, 2 of 4 per server" in shown(two_leaves, "traffic-jobs")
    assert "at NICs on loaded leaves" not in shown(built, "traffic-jobs")
    found = json.loads(call("findings", "--json", "-t", two_leaves, cwd=two_leaves.parent).out)
    said = {one["kind"]: one["sentence"] for one in found}
    assert " at their NICs on loaded leaves (2 of 4 per server), " in said["job_trades_most"]
    assert said["fullest_link"].startswith("Of the links observed (2 of 9 leaves), the fullest is ")


@pytest.mark.real
def test_two_servers_whose_ports_no_sheet_tells_apart_have_a_name_together(real_output: tuple[Path, str]) -> None:
    target, _ = real_output
    hint = "GPU-123 and GPU-124 share ports that no sheet tells apart: "
    hint += f"warehouse sql -t {target} -q nic --server GPU-123/124"
    assert hint in shown(target, "nic", "--server", "GPU-123")
    assert hint in shown(target, "nic", "--server", "gpu-124")
    assert "TwoHundredGigE1/0/2:2" in shown(target, "nic", "--server", "GPU-123/124")
    each = "each name stands for two servers whose ports no sheet tells apart"
    assert f"shared names: GPU-123/124, GPU-125/126, GPU-127/128: {each}" in shown(target, "traffic-jobs")
    assert each not in shown(target, "busiest-ports", "--limit", "3")
    assert f"shared names: GPU-121/122, GPU-123/124, GPU-125/126, GPU-127/128, GPU-129/130: {each}" in shown(
        target, "busiest-ports", "--switch", "Leaf-10", "--limit", "99"
    )
