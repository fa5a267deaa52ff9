"""Origins of a change: raw files, reference tables or SQL upstream of a table.

The catalog has the inputs of each table, and the target's state the values of each part's fingerprint. Each build has
a list of its raw files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from warehouse.formats.base import is_raw
from warehouse.history.diff.sides import LISTINGS, Pair, Table
from warehouse.ingest.raw_files import changes
from warehouse.ingest.reading import FILES
from warehouse.store.manifest import columns_of, narrowed
from warehouse.store.parts import Store

RAW = "files"
ORIGINS = {
    "sql": "the SQL of {name}",
    "contract": "the columns or grain of {name}",
    "engine": "another engine made {name}",
    "volatile": "{name} is other rows at any time",
    "unstable": "{name}: the same inputs and SQL gave other rows",
    "reference": "the reviewed table {name}",
    "new": "{name} is new",
    "gone": "{name} is gone",
    "unrecorded": "not recorded: what {name} was made from, as state.sqlite was lost",
}
"""Kinds of origins besides raw files, each with its sentence."""
_INPUTS = {"select": "sql", "engine": "engine", "recipe": "engine", "once": "volatile"}
"""Inputs of a part's fingerprint, each with the kind of origin that it is if it differs."""


@dataclass(frozen=True)
class Origin:
    """Origin of a change."""

    kind: str
    """`files`, or one of `ORIGINS`."""
    name: str
    """Relation that changed."""
    through: tuple[str, ...] = ()
    """Models between the origin and the table, the nearest to the origin first."""
    files: tuple[tuple[str, str], ...] = ()
    """(`added`, `removed` or `changed`, release path) of each raw file."""


class Trace:
    """Search for the origins of changes between two builds."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._stores = [Store(side.folder) for side in (pair.old, pair.new)]
        self._direct = cache(self._look)

    def close(self) -> None:
        """Close the states of both targets."""
        for store in self._stores:
            store.close()

    def origins(self, table: str) -> tuple[Origin, ...]:
        """Return the origins of a table's change, the nearest first."""
        found: dict[tuple[str, str], Origin] = {}
        ways: dict[str, tuple[str, ...]] = {table: ()}
        waiting = [table]
        while waiting:
            # From the front: breadth first finds the shortest way.
            name = waiting.pop(0)
            own, below = self._direct(name)
            for origin in own:
                found.setdefault((origin.kind, origin.name), replace(origin, through=ways[name]))
            for read in below:
                if read not in ways:
                    ways[read] = (name, *ways[name]) if name != table else ways[name]
                    waiting.append(read)
        return tuple(found.values()) or (Origin("unrecorded", table),)

    def _look(self, name: str) -> tuple[list[Origin], list[str]]:
        """Return the origins in a relation itself, and its changed inputs."""
        old, new = self._pair.before.get(name), self._pair.after.get(name)
        if old is None or new is None:
            return [Origin("gone" if new is None else "new", name)], []
        if new.kind == "reference":
            return [Origin("reference", name)], []
        kinds = set(self._of_parts(old, new)) | ({"sql"} if old.sql != new.sql else set())
        contracts = [([(one.name, one.type, one.unit) for one in table.columns], table.grain) for table in (old, new)]
        kinds |= {"contract"} if contracts[0] != contracts[1] else set()
        reads = sorted({*old.reads, *new.reads})
        own = [Origin(kind, name) for kind in sorted(kinds)]
        own += self._of_files([read for read in reads if is_raw(read)], name)
        return own, [read for read in reads if not is_raw(read) and self._reaches(read, name)]

    def _reaches(self, read: str, table: str) -> bool:
        """Return True if an input changed in a partition that the table, in one that changed, reads."""
        below, above = self._pair.moved(read), self._pair.moved(table)
        if not below or not above:
            return below is None or bool(below)
        # A table of hours may read one of hours and switches: only the hour can be compared.
        shared = frozenset.intersection(*(frozenset(columns_of(one)) for one in below | above))
        return not {narrowed(one, shared) for one in below}.isdisjoint(narrowed(one, shared) for one in above)

    def _of_parts(self, old: Table, new: Table) -> Iterator[str]:
        """Yield the kinds of origins in the inputs of parts; those of an added or removed part are upstream."""
        for partition in self._pair.moved(new.name) or ():
            one, other = old.parts.get(partition), new.parts.get(partition)
            if one and other and one["fingerprint"] == other["fingerprint"]:
                yield "unstable"
            elif one and other:
                before, after = (
                    store.inputs(new.name, partition, part["fingerprint"])
                    for store, part in zip(self._stores, (one, other), strict=True)
                )
                if not before or not after:
                    yield "unrecorded"
                    continue
                yield from (kind for key, kind in _INPUTS.items() if before.get(key) != after.get(key))

    def _of_files(self, reads: list[str], name: str) -> list[Origin]:
        """Return the changed raw files of a model that reads these relations of `raw`."""
        if not reads:
            return []
        if self._pair.listings is None:
            return [Origin("unrecorded", name)]
        moved = self._pair.moved(name)
        found = {
            (change.release_path, change.change)
            for relation in [read for read in reads if read not in LISTINGS] or [FILES]
            for change in changes(*self._pair.listings, relation)
            if moved is None or any(change.is_in(partition) for partition in moved)
        }
        return [Origin(RAW, name, files=tuple((change, path) for path, change in sorted(found)))] if found else []
