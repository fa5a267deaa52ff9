"""A build makes missing parts in order, and stops at the first error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PATIENCE, SETTINGS, call
from tests.tiny import HOURS, Tiny
from warehouse.base.settings import settle
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.duckdb_scratch import DuckDBScratch
from warehouse.runner.build import build
from warehouse.runner.reporter import Reporter

COLUMNS = {"port": "VARCHAR", "speed": "BIGINT"}
HOUR_COLUMNS = {"hour_utc": "TIMESTAMP", "bytes": "BIGINT"}


@pytest.fixture
def hours(tiny: Tiny) -> Tiny:
    """`staging.hour` with a part per hour, and `metrics.hours` over all of them."""
    tiny.model(
        "staging.hour",
        "SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, sum(InOctets) AS bytes\n"
        "FROM raw.port_counters GROUP BY ALL",
        HOUR_COLUMNS,
        "partition: hour_utc",
    )
    tiny.model(
        "metrics.hours",
        "SELECT max(hour_utc) AS hour_utc, sum(bytes) AS bytes FROM staging.hour",
        HOUR_COLUMNS,
    )
    return tiny


# cached and rebuilt parts -------------------------------------------------------------------------


def test_a_second_build_is_up_to_date(hours: Tiny) -> None:
    first = {"staging.ports", "metrics.total", "metrics.hours", *(f"staging.hour {hour}" for hour in HOURS)}
    assert hours.made() == first
    assert hours.made() == set()


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


def test_a_changed_model_is_rebuilt_with_downstream_models_whose_rows_change(tiny: Tiny) -> None:
    tiny.made()
    tiny.model("staging.ports", "SELECT port, speed * 2 AS speed FROM reference.speeds", COLUMNS)
    assert tiny.made() == {"staging.ports", "metrics.total"}
    assert tiny.ask("SELECT speed FROM metrics.total") == [(100,)]


def test_models_with_equal_inputs_are_not_rebuilt(tiny: Tiny) -> None:
    tiny.made()
    tiny.model("staging.ports", "SELECT port, speed + 0 AS speed FROM reference.speeds", COLUMNS)
    assert tiny.made() == {"staging.ports"}


@pytest.mark.parametrize(
    "select",
    [
        "-- why\nselect port,\n  speed from reference.speeds -- all",
        "SELECT port, /* speed */ speed FROM reference.speeds;",
    ],
)
def test_comments_and_formatting_rebuild_nothing(tiny: Tiny, select: str) -> None:
    tiny.made()
    tiny.model("staging.ports", select, COLUMNS)
    assert tiny.made() == set()


def test_a_contract_change_without_new_bytes_makes_a_new_build_without_rebuilds(tiny: Tiny) -> None:
    tiny.made()
    before = tiny.ask("SELECT build_id FROM meta.build")
    tiny.model(
        "staging.ports", "SELECT port, speed FROM reference.speeds", {"port": "VARCHAR its name", "speed": "BIGINT"}
    )
    assert tiny.made() == set()
    assert tiny.ask("SELECT build_id FROM meta.build") != before
    assert tiny.ask("SELECT about FROM meta.columns WHERE column_name = 'port' AND model = 'staging.ports'") == [
        ("its name",)
    ]


def test_a_changed_type_or_grain_rebuilds_the_model(tiny: Tiny) -> None:
    tiny.made()
    tiny.model("staging.ports", "SELECT port, speed FROM reference.speeds", {**COLUMNS, "speed": "INTEGER"})
    assert "staging.ports" in tiny.made()
    tiny.model(
        "staging.ports", "SELECT port, speed FROM reference.speeds", {**COLUMNS, "speed": "INTEGER"}, "grain: [speed]"
    )
    assert "staging.ports" in tiny.made()


def test_a_new_row_of_a_reference_table_rebuilds_downstream_models(tiny: Tiny) -> None:
    tiny.made()
    tiny.reference("speeds", COLUMNS, "eth0,10")
    assert tiny.made() == {"staging.ports", "metrics.total"}


def test_a_new_hour_builds_its_part_and_models_over_all_hours(hours: Tiny) -> None:
    hours.made()
    hours.file(2, "1,700,2,200,0,0.5")
    assert hours.made() == {"staging.hour 2024-05-23T18", "metrics.hours"}
    assert hours.ask("SELECT bytes FROM staging.hour ORDER BY hour_utc") == [(100,), (100,), (700,)]


def test_hours_are_built_in_order_after_their_dependencies(hours: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """`metrics.share` of an hour reads `metrics.hours`, which reads all hours of `staging.hour`."""
    select = "SELECT h.hour_utc, h.bytes / a.bytes AS share FROM {} AS h, metrics.hours AS a"
    columns = {"hour_utc": "TIMESTAMP", "share": "DOUBLE"}
    hours.model("metrics.share", select.format("staging.hour"), columns, "partition: hour_utc")
    hours.model(
        "metrics.twice", "SELECT hour_utc, 2 * share AS share FROM metrics.share", columns, "partition: hour_utc"
    )
    made: list[tuple[str, str]] = []
    monkeypatch.setattr(Reporter, "part_started", lambda _, model, partition: made.append((model, partition)))
    assert hours.build("--threads", "1", "--quiet").status == 0
    first, second = HOURS
    assert [one for one in made if one[0] in ("metrics.hours", "metrics.share", "metrics.twice")] == [
        ("metrics.hours", "all"),
        ("metrics.share", first),
        ("metrics.twice", first),
        ("metrics.share", second),
        ("metrics.twice", second),
    ]


def test_only_parts_of_the_current_hour_are_held_in_memory(hours: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small parts stay in memory for their readers, and are dropped after the last reader."""
    select = "SELECT hour_utc, 2 * bytes AS bytes FROM staging.hour"
    hours.model("metrics.twice", select, HOUR_COLUMNS, "partition: hour_utc")
    hours.model("metrics.again", select.replace("staging.hour", "metrics.twice"), HOUR_COLUMNS, "partition: hour_utc")
    held: list[int] = []
    write, close = DuckDBScratch.write, DuckDBEngine.close

    def counted(scratch: DuckDBScratch, *given: Any) -> int:
        held.append(sum(path.parent.name != "all" for path in scratch._held or ()))
        return write(scratch, *given)

    def closed(engine: DuckDBEngine) -> None:
        held.append(sum(path.parent.name != "all" for path in engine.held))
        close(engine)

    monkeypatch.setattr(DuckDBScratch, "write", counted)
    monkeypatch.setattr(DuckDBEngine, "close", closed)
    most = []
    for count in (2, 6):
        for hour in range(count):
            hours.file(hour, "1,100,2,200,0,0.5")
        held.clear()
        assert hours.build("--threads", "1", "-t", hours.base / f"target-{count}", "--quiet").status == 0
        most.append((max(held), held[-1]))
    assert most == [(1, 0), (1, 0)], "a part of one hour is held at a time, and none at the end"


