"""Dry run of a build (`warehouse plan`): the parts that a build would make, with reasons.

Plan and build share the code that computes fingerprints and finds parts. If an upstream part is not made yet, the
fingerprint of a downstream part is unknown. Its action is `maybe` if an existing part could still match.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from warehouse.base.settings import Settings
from warehouse.base.text import plural
from warehouse.engine.tree import looks_volatile
from warehouse.formats.base import is_raw
from warehouse.graph.dag import Graph, Node, place_in_select
from warehouse.graph.plan import Key
from warehouse.ingest.raw_files import FileList, changes, list_files, read_listing
from warehouse.ingest.reading import FILES
from warehouse.runner.build import look, plan
from warehouse.runner.reporter import Reporter
from warehouse.runner.session import BuildOptions, check_folders, opened
from warehouse.runner.work import Work
from warehouse.store.atomic import scratch_folder
from warehouse.store.manifest import partition_value
from warehouse.store.parts import Store
from warehouse.store.state import unchanged

MAKE, MAYBE, CHECK, KEEP, DROP = "make", "maybe", "check", "keep", "drop"
NEW, READS = "new", "reads "
_INPUTS = {
    "recipe": "the file format of parts", "select": "SQL", "columns": "columns", "grain": "grain",
    "presorted": "presorted",
}  # fmt: skip
"""Words for the inputs of a part besides what it reads."""
_WORDS = {"added": "new", "removed": "gone", "changed": "changed"}
"""Words for changes of files in reasons."""


class Step(NamedTuple):
    """Step of a dry run: the action for one part, with reasons."""

    key: Key
    action: str
    """`make`, `maybe` (depends on upstream parts that are not written yet), `check`, `keep` or `drop`."""
    reasons: tuple[str, ...] = ()


class Reasons(NamedTuple):
    """Comparison of parts with those of the last build."""

    graph: Graph
    before: FileList
    """The raw files of the last build."""
    now: FileList

    def why(self, key: Key, old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> list[str]:
        """Return the differences between the inputs of the last part (None: no such part) and the new inputs."""
        node = self.graph.nodes[key.model]
        found = [f"volatile: {volatile_places(node)}"] if node.volatile else []
        if old is None:
            files = {read: text for read in node.reads if (text := self._changed_files(read, key.partition))}
            if len(files) > 1:
                files.pop(FILES, None)  # its changes repeat those of the other raw relations
            return [*found, *(files.values() or [NEW])]
        if old["engine"] != new["engine"]:  # which may write a SELECT in another way
            found.append(f"engine changed: {' '.join(old['engine'])} to {' '.join(new['engine'])}")
        else:
            found += [f"{word} changed" for name, word in _INPUTS.items() if old[name] != new[name]]
        before, after = old["inputs"], new["inputs"]
        others = [read for read, digest in after.items() if digest is None or before.get(read, digest) != digest]
        if any(is_raw(read) and read != FILES for read in others):
            others = [read for read in others if read != FILES]
        return found + [self._changed(read, key.partition, is_known=after[read] is not None) for read in others]

    def _changed(self, read: str, partition: str, *, is_known: bool) -> str:
        """Return the reason for an input that changed, or that will be rebuilt."""
        if not is_known:
            return f"{READS}{read}"
        if read in self.graph.nodes and self.graph.nodes[read].model.materialize == "table":
            return f"{read} has other rows"
        return self._changed_files(read, partition) or f"{read} changed"

    def _changed_files(self, read: str, partition: str) -> str:
        """Return the changes of the files of a raw relation, such as `3 files new, 1 file changed`."""
        found = changes(self.before, self.now, read) if is_raw(read) else ()
        counts = Counter(one.change for one in found if one.is_in(partition))
        return ", ".join(f"{plural(counts[one], 'file')} {word}" for one, word in _WORDS.items() if counts[one])


def volatile_places(node: Node) -> str:
    """Return the volatile expressions of a model, such as `random() at models/metrics/x.sql:12:8`."""
    found = [f"a check at {check.place}" for check in node.model.checks if looks_volatile(check.text)]
    for name, offset in node.volatile:
        place = node.model.place() if offset is None else place_in_select(node.model, node.sql, offset)
        found.append(f"{name} at {place}")
    return ", ".join(found)


class DryRun(NamedTuple):
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
                    "reaches": sorted(self.graph.descendants(step.key.model))
                    if self.graph and step.action == MAKE
                    else [],
                }
                for step in self.steps
            ],
        }


def dry_run(settings: Settings, options: BuildOptions = BuildOptions()) -> DryRun:  # noqa: B008 - frozen
    """Return the steps of a build with these settings. The target is not changed.

    Raises
    ------
    WarehouseError
        For any error that would stop the build before it makes parts.
    """
    check_folders(settings)
    why = "all files are hashed again" if options.paranoid else "only selected models are compared"
    if not (options.select or options.paranoid):
        summary, why = unchanged(settings, keep=options.keep)
        if summary is not None:
            return DryRun((), "", summary["summary"]["build"])
    with (
        _beside(settings.target.absolute()) as folder,
        opened(settings, options, Reporter(), Store(folder, paranoid=options.paranoid)) as session,
    ):
        work = plan(look(session))
        steps = tuple(_steps(work))
        before = {key.partition for key in work.last}
        after = {step.key.partition for step in steps if step.action != DROP}
        build = session.last.build if session.last else None
        return DryRun(steps, why, build, work.graph, frozenset(after - before), frozenset(before - after))


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Return a temporary folder with links to all files of a target: a dry run reads raw files and notes nothing."""
    with scratch_folder("plan") as folder:
        for below, folders, names in os.walk(target):
            place = folder / Path(below).relative_to(target)
            place.mkdir(exist_ok=True)
            linked = [*names, *(folders if place.name in ("clean", "unpacked") else ())]
            folders[:] = [name for name in folders if name not in linked]
            for name in linked:
                (place / name).symlink_to(Path(below, name))
        yield folder


