"""Executor of a build: runs the tasks that make parts.

A task makes a part whose upstream parts are finished, or checks a part that was made without its checks. The executor
returns the part: its digest and rows; results of checks are stored beside it. Parts are immutable and named by their
inputs, so it does not matter where one is made, or whether it is made twice.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import NamedTuple, Protocol

from warehouse.graph.plan import Key
from warehouse.runner.part_maker import PartMaker
from warehouse.runner.preparation import Prepared
from warehouse.store.part_records import Part

_INTERRUPT_SECONDS = 0.1
"""Seconds between two interrupts of parts that still run after another part failed."""
_PATIENCE_SECONDS = 5
"""Seconds that Ctrl-C waits for the end of all threads before another Ctrl-C ends the process."""


class Task(NamedTuple):
    """Work on one part."""

    key: Key
    is_check: bool
    """True to check the part, False to make it."""


class Executor(Protocol):
    """Interface of an executor, which runs several tasks at a time."""

    parallel_parts: int
    """Number of tasks to have in hand at once."""

    def submit(self, task: Task) -> Future[Part]:
        """Run a task. The future raises RawDamageError, ModelError or CheckError."""
        ...

    def stop(self) -> None:
        """Stop all parts that still run, and wait for their end."""
        ...


class ThisMachine:
    """Executor on the cores of this machine.

    DuckDB runs a SELECT on its own threads, while one thread here waits. Python code holds Python's lock, so kernels
    hand the blocks of a large part to worker processes.
    """

    def __init__(self, prepared: Prepared, maker: PartMaker, parallel_parts: int) -> None:
        self.parallel_parts = parallel_parts
        self._prepared = prepared
        self._maker = maker
        self._threads = ThreadPoolExecutor(parallel_parts)
        self._running: set[Future[Part]] = set()

    def submit(self, task: Task) -> Future[Part]:
        """Run a task in a thread."""
        future = self._threads.submit(self._maker.check if task.is_check else self._maker.make, task.key)
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        return future

    def stop(self) -> None:
        """Interrupt the engine until no thread runs a statement; another Ctrl-C does not cut this short.

        A thread may never end, as when the system blocks it at a file. Then Ctrl-C after some seconds ends the process,
        which is as safe as a kill.
        """
        running, started = set(self._running), time.monotonic()
        for future in running:
            future.cancel()
        is_over = False
        while not is_over:
            try:
                is_over = not wait(running, timeout=_INTERRUPT_SECONDS).not_done
                self._prepared.engine.interrupt()
            except KeyboardInterrupt:
                if time.monotonic() - started > _PATIENCE_SECONDS:
                    sys.stderr.write("interrupted\n")
                    os._exit(128 + signal.SIGINT)

    def close(self) -> None:
        """Stop the running parts and end the threads."""
        self.stop()
        self._threads.shutdown()
