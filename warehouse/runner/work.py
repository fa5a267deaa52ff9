"""Work of a build: which parts are there, which tasks are left, and what they gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from warehouse.base import hashing
from warehouse.engine.base import EngineError
from warehouse.graph.dag import Graph, Node, checked_relations
from warehouse.graph.inputs import Inputs
from warehouse.graph.plan import Key, Plan
from warehouse.graph.selectors import select_models
from warehouse.ingest.raw_files import RawFiles
from warehouse.ingest.scan import refuse_nothing_to_read
from warehouse.project.check_language import all_checks, relations_of
from warehouse.project.contract import Check
from warehouse.runner.check_sql import check_error
from warehouse.runner.result import Outcome
from warehouse.runner.session import Session
from warehouse.runner.task import Made, Task
from warehouse.store.layout import ALL, partition_name, partition_value
from warehouse.store.part_records import INPUTS, CheckResult, Part, results_to_notes
from warehouse.store.partitions import hour_of
from warehouse.store.state import VIEW

DETAIL_DROPPED = "detail dropped"
"""Reason of a check that was not run, or counts as such: what it compares with is no longer there."""


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
        self.outcome = Outcome()
        self.parts = self.outcome.parts
        self.fileless: set[Key] = set()
        """Finished parts that are known by their row alone: dropped detail. It is made again where it is read."""
        self._must_make: set[Key] = set()
        self._stale: set[Key] = set()
        selected = select_models(self.graph, self.session.options.select)
        self._wanted = selected.union(*(self.graph.ancestors(name) for name in selected))
        self._last = self._last_parts() if self.session.options.select else {}
        self._replan()

    def _replan(self) -> None:
        session = self.session
        self.plan = Plan(self.graph, self.raw_files, session.settings.keep_hours)
        self.inputs = Inputs(session.project, self.plan, session.engine, self.parts)

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
        hour = self.session.options.hour
        chosen = [key for key in keys if hour is None or hour_of(key.partition) == hour]
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
        node = self.graph.nodes[key.model]
        if node.model.is_view:
            return self._find_results_of_view(key, node)
        if key not in self.parts:
            part, is_kept = self._find_part(key)
            if part is None:
                return False
            self.parts[key] = part
            if is_kept:
                self.outcome.checks[key] = []
        if key not in self.outcome.checks:
            part = self.parts[key]
            results = (
                self._known_results(key, part.notes.get("checks", ()), part.digest) if self.can_check(key) else None
            )
            if results is None:
                return False
            self.outcome.checks[key] = results
        return True

    def _find_part(self, key: Key) -> tuple[Part | None, bool]:
        """Return (part or None, True if it is one of the last build that is kept since its model is not selected)."""
        store = self.session.store
        fingerprint = self.fingerprint(key)
        part = store.find(*key, fingerprint) if fingerprint else None
        if part is None and fingerprint and self.plan.is_dropped(*key) and key not in self._must_make:
            part = store.find_row(*key, fingerprint)
            self.fileless |= {key} if part else set()
        is_kept = part is None and key.model not in self._wanted and key in self._last
        self._note_if_stale(key, is_kept=is_kept)
        return (self._last[key], True) if is_kept else (part, False)

    def fingerprint(self, key: Key) -> str:
        """Return the fingerprint of a part; empty if a part that it reads is not finished."""
        reads = self.graph.nodes[key.model].reads
        is_known = all(self.inputs.is_known(read, key.partition) for read in reads)
        return hashing.of(self.inputs.of(key)) if is_known else ""

    def can_check(self, key: Key) -> bool:
        """Return True if all parts that the checks of a part read are finished."""
        others = checked_relations(self.graph.nodes[key.model]) - {key.model}
        return all(self.inputs.is_known(read, key.partition) for read in others)

    def _note_if_stale(self, key: Key, *, is_kept: bool) -> None:
        """Note a part that was kept although it is out of date, or that reads such a part."""
        reads = self.graph.nodes[key.model].reads if self._stale else ()
        if is_kept or any(self.plan.parts_of(read, key.partition) & self._stale for read in reads):
            self._stale.add(key)
            self.outcome.stale.add(key.model)

    def _find_results_of_view(self, key: Key, node: Node) -> bool:
        state = self.session.store.state
        noted = state.get(VIEW, "\t".join(key)) if state else None
        results = self._known_results(key, noted or (), self.inputs.digest(*key))
        if results is not None:
            self.outcome.checks[key] = results
        return results is not None

    # checks -----------------------------------------------------------------------------------------

    def checks_of(self, key: Key) -> list[Check]:
        """Return all checks of a table or view."""
        model = self.graph.nodes[key.model].model
        return list(model.checks) if model.is_view else all_checks(model)

    def _known_results(self, key: Key, noted: Sequence[Mapping[str, object]], digest: str) -> list[CheckResult] | None:
        """Return the results of all checks; None if a check failed or has not run on these rows."""
        known = {str(one["key"]): CheckResult(**one) for one in noted}  # type: ignore[arg-type]
        found = [self._result_of(check, key, digest, known) for check in self.checks_of(key)]
        if any(one is None or (one.failures and not one.warn) for one in found):
            return None
        return [one for one in found if one is not None]

    def _result_of(self, check: Check, key: Key, digest: str, known: Mapping[str, CheckResult]) -> CheckResult | None:
        found = known.get(self.inputs.of_check(check, key, digest)) or self._result_if_not_run(key, check)
        return found._replace(says=check.says) if found else None

    def _result_if_not_run(self, key: Key, check: Check) -> CheckResult | None:
        """Return the result of a check that reads a stale or a dropped part; None if the check can run."""
        if self._stale:
            others = relations_of(check.text)
            names = (key.model, *others) if others or self.graph.nodes[key.model].model.is_view else ()
            stale = {one.model for name in names for one in self.plan.parts_of(name, key.partition) & self._stale}
            if stale:
                return CheckResult(check.text, check.warn, 0, not_checked=f"{min(stale)} is stale")
        is_gone = key.partition == ALL or not self.fileless.isdisjoint(self.plan.parts_of(*key))
        if is_gone and self.plan.reads_dropped(key, check.text):
            return CheckResult(check.text, check.warn, 0, not_checked=DETAIL_DROPPED)
        return None

    # tasks ------------------------------------------------------------------------------------------

    def needs_files(self, key: Key) -> set[Key]:
        """Return the parts without a file that a task of this part would read; they are to be made again."""
        found = self.plan.upstream_parts(key) & self.fileless
        self._must_make |= found
        for need in found:
            self.fileless.remove(need)
            self.parts.pop(need)
            self.outcome.checks.pop(need, None)
        return found

    def task(self, key: Key) -> Task:
        """Return the task that makes a missing part, and runs its checks."""
        node, part = self.graph.nodes[key.model], self.parts.get(key)
        is_there = part is not None or node.model.is_view
        checks = [check for check in self.checks_of(key) if not self._result_if_not_run(key, check)]
        nodes = self.graph.nodes
        return Task(
            key,
            node.model,
            node.sql,
            self.inputs.sources(key),
            [nodes[read].model.grain if read in nodes else () for read in node.model.reads],
            None if is_there else self.session.store.temporary("parquet"),
            part.file if part else "",
            checks,
        )

    def take_in(self, task: Task, made: Made) -> None:
        """Take in what a task has made. Raises CheckError if a check failed; the part stays for the next build."""
        key, node, store = task.key, self.graph.nodes[task.key.model], self.session.store
        if made.written is not None:
            notes = {INPUTS: {**self.inputs.of(key), "sql": node.sql.strip()}}
            self.parts[key] = store.take_in(*key, self.fingerprint(key), made.written, notes)
            self.outcome.made.add(key)
        digest = self.parts[key].digest if key in self.parts else self.inputs.digest(*key)
        results = [
            one._replace(key=self.inputs.of_check(check, key, digest), says=check.says)
            for check, one in zip(task.checks, made.results, strict=True)
        ]
        failed = next((one for one in results if one.failures and not one.warn), None)
        if failed:
            raise check_error(node.model, partition_value(key.partition), failed)
        noted = results_to_notes(results)
        if node.model.is_view:
            store.note(VIEW, {"\t".join(key): noted})
        else:
            part = self.parts[key] = self.parts[key]._replace(notes=self.parts[key].notes | {"checks": noted})
            store.keep(part)
        done = dict(zip(task.checks, results, strict=True))
        ordered = [done.get(check) or self._result_if_not_run(key, check) for check in self.checks_of(key)]
        self.outcome.checks[key] = [one for one in ordered if one is not None]
        self.outcome.seconds[key] = made.seconds

    # damaged raw files --------------------------------------------------------------------------------

    def repair(self, key: Key) -> bool:
        """Repair the raw CSV files that a failed part reads; return True if there are damaged ones.

        Then parts whose inputs have changed by that are forgotten.
        """
        reads = self.graph.below_views(self.graph.nodes[key.model].reads)
        relations = sorted({read for read in reads if self.raw_files.is_csv(read)})
        files = [file for one in relations for file in self.raw_files.files_of(one, partition_value(key.partition))]
        if not files:
            return False
        self.session.reporter.looking_for_bad_lines(len(files), key.partition)
        try:
            if not self.raw_files.repair(files, self.session.engine):
                return False
        except EngineError:
            return False
        refuse_nothing_to_read(self.raw_files.inventory)
        self._forget_changed()
        return True

    def _forget_changed(self) -> None:
        """Forget the parts whose inputs are not what they were made from."""
        before, checks = dict(self.parts), dict(self.outcome.checks)
        self.parts.clear()
        self.outcome.checks.clear()
        self._replan()
        for key in self.plan.keys:  # upstream first
            is_same = key in before and self.plan.upstream_parts(key, with_checks=False) <= self.parts.keys()
            if is_same and (
                key.model in self.outcome.stale or hashing.of(self.inputs.of(key)) == before[key].fingerprint
            ):
                self.parts[key] = before[key]
        self.outcome.made &= self.parts.keys()
        for key, results in checks.items():
            if key in self.parts and self.plan.upstream_parts(key) <= self.parts.keys():
                self.outcome.checks[key] = results

    # the end ----------------------------------------------------------------------------------------

    def drop_detail(self) -> None:
        """Leave dropped parts out of the outcome. Checks that compare with them count as not checked."""
        plan, outcome = self.plan, self.outcome
        if not plan.drops:
            return
        for name in self.graph.order:
            dropped = [one for one in plan.partitions(name) if plan.is_dropped(name, one)]
            if dropped:
                outcome.dropped[name] = hour_of(max(dropped))
        gone = {key for key in self.parts if plan.is_dropped(*key)}
        for key in gone:
            del self.parts[key]
            outcome.checks.pop(key, None)
        outcome.made -= gone
        hours = {hour_of(key.partition) for key in gone}
        for key in [key for key in outcome.checks if hour_of(key.partition) in hours]:
            outcome.checks[key] = [
                CheckResult(one.check, one.warn, 0, not_checked=DETAIL_DROPPED)
                if plan.reads_dropped(key, one.check)
                else one
                for one in outcome.checks[key]
            ]
