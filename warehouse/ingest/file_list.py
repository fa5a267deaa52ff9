"""List of a build's raw files, stored with the build to detect added, removed and changed files later."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from warehouse.ingest.inventory import RawFiles
from warehouse.ingest.partitions import partition_of
from warehouse.ingest.schemas import FILES
from warehouse.project.model import PARTITIONS
from warehouse.store.atomic import write_text
from warehouse.store.layout import ALL, RAW_FILES, build_folder
from warehouse.store.signatures import read_text


class Listed(NamedTuple):
    """Raw file in the list of a build."""

    content: str
    """Content hash; the status for a file that is not read."""
    feeds: tuple[str, ...]
    """Relations of `raw` that the file has rows for."""
    partitions: tuple[str, ...]
    """Partitions of the file, for each column that can partition a model."""


Listing = Mapping[str, Listed]
"""Listed files by release path."""


class FileChange(NamedTuple):
    """Raw file that was added, removed or changed."""

    change: str
    """`added`, `removed` or `changed`."""
    release_path: str
    partitions: frozenset[str]
    """Partitions of the file before and after the change."""

    def is_in(self, partition: str) -> bool:
        """Return True if the change can affect rows of a partition."""
        return partition == ALL or partition in self.partitions


def listing(raw_files: RawFiles) -> dict[str, Listed]:
    """Return the list of a build's raw files. If two files have the same release path, the one that is read counts."""
    found: dict[str, Listed] = {}
    for file in sorted(raw_files.inventory.files, key=lambda one: one.is_read):
        relations = raw_files.formats[file.format or ""].relations if file.is_read else ()
        partitions = (partition_of(file, column) for column in PARTITIONS)
        found[file.release_path] = Listed(
            file.digest or file.status,
            (FILES, *(relation.full_name for relation in relations)),
            tuple(partition for partition in partitions if partition),
        )
    return found


def changes(before: Listing, after: Listing, relation: str) -> Iterator[FileChange]:
    """Yield the added, removed and changed files of a relation."""
    for path in sorted({*before, *after}):
        old, new = (one if one and relation in one.feeds else None for one in (before.get(path), after.get(path)))
        if old == new:
            continue
        change = "added" if old is None else "removed" if new is None else "changed"
        yield FileChange(change, path, frozenset((*(old.partitions if old else ()), *(new.partitions if new else ()))))


def write_listing(folder: Path, files: Listing) -> None:
    """Write the list of raw files to a build's folder."""
    write_text(folder / RAW_FILES, json.dumps(files, separators=(",", ":")))


def read_listing(target: Path, build: str) -> dict[str, Listed] | None:
    """Return the list of raw files of an earlier build; None if it is missing or damaged."""
    try:
        listed = json.loads(read_text(build_folder(target, build) / RAW_FILES))
        return {
            path: Listed(str(content), tuple(feeds), tuple(partitions))
            for path, (content, feeds, partitions) in listed.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return None
