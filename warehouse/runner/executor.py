"""Executors of a build's tasks: anything with `submit` of `concurrent.futures`.

`At once` runs a task in the caller's thread. `Threads` is a pool; each thread has an engine of its own, with one thread
and a share of the memory. A user may pass another executor, such as that of a Dask cluster, whose workers see the same
folders: a task is plain data, and its answer, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from warehouse.base.errors import SettingsError
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.runner.task import Made, Task, make

if TYPE_CHECKING:
    from warehouse.base.settings import Settings
    from warehouse.engine.observed import Statement

TASK_MEMORY = 400_000_000
"""Least memory of a task, in bytes, which limits the number of tasks that run at a time."""


class Limits(NamedTuple):
    """What the engine of a task may take."""

    memory_bytes: int
    spill: Path

    def engine(self, observe: Callable[[Statement], None] | None = None) -> DuckDBEngine:
        """Return a new engine."""
        return DuckDBEngine(memory_bytes=self.memory_bytes, spill=self.spill, observe=observe)


class Runs(Protocol):
    """Executor that a build uses."""

    width: int
    """Number of tasks to have in hand at once."""

    def submit(self, task: Task) -> Future[Made]:
        """Run a task."""
        ...

    def interrupt(self) -> None:
        """Interrupt the running tasks; each fails."""
        ...


class AtOnce:
    """Executor that runs each task in the caller's thread."""

    width = 1

    def __init__(self, limits: Limits, observe: Callable[[Statement], None] | None = None) -> None:
        self._engine = limits.engine(observe)

    def submit(self, task: Task) -> Future[Made]:
        """Run a task before this returns."""
        future: Future[Made] = Future()
        try:
            future.set_result(make(task, self._engine))
        except Exception as error:
            future.set_exception(error)
        return future

    def interrupt(self) -> None:
        """Do nothing: no task runs while the caller does anything else."""

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


class Threads:
    """Executor with a pool of threads, each with an engine of its own."""

    def __init__(self, width: int, limits: Limits) -> None:
        self.width = width
        self._limits = limits
        self._own = threading.local()
        self._engines: list[DuckDBEngine] = []
        self._pool = ThreadPoolExecutor(width)

    def submit(self, task: Task) -> Future[Made]:
        """Run a task in a thread."""
        return self._pool.submit(self._make, task)

    def _make(self, task: Task) -> Made:
        if not hasattr(self._own, "engine"):
            self._own.engine = self._limits.engine()
            self._engines.append(self._own.engine)
        return make(task, self._own.engine)

    def interrupt(self) -> None:
        """Interrupt the statement of each thread."""
        for engine in list(self._engines):
            engine.interrupt()

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)
        for engine in self._engines:
            engine.close()


class Elsewhere:
    """Executor around one that the user has passed; its workers see the target and the data folders."""

    def __init__(self, executor: Executor, limits: Limits, width: int) -> None:
        self.width = width
        self._executor = executor
        self._limits = limits

    def submit(self, task: Task) -> Future[Made]:
        """Run a task on a worker."""
        return self._executor.submit(make_alone, task, self._limits)

    def interrupt(self) -> None:
        """Do nothing: what workers make is never taken in."""

    def close(self) -> None:
        """Leave the executor to the user."""


def make_alone(task: Task, limits: Limits) -> Made:
    """Run a task with an engine that is opened for it, on a worker."""
    engine = limits.engine()
    try:
        return make(task, engine)
    finally:
        engine.close()


@contextmanager
def opened(
    settings: Settings, spill: Path, executor: Executor | None, observe: Callable[[Statement], None] | None
) -> Iterator[Runs]:
    """Open the executor of a build; one that observes its statements makes one part after the other."""
    width = max(1, min(settings.threads, settings.memory_bytes // TASK_MEMORY))
    limits = Limits(settings.memory_bytes // (width + 1), spill)
    found: AtOnce | Threads | Elsewhere
    if executor is not None:
        found = Elsewhere(executor, limits, _width_of(executor))
    elif width == 1 or observe is not None:
        found = AtOnce(limits, observe)
    else:
        found = Threads(width, limits)
    try:
        yield found
    finally:
        found.close()


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
        {"n_workers": int(count or 0), "threads_per_worker": 1, "dashboard_address": ":0"} if kind == "local" else {}
    )
    try:
        client = distributed.Client(**(local or {"address": address, "timeout": 10}))
        client.wait_for_workers(1, timeout=30)
    except (OSError, ValueError, RuntimeError) as error:
        raise SettingsError(f"no scheduler with a worker answers at {address}", hint="see docs/cluster.md") from error
    with client:
        yield client.get_executor()
