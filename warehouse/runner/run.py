"""Make all parts of a build, side by side where nothing unfinished is read, and check them."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from warehouse.base.text import plural
from warehouse.graph.parts import Key
from warehouse.runner.part_checks import PartChecks
from warehouse.runner.part_maker import PartMaker, RawDamageError
from warehouse.runner.preparation import Prepared
from warehouse.runner.progress import Progress
from warehouse.runner.reporter import Silent
from warehouse.runner.result import Outcome
from warehouse.store.part_records import ALL, Part

_PATIENCE = 0.1
"""Seconds between two reminders to parts that nobody waits for any more."""


def make_parts(prepared: Prepared, reporter: Silent) -> Outcome:
    """Make or find every part, and run all checks.

    When a model fails that reads raw CSV files, these are looked through line by line, once. If lines are bad, they
    are set aside, and the parts of that partition are made again.

    Raises
    ------
    ModelError, CheckError
        When a model or a check fails; nothing has been published.
    """
    progress = Progress(prepared)
    progress.read_tables()
    reporter.started(len(progress.plan.keys))
    checks = PartChecks(progress)
    maker = PartMaker(progress, checks, reporter)
    workers = 1 if reporter.one_at_a_time else prepared.engine.side_by_side
    while True:
        try:
            _make_all(progress, maker, workers)
            reporter.doing("checks of views")
            checks.check_views()
            progress.outcome.stale = progress.stale.models
            return progress.outcome
        except RawDamageError as damage:
            _repair(progress, damage, reporter)


def _repair(progress: Progress, damage: RawDamageError, reporter: Silent) -> None:
    """Look through the raw files that a failed part reads; raise its error again if no line is bad."""
    raw_files = progress.prepared.raw_files
    partition = None if damage.key.partition == ALL else damage.key.partition
    files = {relation: raw_files.unrepaired(relation, partition) for relation in damage.relations}
    count = sum(map(len, files.values()))
    reporter.note(f"looking for bad lines in {plural(count, 'file')} of {damage.key.partition}")
    repaired = [raw_files.repair(those, remember=True) for those in files.values()]
    if not any(repaired):
        raise damage.cause from damage.cause.__cause__
    progress.after_repair(damage.key.partition)


def _make_all(progress: Progress, maker: PartMaker, workers: int) -> None:
    """Make the parts that are missing, each as soon as all that it needs is there."""
    turns = in_turn(progress)
    readers = _readers(progress, turns)
    waiting = {key: needs for key, needs in turns.items() if key not in progress.parts}
    running: dict[Future[Part], Key] = {}
    with ThreadPoolExecutor(workers) as pool:
        try:
            while waiting or running:
                ready = [key for key, needs in waiting.items() if needs <= progress.parts.keys()]
                for key in ready[: workers - len(running)]:
                    del waiting[key]
                    running[pool.submit(maker.make, key)] = key
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    key = running.pop(future)
                    progress.parts[key] = future.result()
                    _release(progress, key, readers)
        except BaseException:
            for future in running:
                future.cancel()
            while wait(running, timeout=_PATIENCE).not_done:
                progress.prepared.engine.interrupt()
            raise


def in_turn(progress: Progress) -> dict[Key, set[Key]]:
    """Return all parts in the order in which they are made, each with the parts that it needs.

    One hour comes after the other, so that what is in memory is of the hours at hand. What a part needs stands before
    it, such as the topology before the first hour that reads it.
    """
    needs = {key: progress.plan.needs(key) for key in progress.plan.keys}
    ordered: dict[Key, set[Key]] = {}

    def put(key: Key) -> None:
        if key not in ordered:
            for need in sorted(needs[key]):
                put(need)
            ordered[key] = needs[key]

    for key in sorted(needs, key=lambda key: (key.partition == ALL, key.partition)):  # stable: models in order
        put(key)
    return ordered


def _readers(progress: Progress, needs: Mapping[Key, set[Key]]) -> dict[Key, set[Key]]:
    """Return who may read each part of an hour (or file group) from memory: see `Engine.let_go`."""
    readers: dict[Key, set[Key]] = {key: set() for key in needs if key.partition != ALL}
    for key, those in needs.items():
        for need in those & readers.keys():
            if need.partition == key.partition or len(progress.plan.partitions(need.model)) == 1:
                readers[need].add(key)
    return readers


def _release(progress: Progress, made: Key, readers: dict[Key, set[Key]]) -> None:
    """Have the engine forget parts that nobody reads any more, now that one is made."""
    for need in (progress.plan.needs(made) | {made}) & readers.keys():
        readers[need].discard(made)
        if not readers[need]:
            del readers[need]
            progress.prepared.engine.let_go(progress.parts[need].path)
