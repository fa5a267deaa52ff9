"""Names and paths of the files of a target, and of an export."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

ALL = "all"
"""Partition of a relation that is not partitioned."""
PARTS = "parts"
"""Folder of the parts of all builds."""
PUBLISHED = "warehouse.duckdb"
"""The published catalog, which readers open."""
MACROS = "query"
"""Schema of the named queries in the published file, where each is a table macro."""
CATALOG = "catalog.duckdb"
"""A build's copy of the catalog, in its folder."""
MANIFEST = "manifest.json"
"""The list of files that a build, an export or a site consists of."""
RAW_FILES = "files.json"
"""The list of raw files of a build."""
KEPT_BUILDS = 3
"""Default number of builds to keep."""
EXPORT, SITE = "warehouse export", "warehouse docs"
"""Kinds of output folders, as their manifests name them."""


def partition_value(partition: str) -> str | None:
    """Return the value of the partition column of a part; None if its relation is not partitioned."""
    return None if partition == ALL else partition


def partition_name(value: object) -> str:
    """Return the name of a part's partition, from the value of the partition column; the inverse of partition_value."""
    return str(value or ALL)


def with_tables_of_views(tables: Iterable[str], views: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the tables and, recursively, the tables that views read, in lower case."""
    reads = {name.lower(): below for name, below in views.items()}

    def below(name: str) -> Iterator[str]:
        yield name.lower()
        for read in reads.get(name.lower(), ()):
            yield from below(read)

    return {name for table in tables for name in below(table)}


def current_file(target: Path) -> Path:
    """Return the file with the id of the published build."""
    return target / "builds" / "current"


def targets_above(target: Path) -> list[Path]:
    """Return the targets that a folder lies in: `verify` builds inside the target that it examines."""
    return [folder for folder in target.absolute().parents if current_file(folder).is_file()]


def build_folder(target: Path, build: str) -> Path:
    """Return the folder of a build: its manifest, its copy of the catalog, its list of raw files."""
    return target / "builds" / build


def catalog_of(target: Path, build: str) -> Path:
    """Return the catalog of a build, which stays when a later build is published."""
    return build_folder(target, build) / CATALOG
