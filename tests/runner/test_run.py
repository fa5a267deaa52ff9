"""Builds: equal everywhere, parts that are reused, selections, bad lines, failures and interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import PATIENCE, SETTINGS, call
from tests.runner.conftest import COLUMNS
from tests.tiny import Tiny
from warehouse.base.settings import Settings, settle
from warehouse.runner.build import build
from warehouse.runner.reporter import Reporter
from warehouse.store.manifest import last_manifest

EXPORTED = (
    "metrics.port_hour", "metrics.jobs", "metrics.traffic_groups", "metrics.traffic_periods",
    "staging.log_events", "topology.nic_ports", "reference.dim_port",
)  # fmt: skip


def test_builds_do_not_depend_on_threads_place_file_order_or_time_zone(
    sample: Path, built: Path, tmp_path: Path
) -> None:
    """Build in another folder with files in reverse order; the build id, all parts and exports are equal."""
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
    manifests = [last_manifest(one) for one in (built, target)]
    here, there = (
        {(part["model"], part["partition"]): part["digest"] for part in one.parts} for one in manifests if one
    )
    assert here == there
    assert len({one.build for one in manifests if one}) == 1
    exports = []
    for number, one in enumerate((built, target)):
        out = tmp_path / str(number)
        assert call("export", out, *EXPORTED, "-t", one, cwd=tmp_path).status == 0
        exports.append({path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()})
    assert exports[0] == exports[1]
    assert len(exports[0]) > 2 * len(EXPORTED)


class Recorder(Reporter):
    """A reporter that records the order of parts."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: list[str] = []
        self.notes: list[str] = []

    def part_started(self, model: str, partition: str) -> None:
        self.turns.append(f"{model} {partition}")

    def note(self, text: str) -> None:
        self.notes.append(text)


def _settings(tiny: Tiny) -> Settings:
    to = {"target": str(tiny.target), "project": str(tiny.folder), "threads": 1}
    return settle({"data": [str(tiny.data)], **to})


# parts --------------------------------------------------------------------------------------------


def test_a_model_whose_rows_stay_equal_rebuilds_nothing_downstream(tiny: Tiny) -> None:
    tiny.made()
    tiny.model("staging.ports", "SELECT port, speed + 0 AS speed FROM reference.speeds", COLUMNS)
    assert tiny.made() == {"staging.ports"}


def test_a_touched_or_moved_file_rebuilds_nothing(hours: Tiny) -> None:
    hours.made()
    os.utime(hours.file(1, "1,100,2,200,0,0.5"), (1, 1))
    assert hours.made() == set()
    hours.data = hours.data.rename(hours.base / "moved")
    assert hours.made() == set()
    assert hours.ask("SELECT count(*) FROM raw.port_counters") == [(2,)]


def test_a_model_can_be_split_by_another_column_of_the_files(hours: Tiny) -> None:
    """Split by port: a part sees the files of its port, and all hours of models split by hour."""
    hours.file(0, "1,100,2,200,0,0.5").rename(hours.data / "c" / "trafficinfo" / "2024052400" / "x" / "Leaf-1_1_2.csv")
    hours.file(0, "1,300,2,200,0,0.5")
    path = hours.data / "c" / "trafficinfo" / "2024052400" / "x" / "Leaf-1_1_2.csv"
    path.write_text(path.read_text().replace("1/0/1:1", "1/0/1:2"))
    hours.model(
        "staging.by_port",
        "SELECT PortName AS port, sum(InOctets) AS bytes, (SELECT count(*) FROM staging.hour) AS hours\n"
        "FROM raw.port_counters GROUP BY ALL",
        {"port": "VARCHAR", "bytes": "BIGINT", "hours": "BIGINT"},
        "partition: port",
    )
    made = {one for one in hours.made() if one.startswith("staging.by_port")}
    assert made == {f"staging.by_port port=TwoHundredGigE1%2F0%2F1%3A{half}" for half in (1, 2)}
    assert hours.ask("FROM staging.by_port ORDER BY ALL") == [
        ("TwoHundredGigE1/0/1:1", 400, 2),
        ("TwoHundredGigE1/0/1:2", 100, 2),
    ]
    hours.file(0, "1,500,2,200,0,0.5")
    assert "staging.by_port port=TwoHundredGigE1%2F0%2F1%3A1" in hours.made()
    assert hours.ask("SELECT sum(bytes) FROM staging.by_port") == [(700,)]
    shown = hours.model(
        "metrics.by_switch",
        "SELECT port AS switch, bytes FROM staging.by_port",
        {"switch": "VARCHAR", "bytes": "BIGINT"},
        "partition: switch",
    )
    assert f"error: {shown}:1: no input of metrics.by_switch is partitioned by switch" in hours.build().err


