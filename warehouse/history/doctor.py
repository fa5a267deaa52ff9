"""What `warehouse doctor` looks at: the inventory, with damaged files looked through, and nothing written."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

from warehouse.base.errors import SettingsError, WarehouseError
from warehouse.base.settings import Settings
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.formats import known_formats
from warehouse.formats.base import Inventory
from warehouse.graph.dag import Graph
from warehouse.graph.rebuild_reasons import volatile_places
from warehouse.ingest.inventory import RawFiles
from warehouse.ingest.schemas import source_columns
from warehouse.project.project import Project
from warehouse.store.manifest import last_manifest
from warehouse.store.parts import Store


def examine(settings: Settings) -> Inventory:
    """Scan the data folders as a build would, in a target that is thrown away.

    Raises
    ------
    SettingsError
        When no data folder is given and the target holds no build that names one.
    """
    data = settings.data or _built_from(settings.target)
    if not data:
        raise SettingsError("no data folder given", hint="warehouse doctor -d DIR")
    for root in data:
        if not root.exists():
            raise SettingsError(f"no such data folder: {root}", hint="give an existing folder with --data")
    with tempfile.TemporaryDirectory(prefix="warehouse-doctor-") as folder:
        raw_files = RawFiles(
            data,
            known_formats(),
            Store(Path(folder)),
            cluster=settings.cluster,
            leave_out=[settings.target],
            follow_links=settings.follow_links,
        )
        return raw_files.inventory


def never_skipped(settings: Settings) -> list[tuple[str, str]]:
    """(name, what and where) of each model that every build makes or checks again, since it is volatile.

    Models that cannot be read have none: what is wrong with them is for the build to say.
    """
    try:
        project = Project.open(settings.project)
        known = source_columns(known_formats()) | {name: one.columns for name, one in project.references.items()}
        with closing(DuckDBEngine(threads=1, memory_bytes=2**28, spill=Path("spill"))) as engine:
            nodes = Graph.build(project, known, engine).nodes
    except WarehouseError:
        return []
    return [(name, volatile_places(node)) for name, node in nodes.items() if node.never_still]


def _built_from(target: Path) -> tuple[Path, ...]:
    last = last_manifest(target) if target.is_dir() else None
    return tuple(Path(folder) for folder in last.data) if last else ()