def test_rows_of_a_removed_hour_vanish(hours: Tiny) -> None:
    hours.made()
    hours.file(1).unlink()
    assert hours.made() == {"metrics.hours"}
    assert hours.ask("SELECT count(*) FROM staging.hour") == [(1,)]


def test_a_changed_file_rebuilds_its_hour(hours: Tiny) -> None:
    hours.made()
    hours.file(1, "1,999,2,200,0,0.5")
    assert hours.made() == {f"staging.hour {HOURS[1]}", "metrics.hours"}


def test_a_touched_or_moved_file_rebuilds_nothing(hours: Tiny) -> None:
    hours.made()
    os.utime(hours.file(1, "1,100,2,200,0,0.5"), (1, 1))
    assert hours.made() == set()
    hours.data = hours.data.rename(hours.base / "moved")
    assert hours.made() == set()
    assert hours.ask("SELECT count(*) FROM raw.port_counters") == [(2,)]


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_damaged_part_is_rebuilt(tiny: Tiny, damage: str) -> None:
    tiny.made()
    before = tiny.ask("SELECT build_id FROM meta.build")
    (part,) = (tiny.target / "parts" / "staging.ports").rglob("*.parquet")
    if damage == "gone":
        part.unlink()
    else:
        part.write_bytes(part.read_bytes()[:-1])
    assert tiny.made() == {"staging.ports"}
    assert tiny.ask("SELECT build_id FROM meta.build") == before


def test_a_damaged_cache_or_manifest_does_not_stop_a_build(hours: Tiny) -> None:
    hours.made()
    (hours.target / "cache" / "digests.json").write_text("[1", encoding="utf-8")
    for manifest in hours.target.glob("builds/*/manifest.json"):
        manifest.write_text("{", encoding="utf-8")
    assert hours.made() == set()
    assert hours.ask("SELECT count(*) FROM staging.hour") == [(2,)]


