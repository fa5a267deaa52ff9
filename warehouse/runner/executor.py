"""Executors of a build's tasks: anything with `submit` of `concurrent.futures`.

Each thread of this process has an engine of its own, with one thread and a share of the memory. A user may pass another
executor, such as that of a Dask cluster, whose workers see the same folders: a task is plain data, and its answer, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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


class Runs(NamedTuple):
    """Executor that a build uses."""

    width: int
    """Number of tasks to have in hand at once."""
    submit: Callable[[Task], Future[Made]]
    interrupt: Callable[[], None] = lambda: None
    """Interrupts the running tasks of this process; each fails. What other workers make is never taken in."""


class Engines:
    """Engines of this process, one for each thread that makes parts."""

    def __init__(self, limits: Limits, observe: Callable[[Statement], None] | None) -> None:
        self._limits = limits
        self._observe = observe
        self._own = threading.local()
        self._all: list[DuckDBEngine] = []

    def make(self, task: Task) -> Made:
        """Make a part with the engine of this thread."""
        if not hasattr(self._own, "engine"):
            self._own.engine = DuckDBEngine(**self._limits._asdict(), observe=self._observe)
            self._all.append(self._own.engine)
        return make(task, self._own.engine)

    def interrupt(self) -> None:
        """Interrupt the statement of each thread."""
        for engine in list(self._all):
            engine.interrupt()

    def close(self) -> None:
        """Close all engines; no thread uses one."""
        for engine in self._all:
            engine.close()


def make_alone(task: Task, limits: Limits) -> Made:
    """Make a part with an engine that is opened for it, on a worker."""
    with closing(DuckDBEngine(**limits._asdict())) as engine:
        return make(task, engine)


@contextmanager
def opened(
    settings: Settings, spill: Path, given: Executor | None, observe: Callable[[Statement], None] | None
) -> Iterator[Runs]:
    """Open the executor of a build; one that observes its statements makes one part after the other."""
    width = 1 if observe else max(1, min(settings.threads, settings.memory_bytes // TASK_MEMORY))
    limits = Limits(settings.memory_bytes // (width + 1), spill)  # one share is the coordinator's
    if given is not None:
        yield Runs(_width_of(given), lambda task: given.submit(make_alone, task, limits))
        return
    pool = ThreadPoolExecutor(width)
    with closing(Engines(limits, observe)) as engines:
        try:
            yield Runs(width, lambda task: pool.submit(engines.make, task), engines.interrupt)
        finally:
            pool.shutdown(cancel_futures=True)  # waits for the tasks, whose engines are closed next


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
