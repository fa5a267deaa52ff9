"""Dry run of a build (`warehouse plan`): the parts that a build would write, with reasons.

Plan and build share the code that computes fingerprints and finds parts. If an upstream part is not written yet, the
fingerprint of a downstream part is unknown. Its action is `maybe` if an existing part could still match.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warehouse.base import hashing
from warehouse.base.settings import Settings
from warehouse.graph.dag import Graph, contracts
from warehouse.graph.plan import Key
from warehouse.graph.rebuild_reasons import CHECK, DROP, KEEP, MAKE, MAYBE, Reasons, Step, volatile_places
from warehouse.ingest.file_list import FileList, read_listing
from warehouse.project.project import Project
from warehouse.runner.build_state import BuildState
from warehouse.runner.options import BuildOptions
from warehouse.runner.part_checks import PartChecks
from warehouse.runner.preparation import check_folders, prepared
from warehouse.runner.reporter import Reporter
from warehouse.runner.retention import drop_detail
from warehouse.runner.unchanged import UnchangedPartitions
from warehouse.store import snapshot
from warehouse.store.atomic import scratch_folder
from warehouse.store.layout import partition_name, partition_value
from warehouse.store.manifest import build_id
from warehouse.store.part_records import Part
from warehouse.store.parts import Store


@dataclass(frozen=True)
class DryRun:
    """Steps of a build that has not run, with reasons."""

    steps: tuple[Step, ...]
    """One step for each part, in build order; then the published parts that the build would drop."""
    publishes: str
    """Reason to publish; empty if everything is up to date."""
    last: str | None
    """Id of the published build."""
    graph: Graph | None = None
    new: frozenset[str] = frozenset()
    """Partitions without a part in the published build."""
    gone: frozenset[str] = frozenset()
    """Partitions with parts in the published build only."""

    def of(self, *actions: str) -> list[Step]:
        """Return the steps with these actions."""
        return [step for step in self.steps if step.action in actions]

    def summary(self) -> dict[str, object]:
        """Return the dry run as JSON-able values."""
        return {
            "last": self.last,
            "up_to_date": not self.publishes,
            "publishes": self.publishes or None,
            "parts": [
                {
                    "model": step.key.model,
                    "partition": partition_value(step.key.partition),
                    "action": step.action,
                    "reasons": list(step.reasons),
                    "reaches": self._reached(step),
                }
                for step in self.steps
            ],
        }

    def _reached(self, step: Step) -> list[str]:
        return sorted(self.graph.descendants(step.key.model)) if self.graph and step.action == MAKE else []


def dry_run(settings: Settings, options: BuildOptions = BuildOptions()) -> DryRun:  # noqa: B008 - frozen
    """Return the steps of a build with these settings. Only caches are written.

    Raises
    ------
    WarehouseError
        For any error that would stop the build before it writes parts.
    """
    check_folders(settings)
    why = "all files are hashed again" if options.paranoid else "only selected models are compared"
    if not (options.select or options.paranoid):
        record, why = snapshot.unchanged(snapshot.request_of(settings, keep=options.keep, kernels=options.kernels))
        if record is not None:
            return DryRun((), "", record["summary"]["build"])
    project = Project.open(settings.project)
    with (
        _store(settings, paranoid=options.paranoid) as store,
        prepared(settings, options, project, store, Reporter(), snapshot.recent_walk(settings)) as ready,
    ):
        state = BuildState(ready)
        entries = ready.last_entries()
        steps = tuple(_steps(state, store, entries))
        drop_detail(state)
        if ready.last and _same_parts(entries, state.parts):
            now = build_id(list(state.parts.values()), contracts(ready.graph), ready.engine_label)
            other = ready.last.engine != ready.engine_label
            changed = (
                f"the last build ran on {ready.last.engine}" if other else "what tables or columns mean has changed"
            )
            why = why if now == ready.last.build else changed
        before = {partition_name(one["partition"]) for one in entries}
        after = {key.partition for key in state.plan.keys}
        last = ready.last.build if ready.last else None
        return DryRun(steps, why, last, ready.graph, frozenset(after - before), frozenset(before - after))


@contextmanager
def _store(settings: Settings, *, paranoid: bool) -> Iterator[Store]:
    """Open the target's store; a temporary one if the target is missing or read-only."""
    target = settings.target
    if target.is_dir() and _is_writable(target):
        yield Store(target, paranoid=paranoid)
        return
    with scratch_folder("plan") as folder:
        if target.is_dir():
            _link_files(target.absolute(), folder)
        yield Store(folder, paranoid=paranoid)


