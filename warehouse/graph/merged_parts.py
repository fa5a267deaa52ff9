"""Merged parts: the parts of a relation for ten hours, a day or ten days in one file, for what reads all hours.

Opening a small file costs as much as reading thousands of rows. Merged files are a cache: parts stay as they are, and
the rows are the same in the same order. A file's name holds the hash of its parts' digests and its own hash.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path

from warehouse.base import hashing
from warehouse.engine.base import Engine, Parts, Select
from warehouse.ingest.partitions import HOUR, column_of
from warehouse.project.contract import Column
from warehouse.store.atomic import is_misplaced, remove, temporary_path
from warehouse.store.layout import ALL
from warehouse.store.part_records import Part

BLOCKS = (len("2024-05-2"), len("2024-05-23"), len("2024-05-23T1"))
"""Lengths of the beginnings of names of hours that stand for ten days, a day and ten hours."""
FEWEST_FILES = 3
"""Number of files that are worth merging."""
MOST_BYTES = 10 * 10**6
"""Size of a block's parts above which opening them is a small share of reading them."""


class MergedParts:
    """Cache of merged parts in a folder, which may be missing. A build examines each file once.

    Parameters
    ----------
    engine
        Writer of the merged files.
    folder
        The folder of the cache; it has one for each relation.
    """

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self._folder = folder
        self._found: dict[tuple[object, ...], tuple[str, ...]] = {}

    def paths(self, relation: str, columns: Sequence[Column], parts: Sequence[Part]) -> tuple[str, ...]:
        """Return files with the rows of these parts, in their order; a merged one for each block of hours but the last.

        The last block may not be over: it would be merged again with each new hour.
        """
        if len(parts) <= FEWEST_FILES or parts[0].partition == ALL or column_of(parts[0].partition) != HOUR:
            return tuple(part.file for part in parts)
        key = (relation, *columns, *(part.digest for part in parts))
        if key not in self._found:
            self._found[key] = tuple(_Merge(self._engine, self._folder / relation, relation, columns).paths(parts))
        return self._found[key]


class _Merge:
    """Merge of the parts of one relation."""

    def __init__(self, engine: Engine, folder: Path, relation: str, columns: Sequence[Column]) -> None:
        self._engine = engine
        self._folder = folder
        self._relation = relation
        self._columns = tuple(columns)
        try:
            names = os.listdir(folder)
        except OSError:
            names = []
        self._known = {name.partition(".")[0]: name for name in names if not name.startswith(".")}

    def paths(self, parts: Sequence[Part], level: int = 0, *, is_last: bool = True) -> list[str]:
        """Return the files of some parts: a file for each block of this level, the last one by smaller blocks."""
        if level == len(BLOCKS):
            return [part.file for part in parts]
        groups = itertools.groupby(parts, key=lambda part: part.partition[: BLOCKS[level]])
        blocks = [(name, list(block)) for name, block in groups]
        found: list[str] = []
        for at, (name, block) in enumerate(blocks):
            if is_last and at == len(blocks) - 1:
                found += self.paths(block, level + 1)
            else:
                found += self._merged(name, block, level)
        return found

    def _merged(self, name: str, block: Sequence[Part], level: int) -> list[str]:
        """Return the merged file of a block, written in place of that of other parts; its smaller files if few."""
        types = [[column.name, column.type] for column in self._columns]
        inputs = hashing.of([types, [part.digest for part in block]])
        old = self._known.get(name)
        if old is not None and old.startswith(f"{name}.{inputs}.") and _is_intact(self._folder / old):
            return [str(self._folder / old)]
        below = self.paths(block, level + 1, is_last=False)
        if len(below) < FEWEST_FILES or sum(part.bytes for part in block) > MOST_BYTES:
            return below
        path = self._write(name, inputs, below)
        if old is not None and old != path.name:
            remove(self._folder / old)
        return [str(path)]

    def _write(self, name: str, inputs: str, files: Sequence[str]) -> Path:
        for folder in (self._folder.parent, self._folder):
            if is_misplaced(folder, folder=True):
                remove(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        written = temporary_path(self._folder / name)
        try:
            with self._engine.scratch({self._relation: Parts(self._columns, tuple(files))}, one_thread=True) as scratch:
                scratch.write(Select(f"FROM {self._relation}", self._columns), written, ())
            path = self._folder / f"{name}.{inputs}.{hashing.of_file(written)}.parquet"
            if is_misplaced(path):
                remove(path)
            written.replace(path)
        finally:
            written.unlink(missing_ok=True)
        return path


def _is_intact(path: Path) -> bool:
    """Return True if the content of a merged file has the hash in its name."""
    try:
        return hashing.of_file(path) == path.name.split(".")[2]
    except (OSError, IndexError):
        return False
