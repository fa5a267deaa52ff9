"""Spark beside DuckDB: the same cells from a real cluster, and a build that ends well whatever becomes of it."""

from __future__ import annotations

import json
import socket
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import warehouse
from tests.conftest import Said, call
from tests.engines.conftest import start_build
from tests.engines.projects import Sums
from warehouse.diff.cells import Cells, compare_all
from warehouse.diff.sides import part_files
from warehouse.manifest import Manifest, last_manifest
from warehouse.project import Project
from warehouse.store import ALL, Store

if TYPE_CHECKING:
    from tests.engines.cluster import Cluster
    from tests.tiny import Tiny

WORST = 1e-12
WITHOUT_FILES = {"staging.published_points", "metrics.published_distribution"}
"""Of these the sample has no raw files: both engines leave them empty."""
DOUBLES = 20
"""No more doubles than this differ, of some hundred thousand."""


def manifest_of(target: Path) -> Manifest:
    found = last_manifest(target)
    assert found is not None
    return found


def makers(target: Path) -> dict[str, set[str]]:
    """The engines that made a model's parts."""
    store, found = Store(target), dict[str, set[str]]()
    for one in manifest_of(target).parts:
        made = store.notes(str(one["model"]), str(one["partition"] or ALL), str(one["fingerprint"]))["made_of"]
        found.setdefault(str(one["model"]), set()).add(str(made["engine"][0]))
    return found


# the sample on the cluster -----------------------------------------------------------------------


@pytest.mark.timeout(1500)  # a minute or two, unless the machine has much else to do
def test_the_sample_on_a_cluster(cluster: Cluster, spark_sample: Path, tmp_path: Path) -> None:
    """One test, since it stands on one build: all cells equal, read like any other, verified by the other engine."""
    ours, theirs = tmp_path / "duckdb", tmp_path / "spark"
    warehouse.build(spark_sample, ours)
    build = start_build(cluster, spark_sample, theirs, "--json")
    out, err = build.communicate(timeout=1200)
    assert (build.returncode, err) == (0, "")
    assert json.loads(out)["checks"]["passed"] > 100
    assert all(made == {"spark"} for made in makers(theirs).values())
    equal_cells(ours, theirs)

    ask = "SELECT * FROM metrics.leaf_hour ORDER BY ALL"
    with warehouse.open(theirs) as by_spark, warehouse.open(ours) as by_duckdb:
        assert by_spark.execute(ask).fetchall() == by_duckdb.execute(ask).fetchall()
        (engine,) = by_spark.execute("SELECT engine FROM meta.build").fetchall()
    assert str(engine[0]).startswith("spark 4.")

    planned = call("plan", "-t", theirs, "-d", spark_sample, "--json", cwd=tmp_path)
    assert {one["action"] for one in json.loads(planned.out)["parts"]} == {"keep"}
    said = call("verify", "-t", theirs, "-d", spark_sample, "--engine", "duckdb", "--json", cwd=tmp_path)
    found = json.loads(said.out)
    assert (said.status, found["good"], found["others"]) == (0, True, [])
    assert found["cells"]["different"] == 0
    assert found["cells"]["cells"] > 100_000


def equal_cells(ours: Path, theirs: Path) -> None:
    """Every cell of every table of both targets."""
    sides = [part_files(target, manifest_of(target)) for target in (ours, theirs)]
    before, after = (
        {(model, name): part.path for model, parts in side.items() for name, part in parts.items()} for side in sides
    )
    assert before.keys() == after.keys()
    tables = {name for name, model in Project.open().models.items() if model.materialize == "table"}
    assert tables - set(sides[0]) == WITHOUT_FILES
    found = compare_all((before[key], after[key]) for key in before)
    assert {key: cells for key, cells in zip(before, found, strict=True) if cells.different} == {}
    total = sum(found, Cells())
    assert total.cells > 500_000
    assert total.close <= DOUBLES
    assert total.worst <= WORST


# hours of either engine --------------------------------------------------------------------------


def test_a_target_holds_hours_of_either_engine(spark_here: None, sums: Sums) -> None:
    """The first hour is DuckDB's; of two, Spark makes the second, and what stands on both."""
    sums.hour(0)
    assert sums.by_duckdb().status == 0
    sums.hour(1)
    said = sums.by_spark()
    assert said.status == 0, said.err
    assert makers(sums.target) == {"staging.polls": {"duckdb", "spark"}, "metrics.total": {"spark"}}
    assert sums.total() == [(4, 60)]
    again = json.loads(sums.by_duckdb("--json").out)
    assert (again["made"], again["parts"]) == ([], 3)


