"""The raw files of a build, left with it so that later ones can tell which came, went or hold something else."""

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
from warehouse.store.part_records import ALL
from warehouse.store.signatures import read_text

FILE = "files.json"


class Listed(NamedTuple):
    """A raw file, as a build saw it."""

    content: str
    """The hash of its content; of one that is not read, why."""
    feeds: tuple[str, ...]
    """The relations of `raw` that it has rows in."""
    partitions: tuple[str, ...]
    """By every column that a model can be split by."""


Listing = Mapping[str, Listed]
"""By release path."""


class FileChange(NamedTuple):
    """A raw file that is new, gone or holds something else."""

    change: str
    """`added`, `removed` or `changed`."""
    release_path: str
    partitions: frozenset[str]
    """Those that it is or was in."""

    def is_in(self, partition: str) -> bool:
        """Whether rows of a partition can be others for it."""
        return partition == ALL or partition in self.partitions


def listing(raw_files: RawFiles) -> dict[str, Listed]:
    """The raw files of a build; of two with one release path, the one that is read."""
    found: dict[str, Listed] = {}
    for file in sorted(raw_files.inventory.files, key=lambda one: one.is_read):
        relations = raw_files.formats[file.format or ""].relations if file.is_read else ()
        partitions = (partition_of(file, column) for column in PARTITIONS)
        found[file.release_path] = Listed(
            file.digest or file.status,
            (FILES, *(f"raw.{relation.name}" for relation in relations)),
            tuple(partition for partition in partitions if partition),
        )
    return found


def changes(before: Listing, after: Listing, relation: str) -> Iterator[FileChange]:
    """The files of a relation that differ."""
    for path in sorted({*before, *after}):
        old, new = (one if one and relation in one.feeds else None for one in (before.get(path), after.get(path)))
        if old == new:
            continue
        change = "added" if old is None else "removed" if new is None else "changed"
        yield FileChange(change, path, frozenset((*(old.partitions if old else ()), *(new.partitions if new else ()))))


def write_listing(folder: Path, files: Listing) -> None:
    """Keep the raw files of a build in its folder."""
    write_text(folder / FILE, json.dumps(files, separators=(",", ":")))


def read_listing(target: Path, build: str) -> dict[str, Listed] | None:
    """The raw files of an earlier build; None where that is not known."""
    try:
        said = json.loads(read_text(target / "builds" / build / FILE))
        return {
            path: Listed(str(content), tuple(feeds), tuple(partitions))
            for path, (content, feeds, partitions) in said.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return None
