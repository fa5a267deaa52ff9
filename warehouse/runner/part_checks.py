"""Choose the checks to run on a part, and store their results with it."""

from __future__ import annotations

from collections.abc import Sequence

from warehouse.base import hashing
from warehouse.engine.base import Scratch, Select
from warehouse.engine.volatile import looks_volatile
from warehouse.graph.dag import Node, checked_relations
from warehouse.graph.plan import Key
from warehouse.project.check_language import all_checks, relations_of
from warehouse.project.contract import Check
from warehouse.runner.build_state import BuildState
from warehouse.runner.check_sql import check_error, results_of, run_checks
from warehouse.runner.retention import result_if_dropped
from warehouse.store.layout import ALL, partition_value
from warehouse.store.part_records import CheckResult, Part, results_to_notes


class PartChecks:
    """Checks of the parts of one build.

    Parameters
    ----------
    state
        The finished parts, which checks compare.
    """

    def __init__(self, state: BuildState) -> None:
        self._state = state
        self._graph = state.graph

    def to_run(self, key: Key, part: Part) -> list[Check]:
        """Return the checks of a part, except those without a stored result that would read a stale part."""
        noted = self._noted(key, part)
        return [check for check in self._all(key) if check in noted or not self._result_if_not_run(key, check)]

    def stored_results(self, key: Key, part: Part) -> list[CheckResult] | None:
        """Return the stored results of all checks of a part; None if a check failed or has no result."""
        noted = self._noted(key, part)
        found = [(check, noted.get(check) or self._result_if_not_run(key, check)) for check in self._all(key)]
        if any(one is None or (one.failures and not one.warn) for _, one in found):
            return None
        return [one._replace(says=check.says) for check, one in found if one]

    def can_run(self, key: Key) -> bool:
        """Return True if all parts that the checks of a part read are finished."""
        node = self._graph.nodes[key.model]
        others = checked_relations(node) - {key.model}
        return all(self._state.inputs.is_known(read, key.partition) for read in others)

    def store_results(
        self, scratch: Scratch, key: Key, part: Part, checks: Sequence[Check], counts: Sequence[int]
    ) -> None:
        """Store check results with the part. Raises CheckError for a failed check."""
        node = self._graph.nodes[key.model]
        keys = [self._hash(check, key, part) for check in checks]
        results = results_of(scratch, node.model, checks, counts, keys)
        self._state.prepared.store.annotate(part, checks=results_to_notes(results))
        _stop_at_failure(key, node, results)

    def check_views(self) -> None:
        """Check the views, except those of unchanged partitions. A view has no part to store results with."""
        state = self._state
        for name in self._graph.order:
            node = self._graph.nodes[name]
            if not node.model.is_view or not node.model.checks:
                continue
            for partition in state.plan.partitions(name):
                key = Key(name, partition)
                if key in state.outcome.checks:  # of an unchanged partition
                    continue
                not_run = {check: self._result_if_not_run(key, check) for check in node.model.checks}
                checks = [check for check, why in not_run.items() if not why]
                results = self._run_on_view(key, node, checks) if checks else []
                done = dict(zip(checks, results, strict=True))
                state.outcome.checks[key] = [why or done[check] for check, why in not_run.items()]
                _stop_at_failure(key, node, results)

    def _run_on_view(self, key: Key, node: Node, checks: Sequence[Check]) -> list[CheckResult]:
        sources = self._state.sources.of(key)
        sources[node.name] = Select(node.sql, node.model.columns)
        with self._state.prepared.engine.scratch(sources) as scratch:
            counts = run_checks(scratch, node.model, checks)
            return results_of(scratch, node.model, checks, counts)

    def _result_if_not_run(self, key: Key, check: Check) -> CheckResult | None:
        """Return the result of a check that reads a stale or a dropped part; None if the check can run."""
        state = self._state
        if stale := state.stale.result_if_stale(key, check):
            return stale
        is_gone = key.partition == ALL or not state.without_file.isdisjoint(state.plan.parts_of(*key))
        return result_if_dropped(state, key, check.text, warn=check.warn) if is_gone else None

    def _all(self, key: Key) -> list[Check]:
        return all_checks(self._graph.nodes[key.model].model)

    def _noted(self, key: Key, part: Part) -> dict[Check, CheckResult]:
        """Return the results stored with a part, for the current checks of its model."""
        noted = part.notes.get("checks", [])
        assert isinstance(noted, list)
        known = {str(one["key"]): CheckResult(**one) for one in noted}
        keys = {check: self._hash(check, key, part) for check in self._all(key)}
        return {check: known[one] for check, one in keys.items() if one in known}

    def _hash(self, check: Check, key: Key, part: Part) -> str:
        """Return the hash of a check and of all rows that it reads."""
        inputs = self._state.inputs
        others = [inputs.digest(read, key.partition) for read in relations_of(check) if read != key.model]
        others += [inputs.nonce] if looks_volatile(check.text) else []
        return hashing.of([check.text, check.warn, part.digest, others])


def _stop_at_failure(key: Key, node: Node, results: Sequence[CheckResult]) -> None:
    failed = next((result for result in results if result.failures and not result.warn), None)
    if failed:
        raise check_error(node.model, partition_value(key.partition), failed)
