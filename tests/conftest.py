"""Shared fixtures: a sample release, a build of it, the real files, and the command line."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TextIO

import pytest
from hypothesis import settings

import warehouse
from warehouse.base.settings import KEYS
from warehouse.cli import main
from warehouse.project.project import Project
from warehouse.reader.output import SWITCH, VARIABLES
from warehouse.reader.request import Request
from warehouse.reader.user_query import answer
from warehouse.sample import SampleOptions, write_sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.browser import Browser
    from tests.release import Release
    from tests.tiny import Tiny

pytest_plugins = ["tests.small_target"]

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None)
settings.load_profile("same")  # two runs of one commit try the same cases; --hypothesis-profile=random tries others

signal.signal(signal.SIGINT, signal.default_int_handler)
"""Restore Ctrl-C: a shell that starts tests in the background makes them and their children ignore it."""
PATIENCE = 500
"""Seconds to wait for a process: a busy machine is no failure. A test that hangs ends at pytest's own limit."""
MEMORY, ROOM = Path("/dev/shm"), 4 * 2**30
"""File system in memory, and the bytes that must be free there."""
SETTINGS = (*(f"WAREHOUSE_{key.upper()}" for key in (*KEYS, "engine")), SWITCH, *VARIABLES)


class Completed(NamedTuple):
    """Exit status and output of a command."""

    status: int
    out: str
    err: str

    @property
    def err_text(self) -> str:
        """Return stderr with line breaks replaced by spaces."""
        return " ".join(self.err.split())


class MadeOnce(Protocol):
    """Function that returns a folder of the run: `made_once("sample", write)`."""

    def __call__(self, name: str, make: Callable[[Path], object]) -> Path: ...


Restored = MadeOnce
"""Function that returns a folder as it was made: `restored("published", make)`."""


class Command(Protocol):
    """Command to call as `command("build", "-d", folder)`, in a working folder of the test's own."""

    def __call__(self, *arguments: str | Path, cwd: Path | None = None) -> Completed: ...


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Keep the files of tests in memory if there is room: builds wait for the disk after each file (fsync)."""
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_collection_finish() -> None:
    """Keep the garbage collector from looking again and again at thousands of tests, which stay until the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that all processes of a run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session", autouse=True)
def cache_folder(run_folder: Path) -> None:
    """Use a cache folder per run, shared by its processes, so that shipped models are parsed and bound once."""
    os.environ["XDG_CACHE_HOME"] = str(run_folder / "cache")


