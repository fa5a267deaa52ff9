"""Session of a build: what is open while it runs, such as the store and the engines of its tasks.

Each thread of this process has an engine of its own, with one thread and a share of the memory. A user may pass another
executor, such as that of a Dask cluster, whose workers see the same folders: a task is plain data, and its answer, too.
"""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from warehouse.base.errors import SettingsError, WarehouseError
from warehouse.base.settings import KEPT_BUILDS, Settings, is_standalone
from warehouse.base.text import size
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.duckdb_errors import is_full_disk
from warehouse.project.project import Project
from warehouse.runner.reporter import Reporter
from warehouse.runner.task import Made, Task, make
from warehouse.store.manifest import Entry, Manifest, readable_manifest
from warehouse.store.parts import Store
from warehouse.store.signatures import Stamp, code_files, look, settle

TASK_MEMORY = 400_000_000
"""Least memory of a task, in bytes, which limits the number of tasks that run at a time."""


class BuildOptions(NamedTuple):
    """Options of one build."""

    select: tuple[str, ...] = ()
    """Selectors: these models and all upstream of them are built; the others keep their published parts."""
    keep: int = KEPT_BUILDS
    """Number of builds to keep."""
    wait: bool = False
    """True to wait while another build of this target runs."""
    paranoid: bool = False
    """True to hash every raw file and every part again, even if its signature is unchanged."""
    executor: Executor | None = None
    """Executor of the tasks; None for the threads of this machine."""


@contextmanager
def explaining_full_disk(settings: Settings) -> Iterator[None]:
    """Replace errors of a full disk. Raises WarehouseError with the folder and its free space."""
    try:
        yield
    except (OSError, WarehouseError) as error:
        # With its causes: DuckDB's errors have no errno.
        if not is_full_disk("".join(traceback.format_exception(error))):
            raise
        free = os.statvfs(settings.target)
        raise WarehouseError(
            f"the disk of {settings.target} is full: {size(free.f_bavail * free.f_frsize)} are free",
            hint="-t DIR builds on another disk",
        ) from error


class Runs(NamedTuple):
    """Executor that a build uses."""

    width: int
    """Number of tasks to have in hand at once."""
    submit: Callable[[Task], Future[Made]]
    interrupt: Callable[[], None] = lambda: None
    """Interrupts the running tasks of this process; each fails. What other workers make is never taken in."""


class Session(NamedTuple):
    """What is open while a build or a dry run is going on."""

    settings: Settings
    options: BuildOptions
    reporter: Reporter
    project: Project
    store: Store
    engine: DuckDBEngine
    """Engine of the coordinator."""
    runs: Runs
    last: Manifest | None
    """The published build; None before the first one, or if its manifest is damaged."""
    code: dict[str, Stamp]
    """Signatures of package and project from before any of their files was read."""
    tables: dict[Path, Stamp]
    """Signatures of the CSV files of `data/`, likewise."""

    @property
    def engine_label(self) -> str:
        """Name and version of the engine, which are part of the build id."""
        return f"{self.engine.name} {self.engine.version}"

    def last_entries(self) -> Sequence[Entry]:
        """Return the parts of the published build."""
        return self.last.parts if self.last else ()


@contextmanager
def opened(settings: Settings, options: BuildOptions, reporter: Reporter, store: Store) -> Iterator[Session]:
    """Open the engines of a build. No file of the project has been read before."""
    project = replace(Project.open(settings.project), paranoid=options.paranoid)
    code = code_files(project.folders)
    tables = {path: look(path) for folder in project.folders for path in (folder / "data").glob("*.csv")}
    own = tuple(f"{folder}/" for folder in project.folders)
    settle([*tables.values(), *(seen for path, seen in code.items() if path.startswith(own))])
    spill = store.temporary("spill")
    with (
        _executor(settings, options.executor, reporter, spill) as runs,
        closing(DuckDBEngine(memory_bytes=settings.memory_bytes // (runs.width + 1), spill=spill)) as engine,
    ):
        yield Session(
            settings, options, reporter, project, store, engine, runs, readable_manifest(store.target), code, tables
        )


@contextmanager
def _executor(settings: Settings, given: Executor | None, reporter: Reporter, spill: Path) -> Iterator[Runs]:
    """Open the executor of a build; one that observes its statements makes one part after the other."""
    observe = reporter.statement_finished
    width = 1 if observe else max(1, min(settings.threads, settings.memory_bytes // TASK_MEMORY))
    memory_bytes = settings.memory_bytes // (width + 1)  # one share is the coordinator's
    engine = partial(DuckDBEngine, memory_bytes=memory_bytes, spill=spill)
    if given is not None:
        yield Runs(_width_of(given), lambda task: given.submit(_make_alone, task, engine))
        return
    engines: list[DuckDBEngine] = []
    own = threading.local()

    def make_here(task: Task) -> Made:
        if not hasattr(own, "engine"):
            own.engine = engine(observe=observe)
            engines.append(own.engine)
        return make(task, own.engine)

    def interrupt() -> None:
        for one in engines:
            one.interrupt()

    pool = ThreadPoolExecutor(width)
    try:
        yield Runs(width, lambda task: pool.submit(make_here, task), interrupt)
    finally:
        pool.shutdown(cancel_futures=True)  # waits for the tasks, whose engines are closed next
        for one in engines:
            one.close()


def _make_alone(task: Task, engine: Callable[[], DuckDBEngine]) -> Made:
    """Make a part with an engine that is opened for it, on a worker."""
    with closing(engine()) as opened_here:
        return make(task, opened_here)


def _width_of(executor: Any) -> int:
    """Return the number of tasks to have in hand: two for each worker, if the executor tells their number."""
    workers = getattr(executor, "_max_workers", None)
    if workers is None and hasattr(executor, "_client"):
        workers = sum(executor._client.nthreads().values())  # noqa: SLF001 - Dask has no other name for it
    return 2 * int(workers or 8)


@contextmanager
def scheduler(address: str) -> Iterator[Executor]:
    """Connect to a Dask scheduler, `tcp://HOST:PORT`, or start one with `local:N` processes of one thread.

    Raises
    ------
    SettingsError
        Without Dask, or when no scheduler or worker answers.
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        hint = "pip install 'gpu-warehouse[cluster]'"
        raise SettingsError("--scheduler needs Dask, which is not installed", hint=hint) from error
    kind, _, count = address.partition(":")
    local = (
        # One thread, as a task's engine has; `:0` is any free port.
        {"n_workers": int(count or 0), "threads_per_worker": 1, "dashboard_address": ":0"} if kind == "local" else {}
    )
    try:
        client = distributed.Client(**(local or {"address": address, "timeout": 10}))
        client.wait_for_workers(1, timeout=30)
    except (OSError, ValueError, RuntimeError) as error:
        raise SettingsError(f"no scheduler with a worker answers at {address}", hint="see docs/cluster.md") from error
    with client:
        yield client.get_executor()


def check_folders(settings: Settings) -> None:
    """Check that data folders are given, exist and lie outside the target. Raises SettingsError."""
    if not settings.data and not (settings.project and is_standalone(settings.project)):
        raise no_data()
    target = settings.target.absolute()
    for root in settings.data:
        if not root.exists():
            raise SettingsError(f"no such data folder: {root}", hint="give an existing folder with --data")
        if target == root.absolute() or target in root.absolute().parents:
            raise SettingsError(f"the data folder {root} lies inside the target {settings.target}")


def no_data() -> SettingsError:
    """Return the error of a command without data folders."""
    return SettingsError(
        "no data folder given", hint="warehouse build -d DIR  (a release as downloaded, or a part of it)"
    )
