"""A sample of seven minutes, its truth, and its port files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from warehouse.sample import SampleOptions, write_sample

OPTIONS = SampleOptions(seconds=420)
HEADER = ["SaveTime", "SaveTimeUTC", "DeviceName", "PortName", "InPkts", "InOctets", "OutPkts", "OutOctets"]
HEADER += ["InRatio", "OutRatio"]
START = 1_716_480_000_000
HOUR = 3_600_000

Key = tuple[str, str, str]


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("samples") / "sample"
    write_sample(directory, OPTIONS)
    return directory


@pytest.fixture(scope="session")
def truth(sample: Path) -> dict[str, Any]:
    found = json.loads((sample / "truth.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="session")
def cluster(sample: Path) -> Path:
    return sample / "zhejiang" / "cluster_sample"


@pytest.fixture(scope="session")
def series(cluster: Path, truth: dict[str, Any]) -> dict[Key, list[list[str]]]:
    """Return the rows of each port CSV file, read only with the csv module."""
    hours = {hour["folder"]: hour["hour_utc"] for hour in truth["hours"]}
    found = {}
    for path in sorted(cluster.glob("trafficinfo/*/*_GPU_S9825/*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        assert rows[0] == HEADER
        device = rows[1][2]
        assert device.replace(".", "_") == path.parent.name
        switch = device.removesuffix(".GPU.S9825").rpartition("ROCE-")[2]
        found[switch, rows[1][3], hours[path.parent.parent.name]] = rows[1:]
    return found


@pytest.fixture(scope="session")
def seconds(sample: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    path = sample / "truth" / "second.parquet"
    connection.execute(f"CREATE VIEW second AS SELECT * FROM read_parquet('{path}')")
    return connection