@pytest.fixture(scope="session")
def made_once(run_folder: Path) -> MadeOnce:
    """Return a function that makes a folder of the run in the first process that needs it; the others wait."""

    def folder(name: str, make: Callable[[Path], object]) -> Path:
        place, done = run_folder / name, run_folder / f"{name}.done"
        with (run_folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(place, ignore_errors=True)  # of a failed attempt
                place.mkdir()
                make(place)
                done.touch()
        return place

    return folder


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Isolate tests from the user's settings and terminal width."""
    for variable in SETTINGS:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")


@pytest.fixture(scope="session")
def restored(tmp_path_factory: pytest.TempPathFactory) -> Restored:
    """Return a function that makes a folder once a process, and restores it in its place for each test that changes it.

    A target that is copied elsewhere cannot be read: it has absolute paths.
    """
    base = tmp_path_factory.mktemp("restored")

    def folder(name: str, make: Callable[[Path], object]) -> Path:
        place, saved = base / name, base / f"{name}.saved"
        shutil.rmtree(place, ignore_errors=True)
        if not saved.exists():
            place.mkdir()
            make(place)
            place.rename(saved)
        shutil.copytree(saved, place, symlinks=True)
        return place

    return folder


@pytest.fixture(scope="session")
def sample(made_once: MadeOnce) -> Path:
    """Return the root of a small release: a whole 15 minutes in each of two hours, with all traps planted."""
    return made_once("sample", lambda root: write_sample(root, SampleOptions(seconds=900)))


@pytest.fixture(scope="session")
def built(sample: Path, made_once: MadeOnce) -> Path:
    """Return the target of the sample's build, made by `warehouse demo`, which tests must not change."""

    def make(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warehouse.sample.write_sample", lambda _: None)  # it is there
            said = call("demo", sample, "-t", folder / "warehouse", cwd=folder)
        assert said.status == 0, said
        (folder / "demo.txt").write_text(said.out, encoding="utf-8")

    return made_once("built", make) / "warehouse"


@pytest.fixture(scope="session")
def two_leaves(sample: Path, made_once: MadeOnce) -> Path:
    """Return the target of a build of the sample's workbook and of an hour of two leaves: findings, without jobs."""
    from tests.release import only

    def make(folder: Path) -> None:
        hour = sample / "zhejiang" / "cluster_sample" / "trafficinfo" / "2024052400"
        for file in (*sample.rglob("*.xlsx"), *hour.rglob("Leaf-1_*.csv"), *hour.rglob("Leaf-2_*.csv")):
            place = folder / "data" / file.relative_to(sample)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)
        with only(folder / "project", "metrics.findings", "metrics.flow_locality_hour"):
            warehouse.build(folder / "data", folder / "warehouse")

    return made_once("two-leaves", make) / "warehouse"


@pytest.fixture(scope="session")
def site(built: Path, made_once: MadeOnce) -> Path:
    """Return the site of the shipped project and the sample's build, as `warehouse docs site/` writes it."""

    def make(folder: Path) -> None:
        said = call("docs", "site/", "-t", built, cwd=folder)
        assert said.status == 0, said

    return made_once("docs", make) / "site"


@pytest.fixture(scope="session")
def report(built: Path, made_once: MadeOnce) -> Path:
    """Return the report on the sample's build, as `warehouse report report.html` writes it."""

    def make(folder: Path) -> None:
        said = call("report", "report.html", "-t", built, cwd=folder)
        assert said.status == 0, said

    return made_once("report", make) / "report.html"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Start a headless Chromium; skip the test without one."""
    from tests.browser import CHROMIUM, WITHOUT, chromium

    if CHROMIUM is None:
        pytest.skip(WITHOUT)
    with chromium(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.fixture(scope="session")
def real() -> Path:
    """Return the folder of the real releases; skip the test without it."""
    given = os.environ.get("WAREHOUSE_REAL")
    folder = Path(given) if given else Path(__file__).parents[1] / "data" / "real"
    if not (folder / "zhejiang").is_dir():
        pytest.skip("no real files at hand: set WAREHOUSE_REAL, or lay them out in data/real")
    return folder


@pytest.fixture(scope="session")
def real_output(real: Path, made_once: MadeOnce) -> tuple[Path, str]:
    """Return the target of a build of the real Zhejiang files, and what the command printed."""

    def make(base: Path) -> None:
        done = call("build", "-d", real / "zhejiang", "--threads", "2", cwd=base)
        assert done.status == 0, done
        (base / "printed.txt").write_text(done.err, encoding="utf-8")

    base = made_once("real-built", make)
    return base / "build" / "warehouse", (base / "printed.txt").read_text(encoding="utf-8")


@pytest.fixture
def run_cli(tmp_path: Path) -> Command:
    """Return a command that runs `python -m warehouse` in a process of its own, with warnings as errors."""

    def run(*arguments: str | Path, cwd: Path | None = None) -> Completed:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "warehouse", *map(str, arguments)],
            cwd=cwd or tmp_path,
            env={name: value for name, value in os.environ.items() if name not in SETTINGS},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=PATIENCE,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Completed(done.returncode, done.stdout, done.stderr)

    return run


def call(*arguments: str | Path, cwd: Path) -> Completed:
    """Run the command within this process; raise errors that are no sentence."""
    with written() as out, written() as err:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.chdir(cwd):
            try:
                status = main([str(argument) for argument in arguments])
            except SystemExit as end:  # argparse
                status = end.code if isinstance(end.code, int) else 1
        return Completed(status, *(content(stream) for stream in (out, err)))


def written() -> TextIO:
    """Return a file that has a descriptor, which a child process can write to."""
    return tempfile.TemporaryFile("w+", encoding="utf-8", newline="")


def content(stream: TextIO) -> str:
    stream.seek(0)
    return stream.read()


def answered(target: Path, sql: str | None = None, stream: io.StringIO | None = None, **asked: Any) -> str:
    """Return what the answer to a request writes on stdout; `asked` has the other fields of the request."""
    with stream or written() as sink:
        with contextlib.redirect_stdout(sink):
            assert answer(Request(target, sql, **asked)) == 0
        return content(sink)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Return a command that runs within this process."""

    def run(*arguments: str | Path, cwd: Path | None = None) -> Completed:
        return call(*arguments, cwd=cwd or tmp_path)

    return run


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    """Replace the shipped project by a project of two small models."""
    from tests.tiny import Tiny

    found = Tiny(tmp_path)
    monkeypatch.setattr(Project, "open", lambda _=None: found.project)
    return found


@pytest.fixture(scope="session")
def fabric_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return the shipped models of ports and NICs without downstream models: those that a damaged file can reach."""
    from tests.release import lay_out_project

    return lay_out_project(tmp_path_factory.mktemp("fabric"))


@pytest.fixture(scope="module")
def own_models(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project of the module's `MODELS` and all that they read: its builds take half the time."""
    from tests.release import lay_out_project

    return lay_out_project(tmp_path_factory.mktemp("project"), request.module.MODELS)


@pytest.fixture
def only_own_models(own_models: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the shipped project by that of the module's models."""
    from tests.release import instead_of_shipped

    instead_of_shipped(own_models, monkeypatch)


@pytest.fixture
def release(sample: Path, tmp_path: Path, fabric_project: Project, monkeypatch: pytest.MonkeyPatch) -> Release:
    """Return intact data of five ports for one hour, not built, with a small project."""
    from tests.release import lay_out

    monkeypatch.setattr(Project, "open", lambda _=None: fabric_project)
    return lay_out(sample, tmp_path)


@pytest.fixture
def published(sample: Path, restored: Restored, fabric_project: Project, monkeypatch: pytest.MonkeyPatch) -> Release:
    """Return such a release after a build, which a failing build must not change."""
    from tests.release import Release, done, lay_out

    monkeypatch.setattr(Project, "open", lambda _=None: fabric_project)
    return Release(restored("published", lambda folder: done(lay_out(sample, folder).build())))
