"""An up-to-date build is almost free; in doubt a build runs."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.new_python import python
from tests.conftest import Command, Restored
from tests.tiny import HOURS, Tiny
from warehouse.runner import build, publish
from warehouse.runner.result import Outcome
from warehouse.runner.run import make_parts
from warehouse.runner.work import Work
from warehouse.store.state import FOLDER, LAST, NAME, State
from warehouse.store.walk import walk

COLUMNS = {"port": "VARCHAR", "speed": "BIGINT"}
HEAVY = {"duckdb", "sqlglot", "jinja2", "rich", "numpy", "openpyxl", "yaml", "zstandard"}


@pytest.fixture
def hours(tiny: Tiny, restored: Restored) -> Tiny:
    """A part per hour, built."""
    tiny.restore(restored, "part-per-hour", _write_hours)
    assert is_still(tiny)
    return tiny


def _write_hours(tiny: Tiny) -> None:
    tiny.model(
        "staging.hour",
        "SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, sum(InOctets) AS bytes\n"
        "FROM raw.port_counters GROUP BY ALL",
        {"hour_utc": "TIMESTAMP", "bytes": "BIGINT"},
        "partition: hour_utc",
    )


def is_still(tiny: Tiny, *options: str | Path) -> bool:
    """Return True if a build finds nothing to do."""
    said = tiny.build(*options)
    print(said)
    assert said.status == 0
    return said.err.startswith("Up to date")


# cost of an up-to-date build ----------------------------------------------------------------------


def test_an_up_to_date_build_imports_no_heavy_module(
    built: Path, sample: Path, tmp_path: Path, run_cli: Command
) -> None:
    target = shutil.copytree(built, tmp_path / "warehouse")
    words = ["build", "-d", str(sample), "-t", str(target)]
    run_cli(*words)  # these tests import modules from another path than the CLI
    assert run_cli(*words).err.startswith("Up to date")
    code = "import sys; from warehouse.cli import main; status = main(sys.argv[1:]); print(status, *sys.modules)"
    status, *loaded = python(code, *words).split()
    assert status == "0"
    assert set(loaded) & HEAVY == set()


def test_an_up_to_date_build_prints_one_line(hours: Tiny) -> None:
    said = hours.build()
    assert said.out == ""
    assert said.err.count("\n") == 1
    build = (hours.target / "builds" / "current").read_text(encoding="utf-8")
    assert said.err.startswith(f"Up to date  {build[:8]}, 4 parts, 2 files, checked in 0.")
    assert hours.build("--quiet").err == ""


def test_an_up_to_date_build_reports_the_same_as_the_build(hours: Tiny) -> None:
    first, last = (json.loads(hours.build("--json", *more).out) for more in (["--paranoid"], []))
    assert last == first | {"made": [], "changed": False}


# changes cause a build ----------------------------------------------------------------------------


def rewrite(path: Path, text: str) -> None:
    """Replace the content by one of equal length and, where possible, equal timestamps."""
    about = path.stat()
    assert len(text.encode()) == about.st_size
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def edit(tiny: Tiny, name: str, old: str, new: str) -> None:
    path = tiny.folder / name
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def write_below(folder: Path) -> None:
    folder.mkdir()
    (folder / "notes").write_text("x", encoding="utf-8")


CHANGES: dict[str, Callable[[Tiny], object]] = {
    "a new raw file": lambda t: t.file(2, "1,1,2,2,0,0.5"),
    "a raw file gone": lambda t: t.file(1).unlink(),
    "a raw file changed": lambda t: t.file(1, "1,999,2,200,0,0.5"),
    "a raw file changed, with its old size and time": lambda t: rewrite(
        path := t.data / "c/trafficinfo/2024052401/x/Leaf-1_1_1.csv",
        path.read_text(encoding="utf-8").replace(",100,", ",999,"),
    ),
    "a raw file touched": lambda t: os.utime(t.data / "c/trafficinfo/2024052401/x/Leaf-1_1_1.csv", (1, 1)),
    "a file that nobody knows": lambda t: (t.data / "c" / "notes").write_text("x", encoding="utf-8"),
    "a file in a folder that Python would skip": lambda t: write_below(t.data / "c" / "__pycache__"),
    "an empty folder whose name means something": lambda t: (t.data / "c" / "taskinfo").mkdir(),
    "a sign above the data": lambda t: (t.data.parent / "trafficinfo").mkdir(),
    "a model": lambda t: edit(t, "models/metrics/total.sql", "sum(", "max("),
    "the meaning of a model": lambda t: edit(t, "models/metrics/total.sql", "A model", "What a model is"),
    "a new model": lambda t: t.model("metrics.new", "SELECT port, speed FROM staging.ports", COLUMNS),
    "a macro": lambda t: t.write("sql/macros/new.sql", "{% macro new() %}1{% endmacro %}"),
    "the project's settings": lambda t: t.write("warehouse.toml", "shipped = false\n"),
    "a reference table": lambda t: t.reference("speeds", COLUMNS, "eth0,11"),
    "a part gone": lambda t: next((t.target / "parts" / "staging.hour").rglob("*.parquet")).unlink(),
    "a part cut": lambda t: os.truncate(next((t.target / "parts" / "staging.ports").rglob("*.parquet")), 9),
    "the catalog gone": lambda t: (t.target / "warehouse.duckdb").unlink(),
    "the manifest damaged": lambda t: next(t.target.glob("builds/*/manifest.json")).write_text("{", encoding="utf-8"),
    "another build made current": lambda t: (t.target / "builds/current").write_text("other\n", encoding="utf-8"),
    "a log that a reader left": lambda t: (t.target / "warehouse.duckdb.wal").write_bytes(b"x"),
    "the target moved": lambda t: setattr(t, "target", t.target.rename(t.base / "moved")),
    "no state": lambda t: (t.target / NAME).unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_noticed_and_a_build_is_up_to_date_afterwards(hours: Tiny, change: str) -> None:
    CHANGES[change](hours)
    assert not is_still(hours)
    assert is_still(hours)


@pytest.mark.parametrize("option", [["--keep", "2"], ["--cluster", "x"], ["--max-rejected", "0.5"]])
def test_changed_options_cause_a_build(hours: Tiny, option: list[str]) -> None:
    assert not is_still(hours, *option)
    assert is_still(hours, *option)


def test_a_changed_environment_causes_a_build(hours: Tiny, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "site" / "duckdb-99.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site")])
    assert not is_still(hours)
    assert is_still(hours)
    (tmp_path / "site" / "duckdb-99.dist-info").rename(tmp_path / "site" / "duckdb-100.dist-info")
    assert not is_still(hours)
    monkeypatch.setattr(sys, "version", "4.0")
    assert not is_still(hours)


def test_other_threads_or_memory_cause_no_build(hours: Tiny) -> None:
    assert is_still(hours, "--threads", "2", "--memory", "1GB")


def test_a_touched_model_makes_nothing(hours: Tiny) -> None:
    os.utime(hours.folder / "models/metrics/total.sql", (1, 1))
    assert hours.made() == set()
    assert is_still(hours)


def test_a_selection_checks_all_inputs_and_is_not_up_to_date_with_stale_models(hours: Tiny) -> None:
    assert not is_still(hours, "-s", "metrics.total")
    assert is_still(hours)
    hours.reference("speeds", COLUMNS, "eth0,1")
    assert hours.build("-s", "staging.hour").status == 0
    assert not is_still(hours)


# unreliable timestamps ----------------------------------------------------------------------------


def test_a_change_of_a_file_from_the_future_is_noticed(hours: Tiny) -> None:
    later = time.time() + 10**6
    os.utime(hours.file(1, "1,100,2,200,0,0.5"), (later, later))
    assert not is_still(hours)
    for _ in range(2):
        assert is_still(hours)
    path = hours.file(1, "1,100,2,200,0,0.5")
    rewrite(path, path.read_text(encoding="utf-8").replace(",100,", ",999,"))
    assert hours.made() == {f"staging.hour {HOURS[1]}"}


def test_a_clock_set_back_hides_no_change(hours: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() - 10**15)
    assert not is_still(hours, "--paranoid")
    path = hours.file(1, "1,555,2,200,0,0.5")
    os.utime(path, (1, 1))
    assert hours.made() == {f"staging.hour {HOURS[1]}"}


def test_an_invisible_change_is_found_by_a_paranoid_build(hours: Tiny) -> None:
    """The state is made to hold the signature of the changed file beside the hash of the old one."""
    path = hours.data / "c/trafficinfo/2024052401/x/Leaf-1_1_1.csv"
    rewrite(path, path.read_text(encoding="utf-8").replace(",100,", ",999,"))
    folder = walk([hours.data], [])[str(path.parent)]
    state = State(hours.target / NAME, create=True)
    known = state.get(FOLDER, folder.key)
    known["files"][0][1] = folder.stamps[path.name]
    state.put(FOLDER, {folder.key: known | {"signature": folder.signature}})
    state.put(LAST, {"": state.get(LAST, "") | {"data": state.digest(FOLDER)}})
    state.close()
    assert is_still(hours)
    assert hours.made("--paranoid") == {f"staging.hour {HOURS[1]}"}


# volatile models ----------------------------------------------------------------------------------


VOLATILE = {
    "SELECT port, CAST(floor(random() * 1e15) AS BIGINT) AS speed FROM reference.speeds": "random() at {}:8:25",
    "SELECT port, epoch_us(current_timestamp) AS speed FROM reference.speeds": "current_timestamp at {}:8:23",
    "SELECT port, speed FROM reference.speeds LIMIT 1": "LIMIT without ORDER BY at {}:8:48",
    "SELECT port, speed FROM reference.speeds USING SAMPLE 1 ROWS": "sample at {}",
}


@pytest.mark.parametrize("select", VOLATILE)
def test_a_volatile_model_is_rebuilt_every_time_and_named_by_doctor(tiny: Tiny, command: Command, select: str) -> None:
    shown = tiny.model("staging.ports", select, COLUMNS)
    tiny.made()
    for _ in range(2):
        assert not is_still(tiny)
        assert "staging.ports" in tiny.made()
    assert f"staging.ports is never skipped: {VOLATILE[select].format(shown)}" in command("doctor", "-d", tiny.data).out


def test_downstream_models_of_a_volatile_view_are_rebuilt_every_time(tiny: Tiny) -> None:
    tiny.model("staging.ports", next(iter(VOLATILE)), COLUMNS, "materialize: view")
    assert tiny.made() == tiny.made() == {"metrics.total"}


def test_an_ordered_limit_is_deterministic(tiny: Tiny) -> None:
    tiny.model("staging.ports", "SELECT port, speed FROM reference.speeds ORDER BY port LIMIT 1", COLUMNS)
    tiny.made()
    assert is_still(tiny)


def test_a_check_of_the_clock_runs_in_every_build(tiny: Tiny, command: Command) -> None:
    shown = tiny.model(
        "staging.ports", "SELECT port, speed FROM reference.speeds", COLUMNS, "checks:", "  - speed < epoch_us(now())"
    )
    tiny.made()
    assert not is_still(tiny)
    assert tiny.ask("SELECT status FROM meta.checks WHERE check_text LIKE '%now()%'") == [("passed",)]
    assert f"staging.ports is never skipped: a check at {shown}:5:5" in command("doctor", "-d", tiny.data).out


# changes during a build ----------------------------------------------------------------------------


def while_it_runs(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    def first_change(work: Work) -> Outcome:
        change()
        return make_parts(work)

    monkeypatch.setattr(build, "make_parts", first_change)


@pytest.mark.parametrize("change", ["a raw file changed", "a raw file gone", "a reference table"])
def test_inputs_changed_during_a_build_are_reported_and_nothing_is_published(
    hours: Tiny, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    before = hours.ask("FROM meta.build")
    hours.file(0, "1,101,2,200,0,0.5")
    with monkeypatch.context() as patch:
        while_it_runs(patch, lambda: CHANGES[change](hours))
        said = hours.build()
    assert said.status == 2
    assert "error: 1 file changed while the build ran" in said.err
    assert str(hours.data if "raw" in change else hours.folder) in said.err
    assert hours.ask("FROM meta.build") == before
    assert not is_still(hours)
    assert hours.ask("SELECT build_id FROM meta.build") != [before[0][:1]]


def test_a_raw_file_removed_while_the_catalog_is_written_is_reported(
    hours: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = hours.ask("FROM meta.build")
    hours.file(0, "1,101,2,200,0,0.5")

    def finish_without_files(work: Work, outcome: Outcome) -> publish.Finished:
        finished = publish.finish(work, outcome)
        for path in hours.data.rglob("*.csv"):
            path.unlink()
        return finished

    with monkeypatch.context() as patch:
        patch.setattr(build, "finish", finish_without_files)
        said = hours.build()
    assert (said.status, "files changed while the build ran" in said.err) == (2, True), said.err
    assert hours.ask("FROM meta.build") == before


def test_files_added_during_a_build_are_left_to_the_next_one(hours: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    hours.file(0, "1,101,2,200,0,0.5")
    with monkeypatch.context() as patch:
        while_it_runs(patch, lambda: hours.file(2, "1,7,2,200,0,0.5"))
        assert hours.build().status == 0
    assert hours.made() == {"staging.hour 2024-05-23T18"}


def test_a_model_edited_during_a_build_is_left_to_the_next_one(hours: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    hours.file(0, "1,101,2,200,0,0.5")
    with monkeypatch.context() as patch:
        while_it_runs(patch, lambda: CHANGES["a model"](hours))
        assert hours.build().status == 0
    assert hours.made() == {"metrics.total"}