def test_rows_are_sorted_by_grain_whatever_the_select_returns(tiny: Tiny) -> None:
    tiny.reference("speeds", COLUMNS, "eth2,5", "eth0,10", "eth1,40")
    tiny.made()
    (part,) = (tiny.target / "parts" / "staging.ports").rglob("*.parquet")
    assert tiny.ask(f"SELECT port FROM read_parquet('{part}')") == [("eth0",), ("eth1",), ("eth2",)]


@pytest.mark.parametrize("rows", [("eth0,10", "eth1,40", "eth2,5"), ("eth2,5", "eth0,10", "eth1,40")])
def test_rows_declared_sorted_are_sorted_if_needed(tiny: Tiny, rows: tuple[str, ...]) -> None:
    tiny.reference("speeds", COLUMNS, *rows)
    tiny.model("staging.ports", "SELECT port, speed FROM reference.speeds", COLUMNS, "presorted: true")
    tiny.made()
    (part,) = (tiny.target / "parts" / "staging.ports").rglob("*.parquet")
    assert tiny.ask(f"SELECT port, speed FROM read_parquet('{part}')") == [("eth0", 10), ("eth1", 40), ("eth2", 5)]
    assert tiny.made() == set()


def test_a_duplicate_is_found_in_rows_declared_sorted(tiny: Tiny) -> None:
    tiny.reference("speeds", COLUMNS, "eth2,5", "eth0,10", "eth2,40")
    tiny.model("staging.ports", "SELECT port, speed FROM reference.speeds", COLUMNS, "presorted: true")
    said = tiny.build()
    assert said.status == 1
    assert "grain (port) is not unique" in said.err


def test_equal_rows_give_equal_bytes(tiny: Tiny) -> None:
    columns = {"n": "BIGINT", "k": "BIGINT"}
    tiny.model("staging.numbers", "SELECT i AS n, i % 7 AS k FROM range(10000) AS r(i)", columns)
    tiny.model("topology.text", "SELECT n, CAST(CAST(k AS VARCHAR) AS BIGINT) AS k FROM staging.numbers", columns)
    tiny.model("topology.group", "SELECT n, max(k) AS k FROM staging.numbers GROUP BY n", columns)
    tiny.made()
    parts = [path for path in (tiny.target / "parts").glob("[st]*/*/*.parquet") if "ports" not in str(path)]
    assert len({path.read_bytes() for path in parts}) == 1


def test_a_view_has_no_part_and_sees_new_upstream_rows(tiny: Tiny) -> None:
    tiny.model("topology.fast", "SELECT port, speed FROM staging.ports WHERE speed > 20", COLUMNS, "materialize: view")
    tiny.model("metrics.total", "SELECT 'all' AS port, sum(speed) AS speed FROM topology.fast", COLUMNS)
    assert tiny.made() == {"staging.ports", "metrics.total"}
    assert tiny.ask("FROM metrics.total") == [("all", 40)]
    tiny.model("topology.fast", "SELECT port, speed FROM staging.ports WHERE speed > 5", COLUMNS, "materialize: view")
    assert tiny.made() == {"metrics.total"}
    assert tiny.ask("FROM metrics.total") == [("all", 50)]
    assert tiny.ask("SELECT kind, rows FROM meta.models WHERE model = 'topology.fast'") == [("view", None)]


# a selection --------------------------------------------------------------------------------------


def test_a_selection_builds_its_models_and_marks_the_rest_stale(tiny: Tiny) -> None:
    tiny.model(
        "metrics.count",
        "SELECT 'all' AS name, count(*) AS ports FROM staging.ports",
        {"name": "VARCHAR", "ports": "BIGINT"},
    )
    tiny.made()
    tiny.reference("speeds", COLUMNS, "eth0,1")
    said = tiny.build("-s", "metrics.count")
    assert said.status == 0
    assert "stale metrics.total was not selected and keeps its last rows" in said.told
    assert tiny.ask("SELECT ports FROM metrics.count") == [(1,)]
    assert tiny.ask("SELECT speed FROM metrics.total") == [(50,)]
    assert tiny.ask("SELECT model FROM meta.models WHERE stale") == [("metrics.total",)]
    assert tiny.made() == {"metrics.total"}
    assert tiny.ask("SELECT model FROM meta.models WHERE stale") == []


