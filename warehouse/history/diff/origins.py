"""Origins of a change: raw files, reference tables or SQL upstream of a table.

The catalog has the inputs of each table, and the target's state the values of each part's fingerprint. Each build has
a list of its raw files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from warehouse.formats.base import is_raw
from warehouse.history.diff.changed_tables import LISTINGS, Moves
from warehouse.history.diff.sides import Table
from warehouse.ingest.raw_files import changes
from warehouse.ingest.schemas import FILES
from warehouse.store.partitions import columns_of, narrowed
from warehouse.store.parts import Store

RAW, REFERENCE, NEW, GONE = "files", "reference", "new", "gone"
SQL, CONTRACT, ENGINE, VOLATILE = "sql", "contract", "engine", "volatile"
UNSTABLE, UNRECORDED = "unstable", "unrecorded"


@dataclass(frozen=True)
class Origin:
    """Origin of a change."""

    kind: str
    """One of the constants of this module."""
    name: str
    """Relation that changed."""
    through: tuple[str, ...] = ()
    """Models between the origin and the table, the nearest to the origin first."""
    files: tuple[tuple[str, str], ...] = ()
    """(`added`, `removed` or `changed`, release path) of each raw file."""


class Trace:
    """Search for the origins of changes. Both sides are builds, attached as `old` and `new`."""

    def __init__(self, moves: Moves) -> None:
        self._moves = moves
        self._stores = [Store(side.target) for side in (moves.old, moves.new) if side.target]
        self._known: dict[str, tuple[list[Origin], list[str]]] = {}

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
            name = waiting.pop(0)
            own, below = self._direct(name)
            for origin in own:
                found.setdefault((origin.kind, origin.name), replace(origin, through=ways[name]))
            for read in below:
                if read not in ways:
                    ways[read] = (name, *ways[name]) if name != table else ways[name]
                    waiting.append(read)
        return tuple(found.values()) or (Origin(UNRECORDED, table),)

    def _direct(self, name: str) -> tuple[list[Origin], list[str]]:
        """Return the origins in a relation itself, and its changed inputs."""
        if name not in self._known:
            self._known[name] = self._look(name)
        return self._known[name]

    def _look(self, name: str) -> tuple[list[Origin], list[str]]:
        old, new = self._moves.before.get(name), self._moves.after.get(name)
        if old is None or new is None:
            return [Origin(GONE if new is None else NEW, name)], []
        if new.kind == REFERENCE:
            return [Origin(REFERENCE, name)], []
        kinds = set(self._of_parts(old, new))
        kinds |= {SQL} if old.sql != new.sql else set()
        kinds |= {CONTRACT} if _contract(old) != _contract(new) else set()
        own = [Origin(kind, name) for kind in sorted(kinds)]
        reads = sorted({*old.reads, *new.reads})
        own += self._raw([read for read in reads if is_raw(read)], name)
        return own, [read for read in reads if not is_raw(read) and self._reaches(read, new)]

    def _reaches(self, read: str, table: Table) -> bool:
        """Return True if an input changed in a partition that the table, in one that changed, reads."""
        below, above = self._moves.of(read), self._moves.of(table.name)
        if not below or not above:
            return below is None or bool(below)
        shared = frozenset.intersection(*(frozenset(columns_of(one)) for one in below | above))
        return not {narrowed(one, shared) for one in below}.isdisjoint(narrowed(one, shared) for one in above)

    # inputs of parts ------------------------------------------------------------------------------

    def _of_parts(self, old: Table, new: Table) -> Iterator[str]:
        for partition in self._moves.of(new.name) or ():
            one, other = old.parts.get(partition), new.parts.get(partition)
            if one is None or other is None:
                continue  # an added or removed partition: its inputs are the origin
            if one.fingerprint == other.fingerprint:
                yield UNSTABLE
                continue
            before, after = (
                store.inputs(new.name, partition, part.fingerprint) or {}
                for store, part in zip(self._stores, (one, other), strict=True)
            )
            if not before or not after:
                yield UNRECORDED
                continue
            if "once" in before or "once" in after:
                yield VOLATILE
            for kind, key in ((SQL, "select"), (ENGINE, "engine"), (ENGINE, "recipe")):
                if before.get(key) != after.get(key):
                    yield kind

    # raw files ------------------------------------------------------------------------------------

    def _raw(self, reads: list[str], name: str) -> list[Origin]:
        """Return the changed raw files of a model that reads these relations of `raw`."""
        if not reads:
            return []
        if self._moves.listings is None:
            return [Origin(UNRECORDED, name)]
        above = self._moves.of(name)
        fed = [read for read in reads if read not in LISTINGS] or [FILES]
        found = {
            (change.release_path, change.change)
            for relation in fed
            for change in changes(*self._moves.listings, relation)
            if above is None or any(change.is_in(partition) for partition in above)
        }
        files = tuple((change, path) for path, change in sorted(found))
        return [Origin(RAW, name, files=files)] if files else []


def _contract(table: Table) -> object:
    return [(one.name, one.type, one.unit) for one in table.columns], table.grain
