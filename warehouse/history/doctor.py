"""Diagnosis of data folders (`warehouse doctor`): inventory with scanned damaged files, without changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from warehouse.base.errors import SettingsError, WarehouseError
from warehouse.base.settings import Settings, shipped_root
from warehouse.base.text import few, plural
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.formats import GROUP, known_formats
from warehouse.formats.base import Format, Inventory, RawFile, RemarkedFormat
from warehouse.graph.dag import Graph
from warehouse.ingest.raw_files import RawFiles
from warehouse.project.project import Project
from warehouse.runner.dry_run import volatile_places
from warehouse.store.atomic import scratch_folder
from warehouse.store.manifest import last_manifest
from warehouse.store.parts import Store

OWN_FILES = {
    "model": ("models/**/*.sql", "models/**/*.py"),
    "query file": ("sql/queries/*.sql",),
    "macro file": ("sql/macros/*.sql",),
    "figure": ("sql/report/*.sql",),
    "hour header file": ("data/hour_columns.csv",),
    "table": ("data/*.csv",),
    "log pattern file": ("data/log_lines.yaml",),
    "trace mapping": ("data/traces/*.yaml",),
}
"""Kinds of files of a project, and where they are; a file is of the first kind that has it."""


def examine(settings: Settings) -> Inventory:
    """Scan the data folders in the same way as a build, with a temporary target.

    Raises
    ------
    SettingsError
        When no data folder is given and the target has no build with data folders, or when a folder does not exist.
    """
    data = settings.data or _last_data_folders(settings.target)
    if not data:
        raise SettingsError("no data folder given", hint="warehouse doctor -d DIR")
    for root in data:
        if not root.exists():
            raise SettingsError(f"no such data folder: {root}", hint="give an existing folder with --data")
    with scratch_folder("doctor") as folder:
        # A build would stop at too many bad lines, which the doctor is to list.
        asked = settings._replace(data=tuple(data), max_rejected=1.0)
        return RawFiles(asked, _formats(settings), Store(folder), "").inventory


def remarks(files: Sequence[RawFile], settings: Settings) -> list[tuple[RawFile, str]]:
    """Return the files that are read and yet lack what they are read for, each with what it lacks.

    Raises
    ------
    DataError
        If a file cannot be opened.
    """
    found = []
    for one in _formats(settings):
        if isinstance(one, RemarkedFormat):
            found += one.remarks([file for file in files if file.format == one.name and file.is_read])
    return found


def never_skipped(settings: Settings) -> list[tuple[str, str]]:
    """Return (name, volatile expressions with places) of each model that every build rebuilds or checks again.

    Returns an empty list if a model is invalid: the build reports that error.
    """
    try:
        project = Project.open(settings.project)
        with closing(DuckDBEngine(memory_bytes=2**28, spill=Path("spill"))) as engine:
            nodes = Graph.build(project, engine).nodes
    except WarehouseError:
        return []
    return [(name, volatile_places(node)) for name, node in nodes.items() if node.is_volatile]


def plug_ins(settings: Settings) -> Iterator[str]:
    """Yield a line for each format of another package, and for each kind of file of a project, with its place."""
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    for point in sorted(entry_points(group=GROUP), key=lambda one: (one.name, one.value)):
        package = f"{point.dist.name} {point.dist.version}" if point.dist else "another package"
        module = find_spec(point.module)
        yield f"format {point.name} of {package}: {module.origin if module else point.module}"
    for folder in Project.open(settings.project).folders:
        if folder == shipped_root():
            continue
        named: set[str] = set()
        for what, patterns in OWN_FILES.items():
            names = {path.relative_to(folder).as_posix() for one in patterns for path in folder.glob(one)} - named
            if names:
                yield f"{plural(len(names), what)} of {folder}: {few(sorted(names))}"
            named |= names


def _formats(settings: Settings) -> Sequence[Format]:
    project = Project.open(settings.project)
    return known_formats(project.log_lines, project.hour_columns, project.traces)


def _last_data_folders(target: Path) -> tuple[Path, ...]:
    last = last_manifest(target) if target.is_dir() else None
    return tuple(Path(folder) for folder in last.data) if last else ()
