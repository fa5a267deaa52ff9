"""Files of a new project (`warehouse init`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from warehouse.base.errors import SettingsError

_CONFIG = """\
# Read by every command that runs in this folder. Flags and WAREHOUSE_* variables win over it.

# Releases as downloaded: a root, a part of it or the archive. The folder "sample" is a synthetic one, to begin with.
data = {data}

# Where the warehouse is built.
target = "build/warehouse"

# Memory and cores of the engine.
memory = "3GB"
# threads = 4

# Without the models that are shipped, only those of this folder are built.
# shipped = false
"""
_MODEL = """\
/* ---
about: The ten servers that moved most in each hour. A model of your own, on top of the shipped ones.
grain: [cluster, hour_utc, place]
columns:
  cluster: VARCHAR the cluster's folder
  hour_utc: TIMESTAMP the hour
  place: BIGINT [1] 1 for the server that moved most
  server: VARCHAR GPU-n
  moved_bytes: BIGINT [B] received and sent
checks:
  - moved_bytes >= 0
--- */
WITH placed AS (
    SELECT
        cluster,
        hour_utc,
        row_number() OVER (PARTITION BY cluster, hour_utc ORDER BY rx_bytes + tx_bytes DESC, server) AS place,
        server,
        rx_bytes + tx_bytes AS moved_bytes
    FROM metrics.server_hour
)

SELECT cluster, hour_utc, place, server, moved_bytes
FROM placed
WHERE place <= 10
"""
_TEST = """\
# Rows that the model is given, and those that it must make of them: warehouse test metrics.top_servers
everywhere: {cluster: c, hour_utc: 2024-05-23 16:00:00}

the server that moved most in an hour is the first, of equals by name:
  given:
    metrics.server_hour: |
      server, rx_bytes, tx_bytes
      GPU-1,  10,       5
      GPU-2,  20,       5
      GPU-3,  5,        10
  expect: |
    place, server, moved_bytes
    1,     GPU-2,  25
    2,     GPU-1,  15
    3,     GPU-3,  15

only ten are kept:
  given:
    metrics.server_hour: |
      server, rx_bytes, tx_bytes
      GPU-1,  1..11,    0
  expect: |
    place
    1..10
"""
_IGNORE = "build/\nsample/\n"
SAMPLE = "sample"
"""The folder of the synthetic release, in the project."""


def start_project(folder: Path, data: Sequence[str] = ()) -> list[Path]:
    """Write a warehouse.toml, one model with its test and a .gitignore. Existing files are never changed.

    Parameters
    ----------
    folder
        The project.
    data
        Its data folders; default: the project's `sample/`, which the caller writes.

    Raises
    ------
    SettingsError
        When the folder already contains a project, or cannot be written.
    """
    files = {
        # A JSON list of texts is TOML, too.
        folder / "warehouse.toml": _CONFIG.replace("{data}", json.dumps(list(data) or [SAMPLE], ensure_ascii=False)),
        folder / "models" / "metrics" / "top_servers.sql": _MODEL,
        folder / "models" / "metrics" / "top_servers.test.yaml": _TEST,
        folder / ".gitignore": _IGNORE,
    }
    existing = next((path for path in files if path.exists()), None)
    if existing is not None:
        raise SettingsError(f"{existing} is there already", hint="give a new folder")
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{folder} cannot be written: {error.strerror}") from error
    return list(files)
