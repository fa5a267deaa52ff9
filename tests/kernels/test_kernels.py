"""A kernel gives the rows of its SELECT, to the bit."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
import pyarrow
import pytest

import warehouse
from tests.release import LEAF, Release, done, keep_switches
from warehouse.base.settings import settle
from warehouse.engine.arrow_batches import ROWS as BATCH_ROWS
from warehouse.engine.base import EngineError
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.formats.zhejiang.port_counters import WRAP
from warehouse.graph.loading import load_graph
from warehouse.kernels import SELECTS, VERSIONS, Arrays, kernel
from warehouse.project.contract import Column
from warehouse.project.project import Project
from warehouse.runner.build import build
from warehouse.runner.options import BuildOptions
from warehouse.runner.reporter import Reporter

OF_FILES = ["staging.port_readings", "staging.port_seconds"]


def _plain(data: Path, target: Path) -> Path:
    build(
        settle({"data": [str(data)], "target": str(target)}),
        Reporter(),
        BuildOptions(select=tuple(OF_FILES), kernels=False),
    )
    return target


def test_kernels_stand_for_the_selects_that_ship() -> None:
    """Who edits one looks at its kernel, too, and takes the new hash from here."""
    with closing(DuckDBEngine(threads=1, memory_bytes=2**30, spill=Path("spill"))) as engine:
        graph = load_graph(Project.open(), engine)
    found = {node.model.kernel: graph.select_hash(name) for name, node in graph.nodes.items() if node.model.kernel}
    assert found == SELECTS


def test_an_edited_select_is_what_makes_the_rows(release: Release, fabric_project: Project) -> None:
    done(release.build())
    for name in ("staging/port_seconds.sql", "staging/port_windows.sql"):
        path = fabric_project.folders[0] / "models" / name
        text = path.read_text()
        path.write_text(f"{text.rstrip()}\n{'HAVING second > 10' if 'seconds' in name else 'AND offset_ms > 10000'}\n")
        try:
            said = release.build("--select", "staging.port_seconds")
            # fewer bytes than were stored: the check of the totals refuses what the edited SELECT gives
            assert said.status == 1
            assert "staging.port_seconds" in said.err
        finally:
            path.write_text(text)


def test_every_kernel_is_the_kernel_of_a_model() -> None:
    assert set(VERSIONS) == {model.kernel for model in Project.open().models.values() if model.kernel}
    assert all(kernel(name) for name in VERSIONS)


def _same_rows(model: str, plain: Path, fast: Path) -> int:
    """Return the number of rows of the plain build; the other one has the same of these ports, under other keys."""
    with closing(duckdb.connect()) as connection:
        for name, target in (("plain", plain), ("fast", fast)):
            connection.execute(f"ATTACH '{target / 'warehouse.duckdb'}' AS {name} (READ_ONLY)")
        expected, found = (
            f"(SELECT f.switch, f.port, r.* EXCLUDE (file_key) FROM {name}.{model} AS r "
            f"JOIN {name}.staging.port_files AS f USING (file_key, hour_utc) "
            "SEMI JOIN plain.staging.port_files USING (switch, port, hour_utc))"
            for name in ("plain", "fast")
        )
        for one, other in ((expected, found), (found, expected)):
            assert connection.execute(f"SELECT count(*) FROM ({one} EXCEPT ALL {other})").fetchall() == [(0,)]
        ((rows,),) = connection.execute(f"SELECT count(*) FROM {expected}").fetchall()
        return int(rows)


@pytest.fixture(scope="module")
def plain(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hours of a leaf and of a storage leaf of the sample, built without kernels."""
    base = tmp_path_factory.mktemp("plain")
    shutil.copytree(sample / "zhejiang", base / "data" / "zhejiang")
    for hour in base.rglob("trafficinfo/*"):
        keep_switches(hour, "ROCE-Leaf-1_", "ROCE-ST-leaf-1_")
    return _plain(base / "data", base / "target")


