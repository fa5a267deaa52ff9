"""A target of the release before packages existed: it opens, is intact, rolls back, and builds on.

`fixtures/before_packages` holds a project with a kernel, a macro, a reviewed table and a Python model, its raw files,
and a target. Commit a70b39f built the target in `/tmp/made_before_packages` with `warehouse build -d data -t target
--project project`, first with one hour, then with two. Its `cache` is left out.
"""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

import warehouse
from tests.conftest import call
from tests.old_targets import ENGINE, unpack, with_its_engine
from warehouse.formats.zhejiang.port_counters import PORT_COUNTERS
from warehouse.store.manifest import kept_manifests, last_manifest

MADE_IN = "/tmp/made_before_packages"
BUILDS = ["80257e2049351fd2", "1b765a5b691cebfb"]
BUSIEST = [("TwoHundredGigE2/0/1:1", 3168.6666666666665)]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `project`, `data` and `target`; the parts have format version 3."""
    monkeypatch.setattr(type(PORT_COUNTERS), "version", 3)
    return unpack("before_packages", MADE_IN, tmp_path)


def test_it_opens_and_is_intact(made: Path) -> None:
    with warehouse.open(made / "target") as connection:
        assert connection.execute("SELECT port, mean_bytes FROM metrics.busiest").fetchall() == BUSIEST
        assert connection.execute("SELECT count(*), count(mean_mb) FROM metrics.rates").fetchall() == [(4, 4)]
    said = call("verify", "--quick", "-t", made / "target", cwd=made)
    assert (said.status, said.out.startswith("Whole")) == (0, True), said


def test_it_rolls_back(made: Path) -> None:
    assert [one.build for one in kept_manifests(made / "target")] == BUILDS
    assert call("rollback", BUILDS[1], "-t", made / "target", cwd=made).status == 0
    with warehouse.open(made / "target") as connection:
        assert connection.execute("SELECT count(*) FROM metrics.rates").fetchall() == [(2,)]


@with_its_engine
def test_no_part_is_rebuilt(made: Path) -> None:
    words = ("build", "-d", made / "data", "-t", made / "target", "--project", made / "project", "--json", "--paranoid")
    said = call(*words, cwd=made)
    assert said.status == 0, said
    found = json.loads(said.out)
    assert (found["build"], found["made"], found["parts"]) == (BUILDS[0], [], 12)
    last = last_manifest(made / "target")
    assert last is not None
    assert last.build == BUILDS[0]


@pytest.mark.skipif(duckdb.__version__ == ENGINE, reason="test_no_part_is_rebuilt is of this case")
def test_another_engine_rebuilds_everything_and_keeps_the_old_builds(made: Path) -> None:
    place = ("-d", made / "data", "-t", made / "target", "--project", made / "project", "--json")
    plan = json.loads(call("plan", *place, cwd=made).out)["parts"]
    changed = f"engine changed: duckdb {ENGINE} to duckdb {duckdb.__version__}"
    assert {one["reasons"][0] for one in plan} == {changed}
    assert not [reason for one in plan for reason in one["reasons"] if reason.startswith("SQL")]
    said = call("build", *place, cwd=made)
    assert said.status == 0, said
    assert len(json.loads(said.out)["made"]) == 12
    assert {one.build for one in kept_manifests(made / "target")} >= set(BUILDS)
    with warehouse.open(made / "target") as connection:
        assert connection.execute("SELECT port, mean_bytes FROM metrics.busiest").fetchall() == BUSIEST


@with_its_engine
def test_only_a_new_hour_and_models_over_all_hours_are_built(made: Path) -> None:
    folder = made / "data" / "c" / "trafficinfo" / "2024052402" / "x"
    folder.mkdir(parents=True)
    text = (made / "data/c/trafficinfo/2024052401/x/Leaf-1_1_1.csv").read_text(encoding="utf-8")
    later = text.replace(" 01:", " 02:").replace("17164836", "17164872")
    (folder / "Leaf-1_1_1.csv").write_text(later, encoding="utf-8")
    words = ("build", "-d", made / "data", "-t", made / "target", "--project", made / "project", "--json")
    said = call(*words, cwd=made)
    assert said.status == 0, said
    again = {one["model"] for one in json.loads(said.out)["made"] if one["partition"] != "2024-05-23T18"}
    assert again <= {"metrics.total", "metrics.busiest"}
