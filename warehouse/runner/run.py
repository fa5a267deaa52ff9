"""Make and check all parts of a build, each as soon as what it reads is there."""

from __future__ import annotations

import graphlib
import heapq
import os
import signal
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, wait

from warehouse.base.errors import CheckError, DataError
from warehouse.graph.plan import Key
from warehouse.runner.result import Outcome
from warehouse.runner.task import Made, Task
from warehouse.runner.work import Work

_INTERRUPT_SECONDS = 0.1
"""Seconds between two interrupts of tasks that still run after another one failed."""
_PATIENCE_SECONDS = 5
"""Seconds that Ctrl-C waits for the end of all tasks before another Ctrl-C ends the process."""


def make_parts(work: Work) -> Outcome:
    """Take the parts that are there, and make and check the others.

    If a part that reads raw CSV files fails, these are checked line by line. If one is damaged, parts that depend on it
    are made again.

    Raises
    ------
    ModelError, CheckError
        When a model or a check fails. Of several, the first in the order of the graph.
    """
    session = work.session
    run = _Run(work)
    session.reporter.started(len({*run.keys} & {*work.plan.keys}))  # views have no parts
    while True:
        try:
            run.make_all()
        finally:
            run.stop()
        if not run.failures:
            break
        first = min(run.failures)
        error = run.failures[first]
        if isinstance(error, DataError) or not work.repair(run.keys[first]):
            raise error
        run = _Run(work)
    work.outcome.made &= work.plan.parts.keys()  # parts made before bad lines were found may be of no file any more
    return work.outcome


class _Run:
    """One run over the missing parts."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._runs = work.session.runs
        self._reporter = work.session.reporter
        self.keys = work.keys
        self._places = {key: place for place, key in enumerate(self.keys)}
        self._waiting = graphlib.TopologicalSorter({key: work.plan.upstream_parts(key) for key in self.keys})
        self._waiting.prepare()
        self._ready: list[int] = []
        self._running: dict[Future[Made], Task] = {}
        self.failures: dict[int, BaseException] = {}
        self._finished()

    def make_all(self) -> None:
        """Make all parts, or all that come before the first failure in the order of the graph."""
        while self._ready or self._running:
            while self._ready and len(self._running) < self._runs.width:
                place = heapq.heappop(self._ready)
                if not self.failures or place < min(self.failures):
                    self._begin(self.keys[place])
            if self._running:
                for future in wait(self._running, return_when=FIRST_COMPLETED).done:
                    self._end(self._running.pop(future), future)

    def _begin(self, key: Key) -> None:
        """Take in a part that is there, or submit the task that makes it."""
        work = self._work
        if not work.find(key):
            self._reporter.part_started(*key)
            task = work.task(key)
            self._running[self._runs.submit(task)] = task
            return
        if key in work.plan.parts:
            self._reporter.part_finished(work.plan.parts[key], 0.0, reused=True)
        self._finished(key)

    def _end(self, task: Task, future: Future[Made]) -> None:
        """Take in what a task has made; note its failure."""
        error = future.exception()
        try:
            if error is None:
                self._work.take_in(task, future.result())
        except CheckError as failed:
            error = failed
        finally:
            if task.path is not None:
                task.path.unlink(missing_ok=True)
        if error is not None:
            self.failures[self._places[task.key]] = error
            return
        if task.key in self._work.plan.parts:
            reused = task.key not in self._work.outcome.made
            self._reporter.part_finished(self._work.plan.parts[task.key], self._work.outcome.seconds[task.key], reused)
        self._finished(task.key)

    def _finished(self, *keys: Key) -> None:
        """Note finished parts; those that waited for them alone are ready now."""
        self._waiting.done(*keys)
        for key in self._waiting.get_ready():
            heapq.heappush(self._ready, self._places[key])

    def stop(self) -> None:
        """Interrupt the tasks that still run, until none does; another Ctrl-C does not cut this short.

        A thread may never end, as when the system blocks it at a file. Then Ctrl-C after some seconds ends the process,
        which is as safe as a kill.
        """
        started = time.monotonic()
        for future in self._running:
            future.cancel()
        is_over = not self._running
        while not is_over:
            try:
                is_over = not wait(self._running, timeout=_INTERRUPT_SECONDS).not_done
                self._runs.interrupt()
            except KeyboardInterrupt:
                if time.monotonic() - started > _PATIENCE_SECONDS:
                    sys.stderr.write("interrupted\n")
                    os._exit(128 + signal.SIGINT)
