"""One cluster for the tests of a module, and what is built on it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engines import cluster as spark
from tests.engines.projects import Sums
from warehouse.sample import SampleOptions, write_sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.engines.cluster import Cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers; tests that ask for them are skipped where there is no Spark."""
    if why := spark.missing():
        if os.environ.get("WAREHOUSE_MUST_RUN"):
            pytest.fail(why)
        pytest.skip(why)
    with spark.cluster(tmp_path_factory.mktemp("spark")) as found:
        yield found


def start_build(cluster: Cluster, data: Path, target: Path, *options: str) -> subprocess.Popen[str]:
    """`warehouse build --engine spark` on a cluster, as a process of its own."""
    cluster.note_applications()
    words = ["build", "-d", str(data), "-t", str(target), "--engine", "spark", "--master", cluster.master, *options]
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "warehouse", *words],
        cwd=target.parent,
        env=cluster.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def spark_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark within this process, for what a cluster has no part in."""
    if why := spark.missing():
        pytest.skip(why)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", spark.JAVA)


@pytest.fixture
def sums(tmp_path: Path) -> Sums:
    """A small project of a test's own."""
    return Sums(tmp_path)


@pytest.fixture(scope="session")
def spark_sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One hour of the sample, of which seven minutes are recorded, with utilisation: a row for nearly every table."""
    root = tmp_path_factory.mktemp("spark_sample")
    write_sample(root, SampleOptions(hours=1, seconds=420))
    return root