@pytest.mark.parametrize("model", OF_FILES)
def test_rows_on_the_sample(model: str, built: Path, plain: Path) -> None:
    assert _same_rows(model, plain, built) > 1000


@pytest.mark.real
def test_rows_on_the_real_files(real: Path, real_output: tuple[Path, str], tmp_path: Path) -> None:
    """Some ports of a leaf: its management port, access ports, uplinks, one of which carries no data one way."""
    [folder] = (real / "zhejiang").glob("*/trafficinfo/*/*-Leaf-10_*")
    place = tmp_path / "data" / folder.relative_to(real / "zhejiang")
    place.mkdir(parents=True)
    for pattern in ("Leaf-10_0.csv", "Leaf-10_1_*.csv", "Leaf-10_3[3-6].csv"):
        for path in folder.glob(pattern):
            shutil.copy(path, place)
    plain = _plain(tmp_path / "data", tmp_path / "plain")
    assert all(_same_rows(model, plain, real_output[0]) > 15_000 for model in OF_FILES)


def test_an_hour_without_port_files_has_no_seconds(sample: Path, tmp_path: Path) -> None:
    """Hour-level tables may come alone: a kernel then has nothing to read."""
    hour = "zhejiang/cluster_sample/trafficinfo/2024052400"
    table = tmp_path / "data" / hour / "2024052400_flow.csv"
    table.parent.mkdir(parents=True)
    table.write_bytes((sample / hour / table.name).read_bytes())
    models = ["metrics.flow_locality_hour", "staging.port_seconds"]
    warehouse.build(tmp_path / "data", tmp_path / "target", select=models)
    with warehouse.open(tmp_path / "target") as built:
        assert built.execute("SELECT count(*) FROM staging.port_seconds").fetchall() == [(0,)]
        assert built.execute("SELECT count(*) > 0 FROM metrics.flow_locality_hour").fetchall() == [(True,)]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[DuckDBEngine]:
    engine = DuckDBEngine(threads=2, memory_bytes=2**30, spill=tmp_path / "spill")
    yield engine
    engine.close()


PLACE = (Column("place", "BIGINT"),)


def test_a_part_does_not_depend_on_the_chunks_of_a_kernel(engine: DuckDBEngine, tmp_path: Path) -> None:
    rows = np.arange(BATCH_ROWS * 2 + 17)
    written = []
    with engine.scratch({}) as scratch:
        for size in (1_000, BATCH_ROWS, len(rows)):
            path = tmp_path / f"{size}.parquet"
            chunks: list[Arrays] = [{"place": rows[at : at + size]} for at in range(0, len(rows), size)]
            assert scratch.write_arrays(chunks, PLACE, path) == len(rows)
            written.append(path.read_bytes())
    assert written[0] == written[1] == written[2]
    with duckdb.connect() as connection:
        assert connection.read_parquet(str(path)).fetchnumpy()["place"].tolist() == rows.tolist()


