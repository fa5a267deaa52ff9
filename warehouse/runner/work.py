"""Work of a build: which parts are there, which tasks are left, what they gave; and the run that makes them all."""

from __future__ import annotations

import graphlib
import heapq
import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import NamedTuple

from warehouse.base import hashing
from warehouse.base.errors import CheckError, DataError
from warehouse.base.text import plural
from warehouse.engine.duckdb_errors import EngineError
from warehouse.graph.dag import Graph, checked_relations, select_models
from warehouse.graph.plan import Key, Plan
from warehouse.ingest.look import refuse_nothing_to_read
from warehouse.ingest.raw_files import RawFiles
from warehouse.project.check_language import all_checks, relations_of
from warehouse.project.contract import Check
from warehouse.runner.reporter import Outcome
from warehouse.runner.session import Session
from warehouse.runner.task import Made, Task, check_error
from warehouse.store.manifest import INPUTS, CheckResult, Part
from warehouse.store.partitions import ALL, hour_of, partition_name, partition_value
from warehouse.store.state import VIEW

_INTERRUPT_SECONDS = 0.1
"""Seconds between two interrupts of tasks that still run after another one failed."""
_PATIENCE_SECONDS = 5
"""Seconds that Ctrl-C waits for the end of all tasks before another Ctrl-C ends the process."""


class Looked(NamedTuple):
    """Models and raw files of a build."""

    session: Session
    graph: Graph
    raw_files: RawFiles


