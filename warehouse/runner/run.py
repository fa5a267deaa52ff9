"""A build: make the parts that are not there yet, check them, hand them to publishing.

Parts that stand on nothing unfinished are made side by side on a pool of threads; the engine shares one limit
of threads and memory among them. A part whose fingerprint is in the store already is not made again.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Protocol

from warehouse.base import hashing
from warehouse.base.errors import CheckError, ModelError
from warehouse.base.text import plural
from warehouse.engine import python_model
from warehouse.engine.base import CsvFiles, Engine, EngineError, Parts, Scratch, Select
from warehouse.engine.volatile import looks_volatile
from warehouse.graph.dag import Graph, Node, model_error
from warehouse.graph.fingerprints import Inputs
from warehouse.graph.parts import Key, Plan
from warehouse.graph.stale import Stale
from warehouse.ingest.inventory import Intake
from warehouse.kernels import DeclinedError, kernel
from warehouse.project.check_language import relations_of
from warehouse.project.contract import Check
from warehouse.project.project import Project
from warehouse.runner.checks import all_checks, check_error, results_of, run_checks
from warehouse.runner.result import Outcome
from warehouse.store.part_records import ALL, CheckResult, Part, results_to_notes
from warehouse.store.parts import Store

_PATIENCE = 0.1
"""Seconds between two reminders to parts that nobody waits for any more."""


class Reporter(Protocol):
    """What a build tells while it runs."""

    def started(self, parts: int) -> None:
        """The number of parts that this build has."""
        ...

    def doing(self, stage: str) -> None:
        """What the build turns to, outside of parts."""
        ...

    def making(self, model: str, partition: str) -> None:
        """The part that the build turns to."""
        ...

    def finished(self, part: Part, seconds: float, reused: bool) -> None:
        """A part is there."""
        ...

    def note(self, text: str) -> None:
        """A line worth knowing."""
        ...


class _RawDamageError(Exception):
    """A part failed that reads raw CSV files directly: they may be damaged."""

    def __init__(self, key: Key, relations: list[str], cause: ModelError) -> None:
        super().__init__(str(cause))
        self.key = key
        self.relations = relations
        self.cause = cause


class Run:
    """One build of a graph over an intake."""

    def __init__(
        self,
        project: Project,
        graph: Graph,
        intake: Intake,
        store: Store,
        engine: Engine,
        *,
        workers: int,
        reporter: Reporter,
        selected: set[str] | None = None,
        kernels: bool = True,
        last: Mapping[tuple[str, str], Part] | None = None,
    ) -> None:
        self._project = project
        self._graph = graph
        self._intake = intake
        self._store = store
        self._engine = engine
        self._workers = workers
        self._reporter = reporter
        self._kernels = kernels
        self._wanted = _with_ancestors(graph, selected)
        self._last = last or {}
        self._declined: set[str] = set()
        self._begin()

    def _begin(self) -> None:
        self.plan = Plan(self._graph, self._intake)
        self._outcome = Outcome()
        self._stale = Stale(self.plan)
        self.inputs = Inputs(self._project, self.plan, self._engine, self._outcome.parts, kernels=self._kernels)

    def run(self) -> Outcome:
        """Make or find every part.

        A model that reads CSV files and fails has those files looked through line by line, once: where lines
        are bad they are set aside and the build goes on without them.

        Raises
        ------
        ModelError, CheckError
            When a model fails or an error-level check does; nothing has been published.
        """
        self.read_tables()
        self._reporter.started(len(self.plan.keys))
        while True:
            try:
                self._make_all()
                self._reporter.doing("checks of views")
                self._check_views()
                self._outcome.stale = self._stale.models
                return self._outcome
            except _RawDamageError as damage:
                partition = None if damage.key.partition == ALL else damage.key.partition
                files = {relation: self._intake.unmended(relation, partition) for relation in damage.relations}
                count = sum(map(len, files.values()))
                self._reporter.note(f"looking for bad lines in {plural(count, 'file')} of {damage.key.partition}")
                mended = [self._intake.mend(those, remember=True) for those in files.values()]
                if not any(mended):
                    raise damage.cause from damage.cause.__cause__
                self._begin()

    def read_tables(self) -> None:
        """Have Python read the raw files that it has to, which any fingerprint may depend on."""
        read = {name for node in self._graph.nodes.values() for name in node.reads}
        self._intake.read_tables((name for name in read if name.startswith("raw.")), self._engine)

    @property
    def parts(self) -> dict[Key, Part]:
        """The parts that are known so far."""
        return self._outcome.parts

    def found(self, key: Key, mark: str | None, made_of: Mapping[str, object]) -> tuple[Part | None, bool]:
        """The part that is there already, and whether it is the last one of a model that is not wanted now.

        A part that the engine of an earlier release made of the same inputs is taken: its rows are equal.
        """
        part = self._store.find(key.model, key.partition, mark) if mark else None
        if part is None and mark:
            part = self._store.find_made(key.model, key.partition, lambda made: self.inputs.stands_for(made, made_of))
        if part is None and key.model not in self._wanted:
            part = self._last.get((key.model, key.partition))
            if part is not None:
                self._stale.note(key, stale=True)
                return part, True
        self._stale.note(key, stale=False)
        return part, False

    def _make_all(self) -> None:
        waiting = self._in_turn()
        readers = self._readers(waiting)
        running: dict[Future[Part], Key] = {}
        with ThreadPoolExecutor(self._workers) as pool:
            try:
                while waiting or running:
                    ready = [key for key, needs in waiting.items() if needs <= self._outcome.parts.keys()]
                    for key in ready[: self._workers - len(running)]:
                        del waiting[key]
                        running[pool.submit(self._make, key)] = key
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        key = running.pop(future)
                        self._outcome.parts[key] = future.result()
                        self._let_go(key, readers)
            except BaseException:
                for future in running:
                    future.cancel()
                while wait(running, timeout=_PATIENCE).not_done:
                    self._engine.interrupt()
                raise

    def _in_turn(self) -> dict[Key, set[Key]]:
        """What each part needs: an hour after the other, so that what is in memory is of the hours at hand.

        What a part needs stands before it, such as the topology before the first hour that reads it.
        """
        needs = {key: self.plan.needs(key) for key in self.plan.keys}
        in_turn: dict[Key, set[Key]] = {}

        def put(key: Key) -> None:
            if key not in in_turn:
                for need in sorted(needs[key]):
                    put(need)
                in_turn[key] = needs[key]

        for key in sorted(needs, key=lambda key: (key.partition == ALL, key.partition)):  # stable: models in order
            put(key)
        return in_turn

    def _readers(self, needs: Mapping[Key, set[Key]]) -> dict[Key, set[Key]]:
        """Who may read each part of an hour (or file group) from memory: see `Engine.let_go`."""
        readers: dict[Key, set[Key]] = {key: set() for key in needs if key.partition != ALL}
        for key, those in needs.items():
            for need in those & readers.keys():
                if need.partition == key.partition or len(self.plan.partitions(need.model)) == 1:
                    readers[need].add(key)
        return readers

    def _let_go(self, made: Key, readers: dict[Key, set[Key]]) -> None:
        """Have the engine forget what nobody reads any more, now that a part is made."""
        for need in (self.plan.needs(made) | {made}) & readers.keys():
            readers[need].discard(made)
            if not readers[need]:
                del readers[need]
                self._engine.let_go(self._outcome.parts[need].path)

    def _make(self, key: Key) -> Part:
        started = time.perf_counter()
        self._reporter.making(key.model, key.partition)
        node = self._graph.nodes[key.model]
        made_of = self.inputs.made_of(key)
        mark = hashing.of(made_of)
        part, stale = self.found(key, mark, made_of)
        reused = part is not None
        if part is not None and stale:
            self._outcome.checks[key] = []
            return part
        try:
            if part is None or self.unchecked(key, part):
                sources = self.inputs.sources(key)
                presorted = node.model.presorted
                few = not presorted and self.inputs.few(key)
                with self._engine.scratch(sources, one_thread=presorted, few=few) as scratch:

                    def make(*, sort: bool) -> Part:
                        return self._store.write(
                            key.model,
                            key.partition,
                            mark,
                            lambda path: self._write(scratch, node, path, sort=sort),
                            {"made_of": {**made_of, "sql": node.sql.strip()}},
                        )

                    if part is None:
                        part = make(sort=not presorted)
                        scratch.hold(part.path)
                    scratch.add(node.name, Parts(node.model.columns, (part.path,)))
                    checks = self._askable(key, node, part)
                    found = run_checks(scratch, node.model, checks)
                    if presorted and found[0]:  # of the grain, which ascends in a part
                        part = make(sort=True)
                        found = run_checks(scratch, node.model, checks)
                    self._note(scratch, key, node, part, checks, found)
            self._outcome.checks[key] = self._results(key, node, part)
        except EngineError as error:
            raise self._blame(key, node, model_error(node.model, node.sql, error)) from error
        except CheckError as error:
            raise self._blame(key, node, error) from error
        seconds = time.perf_counter() - started
        self._outcome.seconds[key] = seconds
        if not reused:
            self._outcome.made.add(key)
        self._reporter.finished(part, seconds, reused)
        return part

    def _write(self, scratch: Scratch, node: Node, path: Path, *, sort: bool) -> int:
        """Write a part in the order of its grain, from the model's function or kernel where it has one."""
        model = node.model
        if model.is_python:
            nodes = self._graph.nodes
            orders = [nodes[read].model.grain if read in nodes else () for read in model.reads]
            return python_model.write(scratch, model, orders, path)
        if name := self.inputs.kernel_of(node):
            try:
                return scratch.write_arrays(kernel(name).rows(scratch), model.columns, path)
            except DeclinedError as error:
                if str(error) not in self._declined:  # one file may stop several kernels
                    self._declined.add(str(error))
                    self._reporter.note(f"{model.name} is made by its SELECT, which takes longer, because of {error}")
        return scratch.write(Select(node.sql, model.columns), path, model.grain if sort else ())

    def _blame(self, key: Key, node: Node, error: ModelError) -> Exception:
        """A failure of a model that reads raw CSV files, itself or by way of views, may be the files' fault."""
        raw = sorted(set(self._raw_reads(node)))
        direct = [read for read in raw if isinstance(self.inputs.raw_source(read, key.partition), CsvFiles)]
        return _RawDamageError(key, direct, error) if direct else error

    def _raw_reads(self, node: Node) -> Iterator[str]:
        for read in node.reads:
            below = self._graph.nodes.get(read)
            if below is not None and below.model.materialize == "view":
                yield from self._raw_reads(below)
            elif read.startswith("raw."):
                yield read

    # checks ---------------------------------------------------------------------------------

    def _noted(self, key: Key, node: Node, part: Part) -> dict[Check, CheckResult]:
        """The results that are noted with a part, of the checks that its model has now."""
        noted = part.notes.get("checks", [])
        assert isinstance(noted, list)
        known = {str(one["key"]): CheckResult(**one) for one in noted}
        marks = {check: self._check_key(check, part.digest, key.partition) for check in all_checks(node.model)}
        return {check: known[mark] for check, mark in marks.items() if mark in known}

    def _askable(self, key: Key, node: Node, part: Part) -> list[Check]:
        """The checks of a part, without those that compare it with a stale part and have not done so before."""
        noted = self._noted(key, node, part)
        return [check for check in all_checks(node.model) if check in noted or not self._stale.not_checked(key, check)]

    def _results(self, key: Key, node: Node, part: Part) -> list[CheckResult]:
        """The results of all checks of a part."""
        noted = self._noted(key, node, part)
        found = (noted.get(check) or self._stale.not_checked(key, check) for check in all_checks(node.model))
        return [one for one in found if one]

    def can_check(self, key: Key) -> bool:
        """Whether all that the checks of a part read is there."""
        node = self._graph.nodes[key.model]
        others = (read for check in node.model.checks for read in relations_of(check) if read != key.model)
        return all(self.inputs.is_known(read, key.partition) for read in others)

    def unchecked(self, key: Key, part: Part) -> bool:
        """Whether a part was not checked yet, or failed."""
        node = self._graph.nodes[key.model]
        noted = self._noted(key, node, part)
        has_failed = any(one.failures and not one.warn for one in noted.values())
        return has_failed or any(check not in noted for check in self._askable(key, node, part))

    def _note(
        self, scratch: Scratch, key: Key, node: Node, part: Part, checks: Sequence[Check], found: Sequence[int]
    ) -> None:
        """Note the results of a part's checks with it; those that fail end the build."""
        keys = [self._check_key(check, part.digest, key.partition) for check in checks]
        results = results_of(scratch, node.model, checks, found, keys)
        self._store.annotate(part, checks=results_to_notes(results))
        _stop_at_failure(key, node, results)

    def _check_key(self, check: Check, digest: str, partition: str) -> str:
        others = [self.inputs.digest(read, partition) for read in relations_of(check)]
        others += [self.inputs.once] if looks_volatile(check.text) else []
        return hashing.of([check.text, check.warn, digest, others])

    def _check_views(self) -> None:
        """Views have no part to note results with: their checks run in every build."""
        for name in self._graph.order:
            node = self._graph.nodes[name]
            if node.model.materialize != "view" or not node.model.checks:
                continue
            for partition in self.plan.partitions(name):
                key = Key(name, partition)
                stale = [one for check in node.model.checks if (one := self._stale.not_checked(key, check))]
                checks = [check for check in node.model.checks if not self._stale.not_checked(key, check)]
                sources = self.inputs.sources(key)
                sources[name] = Select(node.sql, node.model.columns)
                with self._engine.scratch(sources) as scratch:
                    found = run_checks(scratch, node.model, checks)
                    results = results_of(scratch, node.model, checks, found)
                    self._outcome.checks[key] = [*results, *stale]
                    _stop_at_failure(key, node, results)


def _stop_at_failure(key: Key, node: Node, results: Sequence[CheckResult]) -> None:
    failed = next((result for result in results if result.failures and not result.warn), None)
    if failed:
        raise check_error(node.model, None if key.partition == ALL else key.partition, failed)


def _with_ancestors(graph: Graph, selected: set[str] | None) -> set[str]:
    if selected is None:
        return set(graph.nodes)
    return selected | set(itertools.chain.from_iterable(graph.ancestors(name) for name in selected))


def contracts(graph: Graph) -> list[object]:
    """What is promised of every model, and the SELECT of every view, whose rows are in no part: for the build id."""
    nodes = (graph.nodes[name] for name in sorted(graph.nodes))
    return [
        [
            node.name,
            node.model.about,
            node.model.grain,
            node.model.materialize,
            [column._asdict() for column in node.model.columns],
            node.canonical if node.model.materialize == "view" else None,
        ]
        for node in nodes
    ]
