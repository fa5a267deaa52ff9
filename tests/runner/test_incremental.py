"""Incremental builds: files appear, vanish or change in any order, and the result equals a full build."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import warehouse
from tests.conftest import call
from tests.release import keep_switches, spoil
from tests.tiny import Tiny
from warehouse.project.project import Project
from warehouse.store.manifest import hour_of

GONE, FIRST, CORRECTED, HALF = "gone", "first", "corrected", "half"
STATES = (GONE, FIRST, CORRECTED, HALF)


COLUMNS = {"port": "VARCHAR the port", "speed": "BIGINT [bit/s] line rate"}
ROWS = "SELECT port, speed FROM staging.ports"
FILES = {"files": "BIGINT"}


def everything(target: Path) -> dict[str, object]:
    """Return the content of a catalog without the place of the target; for views their SQL and rows."""
    with duckdb.connect(str(target / "warehouse.duckdb"), read_only=True) as asked:
        names = asked.execute(
            "SELECT schema_name, table_name, comment, '' FROM duckdb_tables() UNION ALL "
            "SELECT schema_name, view_name, comment, sql FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
        said: dict[str, object] = {
            "relations": [(*row[:3], str(row[3]).replace(str(target), "")) for row in names],
            "columns": asked.execute(
                "SELECT schema_name, table_name, column_name, column_index, data_type, comment FROM duckdb_columns() "
                "WHERE NOT internal ORDER BY ALL"
            ).fetchall(),
            "schemas": asked.execute(
                "SELECT schema_name FROM duckdb_schemas() WHERE NOT internal ORDER BY 1"
            ).fetchall(),
        }
        for schema, table, _, _ in names:
            without = " EXCLUDE (published_utc)" if (schema, table) == ("meta", "build") else ""
            rows = asked.execute(f"SELECT *{without} FROM {schema}.{table} ORDER BY ALL").fetchall()
            said[f"{schema}.{table}"] = [str(row).replace(str(target), "") for row in rows]
        return said


def change(tiny: Tiny) -> None:
    """Change a relation of each kind in each way."""
    tiny.model("topology.a", "SELECT port, speed + 1 AS speed FROM staging.ports", COLUMNS)
    tiny.model("topology.b", ROWS, {"port": "VARCHAR", "speed": "BIGINT how fast"}, "checks:", "  - warn: speed > 20")
    tiny.model("topology.c", "SELECT port, speed, 1 AS n FROM staging.ports", {**COLUMNS, "n": "BIGINT"})
    tiny.model("topology.d", ROWS, COLUMNS, "materialize: view")
    tiny.model("topology.fast", ROWS, COLUMNS)
    tiny.file(2, "1,7,2,200,0,0.5")


def remove(tiny: Tiny) -> None:
    """Remove a model, and all of a schema; add one; turn the rows of a reviewed table."""
    (tiny.folder / "models/topology/a.sql").unlink()
    (tiny.folder / "models/metrics/total.sql").unlink()
    (tiny.folder / "models/metrics/hours.sql").unlink()
    tiny.model("topology.e", ROWS, COLUMNS)
    tiny.reference("speeds", {"port": "VARCHAR", "speed": "BIGINT"}, "eth1,40", "eth0,10")


def test_the_catalog_after_changes_equals_that_of_a_first_build(hours: Tiny) -> None:
    for name in "abcd":
        hours.model(f"topology.{name}", ROWS, COLUMNS)
    hours.model("topology.fast", ROWS, COLUMNS, "materialize: view")
    assert hours.build().status == 0
    for step in (change, remove):
        step(hours)
        assert hours.build().status == 0
        other = hours.base / step.__name__
        assert call("build", "-d", hours.data, "-t", other, cwd=hours.base).status == 0
        assert everything(hours.target) == everything(other)


def test_a_model_beside_raw_files_sees_the_files_of_its_own_formats(tiny: Tiny) -> None:
    """The table of a job trace does not depend on the counter files; a listing of all files does."""
    (tiny.data / "cluster01.csv").write_text("job_id,submission_time,duration,num_gpu\na,1,600,8\n")
    counted = "SELECT count(DISTINCT f.path) AS files FROM raw.files AS f"
    tiny.model("staging.traces", f"{counted} LEFT JOIN raw.itp_jobs AS j ON j.filename = f.read_path", FILES)
    tiny.model("staging.listed", counted, FILES)
    tiny.made()
    assert tiny.ask("SELECT * FROM staging.traces, staging.listed") == [(1, 3)]
    tiny.file(2, "1,100,2,200,0,0.5")
    assert set(tiny.made()) & {"staging.traces", "staging.listed"} == {"staging.listed"}


# small models, many histories ---------------------------------------------------------------------


TAILS = {
    FIRST: ("1,100,2,200,0,0.5", "1,300,2,200,0,0.5"),
    CORRECTED: ("1,100,2,200,0,0.5", "1,301,2,200,0,0.5"),
    HALF: ("1,100,2,200,0,0.5",),
}


def put(tiny: Tiny, hour: int, state: str) -> None:
    path = tiny.file(hour, *TAILS.get(state, ()))
    if state == GONE:
        path.unlink()


@settings(
    max_examples=4,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.generate],
    derandomize=True,
)
@given(history=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(STATES)), min_size=2, max_size=4))
def test_any_history_of_small_files_equals_a_full_build(hours: Tiny, history: list[tuple[int, str]]) -> None:
    for folder in (hours.data, hours.target, hours.base / "fresh"):
        shutil.rmtree(folder, ignore_errors=True)
    hours.file(5, "1,1,1,1,0,0.5")  # at least one file always exists
    for hour, state in history:
        put(hours, hour, state)
        assert hours.build().status == 0
    fresh = hours.base / "fresh"
    assert call("build", "-d", hours.data, "-t", fresh, cwd=hours.base).status == 0
    assert _id(hours.target) == _id(fresh)
    assert everything(hours.target) == everything(fresh)


def _id(target: Path) -> str:
    return (target / "builds" / "current").read_text(encoding="utf-8")


# shipped models -----------------------------------------------------------------------------------


def test_a_release_whose_files_change_equals_a_full_build(
    sample: Path, tmp_path: Path, fabric_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The models of ports and NICs: half of an hour, with a torn file, and another hour that is corrected."""
    monkeypatch.setattr(Project, "open", lambda _=None: fabric_project)
    data, target = tmp_path / "data", tmp_path / "target"
    shutil.copytree(sample / "zhejiang", data, ignore=shutil.ignore_patterns("taskinfo", "*[02468]*.csv"))
    half, corrected = sorted(data.rglob("trafficinfo/*"))
    for hour in (half, corrected):
        keep_switches(hour, "ROCE-Leaf-1_", "ROCE-Leaf-5_", "ROCE-ST-leaf-1_")
    files = sorted(half.rglob("*.csv"))
    for file in files[len(files) // 2 :]:
        file.unlink()
    torn = files[0].read_bytes()
    files[0].write_bytes(torn[: len(torn) * 2 // 3])
    warehouse.build(data, target, memory="1GB")
    spoil(min(corrected.rglob("*.csv")), lambda lines: lines[:-1])
    result = warehouse.build(data, target, memory="1GB")
    assert {hour_of(key.partition) for key in result.made} - {""} == {"2024-05-23T17"}
    fresh = warehouse.build(data, tmp_path / "fresh", memory="1GB")
    assert result.build == fresh.build
    assert everything(target) == everything(fresh.target)
