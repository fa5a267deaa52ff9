"""Write and check all parts of a build, in parallel once their upstream parts are finished."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing, contextmanager
from typing import NamedTuple

from warehouse.base.text import plural
from warehouse.graph.plan import Key
from warehouse.runner.build_state import BuildState
from warehouse.runner.early_catalog import EarlyCatalog
from warehouse.runner.executor import Executor, Task, ThisMachine
from warehouse.runner.own_hours import note_own_hours
from warehouse.runner.part_checks import PartChecks
from warehouse.runner.part_maker import PartMaker, RawDamageError
from warehouse.runner.preparation import Prepared, refuse_nothing_to_read
from warehouse.runner.reporter import Reporter
from warehouse.runner.result import Outcome
from warehouse.runner.retention import drop_detail
from warehouse.runner.schedule import Schedule
from warehouse.runner.unchanged import UnchangedPartitions
from warehouse.store.layout import ALL, partition_value
from warehouse.store.part_records import Part


def make_parts(prepared: Prepared, reporter: Reporter, choose: Callable[[set[str]], set[str]] | None = None) -> Outcome:
    """Find or write every part, and run all checks.

    For a share of a build, `choose` returns those of the planned partitions whose parts are made, with what they read.

    If a model that reads raw CSV files fails, scan these files line by line, once. If bad lines are found, quarantine
    them and rebuild the parts of that partition.

    Raises
    ------
    ModelError, CheckError
        When a model or a check fails. Nothing has been published.
    """
    state = BuildState(prepared)
    chosen = None if choose is None else choose({key.partition for key in state.plan.keys})
    state.read_tables(None if chosen is None else {ALL, *chosen})
    checks = PartChecks(state)
    parallel_parts = 1 if reporter.is_sequential else prepared.engine.parallel_parts
    with (
        closing(PartMaker(state, checks, reporter, in_turn=parallel_parts == 1)) as maker,
        closing(ThisMachine(prepared, maker, parallel_parts)) as executor,
    ):
        making = _Making(state, executor, maker, reporter)
        try:
            if chosen is not None:
                making.make_chosen(chosen)
                return state.outcome
            records = making.make_everything()
        except BaseException:
            prepared.workers.close()
            raise
    reporter.stage_started("checks of views")
    checks.check_views()
    state.outcome.stale = state.stale.models
    note_own_hours(state)
    state.outcome.records = records.records()
    drop_detail(state)
    return state.outcome


class _Making(NamedTuple):
    """Parts of a build that are being made."""

    state: BuildState
    executor: Executor
    maker: PartMaker
    reporter: Reporter

    def make_everything(self) -> UnchangedPartitions:
        """Make all parts; return the records of unchanged partitions."""
        state = self.state
        self.reporter.started(len(state.plan.keys))
        unchanged = UnchangedPartitions(state)
        with closing(EarlyCatalog(state)) as early:
            while len(state.parts) < len(state.plan.keys) or state.unchecked():
                with self._repairing():
                    unchanged.take_ready(self.reporter)
                    _make_all(state, self.executor, self.maker, unchanged.outside(), early)
                    unchanged.take_ready(self.reporter)
                    _make_all(state, self.executor, self.maker, state.plan.keys, early)
            state.outcome.early_catalog = early.base()
        return unchanged

    def make_chosen(self, chosen: set[str]) -> None:
        """Make the parts of some partitions, and what they read."""
        state = self.state
        self.reporter.started(len(build_order(state, self._chosen(chosen))))
        while state.unchecked() or any(key not in state.parts for key in self._chosen(chosen)):
            with self._repairing():
                _make_all(state, self.executor, self.maker, self._chosen(chosen))

    def _chosen(self, partitions: set[str]) -> list[Key]:
        return [key for key in self.state.plan.keys if key.partition in partitions]

    @contextmanager
    def _repairing(self) -> Iterator[None]:
        """Repair the raw files that a failing part reads; then the block must run again."""
        try:
            yield
        except RawDamageError as damage:
            self.executor.stop()
            self.maker.close()  # what waits for its part may be made of the damaged files
            _repair(self.state, damage, self.reporter)


def _repair(state: BuildState, damage: RawDamageError, reporter: Reporter) -> None:
    """Repair the raw files that a failed part reads, or skip those that the engine refuses; else re-raise its error."""
    raw_files = state.prepared.raw_files
    partition = partition_value(damage.key.partition)
    files = {relation: raw_files.unrepaired(relation, partition) for relation in damage.relations}
    count = sum(map(len, files.values()))
    of = f" of {partition}" if partition else ""
    reporter.note(f"looking for bad lines in {plural(count, 'file')}{of}")
    helped = [raw_files.repair(group, record=True) for group in files.values()]
    if not any(helped):
        engine = state.prepared.engine
        helped = [raw_files.refuse_unreadable(relation, partition, engine) for relation in damage.relations]
    if not any(helped):
        raise damage.cause from damage.cause.__cause__
    refuse_nothing_to_read(raw_files.inventory)
    state.after_repair(damage.key.partition)


def _make_all(
    state: BuildState, executor: Executor, maker: PartMaker, keys: Iterable[Key], early: EarlyCatalog | None = None
) -> None:
    """Make and check the missing parts of `keys` and upstream of them, each as soon as what it reads is made."""
    order = build_order(state, keys)
    readers = _readers(state, order)
    schedule = Schedule(state, order, maker.is_checked_first)
    running: dict[Future[Part], Task] = {}
    while True:
        while len(running) < executor.parallel_parts and (task := schedule.take()):
            if task.is_check and task.key in state.outcome.checks:
                schedule.done(task)
            else:
                running[executor.submit(task)] = task
        awaited = [future for future, task in running.items() if schedule.is_wanted(task)]
        if not awaited:
            break
        for future in wait(awaited, return_when=FIRST_COMPLETED).done:
            task = running.pop(future)
            error = future.exception()
            if error is not None:
                schedule.failed(task, error)
                continue
            state.parts[task.key] = future.result()
            schedule.done(task)
            if early is not None:
                early.look()
            if task.key in state.outcome.checks:
                _release(state, task.key, readers)
    schedule.raise_failure()


def build_order(state: BuildState, keys: Iterable[Key]) -> dict[Key, set[Key]]:
    """Return the missing parts of `keys` and upstream of them, in build order, each with its upstream parts.

    Parts are grouped by hour, so that only the rows of a few hours are in memory. Upstream parts come first: the
    topology before the first hour that reads it.
    """
    ordered: dict[Key, set[Key]] = {}

    def add(key: Key) -> None:
        if key not in ordered and key not in state.parts:
            needs = state.plan.upstream_parts(key)
            for need in needs & state.without_file:
                state.without_file.remove(need)
                state.parts.pop(need, None)
                state.outcome.checks.pop(need, None)
            for need in sorted(needs - state.parts.keys()):
                add(need)
            ordered[key] = needs

    missing = (key for key in keys if key not in state.parts)
    for key in sorted(missing, key=lambda key: (key.partition == ALL, key.partition)):  # stable: models in order
        add(key)
    return ordered


def _readers(state: BuildState, needs: Mapping[Key, set[Key]]) -> dict[Key, set[Key]]:
    """Return the parts that may read each part of an hour (or file group) from memory: its own checks, others."""
    readers: dict[Key, set[Key]] = {key: {key} for key in needs if key.partition != ALL}
    for key, needed in needs.items():
        for need in needed & readers.keys():
            if need.partition == key.partition or len(state.plan.partitions(need.model)) == 1:
                readers[need].add(key)
    return readers


def _release(state: BuildState, made: Key, readers: dict[Key, set[Key]]) -> None:
    """Release memory of parts that no unfinished part reads, now that `made` is finished."""
    for need in (state.plan.upstream_parts(made) | {made}) & readers.keys():
        readers[need].discard(made)
        if not readers[need]:
            del readers[need]
            state.prepared.engine.release(state.parts[need].file)
