"""Options of the sample: sizes, names, and wrong values."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warehouse.sample import SampleOptions, write_sample
from warehouse.sample.clock import export_time
from warehouse.sample.fabric import build_fabric
from warehouse.sample.flows import plan_faults
from warehouse.sample.plan import make_plan
from warehouse.sample.truth import nic_ports, suspects, unlisted_ports
from warehouse.sample.workbook import topology_rows


def test_export_times() -> None:
    assert export_time(4, zero_hour=True) == "2024/5/24 上午00:00:04"
    assert export_time(0, zero_hour=False) == "2024/5/24 上午12:00:00"
    assert export_time(3661, zero_hour=False) == "2024/5/24 上午1:01:01"
    assert export_time(43_200, zero_hour=False) == "2024/5/24 下午12:00:00"
    assert export_time(46_800, zero_hour=True) == "2024/5/24 下午01:00:00"


def test_a_sample_is_replaced_and_anything_else_refused(tmp_path: Path) -> None:
    small = SampleOptions(seconds=60, hours=1, spines=1, hour_tables=False, jobs=False, utilization=False)
    (tmp_path / "sample").mkdir()
    write_sample(tmp_path / "sample", replace(small, hours=2))
    write_sample(tmp_path / "sample", small)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("")

    assert len(list((tmp_path / "sample").glob("zhejiang/*/trafficinfo/*"))) == 1
    for taken in ("other", "file"):
        with pytest.raises(FileExistsError, match="is not a sample"):
            write_sample(tmp_path / taken, small)
    assert (tmp_path / "other" / "thesis.tex").exists()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"hours": 0}, "hours must be between 1 and 24: 0"),
        ({"leaves": 10}, "leaves must be a multiple of 4"),
        ({"leaves": 4}, "leaves must be between 8 and 20"),
        ({"servers_per_group": 40}, "need at least 4 spines"),
        ({"seed": -1}, "seed must be between"),
    ],
)
def test_wrong_options_are_refused_in_one_sentence(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        SampleOptions(**wrong)
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


def test_the_full_sample_is_as_large_and_as_odd_as_the_real_release() -> None:
    options = SampleOptions(full=True).resolved()
    fabric = build_fabric(options)
    statuses = [row["status"] for row in nic_ports(fabric)]
    reasons = [row["reason"] for row in nic_ports(fabric)]
    cables = [(nic.switch, nic.port) for nic in fabric.all_nics()]

    assert [len(switch.ports) for switch in fabric.switches] == [95] * 20 + [65] * 4
    assert len(topology_rows(fabric)) == 1012
    assert [statuses.count(status) for status in ("resolved", "inferred", "unresolved")] == [994, 2, 44]
    assert [reasons.count(reason) for reason in ("ambiguous", "no_topology_row")] == [40, 4]
    assert len(suspects(fabric, plan_faults(options))) == 11
    assert len(unlisted_ports(fabric, set())) == 45
    assert len(set(cables)) == len(cables)


@pytest.mark.parametrize("options", [{"full": True}, {"hours": 1, "leaves": 12, "servers_per_group": 24}], ids=str)
def test_no_second_of_any_size_exceeds_a_line_rate_or_loses_a_byte(options: dict[str, Any]) -> None:
    plan = make_plan(SampleOptions(**options).resolved())
    for switch in plan.fabric.switches:
        both = plan.traffic.into[switch.name], plan.traffic.out[switch.name]
        assert (both[0].sum(axis=0) == both[1].sum(axis=0)).all()
        rates = np.array([port.line_rate for port in switch.ports])
        assert all((way.max(axis=1) <= rates).all() for way in both), switch.name


@pytest.mark.parametrize("options", [*({"leaves": leaves} for leaves in (8, 12, 16, 20)), {"full": True}], ids=str)
def test_the_cluster_name_identifies_the_size(options: dict[str, Any]) -> None:
    """Sums per spine can be checked if the reference table has the number of leaves and uplinks."""
    asked = SampleOptions(**options)
    with (Path(__file__).parents[2] / "data" / "clusters.csv").open(encoding="utf-8") as stream:
        (known,) = (row for row in csv.DictReader(stream) if row["cluster"] == asked.cluster)
    leaves, storage_leaves, spines = (int(known[name]) for name in ("leaves", "storage_leaves", "spines"))
    fabric = build_fabric(asked.resolved())
    kinds = [port.kind for switch in fabric.switches for port in switch.ports]
    assert len(fabric.switches) == leaves + storage_leaves
    assert kinds.count("uplink") == 3 * spines * leaves
    assert kinds.count("storage_uplink") == spines * storage_leaves
