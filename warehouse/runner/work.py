"""Work of a build: which parts are there, which tasks are left, what they gave; and the run that makes them all."""

from __future__ import annotations

import graphlib
import heapq
import os
import signal
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait

from warehouse.base import hashing
from warehouse.base.errors import ModelError
from warehouse.base.text import plural
from warehouse.engine.duckdb_errors import EngineError
from warehouse.graph.dag import Graph, checked_relations, select_models
from warehouse.graph.plan import Key, Plan
from warehouse.ingest.look import refuse_nothing_to_read
from warehouse.ingest.raw_files import RawFiles
from warehouse.project.contract import Check
from warehouse.project.model import all_checks, relations_of
from warehouse.runner.session import Runs, Session
from warehouse.runner.task import Made, Task, check_error
from warehouse.store.manifest import ALL, INPUTS, CheckResult, Part, hour_of, partition_name, partition_value
from warehouse.store.state import VIEW

_INTERRUPT_SECONDS = 0.1
"""Seconds between two interrupts of tasks that still run after another one failed."""
_PATIENCE_SECONDS = 5
"""Seconds that Ctrl-C waits for the end of all tasks before another Ctrl-C ends the process."""


class Work:
    """Models and raw files of one build, its parts, finished and missing. Only one thread uses it."""

    def __init__(self, session: Session, graph: Graph, raw_files: RawFiles) -> None:
        self.session = session
        self.graph = graph
        self.raw_files = raw_files
        self.hour: str | None = None
        """The only hour to make parts of, with what they read."""
        selected = select_models(self.graph, self.session.options.select)
        self._wanted = selected.union(*(self.graph.ancestors(name) for name in selected))
        self.last = {
            Key(one["model"], partition_name(one["partition"])): str(one["fingerprint"])
            for one in self.session.last_entries()
        }
        """Fingerprints of the published parts."""
        self.made: set[Key] = set()
        """The parts that this build has made."""
        self._begin()

    def _begin(self) -> None:
        """Plan all parts; none is finished."""
        self.plan = Plan(self.session.project, self.graph, self.raw_files, self.session.engine)
        self.results: dict[Key, list[CheckResult]] = {}
        """Results of the checks of each finished part."""
        self.stale: set[str] = set()
        """Models outside the selection whose published parts are out of date, and models downstream of them."""

    @property
    def keys(self) -> list[Key]:
        """Keys of all parts, and of the views that have checks, grouped by hour, upstream first.

        So the rows of only a few hours are in the file system's memory; the topology comes before the first hour.
        """
        places = {name: place for place, name in enumerate(self.graph.order)}

        def place(key: Key) -> tuple[int, str]:
            return places[key.model], key.partition

        names = [name for name, node in self.graph.nodes.items() if node.model.checks or not node.model.is_view]
        every = (Key(name, partition) for name in names for partition in self.plan.partitions(name))
        chosen = [key for key in every if self.hour is None or hour_of(key.partition) == self.hour]
        chosen.sort(key=lambda key: (key.partition == ALL, hour_of(key.partition) or key.partition, place(key)))
        ordered: dict[Key, None] = {}

        def add(key: Key) -> None:
            if key not in ordered:
                for need in sorted(self.plan.upstream_parts(key), key=place):
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
        if key not in self.results:
            results = self._known_results(key) if self.can_check(key) else None
            if results is None:
                return False
            self.results[key] = results
        return True

    def _find_part(self, key: Key) -> Part | None:
        """Return the part with the fingerprint; outside the selection, else that of the last build, without checks."""
        fingerprint = self.fingerprint(key)
        part = self.session.store.find(*key, fingerprint) if fingerprint else None
        is_kept = part is None and key.model not in self._wanted
        if is_kept:
            part = self.session.store.find(*key, self.last.get(key, ""))
        if part and is_kept:
            self.results[key] = []
            self.stale.add(key.model)
        if self._stale(self.graph.nodes[key.model].reads):
            self.stale.add(key.model)
        return part

    def _stale(self, relations: Iterable[str]) -> set[str]:
        """Return the stale ones of these relations, views by what they read."""
        return self.stale.intersection(self.graph.below_views(relations)) if self.stale else set()

    def fingerprint(self, key: Key) -> str:
        """Return the fingerprint of a part; empty if a part that it reads is not finished."""
        inputs = self.plan.inputs_of(key)
        return "" if None in inputs["inputs"].values() else hashing.of(inputs)

    def can_check(self, key: Key) -> bool:
        """Return True if all parts that the checks of a part read are finished."""
        others = checked_relations(self.graph.nodes[key.model]) - {key.model}
        return all(self.plan.is_known(read, key.partition) for read in others)

    # checks -----------------------------------------------------------------------------------------

    def _known_results(self, key: Key) -> list[CheckResult] | None:
        """Return the results of all checks; None if a check failed or has not run on these rows."""
        noted: Sequence[Mapping[str, object]] = (
            self.plan.parts[key].notes.get("checks", ())
            if key in self.plan.parts
            else self.session.store.get(VIEW, key) or ()
        )
        known = {str(one["key"]): CheckResult(**one) for one in noted}  # type: ignore[arg-type]
        found = list[CheckResult]()
        for check in all_checks(self.graph.nodes[key.model].model):
            result = known.get(self.plan.of_check(check, key)) or self._result_if_not_run(key, check)
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
            [check for check in all_checks(node.model) if not self._result_if_not_run(key, check)],
        )

    def take_in(self, task: Task, made: Made) -> None:
        """Take in what a task has made. Raises CheckError if a check failed; the part stays for the next build."""
        key, node, store = task.key, self.graph.nodes[task.key.model], self.session.store
        if made.written is not None:
            notes = {INPUTS: {**self.plan.inputs_of(key), "sql": node.sql.strip()}}
            self.plan.parts[key] = store.take_in(*key, self.fingerprint(key), made.written, notes)
            self.made.add(key)
        results = [
            one._replace(key=self.plan.of_check(check, key), says=check.says)
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
        self.results[key] = self._known_results(key) or []

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


def make_parts(work: Work) -> Work:
    """Take the parts that are there, and make and check the others.

    If a part that reads raw CSV files fails, these are checked line by line. If one is damaged, parts that depend on it
    are made again.

    Raises
    ------
    ModelError, CheckError
        When a model or a check fails. Of several, the first in the order of the graph.
    """
    keys = work.keys
    work.session.reporter.started(sum(not work.graph.nodes[key.model].model.is_view for key in keys))
    while failures := _make_all(work, keys):
        first = min(failures)
        # Another error than that of a model or a check names its cause already.
        if not isinstance(failures[first], ModelError) or not work.repair(keys[first]):
            raise failures[first]
        keys = work.keys
    work.made &= work.plan.parts.keys()  # parts made before bad lines were found may be of no file any more
    return work


def _make_all(work: Work, keys: Sequence[Key]) -> dict[int, Exception]:
    """Make all parts, or all that come before the first failure; return the failures by their place among the keys."""
    runs, reporter, parts = work.session.runs, work.session.reporter, work.plan.parts
    places = {key: place for place, key in enumerate(keys)}
    waiting = graphlib.TopologicalSorter({key: work.plan.upstream_parts(key) for key in keys})
    waiting.prepare()
    ready: list[int] = []
    running: dict[Future[Made], Task] = {}
    failures: dict[int, Exception] = {}

    def finished(*done: Key) -> None:
        """Report finished parts; those that waited for them alone are ready now."""
        for key in done:
            if key in parts:
                reporter.part_finished(parts[key], key not in work.made)
        waiting.done(*done)
        for key in waiting.get_ready():
            heapq.heappush(ready, places[key])

    finished()
    try:
        while ready or running:
            while ready and len(running) < runs.width:
                place = heapq.heappop(ready)
                if failures and place > min(failures):
                    continue  # what comes earlier still runs: the error does not depend on the number of threads
                if work.find(keys[place]):
                    finished(keys[place])
                    continue
                reporter.part_started(*keys[place])
                task = work.task(keys[place])
                running[runs.submit(task)] = task
            for future in wait(running, return_when=FIRST_COMPLETED).done if running else ():
                task = running.pop(future)
                try:
                    work.take_in(task, future.result())
                except Exception as error:
                    failures[places[task.key]] = error
                else:
                    finished(task.key)
                finally:
                    if task.path is not None:
                        task.path.unlink(missing_ok=True)
    finally:
        _stop(runs, running)
    return failures


def _stop(runs: Runs, running: Collection[Future[Made]]) -> None:
    """Interrupt the tasks that still run, until none does; another Ctrl-C does not cut this short.

    A thread may never end, as when the system blocks it at a file. Then Ctrl-C after some seconds ends the process,
    which is as safe as a kill.
    """
    started = time.monotonic()
    for future in running:
        future.cancel()
    is_over = not running
    while not is_over:
        try:
            is_over = not wait(running, timeout=_INTERRUPT_SECONDS).not_done
            # Again and again: an interrupt between two statements of a task has no effect.
            runs.interrupt()
        except KeyboardInterrupt:
            if time.monotonic() - started > _PATIENCE_SECONDS:
                sys.stderr.write("interrupted\n")
                # sys.exit would wait for the thread.
                os._exit(128 + signal.SIGINT)