@pytest.mark.parametrize("presorted", [(), ("presorted: true",)])
def test_rows_are_sorted_by_grain_whatever_the_select_returns(tiny: Tiny, presorted: tuple[str, ...]) -> None:
    tiny.reference("speeds", COLUMNS, "eth2,5", "eth0,10", "eth1,40")
    tiny.model("staging.ports", "SELECT port, speed FROM reference.speeds", COLUMNS, *presorted)
    tiny.made()
    (part,) = (tiny.target / "parts" / "staging.ports").rglob("*.parquet")
    assert tiny.ask(f"SELECT port, speed FROM read_parquet('{part}')") == [("eth0", 10), ("eth1", 40), ("eth2", 5)]
    tiny.reference("speeds", COLUMNS, "eth2,5", "eth0,10", "eth2,40")
    said = tiny.build()
    assert said.status == 1
    assert "grain (port) is not unique" in said.err


def test_equal_rows_give_equal_bytes(tiny: Tiny) -> None:
    columns = {"n": "BIGINT", "k": "BIGINT"}
    tiny.model("staging.numbers", "SELECT i AS n, i % 7 AS k FROM range(10000) AS r(i)", columns, "presorted: true")
    tiny.model("topology.text", "SELECT n, CAST(CAST(k AS VARCHAR) AS BIGINT) AS k FROM staging.numbers", columns)
    tiny.model("topology.group", "SELECT n, max(k) AS k FROM staging.numbers GROUP BY n", columns)
    tiny.made()
    parts = [path for path in (tiny.target / "parts").glob("[st]*/*/*.parquet") if "ports" not in str(path)]
    assert len(parts) == 3
    assert len({path.read_bytes() for path in parts}) == 1


def test_a_view_has_no_part_and_sees_new_upstream_rows(tiny: Tiny) -> None:
    tiny.model("topology.fast", "SELECT port, speed FROM staging.ports WHERE speed > 20", COLUMNS, "materialize: view")
    tiny.model("metrics.total", "SELECT 'all' AS port, sum(speed) AS speed FROM topology.fast", COLUMNS)
    assert tiny.made() == {"staging.ports", "metrics.total"}
    assert tiny.ask("FROM metrics.total") == [("all", 40)]
    tiny.model("topology.fast", "SELECT port, speed FROM staging.ports WHERE speed > 5", COLUMNS, "materialize: view")
    assert tiny.made() == {"metrics.total"}
    assert tiny.ask("FROM metrics.total") == [("all", 50)]


# selections ---------------------------------------------------------------------------------------


def test_a_selection_builds_its_models_and_marks_the_rest_stale(tiny: Tiny) -> None:
    count = "SELECT 'all' AS name, count(*) AS ports FROM staging.ports"
    tiny.model("metrics.count", count, {"name": "VARCHAR", "ports": "BIGINT"})
    assert tiny.made("-s", "staging") >= {"metrics.total"}, "a first build makes all models"
    tiny.reference("speeds", COLUMNS, "eth0,1")
    said = tiny.build("-s", "metrics.count")
    assert said.status == 0
    assert "stale metrics.total was not selected and keeps its last rows" in said.err_text
    assert tiny.ask("SELECT ports FROM metrics.count") == [(1,)]
    assert tiny.ask("SELECT speed FROM metrics.total") == [(50,)]
    assert tiny.ask("SELECT model FROM meta.models WHERE stale") == [("metrics.total",)]
    assert tiny.made() == {"metrics.total"}
    assert tiny.ask("SELECT model FROM meta.models WHERE stale") == []