def test_a_kernel_reads_while_its_rows_are_written(engine: DuckDBEngine, tmp_path: Path) -> None:
    def rows() -> Iterator[Arrays]:
        for at in range(0, BATCH_ROWS * 3, BATCH_ROWS // 2):
            yield scratch.arrays(f"SELECT range AS place FROM range({at}, {at + BATCH_ROWS // 2})")

    with engine.scratch({}) as scratch:
        assert scratch.write_arrays(rows(), PLACE, tmp_path / "rows.parquet") == BATCH_ROWS * 3


@pytest.mark.parametrize("good", [0, 2])
def test_what_a_kernel_raises_comes_out_as_it_is(engine: DuckDBEngine, tmp_path: Path, good: int) -> None:
    """Before its first rows, and in the middle of the file."""

    def rows() -> Iterator[Arrays]:
        for _ in range(good):
            yield {"place": np.arange(BATCH_ROWS)}
        yield scratch.arrays("SELECT nothing FROM range(3)")

    with engine.scratch({}) as scratch:
        with pytest.raises(EngineError, match='"nothing" not found'):
            scratch.write_arrays(rows(), PLACE, tmp_path / "rows.parquet")
        assert scratch.write_arrays([], PLACE, tmp_path / "none.parquet") == 0


@pytest.mark.parametrize("at", [7, 700_000])
def test_an_error_in_what_a_kernel_reads_is_a_sentence(engine: DuckDBEngine, at: int) -> None:
    """At once, and when Arrow has handed on many rows."""
    with engine.scratch({}) as scratch:
        select = f"SELECT CASE WHEN range = {at} THEN error('torn') ELSE range END AS place FROM range(1000000)"
        with pytest.raises(EngineError, match=r"^torn$"):
            list(scratch.batches(select, BATCH_ROWS))


def test_chunks_of_other_types_are_not_taken_for_the_first(engine: DuckDBEngine, tmp_path: Path) -> None:
    chunks: list[Arrays] = [{"place": np.arange(BATCH_ROWS)}, {"place": np.arange(3) / 2}]
    with engine.scratch({}) as scratch, pytest.raises(pyarrow.ArrowInvalid, match="truncated"):
        scratch.write_arrays(chunks, PLACE, tmp_path / "rows.parquet")


def test_a_kernel_does_without_pandas(tmp_path: Path) -> None:
    """Arrow looks for it when arrays are asked for, which takes longer than the rest of a kernel."""
    pytest.importorskip("pandas")
    script = f"""
import sys
from pathlib import Path
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.project.model import Column
engine = DuckDBEngine(threads=1, memory_bytes=2**28, spill=Path({str(tmp_path)!r}))
with engine.scratch({{}}) as scratch:
    def chunks():
        for batch in list(scratch.batches("SELECT range AS place FROM range(9)", 4)):
            yield {{"place": batch.column("place").to_numpy()}}

    assert scratch.write_arrays(chunks(), [Column("place", "BIGINT")], Path({str(tmp_path)!r}) / "rows.parquet") == 9
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_falling_counters_on_both_ways(release: Release) -> None:
    """Wraps, impossible ones, and a first row: seconds, totals, windows and readings agree with the SELECTs."""
    deltas = {1: -5, 2: 81_402 - 2**32, 100: 40_000_000 - 2**32, 101: 10**9 - 2**32, 102: -(2**32), 103: -1}
    falling = release.hour / LEAF / "Leaf-1_0.csv"
    for path, column in ((falling, 5), (falling, 7), (release.access, 5)):
        lines = path.read_text().splitlines()
        for at, delta in deltas.items():
            fields = lines[at].split(",")
            fields[column] = str(delta)
            lines[at] = ",".join(fields)
        path.write_text("\n".join(lines) + "\n")
    done(release.build())
    fast = [release.ask(f"SELECT * FROM {model} ORDER BY ALL") for model in OF_FILES]
    assert release.ask("SELECT wraps, resets FROM metrics.port_hour WHERE switch = 'Leaf-1' ORDER BY port") == [
        (0, 0),
        (3, 3),
        (0, 6),
    ]
    flags = release.ask(
        "SELECT flags FROM staging.port_counters WHERE switch = 'Leaf-1' AND port LIKE 'M-%' ORDER BY time_utc LIMIT 2"
    )
    assert ["reset" in flags[0][0], "wrapped" in flags[1][0]] == [True, True]  # type: ignore[operator]
    shutil.rmtree(release.target)
    done(release.build("--plain-sql"))
    assert fast == [release.ask(f"SELECT * FROM {model} ORDER BY ALL") for model in OF_FILES]


def test_a_counter_wraps_at_one_value_in_sql_and_in_python() -> None:
    macros = (Project.open().folders[0] / "sql" / "macros" / "rates.sql").read_text(encoding="utf-8")
    assert "{% macro wrap() %}" + str(WRAP) + "{% endmacro %}" in macros
    assert macros.count(str(WRAP)) == 1
