"""`warehouse plan`: what a build would do, and why, without doing it.

Plan and build name and find parts by the same code. A part is named by what it is made of: where that includes
rows which are not made yet, whether it is made depends on them, and the plan says `maybe`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warehouse.base import hashing
from warehouse.base.settings import Settings
from warehouse.graph.dag import Graph, contracts
from warehouse.graph.parts import Key
from warehouse.graph.rebuild_reasons import CHECK, DROP, KEEP, MAKE, MAYBE, Reasons, Step, volatile_places
from warehouse.ingest.file_list import listing, read_listing
from warehouse.project.project import Project
from warehouse.runner.options import BuildOptions
from warehouse.runner.part_checks import PartChecks
from warehouse.runner.preparation import check_folders, prepared
from warehouse.runner.progress import Progress
from warehouse.runner.reporter import Silent
from warehouse.store import snapshot
from warehouse.store.manifest import Manifest, build_id
from warehouse.store.part_records import ALL, Part
from warehouse.store.parts import Store


@dataclass(frozen=True)
class DryRun:
    """What a build would do."""

    steps: tuple[Step, ...]
    """A step a part, in the order of the build; then the parts that it would leave out."""
    publishes: str
    """Why it would publish at all; empty where it would find nothing to do."""
    last: str | None
    """The published build."""
    graph: Graph | None = None
    new: frozenset[str] = frozenset()
    """Partitions that the published build has no part of."""
    gone: frozenset[str] = frozenset()
    """Partitions that only the published build has parts of."""

    def of(self, *actions: str) -> list[Step]:
        """The steps with these actions."""
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
                    "partition": None if step.key.partition == ALL else step.key.partition,
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
    """Find out what a build of these settings would do; nothing is made, and nothing but caches is written.

    Raises
    ------
    WarehouseError
        For all that would stop the build before it makes anything.
    """
    check_folders(settings)
    why = "all is hashed again"
    if not (options.select or options.paranoid):
        said, why = snapshot.unchanged(snapshot.asked(settings, keep=options.keep, kernels=options.kernels))
        if said is not None:
            return DryRun((), "", said["summary"]["build"])
    project = Project.open(settings.project)
    with (
        _store(settings, paranoid=options.paranoid) as store,
        prepared(settings, options, project, store, Silent()) as ready,
    ):
        progress = Progress(ready)
        steps = tuple(_steps(progress, store))
        if ready.last and _same_parts(ready.last, progress.parts):
            now = build_id(list(progress.parts.values()), contracts(ready.graph), ready.engine_mark)
            other = ready.last.engine != ready.engine_mark
            changed = f"{ready.last.engine} published it" if other else "what tables or columns mean has changed"
            why = why if now == ready.last.build else changed
        before = {str(one["partition"] or ALL) for one in _parts(ready.last)}
        after = {key.partition for key in progress.plan.keys}
        last = ready.last.build if ready.last else None
        return DryRun(steps, why, last, ready.graph, frozenset(after - before), frozenset(before - after))


@contextmanager
def _store(settings: Settings, *, paranoid: bool) -> Iterator[Store]:
    """The target's store; where there is no target yet, or it cannot be written, one that is thrown away."""
    target = settings.target
    if target.is_dir() and _is_writable(target):
        yield Store(target, paranoid=paranoid)
        return
    with tempfile.TemporaryDirectory(prefix="warehouse-plan-") as folder:
        if target.is_dir():
            _link_files(target.absolute(), Path(folder))
        yield Store(Path(folder), paranoid=paranoid)


def _is_writable(target: Path) -> bool:
    """Return True if a plan can write what it finds out about raw files into the target's caches."""
    return all(os.access(folder, os.W_OK) for folder in (target, target / "cache", target / "parts") if folder.is_dir())


def _link_files(target: Path, folder: Path) -> None:
    """Make a folder with all files of a target as links: new files can be written beside them."""
    for below, _, names in os.walk(target):
        place = folder / Path(below).relative_to(target)
        place.mkdir(exist_ok=True)
        for name in names:
            (place / name).symlink_to(Path(below, name))


def _steps(progress: Progress, store: Store) -> Iterator[Step]:
    ready = progress.prepared
    last = ready.last
    checks = PartChecks(progress)
    progress.read_tables()
    before = read_listing(store.target, last.build) if last else None
    reasons = Reasons(ready.graph, ready.engine, before or {}, listing(ready.raw_files))
    made = {Key(str(one["model"]), str(one["partition"] or ALL)): str(one["fingerprint"]) for one in _parts(last)}
    for key in progress.plan.keys:
        old = store.notes(key.model, key.partition, made[key]).get("made_of") if key in made else None
        yield _step(progress, checks, reasons, key, made.get(key), old)
    for key in sorted(made.keys() - set(progress.plan.keys)):
        gone = "no file of it is left" if key.model in ready.graph.nodes else "no such model any more"
        yield Step(key, DROP, (gone,))


def _step(progress: Progress, checks: PartChecks, reasons: Reasons, key: Key, mark: str | None, old: Any) -> Step:
    """The step of one part; one that is there is known from here on."""
    node, store = progress.graph.nodes[key.model], progress.prepared.store
    new = progress.inputs.made_of(key)
    unknown = [read for read, digest in dict(new["inputs"]).items() if digest is None]  # type: ignore[call-overload]
    name = None if unknown else hashing.of(new)
    part, stale = progress.find(key, name, new)
    if part is not None:
        progress.parts[key] = part
        if stale:
            return Step(key, KEEP, ("not selected",))
        if checks.can_run(key) and checks.is_unchecked(key, part):
            return Step(key, CHECK, (f"volatile: {volatile_places(node)}" if node.never_still else "not checked yet",))
        return Step(key, KEEP)
    why = reasons.why(key, old, new) if old or mark is None else []
    if unknown and not node.volatile and any(_could_be(made, new) for made in store.made_of(key.model, key.partition)):
        return Step(key, MAYBE, tuple(why))
    if not why:
        why = ["its part is missing or damaged"] if name == mark else ["its part is of another build"]
    return Step(key, MAKE, tuple(why))


def _could_be(made: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a part would be the one that is wanted if what is unknown came out right."""
    inputs = {read: digest for read, digest in new["inputs"].items() if digest is not None}
    own = {name: value for name, value in new.items() if name != "inputs"}
    return (
        made.get("inputs", {}).keys() == new["inputs"].keys()
        and inputs.items() <= made["inputs"].items()
        and own == {name: value for name, value in made.items() if name not in ("inputs", "sql")}
    )


def _same_parts(last: Manifest, parts: Mapping[Key, Part]) -> bool:
    """Whether nothing but the parts of the last build is wanted."""
    return {part.fingerprint for part in parts.values()} == {one["fingerprint"] for one in last.parts}


def _parts(last: Manifest | None) -> Sequence[Mapping[str, object]]:
    return last.parts if last else ()