class Work:
    """Parts of one build, finished and missing. Only one thread uses it.

    Parameters
    ----------
    looked
        Models and raw files.
    """

    def __init__(self, looked: Looked) -> None:
        self.session, self.graph, self.raw_files = looked
        self.hour: str | None = None  # the only hour to make parts of, with what they read
        selected = select_models(self.graph, self.session.options.select)
        self._wanted = selected.union(*(self.graph.ancestors(name) for name in selected))
        self._last = self._last_parts() if self.session.options.select else {}
        self.outcome = Outcome({})
        self._begin()

    def _begin(self) -> None:
        """Plan all parts; none is finished."""
        self.plan = Plan(self.session.project, self.graph, self.raw_files, self.session.engine)
        self.outcome = Outcome(self.plan.parts, made=self.outcome.made)

    def _last_parts(self) -> dict[Key, Part]:
        """Return the published parts, which models outside the selection keep."""
        found = {}
        for entry in self.session.last_entries():
            key = Key(entry["model"], partition_name(entry["partition"]))
            part = self.session.store.find(*key, entry["fingerprint"])
            if part is not None:
                found[key] = part
        return found

    @property
    def keys(self) -> list[Key]:
        """Keys of all parts, and of the views that have checks, grouped by hour, upstream first.

        So the rows of only a few hours are in the file system's memory; the topology comes before the first hour.
        """
        views = (node for node in map(self.graph.nodes.__getitem__, self.graph.order) if node.model.is_view)
        checked = [
            Key(view.name, one) for view in views if view.model.checks for one in self.plan.partitions(view.name)
        ]
        places = {name: place for place, name in enumerate(self.graph.order)}
        keys = sorted((*self.plan.keys, *checked), key=lambda key: (places[key.model], key.partition))
        chosen = [key for key in keys if self.hour is None or hour_of(key.partition) == self.hour]
        chosen.sort(key=lambda key: (key.partition == ALL, hour_of(key.partition) or key.partition))
        ordered: dict[Key, None] = {}

        def add(key: Key) -> None:
            if key not in ordered:
                for need in sorted(self.plan.upstream_parts(key), key=lambda one: (places[one.model], one.partition)):
                    add(need)
                ordered[key] = None

        for key in chosen:
            add(key)
        return list(ordered)

    # parts that are there ---------------------------------------------------------------------------

    def find(self, key: Key) -> bool:
        """Take in a part that is there, with the results of its checks; return False if there is something to do."""
        if not self.graph.nodes[key.model].model.is_view and key not in self.plan.parts:
            part = self._find_part(key)
            if part is None:
                return False
            self.plan.parts[key] = part
        if key not in self.outcome.checks:
            results = self._known_results(key) if self.can_check(key) else None
            if results is None:
                return False
            self.outcome.checks[key] = results
        return True

    def _find_part(self, key: Key) -> Part | None:
        """Return the part with the fingerprint; outside the selection, else that of the last build, without checks."""
        fingerprint = self.fingerprint(key)
        part = self.session.store.find(*key, fingerprint) if fingerprint else None
        if part is None and key.model not in self._wanted and key in self._last:
            part = self._last[key]
            self.outcome.checks[key] = []
            self.outcome.stale.add(key.model)
        if self._stale(self.graph.nodes[key.model].reads):
            self.outcome.stale.add(key.model)
        return part

    def _stale(self, relations: Iterable[str]) -> set[str]:
        """Return the stale ones of these relations, views by what they read."""
        return self.outcome.stale.intersection(self.graph.below_views(relations)) if self.outcome.stale else set()

    def fingerprint(self, key: Key) -> str:
        """Return the fingerprint of a part; empty if a part that it reads is not finished."""
        reads = self.graph.nodes[key.model].reads
        is_known = all(self.plan.is_known(read, key.partition) for read in reads)
        return hashing.of(self.plan.inputs_of(key)) if is_known else ""

    def can_check(self, key: Key) -> bool:
        """Return True if all parts that the checks of a part read are finished."""
        others = checked_relations(self.graph.nodes[key.model]) - {key.model}
        return all(self.plan.is_known(read, key.partition) for read in others)

    # checks -----------------------------------------------------------------------------------------

    def checks_of(self, key: Key) -> list[Check]:
        """Return all checks of a table or view."""
        model = self.graph.nodes[key.model].model
        return list(model.checks) if model.is_view else all_checks(model)

    def _digest(self, key: Key) -> str:
        """Return the digest of the rows of a finished part, or of what a view reads."""
        return self.plan.parts[key].digest if key in self.plan.parts else self.plan.digest(*key)

    def _known_results(self, key: Key) -> list[CheckResult] | None:
        """Return the results of all checks; None if a check failed or has not run on these rows."""
        noted: Sequence[Mapping[str, object]] = (
            self.plan.parts[key].notes.get("checks", ())
            if key in self.plan.parts
            else self.session.store.get(VIEW, key) or ()
        )
        known = {str(one["key"]): CheckResult(**one) for one in noted}  # type: ignore[arg-type]
        digest, found = self._digest(key), list[CheckResult]()
        for check in self.checks_of(key):
            result = known.get(self.plan.of_check(check, key, digest)) or self._result_if_not_run(key, check)
            if result is None or (result.failures and not result.warn):
                return None
            found.append(result._replace(says=check.says))
        return found

    def _result_if_not_run(self, key: Key, check: Check) -> CheckResult | None:
        """Return the result of a check that compares rows with those of a stale model; None if the check can run."""
        others = relations_of(check.text)
        stale = self._stale((key.model, *others) if others or self.graph.nodes[key.model].model.is_view else ())
        return CheckResult(check.text, check.warn, 0, not_checked=f"{min(stale)} is stale") if stale else None

    # tasks ------------------------------------------------------------------------------------------

    def task(self, key: Key) -> Task:
        """Return the task that makes a missing part, and runs its checks."""
        nodes, node, part = self.graph.nodes, self.graph.nodes[key.model], self.plan.parts.get(key)
        is_there = part is not None or node.model.is_view
        return Task(
            key,
            node.model,
            node.sql,
            self.plan.sources(key),
            [nodes[read].model.grain if read in nodes else () for read in node.model.reads],
            None if is_there else self.session.store.temporary("parquet"),
            part.file if part else "",
            [check for check in self.checks_of(key) if not self._result_if_not_run(key, check)],
        )

    def take_in(self, task: Task, made: Made) -> None:
        """Take in what a task has made. Raises CheckError if a check failed; the part stays for the next build."""
        key, node, store = task.key, self.graph.nodes[task.key.model], self.session.store
        if made.written is not None:
            notes = {INPUTS: {**self.plan.inputs_of(key), "sql": node.sql.strip()}}
            self.plan.parts[key] = store.take_in(*key, self.fingerprint(key), made.written, notes)
            self.outcome.made.add(key)
        digest = self._digest(key)
        results = [
            one._replace(key=self.plan.of_check(check, key, digest), says=check.says)
            for check, one in zip(task.checks, made.results, strict=True)
        ]
        failed = next((one for one in results if one.failures and not one.warn), None)
        if failed:
            raise check_error(node.model, partition_value(key.partition), failed)
        noted = [{name: value for name, value in one._asdict().items() if name != "says"} for one in results]
        if node.model.is_view:
            store.note(VIEW, {"\t".join(key): noted})
        else:
            part = self.plan.parts[key] = self.plan.parts[key]._replace(
                notes=self.plan.parts[key].notes | {"checks": noted}
            )
            store.keep(part)
        self.outcome.checks[key] = self._known_results(key) or []

    def repair(self, key: Key) -> bool:
        """Leave out the bad lines of the raw CSV files that a failed part reads, and begin again.

        Return False if there are none.
        """
        reads = self.graph.below_views(self.graph.nodes[key.model].reads)
        relations = sorted({read for read in reads if self.raw_files.is_csv(read)})
        files = [file for one in relations for file in self.raw_files.files_of(one, partition_value(key.partition))]
        if not files:
            return False
        where = "" if key.partition == ALL else f" of {key.partition}"
        self.session.reporter.note(f"looking for bad lines in {plural(len(files), 'file')}{where}")
        try:
            if not self.raw_files.repair(files, self.session.engine):
                return False
        except EngineError:
            return False
        refuse_nothing_to_read(self.raw_files.inventory)
        self._begin()
        return True


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
        if isinstance(error, DataError) or not work.repair(run.keys[first]):  # a DataError names its file already
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
                # What comes earlier still runs, so the error does not depend on the number of threads.
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
            self._reporter.part_finished(work.plan.parts[key], reused=True)
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
            self._reporter.part_finished(self._work.plan.parts[task.key], task.key not in self._work.outcome.made)
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
                # Again and again: an interrupt between two statements of a task has no effect.
                self._runs.interrupt()
            except KeyboardInterrupt:
                if time.monotonic() - started > _PATIENCE_SECONDS:
                    sys.stderr.write("interrupted\n")
                    # sys.exit would wait for the thread.
                    os._exit(128 + signal.SIGINT)
