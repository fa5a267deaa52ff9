"""Builds on the workers of Dask: what needs no worker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.conftest import call
from tests.runner.conftest import HOUR_COLUMNS
from tests.tiny import Tiny
from warehouse.base.errors import CheckError, ModelError, Place, SettingsError, WarehouseError
from warehouse.base.settings import Settings, settle
from warehouse.ingest.shares import Deal, OtherFilesError, Share, sizes_of_hours
from warehouse.runner import cluster
from warehouse.runner.options import BuildOptions
from warehouse.runner.reporter import Reporter
from warehouse.runner.share import Answer, Job, make_for, make_share, versions
from warehouse.store.folders import walk_data
from warehouse.store.lock import hold


class Notes(Reporter):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


class Client:
    """Stand-in for Dask's client: answers of `look` by worker."""

    def __init__(self, **answers: object) -> None:
        self.answers = answers

    def run(self, *_: object, **__: object) -> dict[str, object]:
        return self.answers

    def scheduler_info(self, **_: object) -> dict[str, Any]:
        return {"workers": {name: {"nthreads": 2} for name in self.answers}}

    def subscribe_topic(self, *_: object) -> None:
        pass


def compare(tmp_path: Path, **answers: object) -> Notes:
    reporter = Notes()
    cluster.Cluster(Client(**answers), job(Settings(), tmp_path), reporter).threads()
    return reporter


def job(settings: Settings, probe: Path) -> Job:
    return Job(settings, BuildOptions(), probe, Reporter.of_share, versions())