def test_a_bad_line_is_set_aside_as_on_one_machine(spark_here: None, sums: Sums) -> None:
    sums.hour(0)
    path = sums.hour(1)
    path.write_text(path.read_text().replace(",4,15,1,", ",four,15,1,"))
    said = sums.by_spark()
    assert said.status == 0, said.err
    assert sums.total() == [(3, 45)]


def test_what_an_executor_cannot_read_is_told_with_its_line(spark_here: None, tiny: Tiny) -> None:
    tiny.reference("speeds", {"port": "VARCHAR", "speed": "BIGINT"}, "eth0,10", "eth1,forty")
    said = tiny.build("--engine", "spark", "--master", "local[2]")
    assert said.status == 1
    assert "speeds.csv:3: " in said.told
    assert "Exception" not in said.err


def test_an_error_of_a_select_is_a_sentence_at_its_model(spark_here: None, sums: Sums) -> None:
    sums.hour(0)
    sums.model("SELECT count(*) AS polls, sum(in_bytes) // (count(*) - 2) AS in_bytes FROM staging.polls")
    said = sums.by_spark()
    assert said.status == 1
    (line,) = (line for line in said.err.splitlines() if "error" in line)
    assert line.startswith("error: models/metrics/total.sql: ")
    assert "zero" in line
    assert "Exception" not in said.err
    assert last_manifest(sums.target) is None


# a cluster that is not as it should be -----------------------------------------------------------


def one_sentence(said: Said, *parts: str) -> None:
    assert said.status == 2, said
    assert len(said.err[said.err.index("error: ") :].splitlines()) <= 3
    assert "Exception" not in said.err
    assert "\tat " not in said.err
    for part in parts:
        assert part in said.told


def test_a_master_that_does_not_answer_is_a_sentence(tiny: Tiny) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pytest.importorskip("pyspark")
    said = tiny.build("--engine", "spark", "--master", f"spark://127.0.0.1:{port}")
    one_sentence(said, f"no Spark master answers at spark://127.0.0.1:{port}: Connection refused")


@pytest.mark.parametrize("master", ["127.0.0.1:7077", "spark://", "spark://host", "yarn", "spark://a:1/x"])
def test_a_master_of_another_form_is_a_sentence(tiny: Tiny, master: str) -> None:
    pytest.importorskip("pyspark")
    one_sentence(tiny.build("--engine", "spark", "--master", master), master, "spark://HOST:PORT")


def test_without_pyspark_the_extra_is_named(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", version)
    one_sentence(tiny.build("--engine", "spark"), "PySpark, which is not installed", "gpu-warehouse[spark]")


def test_without_java_it_is_said(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    one_sentence(tiny.build("--engine", "spark"), "no `java` on the PATH", "install Java 17")


def test_an_engine_that_there_is_not_is_a_sentence(tiny: Tiny) -> None:
    one_sentence(tiny.build("--engine", "sparc"), "'sparc', not an engine", "nearest: spark")
    one_sentence(tiny.build("--master", "spark://a:1"), "the engine is DuckDB", "--engine spark")


def test_a_worker_is_killed_and_the_build_ends_well(cluster: Cluster, sums: Sums) -> None:
    """The tasks of a lost worker are done by the other one. When that goes too, nothing is published."""
    sums.hour(0)
    assert sums.by_duckdb().status == 0
    good = manifest_of(sums.target).build
    sums.hour(1)
    sums.model(sums.slow(1))
    build = start_build(cluster, sums.data, sums.target, "--project", str(sums.folder))
    cluster.await_tasks(2, build)
    cluster.kill_worker(0)
    _, err = build.communicate(timeout=240)
    assert build.returncode == 0, err
    assert sums.total() == [(4, 60)]
    finished = manifest_of(sums.target).build
    assert finished != good

    sums.model(sums.slow(2))
    sums.hour(2)
    build = start_build(cluster, sums.data, sums.target, "--project", str(sums.folder))
    cluster.await_tasks(1, build)
    cluster.kill_worker(1)
    _, err = build.communicate(timeout=240)
    one_sentence(Said(build.returncode, "", err), "has had no executor for", "goes on there")
    assert manifest_of(sums.target).build == finished
    assert sums.total() == [(4, 60)]
