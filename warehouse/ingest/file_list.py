"""List of a build's raw files, stored with the build to find added, removed and changed files later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from warehouse.ingest.raw_files import RawFiles
from warehouse.ingest.schemas import FILES
from warehouse.project.model import PARTITIONS
from warehouse.store.layout import ALL, RAW_FILES, build_folder
from warehouse.store.partitions import partition_of, pieces
from warehouse.store.sealed import read_sealed, write_sealed


class Listed(NamedTuple):
    """Raw file in the list of a build."""

    content: str
    """Content hash; the status of a file that is not read."""
    feeds: tuple[str, ...]
    """Relations of `raw` that the file has rows for."""
    partitions: tuple[str, ...]
    """Pieces of the names of partitions that the file may be in."""


FileList = Mapping[str, Listed]
"""Raw files by release path. If two files have the same release path, the one that is read counts."""


class FileChange(NamedTuple):
    """Raw file that was added, removed or changed."""

    change: str
    """`added`, `removed` or `changed`."""
    release_path: str
    partitions: frozenset[str]
    """Pieces of the names of the file's partitions before and after the change."""

    def is_in(self, partition: str) -> bool:
        """Return True if the change can affect rows of a partition."""
        return partition == ALL or self.partitions.issuperset(pieces(partition).values())


def list_files(raw_files: RawFiles) -> dict[str, Listed]:
    """Return the list of a build's raw files."""
    fed = {one.name: tuple(relation.full_name for relation in one.relations) for one in raw_files.formats.values()}
    found: dict[str, Listed] = {}
    for file in raw_files.inventory.files:
        if file.is_read or file.release_path not in found:
            feeds = (FILES, *(fed[file.format or ""] if file.is_read else ()))
            named = (partition_of(file, (column,)) for column in PARTITIONS)
            found[file.release_path] = Listed(file.digest or file.status, feeds, tuple(filter(None, named)))
    return found


def changes(before: FileList, after: FileList, relation: str) -> Iterator[FileChange]:
    """Yield the added, removed and changed files of a relation."""
    for path in sorted({*before, *after}):
        old, new = (one if one and relation in one.feeds else None for one in (before.get(path), after.get(path)))
        if old == new:
            continue
        change = "added" if old is None else "removed" if new is None else "changed"
        yield FileChange(change, path, frozenset((*(old.partitions if old else ()), *(new.partitions if new else ()))))


def write_listing(folder: Path, files: FileList) -> None:
    """Write the list of raw files to a build's folder."""
    write_sealed(folder / RAW_FILES, files)


def read_listing(target: Path, build: str) -> FileList | None:
    """Return the list of raw files of an earlier build; None if it is missing or damaged."""
    try:
        listed = read_sealed(build_folder(target, build) / RAW_FILES)
        return {path: Listed(content, tuple(feeds), tuple(named)) for path, (content, feeds, named) in listed.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return None
