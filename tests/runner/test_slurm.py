"""The script for Slurm in docs/cluster.md, run as written on a real Slurm: one node, on loopback."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.environments import ROOT
from tests.runner.slurm_server import Slurm, started
from tests.runner.test_shares import digests
from warehouse.store.lock import hold

SHARES = ("hours 1", "hours 2", "hours 3")
"""Jobs that make shares. The sample has two hours, so one of three shares has none."""


@pytest.fixture
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Return a running Slurm of the test's own, in a folder with a short name: paths of sockets must be short."""
    with started(tmp_path_factory.mktemp("s")) as found:
        yield found


def queue(slurm: Slurm, data: Path, target: Path) -> None:
    """Run the script of the page."""
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^```bash\n(.*?)^```", page.split("\n## Slurm\n")[1].split("\n## ")[0], re.M | re.S)
    (slurm.folder / "month.sh").write_text(script, encoding="utf-8")
    slurm.run("bash", "month.sh", data, target, str(len(SHARES)))


def assert_published(target: Path, built: Path, told: str) -> None:
    """Compare a target with that of a whole build."""
    current = [(one / "builds" / "current").read_text() for one in (target, built)]
    assert current[0] == current[1], told
    assert digests(target) == digests(built), told


def test_the_script_of_the_page_publishes_what_a_build_does(
    slurm: Slurm, sample: Path, built: Path, tmp_path: Path
) -> None:
    target = tmp_path / "the target"
    queue(slurm, sample, target)
    states = slurm.wait_for_jobs()
    told = slurm.told()
    assert states == dict.fromkeys((*SHARES, "publish N/A"), "COMPLETED"), told
    assert sorted(re.findall(r"Share +\d/3: (\d) partition", told)) == ["0", "1", "1"], told
    assert_published(target, built, told)


def test_a_cancelled_share_does_not_stop_publishing(slurm: Slurm, sample: Path, built: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    with hold(target):  # shares wait, as for a build that publishes
        queue(slurm, sample, target)
        slurm.wait("shares did not start", lambda: [slurm.states()[one] for one in SHARES] == ["RUNNING"] * 3)
        slurm.run("scancel", "1_1")
        slurm.wait("the share did not end", lambda: slurm.states()[SHARES[0]] == "CANCELLED")
    states = slurm.wait_for_jobs()
    told = slurm.told()
    assert states == dict.fromkeys((*SHARES[1:], "publish N/A"), "COMPLETED") | {SHARES[0]: "CANCELLED"}, told
    assert "Share  1/3" not in told
    assert_published(target, built, told)
