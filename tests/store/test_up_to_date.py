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

from tests.cli.test_commands import python
from tests.conftest import Command
from tests.ingest.listed import raw_files_of
from tests.tiny import HOURS, Tiny
from warehouse.base.settings import KEPT_BUILDS, settle
from warehouse.formats.base import RawFile
from warehouse.ingest import look as looks
from warehouse.runner import build
from warehouse.runner.work import Work, make_parts
from warehouse.store.signatures import settle as settle_files
from warehouse.store.signatures import walk
from warehouse.store.state import DATA, FOLDER, LAST, NAME, State, unchanged

COLUMNS = {"port": "VARCHAR", "speed": "BIGINT"}
HEAVY = {"duckdb", "sqlglot", "jinja2", "rich", "numpy", "openpyxl", "yaml", "zstandard"}
RAW = "data/c/trafficinfo/2024052401/x/Leaf-1_1_1.csv"
"""The file of the second hour."""


def why(tiny: Tiny, *, keep: int = KEPT_BUILDS, **given: object) -> str:
    """Return why a build would run; empty if the target is up to date."""
    settings = settle({"data": [str(tiny.data)], "target": str(tiny.target), **given}, folder=tiny.base)
    return unchanged(settings, keep=keep)[1]


# cost of an up-to-date build ----------------------------------------------------------------------


def test_an_up_to_date_build_imports_no_heavy_module(hours: Tiny, run_cli: Command) -> None:
    hours.write("warehouse.toml", "shipped = false\n")
    words = ["build", "-d", str(hours.data), "-t", str(hours.target), "--project", str(hours.folder)]
    run_cli(*words)  # these tests import modules from another path than the CLI
    assert run_cli(*words).err.startswith("Up to date")
    code = "import sys; from warehouse.cli import main; status = main(sys.argv[1:]); print(status, *sys.modules)"
    status, *loaded = python(code, *words).split()
    assert status == "0"
    assert set(loaded) & HEAVY == set()


def test_an_up_to_date_build_prints_one_line_and_reports_the_same_as_the_build(hours: Tiny) -> None:
    said = hours.build()
    assert said.out == ""
    assert said.err.count("\n") == 1
    build = (hours.target / "builds" / "current").read_text(encoding="utf-8")
    assert said.err.startswith(f"Up to date  {build[:8]}, 4 parts, 2 files, 2 warnings, checked in 0.")
    assert hours.build("--quiet").err == ""
    first, last = (json.loads(hours.build("--json", *more).out) for more in (["--paranoid"], []))
    assert last == first | {"made": [], "changed": False}


# changes cause a build ----------------------------------------------------------------------------

ADDED = {
    "a raw file": "data/c/trafficinfo/2024052402/x/Leaf-1_1_1.csv",
    "a file that nobody knows": "data/c/notes",
    "an empty folder whose name means something": "data/c/taskinfo/",
    "a sign above the data": "trafficinfo/",
    "a model": "project/models/metrics/new.sql",
    "the project's settings": "project/warehouse.toml",
    "a log that a reader left": "target/warehouse.duckdb.wal",
}
"""Files, and folders, whose names end in a slash."""


def test_whatever_is_added_causes_a_build(hours: Tiny) -> None:
    for added, name in ADDED.items():
        path = hours.base / name
        new = next(one for one in (*reversed(path.parents), path) if not one.exists())
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.touch()
        assert why(hours), added
        if new.is_dir():
            shutil.rmtree(new)
        else:
            new.unlink()
        assert why(hours) == "", added


def rewrite(path: Path, old: str, new: str) -> None:
    """Replace a text by one of equal length and, where possible, equal timestamps."""
    about = path.stat()
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert path.stat().st_size == about.st_size


def edit(tiny: Tiny, old: str, new: str) -> None:
    path = tiny.folder / "models/metrics/total.sql"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def part_of(tiny: Tiny, model: str) -> Path:
    return min((tiny.target / "parts" / model).rglob("*.parquet"))


