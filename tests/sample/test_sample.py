"""The sample: in the published form, reproducible, of the size that was asked for, and consistent with itself.

`tests/models/test_sample_truth.py` compares the tables that are built from it with its truth.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warehouse.sample import SampleOptions, write_sample
from warehouse.sample.basics import START_MS
from warehouse.sample.fabric import build_fabric, nic_ports, topology_rows, unlisted_ports
from warehouse.sample.plan import make_plan, plan_faults
from warehouse.sample.release import suspects

HEADER = ["SaveTime", "SaveTimeUTC", "DeviceName", "PortName", "InPkts", "InOctets", "OutPkts", "OutOctets"]
HEADER += ["InRatio", "OutRatio"]
SMALL = SampleOptions(seconds=60, hours=1, spines=1)


@pytest.fixture(scope="module")
def truth(sample: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((sample / "truth.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def cluster(sample: Path) -> Path:
    return sample / "zhejiang" / "cluster_sample"


def _digests(directory: Path) -> dict[str, str]:
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_equal_options_give_equal_bytes_and_an_older_sample_is_replaced(tmp_path: Path) -> None:
    write_sample(tmp_path / "a", replace(SMALL, seed=8, jobs=False, utilization=False, hour_tables=False))
    other = _digests(tmp_path / "a")
    for name in ("a", "b"):
        write_sample(tmp_path / name, SMALL)
    found = _digests(tmp_path / "a")
    assert found == _digests(tmp_path / "b")
    assert found["truth/second.parquet"] != other["truth/second.parquet"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("")
    for taken in ("other", "file"):
        with pytest.raises(FileExistsError, match="is not a sample"):
            write_sample(tmp_path / taken, SMALL)
    assert (tmp_path / "other" / "thesis.tex").exists()


def test_wrong_options_are_refused_in_one_sentence() -> None:
    with pytest.raises(ValueError, match="hours must be between 1 and 24: 0"):
        SampleOptions(hours=0)
    with pytest.raises(ValueError, match="leaves must be a multiple of 4"):
        SampleOptions(leaves=10)
    with pytest.raises(ValueError, match="need at least 4 spines"):
        SampleOptions(servers_per_group=40)


def test_the_full_sample_is_as_large_and_as_odd_as_the_real_release() -> None:
    options = SampleOptions(full=True).resolved()
    fabric = build_fabric(options)
    statuses = [row["status"] for row in nic_ports(fabric)]
    reasons = [row["reason"] for row in nic_ports(fabric)]
    cables = [(nic.switch, nic.port) for nic in fabric.all_nics()]

    assert [len(switch.ports) for switch in fabric.switches.values()] == [95] * 20 + [65] * 4
    assert len(topology_rows(fabric)) == 1012
    assert [statuses.count(status) for status in ("resolved", "inferred", "unresolved")] == [994, 2, 44]
    assert [reasons.count(reason) for reason in ("ambiguous", "no_topology_row")] == [40, 4]
    assert len(suspects(fabric, plan_faults(options))) == 11
    assert len(unlisted_ports(fabric)) == 45
    assert len(set(cables)) == len(cables)


@pytest.mark.parametrize("options", [{"full": True}, {"hours": 1, "leaves": 12, "servers_per_group": 24}], ids=str)
def test_no_second_of_any_size_exceeds_a_line_rate_or_loses_a_byte(options: dict[str, Any]) -> None:
    plan = make_plan(SampleOptions(**options).resolved())
    for switch in plan.fabric.switches.values():
        both = plan.traffic.into[switch.name], plan.traffic.out[switch.name]
        assert (both[0].sum(axis=0) == both[1].sum(axis=0)).all()
        rates = np.array([port.line_rate for port in switch.ports])
        assert all((way.max(axis=1) <= rates).all() for way in both), switch.name


@pytest.mark.parametrize("options", [{"leaves": 8}, {"full": True}], ids=str)
def test_the_cluster_name_identifies_the_size(options: dict[str, Any]) -> None:
    """Sums per spine can be checked if the reference table has the number of leaves and uplinks."""
    asked = SampleOptions(**options)
    with (Path(__file__).parents[2] / "data" / "clusters.csv").open(encoding="utf-8") as stream:
        (known,) = (row for row in csv.DictReader(stream) if row["cluster"] == asked.cluster)
    leaves, storage_leaves, spines = (int(known[name]) for name in ("leaves", "storage_leaves", "spines"))
    fabric = build_fabric(asked.resolved())
    kinds = [port.kind for switch in fabric.switches.values() for port in switch.ports]
    assert len(fabric.switches) == leaves + storage_leaves
    assert kinds.count("uplink") == 3 * spines * leaves
    assert kinds.count("storage_uplink") == spines * storage_leaves


def test_port_files_have_the_published_form(cluster: Path, truth: dict[str, Any]) -> None:
    """Read with the csv module alone."""
    paths = sorted(cluster.glob("trafficinfo/*/*_GPU_S9825/*.csv"))
    assert len(paths) == truth["files"]["count"]
    for path in paths[::17]:
        content = path.read_bytes()
        assert content.endswith(b"\n")
        assert not {*b'\r"'} & {*content}
        header, *rows = csv.reader(content.decode().splitlines())
        assert (header, rows[0][2].replace(".", "_")) == (HEADER, path.parent.name)
        times = [int(row[1]) for row in rows]
        assert all(a < b for a, b in itertools.pairwise(times))
        assert {row[0].rpartition(" ")[0] for row in rows} == {"2024/05/24 星期五"}
        for row, time in zip(rows[::50], times[::50], strict=True):
            hour, minute, second = row[0].rpartition(" ")[2].split(":")
            local = (int(hour) * 60 + int(minute)) * 60_000 + round(float(second) * 1000)
            assert time == START_MS + local
        assert all(len(text.partition(".")[2]) <= 2 for row in rows for text in row[8:])


def test_hour_tables_have_the_published_form(cluster: Path, truth: dict[str, Any]) -> None:
    def rows(name: str) -> list[list[str]]:
        path = cluster / "trafficinfo" / "2024052400" / f"2024052400_{name}.csv"
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file))

    for row in rows("nic")[1:]:
        assert (row[4][-4:], row[6][-2:]) == ("e+16", ".0")
    header, *link = rows("link")
    assert header[-1] == header[19] == "OutBrdcastPkts"
    assert any(row[3] == "" for row in link)
    others = [one for one in truth["uplinks"] if one["spine_port_by_formula"] not in (None, one["spine_port"])]
    assert [(row["leaf"], row["leaf_port"]) for row in others] == [("Leaf-3", "FourHundredGigE1/0/36")]
