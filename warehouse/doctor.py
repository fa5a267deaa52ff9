"""What `warehouse doctor` looks at: the inventory, with damaged files looked through, and nothing written."""

from __future__ import annotations

import tempfile
from pathlib import Path

from warehouse.errors import SettingsError
from warehouse.formats import known_formats
from warehouse.formats.base import Inventory
from warehouse.intake import Intake
from warehouse.settings import Settings
from warehouse.store import Store


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
        intake = Intake(
            data, known_formats(), Store(Path(folder)), cluster=settings.cluster, leave_out=[settings.target]
        )
        return intake.inventory


def _built_from(target: Path) -> tuple[Path, ...]:
    from warehouse.manifest import last_manifest

    last = last_manifest(target) if target.is_dir() else None
    return tuple(Path(folder) for folder in last.data) if last else ()
