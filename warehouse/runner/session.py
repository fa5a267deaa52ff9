"""Session of a build: what is open while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from warehouse.base.errors import SettingsError, WarehouseError
from warehouse.base.settings import Settings, is_standalone
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.graph.loading import cache_of
from warehouse.project.project import Project
from warehouse.runner import executor
from warehouse.runner.options import BuildOptions
from warehouse.runner.reporter import Reporter
from warehouse.store.changed_files import look, settle
from warehouse.store.manifest import Entry, Manifest, last_manifest
from warehouse.store.parts import Store
from warehouse.store.signatures import Stamp, code_files


class Session(NamedTuple):
    """What is open while a build or a dry run is going on."""

    settings: Settings
    options: BuildOptions
    reporter: Reporter
    project: Project
    store: Store
    engine: DuckDBEngine
    """Engine of the coordinator."""
    runs: executor.Runs
    last: Manifest | None
    """The published build; None before the first one, or if its manifest is damaged."""
    code: dict[str, Stamp]
    """Signatures of package and project from before any of their files was read."""
    tables: dict[Path, Stamp]
    """Signatures of the CSV files of `data/`, likewise."""

    @property
    def engine_label(self) -> str:
        """Name and version of the engine, which are part of the build id."""
        return f"{self.engine.name} {self.engine.version}"

    def last_entries(self) -> Sequence[Entry]:
        """Return the parts of the published build."""
        return self.last.parts if self.last else ()


@contextmanager
def opened(settings: Settings, options: BuildOptions, reporter: Reporter, store: Store) -> Iterator[Session]:
    """Open the engines of a build. No file of the project has been read before."""
    project = Project.open(settings.project)
    code = code_files(project.folders)
    tables = {path: look(path) for path in project.tables()}
    own = tuple(f"{folder}/" for folder in project.folders)
    settle([*tables.values(), *(seen for path, seen in code.items() if path.startswith(own))])
    spill = store.temporary("spill")
    with (
        executor.opened(settings, spill, options.executor, reporter.statement_finished) as runs,
        closing(DuckDBEngine(memory_bytes=settings.memory_bytes // (runs.width + 1), spill=spill)) as engine,
    ):
        project = project.with_cache(cache_of(project, engine, paranoid=options.paranoid))
        yield Session(settings, options, reporter, project, store, engine, runs, _published(store.target), code, tables)


def check_folders(settings: Settings) -> None:
    """Check that data folders are given, exist and lie outside the target. Raises SettingsError."""
    if not settings.data and not (settings.project and is_standalone(settings.project)):
        raise no_data()
    target = settings.target.absolute()
    for root in settings.data:
        if not root.exists():
            raise SettingsError(f"no such data folder: {root}", hint="give an existing folder with --data")
        if target == root.absolute() or target in root.absolute().parents:
            raise SettingsError(f"the data folder {root} lies inside the target {settings.target}")


def no_data() -> SettingsError:
    """Return the error of a command without data folders."""
    return SettingsError(
        "no data folder given", hint="warehouse build -d DIR  (a release as downloaded, or a part of it)"
    )


def _published(target: Path) -> Manifest | None:
    try:
        return last_manifest(target)
    except WarehouseError:  # a damaged manifest: this build writes a new one
        return None
