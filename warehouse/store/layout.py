"""Names and paths of files in a target and in an export."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

ALL = "all"
"""Partition of a relation that is not partitioned."""
CATALOG = "catalogue.duckdb"
"""Name of a build's copy of the catalog."""
MANIFEST = "manifest.json"
"""Name of the list of files that a build, an export or a site consists of."""
EXPORT, SITE = "warehouse export", "warehouse docs"
"""Kinds of output folders, as their manifests name them."""


def partition_value(partition: str) -> str | None:
    """Return the value of the partition column of a part; None if its relation is not partitioned."""
    return None if partition == ALL else partition


def build_folder(target: Path, build: str) -> Path:
    """Return the folder of a build: its manifest, its copy of the catalog, its list of raw files."""
    return target / "builds" / build


def catalog_of(target: Path, build: str) -> Path:
    """Return the catalog of a build, which stays when a later build is published."""
    return build_folder(target, build) / CATALOG
