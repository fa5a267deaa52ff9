"""A kernel gives the rows of its SELECT, to the bit."""

from __future__ import annotations

from pathlib import Path

import pytest

import warehouse
from warehouse.building import build
from warehouse.kernels import NAMES, kernel
from warehouse.project import Project
from warehouse.report import Silent
from warehouse.settings import settle

ROWS = "SELECT * FROM staging.port_seconds ORDER BY file_key, second"


def _plain(data: Path, target: Path) -> Path:
    build(settle({"data": [str(data)], "target": str(target)}), Silent(), kernels=False)
    return target


def test_every_kernel_is_the_kernel_of_a_model() -> None:
    assert set(NAMES) == {model.kernel for model in Project.open().models.values() if model.kernel}
    assert all(kernel(name).VERSION > 0 for name in NAMES)


def test_port_seconds_on_the_sample(sample: Path, built: Path, tmp_path: Path) -> None:
    with warehouse.open(built) as fast, warehouse.open(_plain(sample, tmp_path / "plain")) as plain:
        expected = plain.execute(ROWS).fetchall()
        assert len(expected) > 1000
        assert expected == fast.execute(ROWS).fetchall()


@pytest.mark.real
def test_port_seconds_on_the_real_files(real: Path, tmp_path: Path) -> None:
    warehouse.build(real / "zhejiang", tmp_path / "fast")
    plain = _plain(real / "zhejiang", tmp_path / "plain")
    part = next((plain / "parts" / "staging.port_seconds").rglob("*.parquet"))
    with warehouse.open(tmp_path / "fast", data=[plain]) as fast:
        missing = fast.execute(f"SELECT count(*) FROM (FROM '{part}' EXCEPT ALL FROM staging.port_seconds)").fetchall()
        counts = fast.execute(f"SELECT (SELECT count(*) FROM '{part}'), (SELECT count(*) FROM staging.port_seconds)")
        rows = counts.fetchall()
    assert missing == [(0,)]
    assert rows[0][0] == rows[0][1]


def test_an_hour_without_port_files_has_no_seconds(sample: Path, tmp_path: Path) -> None:
    """Hour-level tables may come alone: a kernel then has nothing to read."""
    hour = "zhejiang/cluster_sample/trafficinfo/2024052400"
    table = tmp_path / "data" / hour / "2024052400_flow.csv"
    table.parent.mkdir(parents=True)
    table.write_bytes((sample / hour / table.name).read_bytes())
    warehouse.build(tmp_path / "data", tmp_path / "target")
    with warehouse.open(tmp_path / "target") as built:
        assert built.execute("SELECT count(*) FROM staging.port_seconds").fetchall() == [(0,)]
        assert built.execute("SELECT count(*) > 0 FROM metrics.flow_locality_hour").fetchall() == [(True,)]