def test_a_check_that_reads_a_stale_part_directly_or_through_a_view_is_skipped_and_reported(tiny: Tiny) -> None:
    total = {"name": "VARCHAR", "speed": "BIGINT"}
    check = "total(speed) = total(metrics.fresh.speed)"
    tiny.model(
        "metrics.fresh", "SELECT 'all' AS name, sum(speed) AS speed FROM staging.ports", total,
        "checks: ['total(speed) = total(metrics.total.speed)', 'speed > 0']",
    )  # fmt: skip
    tiny.model("metrics.again", "SELECT name, speed FROM metrics.total", total, f"checks: ['{check}']")
    view = ("materialize: view", f"checks: ['{check}']")
    tiny.model("metrics.seen", "SELECT name, speed FROM metrics.total", total, *view)
    tiny.made()
    tiny.reference("speeds", COLUMNS, "eth0,1")
    said = tiny.build("-s", "metrics.fresh")
    assert said.status == 0, said.err
    why = "not checked: metrics.total is stale"
    assert f"metrics.fresh: total(speed) = total(metrics.total.speed): {why}" in said.err_text
    assert tiny.ask("SELECT model, check_text FROM meta.checks WHERE status LIKE 'not%' ORDER BY 1") == [
        ("metrics.again", check),
        ("metrics.fresh", "total(speed) = total(metrics.total.speed)"),
        ("metrics.seen", check),
    ]
    assert tiny.ask("SELECT speed FROM metrics.fresh UNION ALL FROM (SELECT speed FROM metrics.again)") == [(1,), (50,)]
    tiny.made()
    assert tiny.ask("SELECT speed FROM metrics.again") == [(1,)]
    assert tiny.ask("SELECT count(*) FROM meta.checks WHERE status <> 'passed'") == [(0,)]


# failures -----------------------------------------------------------------------------------------

FAULTS = {
    "SELECT port, spede AS speed FROM reference.speeds": "models/staging/ports.sql:8:14: no column spede",
    "SELECT port, CAST(port AS BIGINT) AS speed\nFROM reference.speeds": "models/staging/ports.sql",  # at run time
    "SELECT port, speed::HUGEINT * 1000000000000000000 AS speed FROM reference.speeds": "models/staging/ports.sql",
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
    assert not list((tiny.target / "tmp").glob("*"))


def test_a_bad_line_found_by_a_model_is_rejected_and_affects_only_its_partition(hours: Tiny) -> None:
    rows = ["1,100,2,200,0,0.5"] * 50  # a bad line near the top would be found before DuckDB reads it
    rows[40] = f"1,{'9' * 30},2,200,0,0.5"  # hashing does not notice this line: all its characters are valid
    hours.file(1, *rows)
    recorder = Recorder()
    build(_settings(hours), recorder)
    assert "looking for bad lines in 1 file of 2024-05-23T17" in recorder.notes
    assert {turn: recorder.turns.count(turn) for turn in recorder.turns} == {
        "staging.ports all": 1,
        "metrics.total all": 1,
        "staging.hour 2024-05-23T16": 1,
        "staging.hour 2024-05-23T17": 2,
        "metrics.hours all": 1,
    }
    assert hours.ask("SELECT bytes FROM staging.hour ORDER BY hour_utc") == [(100,), (4900,)]
    ((line, reason),) = hours.ask("SELECT line, reason FROM raw.rejected_rows")
    assert (line, reason) == (42, f"InOctets is beyond all bounds: '{'9' * 30}'")


def test_an_error_of_a_model_is_not_taken_for_a_bad_line(hours: Tiny) -> None:
    columns = {"device": "VARCHAR", "bytes": "BIGINT"}
    select = "SELECT DeviceName AS device, CAST(PortName AS BIGINT) AS bytes FROM raw.port_counters"
    hours.model("staging.hour", select, columns)
    hours.model("metrics.hours", "SELECT device, bytes FROM staging.hour", columns)
    said = hours.build()
    assert said.status == 1
    assert "error: models/staging/hour.sql" in said.err
    assert "TwoHundredGigE1/0/1:1" in said.err


def test_ctrl_c_ends_a_long_query_soon_and_the_next_build_succeeds(tiny: Tiny) -> None:
    """Ctrl-C arrives while a pool thread runs a query of hours."""
    endless = "SELECT count(*) AS n FROM range(1000000) AS a, range(1000000) AS b WHERE a.range % 7 <> b.range % 9"
    tiny.model("staging.endless", endless, {"n": "BIGINT"})
    tiny.write("warehouse.toml", "shipped = false\n")
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    words = ["build", "--project", str(tiny.folder), "-d", str(tiny.data), "-t", str(tiny.target)]
    with subprocess.Popen(
        [sys.executable, "-m", "warehouse", *words], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        _await_file(tiny.target / "tmp")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "interrupted"
    assert "Traceback" not in said
    assert not (tiny.target / "warehouse.duckdb").exists()
    tiny.model("staging.endless", "SELECT 1 AS n", {"n": "BIGINT"})
    assert tiny.build().status == 0


def _await_file(path: Path) -> None:
    """Wait until a file exists."""
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until, path
        time.sleep(0.02)