def test_a_check_of_a_stale_part_is_skipped_and_reported(tiny: Tiny) -> None:
    tiny.model(
        "metrics.count",
        "SELECT 'all' AS name, sum(speed) AS speed FROM staging.ports",
        {"name": "VARCHAR", "speed": "BIGINT"},
        "checks: ['total(speed) = total(metrics.total.speed)', 'speed > 0']",
    )
    tiny.made()
    tiny.reference("speeds", COLUMNS, "eth0,1")
    said = tiny.build("-s", "+metrics.count")
    assert said.status == 0, said.err
    why = "metrics.count: total(speed) = total(metrics.total.speed): not checked: metrics.total is stale"
    assert why in said.told
    assert "1 not checked" in said.told
    asked = "SELECT check_text, status FROM meta.checks WHERE model = 'metrics.count' ORDER BY ALL"
    assert tiny.ask(asked) == [
        ("grain(name)", "passed"),
        ("speed > 0", "passed"),
        ("total(speed) = total(metrics.total.speed)", "not checked: metrics.total is stale"),
    ]
    assert tiny.ask("SELECT speed FROM metrics.count") == [(1,)]
    tiny.made()
    assert {status for _, status in tiny.ask(asked)} == {"passed"}


def test_a_check_of_a_part_with_stale_inputs_is_skipped_too(tiny: Tiny) -> None:
    total = {"name": "VARCHAR", "speed": "BIGINT"}
    tiny.model("metrics.fresh", "SELECT 'all' AS name, sum(speed) AS speed FROM reference.speeds", total)
    check = "checks: ['total(speed) = total(metrics.fresh.speed)']"
    tiny.model("metrics.again", "SELECT name, speed FROM metrics.total", total, check)
    tiny.model(
        "metrics.seen", "SELECT name, speed FROM metrics.total", total, "materialize: view",
        "checks: ['total(speed) = total(metrics.fresh.speed)']",
    )  # fmt: skip
    tiny.made()
    tiny.reference("speeds", COLUMNS, "eth0,1")
    said = tiny.build("-s", "metrics.fresh")
    assert said.status == 0, said.err
    assert tiny.ask("SELECT speed FROM metrics.again") == [(50,)]
    assert tiny.ask("SELECT status FROM meta.checks WHERE model = 'metrics.seen'") == [
        ("not checked: metrics.total is stale",)
    ]
    tiny.made()
    assert tiny.ask("SELECT speed FROM metrics.again") == [(1,)]
    assert tiny.ask("SELECT count(*) FROM meta.checks WHERE status <> 'passed'") == [(0,)]


def test_a_first_build_makes_all_models_despite_a_selection(tiny: Tiny) -> None:
    assert tiny.made("-s", "staging") == {"staging.ports", "metrics.total"}


def test_a_selection_of_nothing_is_a_usage_error(tiny: Tiny) -> None:
    said = tiny.build("-s", "metrics.totl")
    assert said.status == 2
    assert "error: --select metrics.totl: no model has this name\n       nearest: metrics.total" in said.err


# errors -------------------------------------------------------------------------------------------

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
    assert f"Nothing was published; {tiny.target} still holds {str(before[0][0])[:8]}." in said.told
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


EXPORTED = ("metrics.port_hour", "metrics.jobs", "staging.log_events", "topology.nic_ports", "reference.dim_port")


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
        await_file(tiny.target / "parts" / "staging.endless")
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


def test_an_interrupted_build_ends_with_status_130_and_publishes_nothing(sample: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    command = [sys.executable, "-m", "warehouse", "build", "-d", str(sample), "-t", str(tmp_path / "t")]
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


class Told(Reporter):
    """A reporter that records the order of parts."""

    is_sequential = True

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
    told = Told()
    settings = settle({"data": [str(hours.data)], "target": str(hours.target), "project": str(hours.folder)})
    build(settings, told)
    assert [note for note in told.notes if note.startswith("looking for bad lines")] != []
    assert told.turns.count("staging.hour 2024-05-23T17") == 2
    assert {turn: told.turns.count(turn) for turn in told.turns if turn != "staging.hour 2024-05-23T17"} == {
        "staging.ports all": 1,
        "metrics.total all": 1,
        "staging.hour 2024-05-23T16": 1,
        "metrics.hours all": 1,
    }
    assert hours.ask("SELECT bytes FROM staging.hour ORDER BY hour_utc") == [(100,), (4900,)]
