"""An up-to-date build is almost free; in doubt a build runs."""

from __future__ import annotations

import json
import os
import shutil
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.new_python import python
from tests.conftest import Command, Restored
from tests.tiny import HOURS, Tiny
from warehouse.base.settings import DEFAULT_TARGET
from warehouse.cli import up_to_date
from warehouse.ingest.known_folders import NAME, KnownFolders
from warehouse.runner import build, publish, snapshot_writer
from warehouse.runner.preparation import Prepared
from warehouse.runner.reporter import Reporter
from warehouse.runner.result import Outcome
from warehouse.runner.run import make_parts
from warehouse.store import snapshot
from warehouse.store.content_hash import of_content
from warehouse.store.signatures import FileStates

COLUMNS = {"port": "VARCHAR", "speed": "BIGINT"}
HEAVY = {"duckdb", "sqlglot", "jinja2", "rich", "numpy", "openpyxl", "yaml", "xxhash", "zstandard"}
UNUSED = {
    "argparse",
    "typing",
    "pathlib",
    "dataclasses",
    "difflib",
    "logging",
    "warehouse.base.settings",
    "warehouse.runner.build",
}


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
    for unused in (HEAVY, HEAVY | UNUSED):
        status, *loaded = python(code, *words).split()
        assert status == "0"
        assert set(loaded) & unused == set()


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
    "the snapshot damaged": lambda t: (t.target / snapshot.FILE).write_text('{"format": 1}\n', encoding="utf-8"),
    "the end of the snapshot cut": lambda t: os.truncate(t.target / snapshot.FILE, 5000),
    "no snapshot": lambda t: shutil.rmtree(t.target / "cache"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_noticed_and_a_build_is_up_to_date_afterwards(hours: Tiny, change: str) -> None:
    CHANGES[change](hours)
    assert not is_still(hours)
    assert is_still(hours)


@pytest.mark.parametrize("option", [["--keep", "2"], ["--cluster", "x"], ["--plain-sql"]])
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
    assert is_still(hours, "--threads", "1", "--memory", "1GB")


def test_the_notes_of_a_published_part_are_not_needed(hours: Tiny) -> None:
    hours.made()
    for notes in (hours.target / "parts").rglob("*.json"):
        notes.unlink()
    assert "Up to date" in hours.build().err
    assert len(hours.ask("FROM staging.hour")) == 2
    hours.file(1, "1,101,2,200,0,0.5")
    assert hours.build().status == 0
    assert len(hours.ask("FROM staging.hour")) == 2
    assert "Up to date" in hours.build().err


def test_a_touched_source_file_causes_no_build(hours: Tiny) -> None:
    os.utime(hours.folder / "models/metrics/total.sql", (1, 1))
    assert is_still(hours)


def test_a_selection_checks_all_inputs_and_is_not_up_to_date_with_stale_models(hours: Tiny) -> None:
    assert not is_still(hours, "-s", "metrics.total")
    assert is_still(hours)
    hours.reference("speeds", COLUMNS, "eth0,1")
    assert hours.build("-s", "staging.hour").status == 0
    assert not is_still(hours)


# unreliable timestamps ----------------------------------------------------------------------------


def look(path: Path) -> FileStates:
    return FileStates([(str(path), True)])


def changed(before: FileStates, path: Path, *, same: bool) -> tuple[list[str], bool]:
    """Return the result of `changes`, and whether it read the content."""
    asked: list[str] = []

    def told(one: str) -> bool:
        asked.append(one)
        return same

    _, _, found = before.changes(look(path), told)
    return found, bool(asked)


@pytest.mark.parametrize("same", [True, False])
def test_a_file_as_new_as_the_snapshot_is_compared_by_content(tmp_path: Path, same: bool) -> None:
    file = tmp_path / "a"
    file.touch()
    assert changed(look(tmp_path), tmp_path, same=same) == ([] if same else [str(file)], True)


def test_a_file_from_the_future_is_always_compared_by_content(hours: Tiny) -> None:
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


def test_an_unchanged_old_file_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").touch()
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + 10**11)
    assert changed(look(tmp_path), tmp_path, same=False) == ([], False)


def pretend(tiny: Tiny, path: Path, before: os.stat_result) -> None:
    """Store the file's current stamp in all caches, as if the change were invisible."""
    later = time.time_ns() + 10**11
    old, new = (struct.pack("=2q", about.st_mtime_ns, about.st_ctime_ns) for about in (before, path.stat()))
    cache = tiny.target / snapshot.FILE
    taken, content = snapshot._read(tiny.target)
    for one in taken["folders"]:
        one[3] = later
    taken["code"]["looked_ns"] = later
    cache.write_bytes(json.dumps(taken).encode() + b"\n" + bytes(content).replace(old, new))
    known = KnownFolders(tiny.target / "cache" / NAME, "")
    for record in known._records.values():
        record.looked_ns, record.is_racy, record.numbers = later, False, record.numbers.replace(old, new)
    known._environment = msgspec.msgpack.decode((tiny.target / "cache" / NAME).read_bytes()[32:])[0]
    known.save(list(known._records.values()))


def test_an_invisible_change_is_found_by_a_paranoid_build(hours: Tiny) -> None:
    path = hours.data / "c/trafficinfo/2024052401/x/Leaf-1_1_1.csv"
    before = path.stat()
    rewrite(path, path.read_text(encoding="utf-8").replace(",100,", ",999,"))
    pretend(hours, path, before)
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
    def first_change(prepared: Prepared, reporter: Reporter) -> Outcome:
        change()
        return make_parts(prepared, reporter)

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

    def publish_without_files(*given: Any, **named: Any) -> None:
        for path in hours.data.rglob("*.csv"):
            path.unlink()
        publish.publish(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(build, "publish", publish_without_files)
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


def test_a_model_edited_while_it_is_hashed_for_the_snapshot_is_left_to_the_next_build(
    hours: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited = hours.folder / "models/metrics/total.sql"

    def edit_first(path: Path) -> str:
        if path == edited:
            CHANGES["a model"](hours)
        return of_content(path)

    hours.file(0, "1,101,2,200,0,0.5")
    with monkeypatch.context() as patch:
        patch.setattr(snapshot_writer, "of_content", edit_first)
        assert hours.build().status == 0
    assert hours.made() == {"metrics.total"}


# same arguments -----------------------------------------------------------------------------------


def test_the_default_target_has_one_name() -> None:
    assert Path(up_to_date.TARGET) == DEFAULT_TARGET


@pytest.mark.parametrize(
    ("words", "target"),
    [
        (["build"], up_to_date.TARGET),
        (["build", "-t", "a"], "a"),
        (["build", "--target", "a b", "-d", "x"], "a b"),
        (["build", "--target=a"], "a"),
        (["build", "-d", "x", "-t"], ""),
    ],
)
def test_the_target_is_parsed_from_the_arguments(words: list[str], target: str) -> None:
    assert up_to_date._target(words) == target


def test_other_arguments_or_variables_are_parsed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen = [up_to_date.words(["build"]), up_to_date.words(["build", "--json"])]
    monkeypatch.setenv("WAREHOUSE_CLUSTER", "x")
    seen.append(up_to_date.words(["build"]))
    (tmp_path / "warehouse.toml").write_text("keep = 2\n", encoding="utf-8")
    seen.append(up_to_date.words(["build"]))
    (tmp_path / "models").mkdir()
    seen.append(up_to_date.words(["build"]))
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    seen.append(up_to_date.words(["build"]))
    assert all(one != other for at, one in enumerate(seen) for other in seen[:at])