def test_a_build_that_does_not_ask_for_dask_does_not_import_it(tiny: Tiny) -> None:
    script = (
        "import sys; from warehouse.cli import main\n"
        "status = main(sys.argv[1:])\n"
        "print(sorted(name for name in sys.modules if name.partition('.')[0] in ('dask', 'distributed', 'tornado')))"
    )
    tiny.write("warehouse.toml", "shipped = false\n")
    done = subprocess.run(
        [sys.executable, "-c", script, "build", "-d", tiny.data, "-t", tiny.target, "--quiet"],
        cwd=tiny.folder, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "[]\n"


def test_without_the_extra_one_sentence_names_it(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> NoReturn:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(cluster, "import_module", missing)
    said = tiny.build("--scheduler", "local:2")
    assert said.status == 2
    assert "--scheduler needs Dask, which is not installed" in said.err
    assert "pip install 'gpu-warehouse[cluster]'" in said.err


@pytest.fixture
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a worker starts."""

    def started(*_: object) -> NoReturn:
        raise AssertionError("a worker was started")

    monkeypatch.setattr(cluster, "_connected", started)


@pytest.mark.usefixtures("no_worker")
def test_a_target_that_a_build_holds_is_told_before_workers_wait_for_it(tiny: Tiny) -> None:
    with hold(tiny.target):
        said = tiny.build("--scheduler", "local:2")
    assert said.status == 3
    assert "another build holds" in said.err
    assert not list(tiny.target.glob(".probe*"))


@pytest.mark.usefixtures("no_worker")
def test_a_missing_data_folder_is_told_as_without_workers(tiny: Tiny) -> None:
    words = ("build", "-d", tiny.base / "no", "-t", tiny.target)
    local, said = (call(*words, *more, cwd=tiny.folder) for more in ((), ("--scheduler", "local:2")))
    assert (said.status, said.err) == (local.status, local.err)
    assert f"{tiny.base / 'no'}" in said.err


@pytest.mark.parametrize("name", ["warehouse", "duckdb", "Python"])
def test_a_worker_of_another_version_is_refused(tmp_path: Path, name: str) -> None:
    theirs = job(Settings(), tmp_path)._replace(versions=versions() | {name: "9.9"})
    other, _ = theirs.look()
    with pytest.raises(SettingsError, match=rf"the worker b is of another version: it has {name} .*, not 9\.9"):
        compare(tmp_path, a=("", ""), b=(other, ""))


def test_a_worker_without_the_files_is_left_out_with_one_warning(tmp_path: Path) -> None:
    here, gone, bare = ("", ""), ("", "there is no /data"), ModuleNotFoundError("No module named 'warehouse'")
    assert compare(tmp_path, a=here, b=gone, c=OSError("ended"), d=bare).notes == [
        "the worker b makes nothing: there is no /data",
        "the worker d makes nothing: it cannot run warehouse (No module named 'warehouse')",
    ]
    with pytest.raises(SettingsError, match="no worker that can make parts"):
        compare(tmp_path, b=gone)


def test_a_worker_that_cannot_write_to_the_target_is_left_out(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != tiny.target)
    assert job(Settings((tiny.data,), tiny.target), tiny.base).look() == ("", f"it cannot write to {tiny.target}")


def test_a_worker_sees_whether_it_has_the_files_and_the_target(tiny: Tiny) -> None:
    settings, probe = Settings((tiny.data,), tiny.target), tiny.base / "probe"
    tiny.target.mkdir()
    assert job(settings, probe).look() == ("", f"it has another {tiny.target}")
    probe.touch()
    assert job(settings, probe).look() == ("", "")
    assert job(settings._replace(data=(tiny.base / "no",)), probe).look() == ("", f"there is no {tiny.base / 'no'}")


def test_a_share_of_other_files_is_refused(hours: Tiny) -> None:
    settings = Settings((hours.data,), hours.target, hours.folder)
    dealt = Deal.of(Share(1, 1), sizes_of_hours(walk_data([hours.data], ())))
    make_share(settings, Reporter(), BuildOptions(share=Share(1, 1)), dealt)
    hours.file(1, "1,100,2,200,0,0.5", "1,100,2,200,0,0.5")
    with pytest.raises(OtherFilesError):
        make_share(settings, Reporter(), BuildOptions(share=Share(1, 1)), dealt)


def made_for(hours: Tiny, is_wanted: Callable[[], bool] = lambda: True) -> Answer:
    (hours.target / "parts").mkdir(parents=True, exist_ok=True)
    settings = Settings((hours.data,), hours.target, hours.folder)
    (deal,) = Deal.all_of(sizes_of_hours(walk_data([hours.data], ())), 1)[:1]
    return make_for(job(settings, hours.target), deal, print, is_wanted)


@pytest.mark.parametrize("text", ["bytes < 0", "bytes < 0 OR error('no')"])
def test_an_error_of_a_share_has_no_cause_that_dask_could_not_send(hours: Tiny, text: str) -> None:
    hours.write("warehouse.toml", "shipped = false\n")
    lines = ("partition: hour_utc", "checks:", f'  - "{text}"')
    hours.model("metrics.wrong", "SELECT hour_utc, bytes FROM staging.hour", HOUR_COLUMNS, *lines)
    error = made_for(hours).error
    assert isinstance(error, ModelError)
    assert (error.__cause__, error.__context__, error.__traceback__) == (None, None, None)
    assert error.place


def test_an_error_is_not_its_own_cause(hours: Tiny) -> None:
    lines = ("partition: hour_utc", "checks:", "  - bytes < 0")
    hours.model("metrics.wrong", "SELECT hour_utc, bytes FROM staging.hour", HOUR_COLUMNS, *lines)
    hours.write("warehouse.toml", "shipped = false\n")
    settings = Settings((hours.data,), hours.target, hours.folder)
    with pytest.raises(CheckError) as caught:
        make_share(settings, Reporter(), BuildOptions())
    assert caught.value.__cause__ is not caught.value


def test_a_share_of_an_ended_build_ends_before_its_next_part(hours: Tiny) -> None:
    hours.write("warehouse.toml", "shipped = false\n")
    wanted = iter([True, False])
    answer = made_for(hours, lambda: next(wanted))
    assert str(answer.error) == "the build of this share has ended"
    assert len(list(hours.target.glob("parts/staging.hour/*/*.parquet"))) == 1
    with hold(hours.target):
        pass


def test_errors_keep_their_place_on_the_way() -> None:
    import pickle

    error = ModelError("no column x", place=Place("models/a.sql", 3, 4), hint="nearest: y", details=["row"])
    back: WarehouseError = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back)) == (ModelError, str(error))


@pytest.mark.parametrize(
    "text", ["", "local", "local:0", "local:x", "lo:2", "node-1:8786", "tcp://node-1", "tcp://:1", "tls://a:1", "4"]
)
def test_any_other_text_is_refused_before_a_file_is_read(tiny: Tiny, text: str) -> None:
    said = tiny.build("--scheduler", text, "-d", tiny.base / "no")
    assert (said.status, said.err.splitlines()[0]) == (
        2, f"error: --scheduler is {text!r}, not tcp://HOST:PORT or local:N"
    )  # fmt: skip


@pytest.mark.parametrize("text", ['worker_paths = "x"', 'worker_paths = {a = "b"}', "worker_paths = {a = 1}"])
def test_paths_of_workers_are_a_table_of_absolute_paths(tmp_path: Path, text: str) -> None:
    (tmp_path / "warehouse.toml").write_text(text)
    with pytest.raises(SettingsError, match=r"`worker_paths` in warehouse\.toml is .*, not a table of paths"):
        settle({}, folder=tmp_path)


def test_the_module_that_runs_shares_on_dask_is_short() -> None:
    assert len(Path(cluster.__file__).read_text().splitlines()) <= 150