def current(tiny: Tiny) -> Path:
    return tiny.target / "builds" / "current"


CHANGED: dict[str, tuple[Callable[[Tiny], object], set[str]]] = {
    "a part gone": (lambda t: part_of(t, "staging.hour").unlink(), {f"staging.hour {HOURS[0]}"}),
    "the catalog gone": (lambda t: (t.target / "warehouse.duckdb").unlink(), set()),
    "the catalog of the build gone": (
        lambda t: (current(t).parent / current(t).read_text().strip() / "catalog.duckdb").unlink(),
        set(),
    ),
    "the manifest damaged": (
        lambda t: (current(t).parent / current(t).read_text().strip() / "manifest.json").write_text("{"),
        set(),
    ),
    "a raw file changed, with its old size and time": (
        lambda t: rewrite(t.base / RAW, ",100,", ",999,"),
        {f"staging.hour {HOURS[1]}"},
    ),
    "the meaning of a model": (lambda t: edit(t, "A model", "What a model is"), set()),
    "a reference table": (lambda t: t.reference("speeds", COLUMNS, "eth0,11"), {"staging.ports", "metrics.total"}),
    "the target moved": (lambda t: setattr(t, "target", t.target.rename(t.base / "moved")), set()),
}
"""Changes of what is there, and the parts that the next build makes."""


def test_every_change_is_noticed_and_a_build_is_up_to_date_afterwards(hours: Tiny) -> None:
    for name, (change, made) in CHANGED.items():
        change(hours)
        assert why(hours), name
        assert hours.made() == made, name
        assert why(hours) == "", name


def test_other_settings_or_packages_cause_a_build_and_other_threads_or_memory_do_not(
    hours: Tiny, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert why(hours, threads="2", memory="1GB") == ""
    assert "cluster" in why(hours, cluster="x")
    assert "max_rejected" in why(hours, max_rejected="0.5")
    assert "keep" in why(hours, keep=2)
    (tmp_path / "site" / "duckdb-99.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site")])
    assert hours.made() == set()
    assert why(hours) == ""
    (tmp_path / "site" / "duckdb-99.dist-info").rename(tmp_path / "site" / "duckdb-100.dist-info")
    assert "duckdb-100" in why(hours)
    monkeypatch.setattr(sys, "version", "4.0")
    assert "Python" in why(hours)


def test_a_selection_checks_all_inputs_and_is_not_up_to_date_with_stale_models(hours: Tiny) -> None:
    hours.reference("speeds", COLUMNS, "eth0,1")
    assert hours.build("-s", "staging.hour").status == 0
    assert why(hours)


# unreliable timestamps ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age_ns", "seconds"),
    [
        (10**9, 0),
        (5_000_000, 0.015),
        (-60 * 10**9, 0.02),  # the clock of the file server is ahead
        (5 * 10**8, 1.5),  # times in whole seconds
        (25 * 10**8, 0),
    ],
)
def test_a_file_is_hashed_once_each_later_change_has_another_time(
    monkeypatch: pytest.MonkeyPatch, age_ns: int, seconds: float
) -> None:
    waits: list[float] = []
    now = 1_700_000_000 * 10**9 + 5 * 10**8
    monkeypatch.setattr(time, "time_ns", lambda: now)
    monkeypatch.setattr(time, "sleep", waits.append)
    settle_files([[], [1, 0, 1, 1], [1, now, now - age_ns, 1]])
    assert waits == [pytest.approx(seconds)]