def _is_writable(target: Path) -> bool:
    """Return True if a dry run can write to the target's caches."""
    return all(os.access(folder, os.W_OK) for folder in (target, target / "cache", target / "parts") if folder.is_dir())


def _link_files(target: Path, folder: Path) -> None:
    """Fill a folder with links to all files of a target, so that new files can be added."""
    for below, _, names in os.walk(target):
        place = folder / Path(below).relative_to(target)
        place.mkdir(exist_ok=True)
        for name in names:
            (place / name).symlink_to(Path(below, name))


def _steps(state: BuildState, store: Store, entries: Sequence[Mapping[str, object]]) -> Iterator[Step]:
    ready = state.prepared
    last = ready.last
    checks, unchanged = PartChecks(state), UnchangedPartitions(state)
    state.read_tables()
    before = read_listing(store.target, last.build) if last else None
    reasons = Reasons(ready.graph, ready.engine, before or FileList(), ready.raw_files.listing())
    made = {Key(str(one["model"]), partition_name(one["partition"])): str(one["fingerprint"]) for one in entries}
    for key in state.plan.keys:
        unchanged.take_ready(Reporter())
        if key in state.parts:
            step = Step(key, KEEP)
        else:
            old = store.inputs(key.model, key.partition, made[key]) if key in made else None
            step = _step(state, checks, reasons, key, made.get(key), old)
        if step.action == KEEP and state.plan.is_dropped(*key):
            if key in made:
                yield Step(key, DROP, ("older than --keep-hours",))
        else:
            yield step
    for key in sorted(made.keys() - set(state.plan.keys)):
        gone = "no file of it is left" if key.model in ready.graph.nodes else "no such model any more"
        yield Step(key, DROP, (gone,))


def _step(
    state: BuildState, checks: PartChecks, reasons: Reasons, key: Key, last_fingerprint: str | None, old: Any
) -> Step:
    """Return the step of one part; add an existing part to the finished ones."""
    node, store = state.graph.nodes[key.model], state.prepared.store
    new = state.inputs.of(key)
    unknown = [read for read, digest in dict(new["inputs"]).items() if digest is None]  # type: ignore[call-overload]
    name = None if unknown else hashing.of(new)
    part, is_kept = state.find_or_keep(key, name, new)
    if part is not None:
        state.parts[key] = part
        if is_kept:
            return Step(key, KEEP, ("not selected",))
        if checks.can_run(key) and checks.stored_results(key, part) is None:
            return Step(key, CHECK, (f"volatile: {volatile_places(node)}" if node.is_volatile else "not checked yet",))
        return Step(key, KEEP)
    why = reasons.why(key, old, new) if old or last_fingerprint is None else []
    others = store.inputs_of_parts(key.model, key.partition)
    if unknown and not node.volatile and any(_may_match(made, new) for made in others):
        return Step(key, MAYBE, tuple(why))
    if not why:
        why = ["its part is missing or damaged"] if name == last_fingerprint else ["its part belongs to another build"]
    return Step(key, MAKE, tuple(why))


def _may_match(made: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return True if a part matches in all known inputs."""
    inputs = {read: digest for read, digest in new["inputs"].items() if digest is not None}
    own = {name: value for name, value in new.items() if name != "inputs"}
    return (
        made.get("inputs", {}).keys() == new["inputs"].keys()
        and inputs.items() <= made["inputs"].items()
        and own == {name: value for name, value in made.items() if name not in ("inputs", "sql")}
    )


def _same_parts(last: Sequence[Mapping[str, object]], parts: Mapping[Key, Part]) -> bool:
    """Return True if these are exactly the parts of the last build."""
    return {part.fingerprint for part in parts.values()} == {one["fingerprint"] for one in last}
