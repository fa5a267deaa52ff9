"""Entry point of `warehouse build`: from settings to a published warehouse."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from warehouse.base.errors import CheckError
from warehouse.base.settings import Settings
from warehouse.base.text import now_utc
from warehouse.graph.dag import contracts
from warehouse.project.project import Project
from warehouse.runner.catalog_entries import catalog_entries, part_signatures
from warehouse.runner.change_guard import ChangeGuard
from warehouse.runner.disk_full import explaining_full_disk
from warehouse.runner.options import BuildOptions
from warehouse.runner.preparation import Prepared, check_folders, prepared
from warehouse.runner.publish import keep_last, publish, quarantine_misplaced
from warehouse.runner.reporter import Reporter
from warehouse.runner.result import Outcome, Result
from warehouse.runner.run import make_parts
from warehouse.runner.snapshot_writer import write_snapshot
from warehouse.store import outputs_of_build, signatures, snapshot
from warehouse.store.atomic import orphaned_files, remove
from warehouse.store.failed_check import note_failed
from warehouse.store.layout import PARTS, PUBLISHED
from warehouse.store.lock import Held, hold
from warehouse.store.manifest import Manifest, build_id, kept_builds
from warehouse.store.part_records import Part
from warehouse.store.partition_records import write_records
from warehouse.store.parts import Store

_FEW_FOUND = 200
"""Number of parts whose folders are synced sooner than the last manifest is read whole."""


def build(settings: Settings, reporter: Reporter, options: BuildOptions = BuildOptions()) -> Result:  # noqa: B008 - frozen
    """Build the warehouse and publish it.

    Parameters
    ----------
    settings
        Paths of the raw files, the target and the project; limits of the engine.
    reporter
        Receiver of progress and notes.
    options
        Selected models and other options.

    Raises
    ------
    WarehouseError
        When the build fails, as a subclass from `warehouse.base.errors`. The published warehouse is unchanged.
    """
    check_folders(settings)
    with hold(settings.target, wait=options.wait) as held:
        try:
            with explaining_full_disk(settings):
                _remove_leftovers(settings.target, was_killed=held.was_killed)
                result = _build(settings, reporter, options, held)
        except CheckError as error:
            note_failed(settings.target, error)
            snapshot.drop(settings.target)
            raise
        note_failed(settings.target, None)
        return result


def _build(settings: Settings, reporter: Reporter, options: BuildOptions, held: Held) -> Result:
    """List the raw files, write the parts, check them, publish them."""
    project = Project.open(settings.project)
    guard = ChangeGuard(settings, project)
    store = open_store(settings, reporter, options)
    store.know_intact(outputs_of_build.recent(held.before))
    with ExitStack() as opened:
        with guard.explaining():
            ready = opened.enter_context(prepared(settings, options, project, store, reporter, guard.data))
            guard.watch(ready)
            outcome = make_parts(ready, reporter)
            if outcome.early_catalog is not None:
                opened.callback(outcome.early_catalog.path.unlink, missing_ok=True)
            reporter.stage_started("catalog")
            entries = catalog_entries(ready, outcome)

            def confirm() -> None:
                guard.refuse_changes()
                held.confirm()

            manifest = _manifest(settings, ready, outcome)
            publish(
                store.target,
                entries,
                manifest,
                list(outcome.parts.values()),
                ready.raw_files.listing(),
                ready.engine,
                part_signatures(entries, store),
                confirm,
                new=_unpublished(ready, outcome),
                begun=outcome.early_catalog,
                fresh=options.paranoid,
            )
        ready.small.keep()
    write_records(store.target, outcome.records)
    reporter.published()
    keep_last(store.target, options.keep)
    result = _result(settings, ready, outcome, manifest)
    if outcome.stale or any(node.is_volatile for node in ready.graph.nodes.values()):
        snapshot.drop(store.target)
    else:
        write_snapshot(settings, options, project, guard, result, entries, store)
    return result


def _remove_leftovers(target: Path, *, was_killed: bool) -> None:
    """Remove leftovers of killed processes. Only a killed build leaves any among the parts, which may be many."""
    for path in orphaned_files(target, () if was_killed else (PARTS,)):
        remove(path)


def open_store(settings: Settings, reporter: Reporter, options: BuildOptions) -> Store:
    """Open the target's store; quarantine misplaced files."""
    share = str(options.share) if options.share else None
    store = Store(settings.target, paranoid=options.paranoid, on_damage=reporter.note, share=share)
    for name in quarantine_misplaced(store.target):
        reporter.note(f"{name} is damaged (no file or folder of the target): moved to damaged/, rebuilt")
    return store


def _manifest(settings: Settings, ready: Prepared, outcome: Outcome) -> Manifest:
    """Return the head of this build's manifest."""
    return Manifest(
        build=build_id(list(outcome.parts.values()), contracts(ready.graph), ready.engine_label),
        engine=ready.engine_label,
        parts=(),
        stale=tuple(sorted(outcome.stale)),
        data=tuple(str(root.absolute()) for root in settings.data),
        published_utc=now_utc(),
        linked=_linked(settings, ready),
        keep_hours=settings.keep_hours,
        number=1 + max((number for number, _ in kept_builds(ready.store.target)), default=0),
    )


def _unpublished(ready: Prepared, outcome: Outcome) -> list[Part]:
    """Return the parts that the last build may not have published."""
    found = [part for key, part in outcome.parts.items() if key not in outcome.published]
    if len(found) <= len(outcome.made) + _FEW_FOUND:
        return found
    published = {str(entry["fingerprint"]) for entry in ready.last_entries()}
    return [part for part in found if part.fingerprint not in published]


def _linked(settings: Settings, ready: Prepared) -> tuple[str, ...]:
    """Return folders outside the data folders that links lead to; readers need access to them."""
    if not settings.follow_links:
        return ()
    roots = signatures.real_roots(settings.data)
    real = (os.path.realpath(file.path) for file in ready.raw_files.inventory.files if file.is_read)
    return tuple(sorted({os.path.dirname(path) for path in real if not signatures.is_within(path, roots)}))  # noqa: PTH120


def _result(settings: Settings, ready: Prepared, outcome: Outcome, manifest: Manifest) -> Result:
    published = Path(ready.store.target, PUBLISHED)
    size = sum(part.bytes for part in outcome.parts.values()) + published.stat().st_size
    changed = ready.last is None or ready.last.build != manifest.build
    return Result(manifest.build, settings.target, ready.raw_files.inventory, outcome, size, changed)