def test_files_settle_before_they_are_hashed(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(looks, "settle", lambda seen: done.append(f"settle {len(list(seen))}"))
    monkeypatch.setattr(looks, "of_content", lambda *_: f"digest {done.append('hash')}")  # type: ignore[func-returns-value]
    raw_files_of(tiny.data, tiny.target)
    assert done == ["settle 2", "hash", "hash"]


def test_a_change_of_a_file_from_the_future_is_noticed(hours: Tiny) -> None:
    later = time.time() + 10**6
    os.utime(hours.base / RAW, (later, later))
    assert hours.made() == set()
    assert why(hours) == ""
    rewrite(hours.base / RAW, ",100,", ",999,")
    assert hours.made() == {f"staging.hour {HOURS[1]}"}


def test_an_invisible_change_is_found_by_a_paranoid_build(hours: Tiny) -> None:
    """The state is made to hold the signature of the changed file beside the hash of the old one."""
    path = hours.base / RAW
    rewrite(path, ",100,", ",999,")
    folder = walk([hours.data], [])[str(path.parent)]
    state = State(hours.target / NAME, create=True)
    known = state.get(FOLDER, folder.key)
    known["files"][path.name][RawFile._fields.index("seen")] = folder.stamps[path.name]
    state.put(FOLDER, {folder.key: known | {"signature": folder.signature}})
    last = state.get(LAST, "")
    state.put(LAST, {"": last | {DATA: last[DATA] | {folder.key: folder.signature}}})
    state.close()
    assert why(hours) == ""
    assert hours.made("--paranoid") == {f"staging.hour {HOURS[1]}"}


# volatile models ----------------------------------------------------------------------------------

CHANCE = "SELECT port, CAST(floor(random() * 1e15) AS BIGINT) AS speed FROM reference.speeds"
VOLATILE = {
    CHANCE: "random() at {}:8:25",
    "SELECT port, epoch_us(current_timestamp) AS speed FROM reference.speeds": "current_timestamp at {}:8:23",
    "SELECT port, speed FROM reference.speeds LIMIT 1": "LIMIT without ORDER BY at {}:8:48",
    "SELECT port, speed FROM reference.speeds USING SAMPLE 1 ROWS": "sample at {}",
}


def test_volatile_models_and_checks_run_in_every_build_and_are_named_by_plan(tiny: Tiny, command: Command) -> None:
    select = "SELECT port, speed FROM reference.speeds"
    reasons = {
        f"staging.volatile{number}": reason.format(tiny.model(f"staging.volatile{number}", volatile, COLUMNS))
        for number, (volatile, reason) in enumerate(VOLATILE.items())
    }
    tiny.model("staging.seen", CHANCE, COLUMNS, "materialize: view")
    tiny.model("metrics.of_a_view", "SELECT sum(speed) AS speed FROM staging.seen", {"speed": "BIGINT"})
    tiny.model("staging.ordered", f"{select} ORDER BY port LIMIT 1", COLUMNS)
    tiny.made()
    assert tiny.made() == {*reasons, "metrics.of_a_view"}
    shown = tiny.model("staging.checked", select, COLUMNS, "checks:", "  - speed < epoch_us(now())")
    tiny.made()
    assert why(tiny)
    assert tiny.ask("SELECT status FROM meta.checks WHERE check_text LIKE '%now()%'") == [("passed",)]
    said = " ".join(command("plan", "-d", tiny.data, "-t", tiny.target).out.split())
    for model, reason in {**reasons, "staging.checked": f"a check at {shown}:5:5"}.items():
        assert f"{model} volatile: {reason}" in said
    assert "staging.ordered" not in said


# changes during a build ----------------------------------------------------------------------------


def test_files_added_and_models_edited_during_a_build_are_left_to_the_next_one(
    hours: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first_change(work: Work) -> Work:
        hours.file(2, "1,7,2,200,0,0.5")
        edit(hours, "sum(", "max(")
        return make_parts(work)

    hours.file(0, "1,101,2,200,0,0.5")
    with monkeypatch.context() as patch:
        patch.setattr(build, "make_parts", first_change)
        assert hours.made() == {f"staging.hour {HOURS[0]}"}
    assert hours.made() == {"staging.hour 2024-05-23T18", "metrics.total"}
