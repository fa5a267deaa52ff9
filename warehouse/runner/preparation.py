"""Prepare a build: open the engine, load the models, list the raw files. No part is written yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from warehouse.base.errors import DataError, SettingsError, WarehouseError
from warehouse.base.settings import Settings, is_standalone
from warehouse.base.text import plural
from warehouse.engine.base import Engine
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.workers import WORKER_BYTES, Workers
from warehouse.formats import known_formats
from warehouse.formats.base import SKIPPED, Format, Inventory, is_raw
from warehouse.graph.dag import Graph
from warehouse.graph.loading import cache_of, load_graph
from warehouse.graph.selectors import select_models
from warehouse.graph.small_parts import SmallParts
from warehouse.ingest.inventory import RawFiles
from warehouse.project.project import Project
from warehouse.runner.options import BuildOptions
from warehouse.runner.reporter import Reporter
from warehouse.store.atomic import temporary_path
from warehouse.store.folders import Walk
from warehouse.store.layout import partition_name, targets_above
from warehouse.store.manifest import Manifest, last_head, last_manifest
from warehouse.store.parse_cache import environment_hash
from warehouse.store.part_records import Part
from warehouse.store.parts import Store

_SHOWN = 3


@dataclass(frozen=True)
class Prepared:
    """Inputs of a build: project, DAG, raw files, store, engine, options."""

    project: Project
    graph: Graph
    raw_files: RawFiles
    store: Store
    engine: Engine
    workers: Workers
    small: SmallParts
    last: Manifest | None
    """The published build, without its parts."""
    options: BuildOptions
    keep_hours: str | None

    @property
    def engine_label(self) -> str:
        """Name and version of the engine, which are part of the build id."""
        return f"{self.engine.name} {self.engine.version}"

    def wanted(self) -> set[str]:
        """Return the models to build: the selected ones and their upstream models, or all models."""
        if not self.options.select:
            return set(self.graph.nodes)
        selected = select_models(self.graph, self.options.select)
        return selected.union(*(self.graph.ancestors(name) for name in selected))

    def last_entries(self) -> Sequence[Mapping[str, object]]:
        """Return the parts in the manifest of the published build; none if it is damaged."""
        try:
            last = last_manifest(self.store.target)
        except WarehouseError:
            return ()
        return last.parts if last else ()

    def last_parts(self) -> dict[tuple[str, str], Part]:
        """Return the published parts, which models outside the selection keep. Empty without `--select`."""
        found = {}
        for entry in self.last_entries() if self.options.select else ():
            model, partition = str(entry["model"]), partition_name(entry["partition"])
            part = self.store.find(model, partition, str(entry["fingerprint"]))
            if part is not None:
                found[model, partition] = part
        return found


def check_folders(settings: Settings) -> None:
    """Check that data folders are given, exist and lie outside the target. Raises SettingsError."""
    if not settings.data and not (settings.project and is_standalone(settings.project)):
        raise _no_data()
    target = settings.target.absolute()
    for root in settings.data:
        if not root.exists():
            raise SettingsError(f"no such data folder: {root}", hint="give an existing folder with --data")
        if target == root.absolute() or target in root.absolute().parents:
            raise SettingsError(f"the data folder {root} lies inside the target {settings.target}")


@contextmanager
def prepared(
    settings: Settings,
    options: BuildOptions,
    project: Project,
    store: Store,
    reporter: Reporter,
    walk: Walk | None = None,
    narrow: Callable[[Graph], Graph] | None = None,
) -> Iterator[Prepared]:
    """Open an engine, load the DAG, list the raw files.

    `narrow`, for a share of a build, may replace the DAG and leave folders out of the walk.

    Raises
    ------
    WarehouseError
        When a model is invalid, a selector matches no model, or no raw file is readable.
    """
    reporter.stage_started("models")
    workers = Workers(1 if reporter.is_sequential else worker_count(settings))
    engine = DuckDBEngine(
        threads=settings.threads,
        memory_bytes=settings.memory_bytes - workers.memory_bytes,
        spill=temporary_path(store.target / "cache" / "spill"),
        observe=reporter.statement_finished,
    )
    with closing(engine), closing(workers):
        project = project.with_cache(cache_of(project, engine, paranoid=options.paranoid))
        graph = load_graph(project, engine)
        select_models(graph, options.select)  # fail on a wrong selector before reading any file
        graph = narrow(graph) if narrow else graph
        reporter.stage_started("raw files")
        formats = known_formats(project.log_lines) if settings.data else ()
        raw_files = _raw_files(settings, options, store, engine, workers, walk, formats)
        if settings.data:
            if not narrow:
                refuse_nothing_to_read(raw_files.inventory)
            if raw_files.inventory.is_readable:  # a share may have no hour
                reporter.found(raw_files.inventory)
        elif any(is_raw(read) for node in graph.nodes.values() for read in node.reads):
            raise _no_data()
        published = _published(store.target)
        with closing(SmallParts(engine, None if narrow else store.target, fresh=options.paranoid)) as small:
            yield Prepared(
                project, graph, raw_files, store, engine, workers, small, published, options, settings.keep_hours
            )


def worker_count(settings: Settings) -> int:
    """Return the number of worker processes: one for each thread, as far as a third of the memory allows."""
    return max(1, min(settings.threads, settings.memory_bytes // 3 // WORKER_BYTES))


def _raw_files(
    settings: Settings,
    options: BuildOptions,
    store: Store,
    engine: Engine,
    workers: Workers,
    walk: Walk | None,
    formats: Sequence[Format],
) -> RawFiles:
    """List and hash the raw files."""
    return RawFiles(
        settings.data,
        formats,
        store,
        cluster=settings.cluster,
        leave_out=[settings.target, *targets_above(settings.target)],  # a dry run may have a store elsewhere
        paranoid=options.paranoid,
        max_rejected=settings.max_rejected,
        environment=environment_hash(f"{engine.name} {engine.version}"),
        follow_links=settings.follow_links,
        trust_folders=settings.trust_folders,
        threads=settings.threads,
        workers=workers,
        walk=walk,
        share=str(options.share) if options.share else None,
        names_in_shares={there: here for here, there in settings.worker_paths.items()},
    )


def _published(target: Path) -> Manifest | None:
    try:
        return last_head(target)
    except WarehouseError:  # a damaged manifest: this build writes a new one
        return None


def _no_data() -> SettingsError:
    return SettingsError(
        "no data folder given", hint="warehouse build -d DIR  (a release as downloaded, or a part of it)"
    )


def refuse_nothing_to_read(inventory: Inventory) -> None:
    """Raise DataError, with the reasons of the first files, if no file of the data folders is readable."""
    if inventory.is_readable:
        return
    where = ", ".join(str(root) for root in inventory.roots)
    seen = plural(inventory.count, "file")
    unread = sorted(inventory.files, key=lambda file: file.status != SKIPPED)
    raise DataError(
        f"nothing readable in {where}: {seen}, none recognised" if inventory.count else f"no files in {where}",
        details=[f"  {file.path.name}: {file.reason}" for file in unread[:_SHOWN]],
        hint="see what was found: warehouse doctor -d DIR",
    )
