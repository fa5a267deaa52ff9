"""Raw files of a data folder, as a build of it sees them."""

from __future__ import annotations

from pathlib import Path

from warehouse.base.settings import settle
from warehouse.formats import known_formats
from warehouse.ingest.raw_files import RawFiles
from warehouse.store.parts import Store


def raw_files_of(data: Path, target: Path, environment: str = "", *, paranoid: bool = False) -> RawFiles:
    """Look at the files of a data folder, and note them in the target's state."""
    target.mkdir(parents=True, exist_ok=True)
    settings = settle({"data": [str(data)], "target": str(target)})
    store = Store(target, paranoid=paranoid, on_damage=lambda _: None)
    return RawFiles(settings, known_formats(), store, environment, paranoid=paranoid)
