"""Command `warehouse plan`: partitions to build and why, grouped by hours, and the number of unchanged partitions."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from warehouse.base.text import few, grouped, plural, wrapped
from warehouse.cli.commands import settings, tell
from warehouse.runner.dry_run import CHECK, DROP, KEEP, MAKE, MAYBE, NEW, READS, DryRun, Step, dry_run
from warehouse.runner.session import BuildOptions
from warehouse.store.manifest import ALL

_WIDTH, _WIDE = 80, 29


def run_plan(given: argparse.Namespace) -> None:
    """Print what a build would do."""
    settled = settings(given)
    plan = dry_run(settled, BuildOptions(tuple(given.select), max(1, given.keep), paranoid=given.paranoid))
    tell(given, plan.summary, lambda: _lines(plan, settled.target))


def _lines(plan: DryRun, target: Path) -> Iterator[str]:
    """Yield the lines of a dry run."""
    if not plan.publishes:
        yield f"Up to date  {(plan.last or '')[:8]}, nothing to do"
        return
    if plan.last is None:
        kept = plan.of(KEEP)
        if made := [step for step in plan.steps if step.action != KEEP]:
            yield f"make   all: {_counted(made)}; nothing is built in {target} yet"
        if kept:
            yield f"{KEEP:<6} {_counted(kept)}: made, but not published by a manifest that can be read"
        return
    for partition in sorted(plan.new):
        yield from _new(partition, [step for step in plan.of(MAKE, MAYBE) if step.key.partition == partition])
    for partition in sorted(plan.gone):
        steps = [step for step in plan.of(DROP) if step.key.partition == partition]
        yield f"{DROP:<6} {partition}: {plural(len(steps), 'part')}, no file of it is left"
    yield from _changes(plan)
    kept = plan.of(KEEP)
    if kept:
        yield f"{KEEP:<6} {_counted(kept)}"
    if len(kept) == len(plan.steps):
        yield f"Nothing is made; a build publishes again, since {plan.publishes}."


def _counted(steps: Sequence[Step]) -> str:
    return f"{plural(len({step.key.model for step in steps}), 'model')}, {plural(len(steps), 'part')}"


def _new(partition: str, steps: Sequence[Step]) -> Iterator[str]:
    if not steps:
        yield f"add    {partition}: its parts are there already"
        return
    reasons = {reason for step in steps for reason in step.reasons}
    files = sorted(reason for reason in reasons if reason != NEW and not reason.startswith(READS))
    yield from _wrapped(f"{MAKE:<6} {partition}: {plural(len(steps), 'part')}, {'; '.join(files) or NEW}")


def _changes(plan: DryRun) -> Iterator[str]:
    """Yield a line per model and reason, with the partitions below."""
    partitions = grouped(
        ((step.action, step.key.model, _joined(step.reasons)), step.key.partition)
        for step in plan.of(MAKE, MAYBE, CHECK, DROP)
        if step.key.partition not in plan.new | plan.gone
    )
    groups = grouped((tuple(names), row) for row, names in partitions.items())
    for group, rows in sorted(groups.items(), key=lambda item: item[0] != (ALL,)):
        if group != (ALL,):
            yield group[0] if len(group) == 1 else f"{len(group):,} hours, {group[0]} to {group[-1]}"
        for action, model, reasons in rows:
            yield from _wrapped(f"{action:<6} {model:<{_WIDE}} {reasons}")


def _wrapped(line: str) -> list[str]:
    return [one.rstrip("\n") for one in wrapped(line, _WIDTH, indent=" " * (_WIDE + 8))]


def _joined(reasons: Sequence[str]) -> str:
    """Return reasons as text: the model's own first, then at most one about its inputs."""
    plain = [reason for reason in reasons if reason.startswith(READS) and len(reason.split()) == 2]
    own = [reason for reason in reasons if reason not in plain]
    return "; ".join([*own, few(plain, 1)] if plain else own)
