"""A target of an earlier release whose parts come from its second engine (ADR 8): it opens and builds on.

`fixtures/second_engine` holds a project, its raw files and a target. Commit 3a1312f built the target in
`/tmp/made_by_spark` with `warehouse build -d data -t target --project project --engine spark --master 'local[2]'`;
its `cache` is left out. Two of its parts differ in bytes from DuckDB's.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import warehouse
from tests.conftest import call
from tests.old_targets import unpack, with_its_engine
from warehouse.formats.zhejiang.port_counters import PORT_COUNTERS
from warehouse.store.manifest import last_manifest

MADE_IN = "/tmp/made_by_spark"
ROWS = "SELECT hour_utc::VARCHAR, port, polls, mean_bytes FROM metrics.port_hour ORDER BY hour_utc, port"
EXPECTED = [
    ("2024-05-23 16:00:00", "TwoHundredGigE1/0/1:1", 9, 2167.6666666666665),
    ("2024-05-23 16:00:00", "TwoHundredGigE2/0/1:1", 9, 3167.6666666666665),
    ("2024-05-23 17:00:00", "TwoHundredGigE1/0/1:1", 9, 2168.6666666666665),
    ("2024-05-23 17:00:00", "TwoHundredGigE2/0/1:1", 9, 3168.6666666666665),
]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `project`, `data` and `target`, at the path where the target was built.

    The parts have format version 2; a later version rebuilds them.
    """
    monkeypatch.setattr(type(PORT_COUNTERS), "version", 2)
    return unpack("second_engine", MADE_IN, tmp_path)


def test_it_opens(made: Path) -> None:
    with warehouse.open(made / "target") as connection:
        assert connection.execute(ROWS).fetchall() == EXPECTED
        (engine,) = connection.execute("SELECT engine FROM meta.build").fetchall()
    assert not str(engine[0]).startswith("duckdb")


def test_it_is_intact_and_damage_is_detected(made: Path) -> None:
    said = call("verify", "--quick", "-t", made / "target", cwd=made)
    assert (said.status, said.out.startswith("Whole")) == (0, True), said
    part = next((made / "target" / "parts" / "staging.polls").glob("*/*.parquet"))
    part.write_bytes(part.read_bytes()[:-1])
    assert call("verify", "--quick", "-t", made / "target", cwd=made).status == 1


@with_its_engine
def test_it_builds_on(made: Path) -> None:
    """Existing hours are reused; the new hour and its downstream tables are built."""
    old = last_manifest(made / "target")
    assert old is not None
    folder = made / "data" / "c" / "trafficinfo" / "2024052402" / "x"
    folder.mkdir(parents=True)
    text = (made / "data/c/trafficinfo/2024052401/x/Leaf-1_1_1.csv").read_text(encoding="utf-8")
    later = text.replace(" 01:", " 02:").replace("17164836", "17164872")
    (folder / "Leaf-1_1_1.csv").write_text(later, encoding="utf-8")
    words = ("build", "-d", made / "data", "-t", made / "target", "--project", made / "project", "--json")
    said = call(*words, cwd=made)
    assert said.status == 0, said
    assert [(one["model"], one["partition"]) for one in json.loads(said.out)["made"]] == [
        ("metrics.port_hour", "2024-05-23T18"),
        ("metrics.total", "all"),
        ("staging.polls", "2024-05-23T18"),
    ]
    with warehouse.open(made / "target") as connection:
        new = ("2024-05-23 18:00:00", "TwoHundredGigE1/0/1:1", 9, 2168.6666666666665)
        assert connection.execute(ROWS).fetchall() == [*EXPECTED, new]
        assert connection.execute("SELECT polls FROM metrics.total").fetchall() == [(45,)]
        (engine,) = connection.execute("SELECT engine FROM meta.build").fetchall()
    assert str(engine[0]).startswith("duckdb")
    kept = json.loads(call("builds", "--json", "-t", made / "target", cwd=made).out)
    assert old.build in {one["build"] for one in kept}
    assert json.loads(call(*words, cwd=made).out)["made"] == []


def test_verify_names_the_parts_of_the_other_engine(made: Path) -> None:
    said = call("verify", "-t", made / "target", "--project", made / "project", cwd=made)
    assert said.status == 1
    assert "staging.polls: the same 36 rows in other bytes" in said.out
    assert "another engine made staging.polls" in said.out
