"""Day files: the parts of a relation for one day in one Parquet file, for models and checks that read all hours.

Opening a small file costs as much as reading thousands of rows. Day files are a cache: parts stay as they are, and the
rows are the same in the same order. The name of a day file holds the hash of its parts' digests and its own hash.
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
from warehouse.store.atomic import temporary_path
from warehouse.store.layout import ALL
from warehouse.store.part_records import Part

FEWEST_PARTS = 12
"""Number of parts that are worth a day file."""
MOST_BYTES = 10 * 10**6
"""Size of a day's parts above which opening them is a small share of reading them."""
_DAY = len("2024-05-23")


class DayFiles:
    """Cache of day files in a folder, which may be missing."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self._folder = folder

    def paths(self, relation: str, columns: Sequence[Column], parts: Sequence[Part]) -> tuple[Path, ...]:
        """Return the files with the rows of these parts, in their order: day files for all days but the last."""
        if len(parts) <= FEWEST_PARTS or ALL in (part.partition for part in parts[:1]):
            return tuple(part.path for part in parts)
        if column_of(parts[0].partition) != HOUR:
            return tuple(part.path for part in parts)
        days = [list(group) for _, group in itertools.groupby(parts, key=lambda part: part.partition[:_DAY])]
        known = self._known(relation)
        found: list[Path] = []
        for day in days[:-1]:
            if len(day) < FEWEST_PARTS or sum(part.bytes for part in day) > MOST_BYTES:
                found += (part.path for part in day)
            else:
                found.append(self._day_file(relation, columns, day, known))
        return (*found, *(part.path for part in days[-1]))

    def _known(self, relation: str) -> dict[str, Path]:
        """Return the day files of a relation by day."""
        try:
            names = os.listdir(self._folder / relation)
        except OSError:
            return {}
        return {name[:_DAY]: self._folder / relation / name for name in names if not name.startswith(".")}

    def _day_file(self, relation: str, columns: Sequence[Column], day: Sequence[Part], known: dict[str, Path]) -> Path:
        """Return the intact day file of these parts; write it, in place of that of other parts, if there is none."""
        name = day[0].partition[:_DAY]
        inputs = hashing.of([[[column.name, column.type] for column in columns], [part.digest for part in day]])
        old = known.get(name)
        if old is not None and old.name.startswith(f"{name}.{inputs}.") and _is_intact(old):
            return old
        folder = self._folder / relation
        folder.mkdir(parents=True, exist_ok=True)
        written = temporary_path(folder / name)
        source = Parts(tuple(columns), tuple(part.path for part in day))
        try:
            with self._engine.scratch({relation: source}, one_thread=True) as scratch:
                scratch.write(Select(f"FROM {relation}", tuple(columns)), written, ())
            path = folder / f"{name}.{inputs}.{hashing.of_file(written)}.parquet"
            written.replace(path)
        finally:
            written.unlink(missing_ok=True)
        if old is not None and old != path:
            old.unlink(missing_ok=True)
        return path


def _is_intact(path: Path) -> bool:
    """Return True if the content of a day file has the hash in its name."""
    try:
        return hashing.of_file(path) == path.name.split(".")[2]
    except (OSError, IndexError):
        return False