def _steps(work: Work) -> Iterator[Step]:
    session = work.session
    before = read_listing(session.store.target, session.last.build) if session.last else None
    reasons = Reasons(work.graph, before or {}, list_files(work.raw_files))
    keys = [key for key in work.keys if not work.graph.nodes[key.model].model.is_view]
    for key in keys:
        yield _step(work, reasons, key)
    for key in sorted(work.last.keys() - set(keys)):
        gone = "no file of it is left" if key.model in work.graph.nodes else "no such model any more"
        yield Step(key, DROP, (gone,))


def _step(work: Work, reasons: Reasons, key: Key) -> Step:
    """Return the step of one part; take in a part that is there."""
    node, store = work.graph.nodes[key.model], work.session.store
    if work.find(key):
        return Step(key, KEEP, () if work.results[key] else ("not selected",))
    if key in work.plan.parts:
        why = f"volatile: {volatile_places(node)}" if node.is_volatile else "not checked yet"
        return Step(key, CHECK, (why,)) if work.can_check(key) else Step(key, KEEP)
    fingerprint, last = work.fingerprint(key), work.last.get(key)
    new: dict[str, Any] = work.plan.inputs_of(key)
    old = store.inputs(*key, last) if last else None
    found = reasons.why(key, old, new) if old or last is None else []
    if not fingerprint and not node.volatile and any(_may_match(made, new) for made in store.inputs_of_parts(*key)):
        return Step(key, MAYBE, tuple(found))
    missing = "its part is missing or damaged" if fingerprint == last else "its part belongs to another build"
    return Step(key, MAKE, tuple(found or [missing]))


def _may_match(made: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return True if a part matches in all known inputs."""
    inputs = {read: digest for read, digest in new["inputs"].items() if digest is not None}
    own = {name: value for name, value in new.items() if name != "inputs"}
    return (
        made.get("inputs", {}).keys() == new["inputs"].keys()
        and inputs.items() <= made["inputs"].items()
        # The text of the SQL is noted for people, the fingerprint has its canonical hash.
        and own == {name: value for name, value in made.items() if name not in ("inputs", "sql")}
    )
