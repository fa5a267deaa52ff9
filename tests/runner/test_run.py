"""Builds: parts that are reused and rebuilt, and builds that fail or are interrupted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import PATIENCE, SETTINGS, call
from tests.release import lay_out
from tests.runner.conftest import COLUMNS
from tests.tiny import HOURS, Tiny
from warehouse.base.settings import settle
from warehouse.project.project import Project
from warehouse.runner.build import build
from warehouse.runner.reporter import Reporter

FAULTS = {
    "SELECT port, spede AS speed FROM reference.speeds": "models/staging/ports.sql:8:14: no column spede",
    "SELECT port, CAST(port AS BIGINT) AS speed\nFROM reference.speeds": "models/staging/ports.sql",  # at run time
    "SELECT port, speed": "models/staging/ports.sql:8:",
}


@pytest.mark.parametrize("select", FAULTS)
def test_a_failing_model_is_reported_with_its_file_and_publishes_nothing(tiny: Tiny, select: str) -> None:
    tiny.made()
    before = tiny.ask("FROM meta.build")
    tiny.model("staging.ports", select, COLUMNS)
    said = tiny.build()
    assert said.status == 1
    assert f"error: {FAULTS[select]}" in said.err
    assert f"Nothing was published; {tiny.target} still holds {str(before[0][0])[:8]}." in said.err_text
    assert "looking for bad lines" not in said.err  # a reference table has none
    assert tiny.ask("FROM meta.build") == before
    assert tiny.ask("SELECT speed FROM metrics.total") == [(50,)]


def test_a_value_out_of_its_types_range_is_a_model_error(tiny: Tiny) -> None:
    tiny.model(
        "staging.ports",
        "SELECT port, speed * 1000000000 AS speed FROM reference.speeds",
        {**COLUMNS, "speed": "INTEGER"},
    )
    said = tiny.build()
    assert said.status == 1
    assert "error: models/staging/ports.sql" in said.err


def test_a_bad_line_found_by_a_model_is_rejected_and_the_rest_is_loaded(hours: Tiny) -> None:
    rows = ["1,100,2,200,0,0.5"] * 50  # a bad line near the top would be found before DuckDB reads it
    rows[40] = f"1,{'9' * 30},2,200,0,0.5"  # hashing does not notice this line: all its characters are valid
    hours.file(1, *rows)
    said = hours.build()
    assert said.status == 0
    assert f"looking for bad lines in 1 file of {HOURS[1]}" in said.err
    assert hours.ask("SELECT bytes FROM staging.hour ORDER BY hour_utc") == [(100,), (4900,)]
    ((line, reason),) = hours.ask("SELECT line, reason FROM raw.rejected_rows")
    assert (line, reason) == (42, f"InOctets is beyond all bounds: '{'9' * 30}'")


def test_an_error_of_a_model_is_not_taken_for_a_bad_line(hours: Tiny) -> None:
    columns = {"device": "VARCHAR", "bytes": "BIGINT"}
    hours.model(
        "staging.hour", "SELECT DeviceName AS device, CAST(PortName AS BIGINT) AS bytes FROM raw.port_counters", columns
    )
    hours.model("metrics.hours", "SELECT device, bytes FROM staging.hour", columns)
    said = hours.build()
    assert said.status == 1
    assert "error: models/staging/hour.sql" in said.err
    assert "TwoHundredGigE1/0/1:1" in said.err


EXPORTED = (
    "metrics.port_hour", "metrics.jobs", "metrics.traffic_groups", "metrics.traffic_periods",
    "staging.log_events", "topology.nic_ports", "reference.dim_port",
)  # fmt: skip


def test_builds_do_not_depend_on_threads_place_file_order_or_time_zone(
    sample: Path, built: Path, tmp_path: Path
) -> None:
    """Build in another folder with files in reverse order; exports are byte-identical."""
    threads = 1 if (os.cpu_count() or 1) > 1 else 2  # not as many as `built` had
    data, target = tmp_path / "other folder", tmp_path / "elsewhere"
    for path in sorted((path for path in sample.rglob("*") if path.is_file()), reverse=True):
        copy = data / path.relative_to(sample)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS} | {"TZ": "Asia/Shanghai"}
    words = ["build", "--quiet", "-d", str(data), "-t", str(target), "--threads", str(threads)]
    subprocess.run(
        [sys.executable, "-m", "warehouse", *words], cwd=tmp_path, env=environment, check=True, timeout=PATIENCE
    )
    assert _build_of(target) == _build_of(built)
    exports = {}
    for name, one in (("here", built), ("there", target)):
        assert call("export", tmp_path / name, *EXPORTED, "-t", one, cwd=tmp_path).status == 0
        files = (path for path in (tmp_path / name).rglob("*") if path.is_file())
        exports[name] = {str(path.relative_to(tmp_path / name)): path.read_bytes() for path in files}
    assert exports["here"].keys() == exports["there"].keys()
    assert [name for name, content in exports["here"].items() if content != exports["there"][name]] == []
    assert len(exports["here"]) > 2 * len(EXPORTED)


def _build_of(target: Path) -> str:
    return (target / "builds" / "current").read_text(encoding="utf-8")


def test_ctrl_c_ends_a_long_query_soon(tiny: Tiny) -> None:
    """Ctrl-C arrives while a pool thread runs a query of hours."""
    endless = "SELECT count(*) AS n FROM range(1000000) AS a, range(1000000) AS b WHERE a.range % 7 <> b.range % 9"
    tiny.model("staging.endless", endless, {"n": "BIGINT"})
    tiny.write("warehouse.toml", "shipped = false\n")
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    words = ["build", "--project", str(tiny.folder), "-d", str(tiny.data), "-t", str(tiny.target)]
    with subprocess.Popen(
        [sys.executable, "-m", "warehouse", *words], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        await_file(tiny.target / "tmp")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "interrupted"
    assert "Traceback" not in said
    assert not (tiny.target / "warehouse.duckdb").exists()


def await_file(path: Path) -> None:
    """Wait until a file exists."""
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until, path
        time.sleep(0.02)


def test_an_interrupted_build_ends_with_status_130_and_publishes_nothing(
    sample: Path, tmp_path: Path, fabric_project: Project
) -> None:
    (folder,) = fabric_project.folders
    project = shutil.copytree(folder, tmp_path / "project")
    (project / "warehouse.toml").write_text("shipped = false\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    words = ["build", "-d", str(lay_out(sample, tmp_path).root), "-t", str(tmp_path / "t"), "-s", "metrics.port_hour"]
    command = [sys.executable, "-m", "warehouse", *words, "--project", str(project)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Found")
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert process.wait(60) == 130
    assert said.splitlines()[-1] == "interrupted"
    assert "Traceback" not in said
    assert not (tmp_path / "t" / "warehouse.duckdb").exists()
    subprocess.run(
        [*command, "--quiet"], env=environment, check=True, timeout=PATIENCE
    )  # nothing blocks the next build


class Recorder(Reporter):
    """A reporter that records the order of parts."""

    def __init__(self) -> None:
        self.turns: list[str] = []
        self.notes: list[str] = []

    def part_started(self, model: str, partition: str) -> None:
        self.turns.append(f"{model} {partition}")

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_a_damaged_file_affects_only_its_partition(hours: Tiny) -> None:
    rows = ["1,100,2,200,0,0.5"] * 50
    rows[40] = f"1,{'9' * 30},2,200,0,0.5"  # nothing notices the line before DuckDB reads it
    hours.file(1, *rows)
    recorder = Recorder()
    settings = settle({"data": [str(hours.data)], "target": str(hours.target), "project": str(hours.folder)})
    build(settings, recorder)
    assert [note for note in recorder.notes if note.startswith("looking for bad lines")] != []
    assert recorder.turns.count("staging.hour 2024-05-23T17") == 2
    assert {turn: recorder.turns.count(turn) for turn in recorder.turns if turn != "staging.hour 2024-05-23T17"} == {
        "staging.ports all": 1,
        "metrics.total all": 1,
        "staging.hour 2024-05-23T16": 1,
        "metrics.hours all": 1,
    }
    assert hours.ask("SELECT bytes FROM staging.hour ORDER BY hour_utc") == [(100,), (4900,)]
