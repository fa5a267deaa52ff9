"""Detail of old hours, which `--keep-hours` leaves out of the published build."""

from __future__ import annotations

from collections.abc import Iterator

from warehouse.graph.plan import Key
from warehouse.project.check_language import REFERENCED, relations_of_text
from warehouse.runner.build_state import BuildState
from warehouse.store.layout import ALL
from warehouse.store.part_records import CheckResult

DETAIL_DROPPED = "detail dropped"
"""Reason of a check that was not run, or counts as such: what it compares with is no longer there."""


def drop_detail(state: BuildState) -> None:
    """Remove the dropped parts from the outcome of a build. Checks that read them count as not checked."""
    if not state.plan.drops:
        return
    outcome = state.outcome
    outcome.dropped = dict(_last_hours(state))
    dropped = {key for key in outcome.parts if state.plan.is_dropped(*key)}
    for key in dropped:
        del outcome.parts[key]
        outcome.checks.pop(key, None)
    outcome.made -= dropped
    hours = {key.partition for key in dropped}
    for key in [key for key in outcome.checks if key.partition in hours]:
        outcome.checks[key] = [
            result_if_dropped(state, key, one.check, warn=one.warn) or one for one in outcome.checks[key]
        ]


def _last_hours(state: BuildState) -> Iterator[tuple[str, str]]:
    """Yield each model with dropped parts, and the last hour of these."""
    for name in state.graph.order:
        dropped = [one for one in state.plan.partitions(name) if state.plan.is_dropped(name, one)]
        if dropped:
            yield name, max(dropped)


def result_if_dropped(state: BuildState, key: Key, check: str, *, warn: bool) -> CheckResult | None:
    """Return the result `not checked` for a check that compares with dropped parts; None if the check can run.

    A check `referenced` of a table over all hours can run: it looks for rows that are there.
    """
    plan = state.plan
    if not plan.drops or (key.partition == ALL and REFERENCED.match(check)):
        return None
    reads = {*relations_of_text(check), *([key.model] if state.graph.nodes[key.model].model.is_view else ())}
    tables = [table for table in state.graph.below_views(sorted(reads)) if table in state.graph.nodes]
    if any(
        plan.is_dropped(table, one)
        for table in tables
        for one in (plan.partitions(table)[:1] if key.partition == ALL else [key.partition])
    ):
        return CheckResult(check, warn, 0, not_checked=DETAIL_DROPPED)
    return None
