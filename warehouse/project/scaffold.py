"""What `warehouse init` writes: a project that extends the shipped models by one of its own."""

from __future__ import annotations

from pathlib import Path

from warehouse.base.errors import SettingsError

_CONFIG = """\
# Read by every command that runs in this folder. Flags and WAREHOUSE_* variables win over it.
# data = ["releases/zhejiang"]
target = "build/warehouse"
memory = "3GB"
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
_IGNORE = "build/\n"


def start_project(folder: Path) -> list[Path]:
    """Write a warehouse.toml, one model and a .gitignore; nothing that is there is touched.

    Raises
    ------
    SettingsError
        When the folder holds a project already, or cannot be written.
    """
    files = {
        folder / "warehouse.toml": _CONFIG,
        folder / "models" / "metrics" / "top_servers.sql": _MODEL,
        folder / ".gitignore": _IGNORE,
    }
    there = next((path for path in files if path.exists()), None)
    if there is not None:
        raise SettingsError(f"{there} is there already", hint="give a new folder")
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{folder} cannot be written: {error.strerror}") from error
    return list(files)
