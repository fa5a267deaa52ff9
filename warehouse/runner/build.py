"""`warehouse build`, from settings to a published warehouse."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from warehouse.base.errors import CheckError, SettingsError, WarehouseError
from warehouse.base.settings import Settings, stands_alone
from warehouse.base.text import now_utc
from warehouse.base.version import __version__
from warehouse.engine.base import Engine, Parts, Select, Source
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.formats import known_formats
from warehouse.graph.binding import bind
from warehouse.graph.dag import Graph
from warehouse.graph.fingerprints import reference_source
from warehouse.graph.selectors import select_models
from warehouse.ingest.file_list import listing
from warehouse.ingest.inventory import Intake, nothing_to_read
from warehouse.ingest.schemas import FILES, abouts, rim
from warehouse.project.project import Project
from warehouse.runner.catalog import Entry
from warehouse.runner.changes import Witness
from warehouse.runner.checks import note_failed
from warehouse.runner.disk_full import saying_what_is_full
from warehouse.runner.publish import clear_the_way, keep_last, publish
from warehouse.runner.reporter import Silent
from warehouse.runner.result import Outcome, Result
from warehouse.runner.run import Run, contracts
from warehouse.store import signatures
from warehouse.store.atomic import aside, left_behind, remove
from warehouse.store.lock import hold
from warehouse.store.manifest import Manifest, build_id, entry, kept_manifests, last_manifest
from warehouse.store.parse_cache import FILE as MEMO
from warehouse.store.parse_cache import Memo, memo_of_models
from warehouse.store.part_records import Part
from warehouse.store.parts import Store

KEEP = 3
COPIED_BYTES = 20 * 10**6
"""Parts of this size together are copied into the catalog, the smallest tables first; larger tables are read from
their parts. So most tables can be read wherever the catalog is, and a build does not copy what is costly to copy."""


def build(
    settings: Settings,
    reporter: Silent,
    *,
    select: Sequence[str] = (),
    keep: int = KEEP,
    wait: bool = False,
    kernels: bool = True,
    paranoid: bool = False,
) -> Result:
    """Build and publish.

    Parameters
    ----------
    settings
        What was asked for.
    reporter
        Whom to tell.
    select
        Selectors; the other models keep their last parts.
    keep
        How many builds stay.
    wait
        Whether to wait for another build of this target.
    kernels
        Whether models may be made by their kernels.
    paranoid
        Whether every raw file and every part is hashed again, whatever its size and times say.

    Raises
    ------
    WarehouseError
        Of a kind of `warehouse.base.errors`; whatever it is, the published warehouse is as it was.
    """
    check_folders(settings)
    with hold(settings.target, wait=wait):
        try:
            with saying_what_is_full(settings):
                result = _build(settings, reporter, select, keep, kernels=kernels, paranoid=paranoid)
        except CheckError as error:
            note_failed(settings.target, error)
            signatures.drop(settings.target)
            raise
        note_failed(settings.target, None)
        return result


def check_folders(settings: Settings) -> None:
    """Refuse data folders that cannot be meant. Raises SettingsError."""
    if not settings.data and not (settings.project and stands_alone(settings.project)):
        raise _no_data()
    target = settings.target.absolute()
    for root in settings.data:
        if not root.exists():
            raise SettingsError(f"no such data folder: {root}", hint="give an existing folder with --data")
        if target == root.absolute() or target in root.absolute().parents:
            raise SettingsError(f"the data folder {root} lies inside the target {settings.target}")


class Prepared(NamedTuple):
    """All that a build stands on, before it makes anything."""

    project: Project
    graph: Graph
    intake: Intake
    engine: Engine
    last: Manifest | None
    run: Run

    @property
    def engine_mark(self) -> str:
        """Name and version of the engine, as builds are named by it."""
        return f"{self.engine.name} {self.engine.version}"


@contextmanager
def prepared(
    settings: Settings,
    project: Project,
    store: Store,
    reporter: Silent,
    *,
    select: Sequence[str] = (),
    kernels: bool = True,
    paranoid: bool = False,
) -> Iterator[Prepared]:
    """Read models and raw files, open an engine."""
    spill = aside(store.target / "cache" / "spill")
    reporter.doing("models")
    engine = DuckDBEngine(
        threads=settings.threads, memory_bytes=settings.memory_bytes, spill=spill, observe=reporter.ran
    )
    with closing(engine):
        project = project.remembering(_memo(project, engine, paranoid=paranoid))
        graph = load_graph(project, engine)
        selected = select_models(graph, select) if select else None
        reporter.doing("raw files")
        memo = Memo(store.target / "cache" / MEMO, f"{engine.name} {engine.version}", paranoid=paranoid)
        around = [folder for folder in store.target.parents if (folder / "builds" / "current").is_file()]  # see verify
        around.append(settings.target)  # a plan for a target that cannot be written has another store
        intake = Intake(
            settings.data,
            known_formats() if settings.data else (),
            store,
            cluster=settings.cluster,
            leave_out=around,
            paranoid=paranoid,
            max_rejected=settings.max_rejected,
            memo=memo,
            follow_links=settings.follow_links,
        )
        memo.save()
        if settings.data:
            if not any(file.is_read for file in intake.inventory.files):
                raise nothing_to_read(intake.inventory)
            reporter.found(intake.inventory)
        elif any(read.startswith("raw.") for node in graph.nodes.values() for read in node.reads):
            raise _no_data()
        try:
            last = last_manifest(store.target)
        except WarehouseError:  # damaged: this build writes a new one
            last = None
        run = Run(
            project,
            graph,
            intake,
            store,
            engine,
            workers=1 if reporter.one_at_a_time else engine.side_by_side,
            reporter=reporter,
            selected=selected,
            kernels=kernels,
            last=_last_parts(last, store) if select else None,
        )
        yield Prepared(project, graph, intake, engine, last, run)


def _build(
    settings: Settings, reporter: Silent, select: Sequence[str], keep: int, *, kernels: bool, paranoid: bool
) -> Result:
    for path in left_behind(settings.target):
        remove(path)
    project = Project.open(settings.project)
    witness = Witness(settings, project)
    store = Store(settings.target, paranoid=paranoid, on_damage=reporter.note)
    for name in clear_the_way(store.target):
        reporter.note(f"{name} is damaged (no file or folder of the target): moved to damaged/, made again")
    with ExitStack() as opened:
        with witness.explaining():
            ready = opened.enter_context(
                prepared(settings, project, store, reporter, select=select, kernels=kernels, paranoid=paranoid)
            )
        graph, intake, engine, last = ready.graph, ready.intake, ready.engine, ready.last
        with witness.watching(intake) as refuse_changes:
            outcome = ready.run.run()
            refuse_changes()
            reporter.doing("catalog")
            parts = list(outcome.parts.values())
            name = build_id(parts, contracts(graph), ready.engine_mark)
            manifest = Manifest(
                build=name,
                engine=ready.engine_mark,
                parts=tuple(entry(part, store.target) for part in parts),
                stale=tuple(sorted(outcome.stale)),
                data=tuple(str(root.absolute()) for root in settings.data),
                published_utc=now_utc(),
                linked=_linked(settings, intake),
                number=1 + max((one.number for one in kept_manifests(store.target)), default=0),
            )
            entries = _entries(ready.project, graph, intake, engine, outcome)
            publish(
                store.target,
                entries,
                manifest,
                listing(intake),
                __version__,
                engine,
                _paths(entries, store),
                fresh=paranoid,
            )
    reporter.doing("end")
    keep_last(store.target, keep)
    size = sum(part.bytes for part in parts) + (store.target / "warehouse.duckdb").stat().st_size
    changed = last is None or last.build != name
    result = Result(name, settings.target, intake.inventory, outcome, size, changed)
    if outcome.stale or any(node.never_still for node in graph.nodes.values()):
        signatures.drop(store.target)
    else:
        witness.note(result, entries, keep=keep, kernels=kernels)
    return result


def _no_data() -> SettingsError:
    return SettingsError(
        "no data folder given", hint="warehouse build -d DIR  (a release as downloaded, or a part of it)"
    )


def load_graph(project: Project, engine: Engine) -> Graph:
    """Parse, order and bind all models: after this, no model has a mistake that can be seen without rows.

    What is remembered of the project is not found out again.
    """
    memo = project.memo or _memo(project, engine)
    project = project.remembering(memo)
    known = (rim(known_formats()) if project.reads_raw else {}) | {
        name: one.columns for name, one in project.references.items()
    }
    graph = Graph.build(project, known, engine, memo)
    bind(graph, engine, memo)
    memo.save()
    return graph


def _memo(project: Project, engine: Engine, *, paranoid: bool = False) -> Memo:
    """What is remembered of a project; `paranoid` believes none of it."""
    return memo_of_models(project.folders, f"{engine.name} {engine.version}", paranoid=paranoid)


def _last_parts(last: Manifest | None, store: Store) -> dict[tuple[str, str], Part]:
    found = {}
    for said in last.parts if last else ():
        model, partition = str(said["model"]), str(said["partition"] or "all")
        part = store.find(model, partition, str(said["fingerprint"]))
        if part is not None:
            found[model, partition] = part
    return found


def _entries(project: Project, graph: Graph, intake: Intake, engine: Engine, outcome: Outcome) -> list[Entry]:
    """The catalog: raw and reference relations, then models in order."""
    copied = _copied(graph, outcome)
    about = abouts(list(intake.formats.values())) if intake.inventory.roots else {}
    entries = [
        _raw_entry(name, columns, about[name], intake, engine) for name, columns in graph.rim.items() if name in about
    ]
    entries += [
        Entry(one.name, one.about, "reference", reference_source(one), one.columns, file=f"data/{one.path.name}")
        for one in project.references.values()
    ]
    for name in graph.order:
        node = graph.nodes[name]
        model = node.model
        parts = outcome.of(name)
        source: Source = Parts(model.columns, tuple(part.path for part in parts))
        kind = "table" if name in copied else "partitioned"
        if model.materialize == "view":
            source, kind = Select(node.sql, model.columns), "view"
        entries.append(
            Entry(
                name,
                model.about,
                kind,
                source,
                model.columns,
                grain=model.grain,
                partition=model.partition,
                rows=None if kind == "view" else sum(part.rows for part in parts),
                bytes=None if kind == "view" else sum(part.bytes for part in parts),
                file=model.shown_path,
                sources=model.sources,
                reads=node.reads,
                stale=name in outcome.stale,
                semantics=model.semantics,
                checks=tuple(
                    (key.partition, result)
                    for key in sorted(key for key in outcome.checks if key.model == name)
                    for result in outcome.checks[key]
                ),
            )
        )
    return entries


def _copied(graph: Graph, outcome: Outcome) -> set[str]:
    """The tables that are copied into the catalog: the smallest, as many as `COPIED_BYTES` allows."""
    sizes = {
        name: sum(part.bytes for part in outcome.of(name))
        for name in graph.order
        if graph.nodes[name].model.materialize != "view"
    }
    ordered = sorted(sizes, key=lambda name: (sizes[name], name))
    together = accumulate(sizes[name] for name in ordered)
    return {name for name, size in zip(ordered, together, strict=True) if size <= COPIED_BYTES}


def _linked(settings: Settings, intake: Intake) -> tuple[str, ...]:
    """Folders outside of the data folders that links lead to: readers may read there, too."""
    if not settings.follow_links:
        return ()
    roots = signatures.real_roots(settings.data)
    real = (os.path.realpath(file.path) for file in intake.inventory.files if file.is_read)
    return tuple(sorted({os.path.dirname(path) for path in real if not signatures.is_within(path, roots)}))  # noqa: PTH120


def _paths(entries: Sequence[Entry], store: Store) -> set[Path]:
    """The parts that readers of the catalog open, or that its tables are copies of."""
    found = (path for entry in entries if isinstance(entry.source, Parts) for path in entry.source.paths)
    return {path for path in found if path.is_relative_to(store.folder)}


def _raw_entry(name: str, columns: tuple, about: str, intake: Intake, engine: Engine) -> Entry:  # type: ignore[type-arg]
    source = intake.source(name, None, engine)
    listed = name in (FILES, "raw.rejected_rows")
    rows = len(intake.inventory.files) if name == FILES else None
    return Entry(name, about, "table" if listed else "raw", source, columns, rows=rows)
