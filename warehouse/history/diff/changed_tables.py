"""Tables and partitions that can differ between two sides, from content hashes and SELECTs, without reading parts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from warehouse.formats.base import is_raw
from warehouse.history.diff.sides import Side, Table
from warehouse.ingest.raw_files import FileChange, FileList, changes, read_listing
from warehouse.ingest.schemas import FILES, REJECTED
from warehouse.store.partitions import hour_of

if TYPE_CHECKING:
    import duckdb

LISTINGS = (FILES, REJECTED)
"""Lists written by the runner. They contain absolute paths and mtimes."""


class Moves:
    """Tables and partitions that can differ between two sides.

    Parameters
    ----------
    connection
        A connection that can read the reference tables.
    old, new
        The sides.
    before, after
        The tables of each side by name.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        old: Side,
        new: Side,
        before: Mapping[str, Table],
        after: Mapping[str, Table],
    ) -> None:
        self.old, self.new = old, new
        self.before, self.after = before, after
        self.connection = connection
        self._known: dict[str, frozenset[str] | None] = {}

    def of(self, name: str) -> frozenset[str] | None:
        """Return the partitions of a relation that can differ: empty if it is equal, None if any row can differ."""
        if name not in self._known:
            self._known[name] = self._look(name)
        return self._known[name]

    def _look(self, name: str) -> frozenset[str] | None:
        old, new = self.before.get(name), self.after.get(name)
        if old is None or new is None or old.kind != new.kind:
            return self._parts(old, new) if old and new and old.has_parts and new.has_parts else None
        if old.has_parts:
            return self._parts(old, new)
        if old.kind == "view":
            return self._through(new) if same_view(old, new) else None
        if old.kind == "reference":
            return frozenset() if self._same_rows(old, new) else None
        return frozenset() if old.content == new.content else None

    def files(self, relation: str) -> list[FileChange] | None:
        """Return the changed raw files of a relation; None if unknown, or for `raw.files` and `raw.rejected_rows`."""
        if relation in LISTINGS or self.listings is None:
            return None
        return list(changes(*self.listings, relation))

    @cached_property
    def listings(self) -> tuple[FileList, FileList] | None:
        """Lists of raw files of both builds; None if one is missing."""
        old, new = (
            read_listing(side.target, side.build) if side.target and side.build else None
            for side in (self.old, self.new)
        )
        return None if old is None or new is None else (old, new)

    def _parts(self, old: Table, new: Table) -> frozenset[str]:
        digests = [{name: part.digest for name, part in table.parts.items()} for table in (old, new)]
        return frozenset(name for name, _ in set(digests[0].items()) ^ set(digests[1].items()))

    def _through(self, view: Table) -> frozenset[str] | None:
        """Return the hours of a view that can differ because of its inputs; None if any row can."""
        found: set[str] = set()
        for read in view.reads:
            moved = self._seen(read)
            if moved is None or (moved and not view.is_split):
                return None
            found |= moved
        return frozenset(found)

    def _seen(self, read: str) -> frozenset[str] | None:
        """Return the hours in which a view's input can differ; None if any row can differ."""
        if not is_raw(read):
            moved = self.of(read)
            hours = frozenset(map(hour_of, moved)) if moved else moved
            return hours if hours is None or all(hours) else None
        files = self.files(read)
        if files is None:
            return None
        mine = [{one for one in file.partitions if hour_of(one)} for file in files]
        return frozenset().union(*mine) if all(mine) else None

    def _same_rows(self, old: Table, new: Table) -> bool:
        if [(one.name, one.type) for one in old.columns] != [(one.name, one.type) for one in new.columns]:
            return False
        one, other = old.select(), new.select()
        both = f"(({one}) EXCEPT ALL ({other})) UNION ALL (({other}) EXCEPT ALL ({one}))"
        return not self.connection.execute(f"SELECT 1 FROM ({both}) LIMIT 1").fetchall()


def same_view(old: Table, new: Table) -> bool:
    """Return True if two views have the same SELECT and columns."""
    columns = [[(one.name, one.type) for one in table.columns] for table in (old, new)]
    return old.sql == new.sql and columns[0] == columns[1]
