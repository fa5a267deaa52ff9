"""Record of the check that stopped the last build, for readers that explain why nothing was published."""

from __future__ import annotations

import json
from pathlib import Path

from warehouse.base.errors import CheckError
from warehouse.base.text import now_utc
from warehouse.store.atomic import write_text

FAILED = "failed.json"


def note_failed(target: Path, error: CheckError | None) -> None:
    """Record the check that stopped a build in `builds/failed.json`; with None, remove the record."""
    path = target / "builds" / FAILED
    if error is None or error.found is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps({"at_utc": now_utc(), **error.found}, ensure_ascii=False))
