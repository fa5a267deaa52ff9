"""Session of a build: what is open while it runs."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from warehouse.base.errors import SettingsError, WarehouseError
from warehouse.base.settings import Settings, is_standalone
from warehouse.base.text import size
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.duckdb_errors import is_full_disk
from warehouse.project.project import Project
from warehouse.runner import executor
from warehouse.runner.reporter import Reporter
from warehouse.store.layout import KEPT_BUILDS
from warehouse.store.manifest import Entry, Manifest, readable_manifest
from warehouse.store.parts import Store
from warehouse.store.signatures import Stamp, look, settle
from warehouse.store.walk import code_files


class BuildOptions(NamedTuple):
    """Options of one build."""

    select: tuple[str, ...] = ()
    """Selectors: these models and all upstream of them are built; the others keep their published parts."""
    keep: int = KEPT_BUILDS
    """Number of builds to keep."""
    wait: bool = False
    """True to wait while another build of this target runs."""
    paranoid: bool = False
    """True to hash every raw file and every part again, even if its signature is unchanged."""
    executor: Executor | None = None
    """Executor of the tasks; None for the threads of this machine."""


@contextmanager
def explaining_full_disk(settings: Settings) -> Iterator[None]:
    """Replace errors of a full disk. Raises WarehouseError with the folder and its free space."""
    try:
        yield
    except (OSError, WarehouseError) as error:
        causes: list[BaseException] = [error]
        while (cause := causes[-1].__cause__) and cause not in causes:  # a re-raised error can be in a cycle of causes
            causes.append(cause)
        numbers = {one.errno for one in causes if isinstance(one, OSError)}
        # DuckDB's errors have no errno.
        if is_full_disk("\n".join(map(str, causes))) or numbers & {errno.ENOSPC, errno.EDQUOT}:
            free = os.statvfs(settings.target)
            raise WarehouseError(
                f"the disk of {settings.target} is full: {size(free.f_bavail * free.f_frsize)} are free",
                hint="-t DIR builds on another disk",
            ) from error
        raise


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
    project = replace(Project.open(settings.project), paranoid=options.paranoid)
    code = code_files(project.folders)
    tables = {path: look(path) for path in project.tables()}
    own = tuple(f"{folder}/" for folder in project.folders)
    settle([*tables.values(), *(seen for path, seen in code.items() if path.startswith(own))])
    spill = store.temporary("spill")
    with (
        executor.opened(settings, spill, options.executor, reporter.statement_finished) as runs,
        closing(DuckDBEngine(memory_bytes=settings.memory_bytes // (runs.width + 1), spill=spill)) as engine,
    ):
        yield Session(
            settings, options, reporter, project, store, engine, runs, readable_manifest(store.target), code, tables
        )


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
