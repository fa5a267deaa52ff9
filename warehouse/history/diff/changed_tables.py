"""Which tables of two sides can differ, and where: from digests of parts and texts of SELECTs, no row is read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from warehouse.history.diff.sides import Side, Table
from warehouse.ingest.file_list import FileChange, Listing, changes, read_listing
from warehouse.ingest.partitions import column_of

if TYPE_CHECKING:
    import duckdb

LISTINGS = ("raw.files", "raw.rejected_rows")
"""What the runner itself lists: where files lie and when they were changed is in it, too."""


class Moves:
    """What may have moved between two sides.

    Parameters
    ----------
    connection
        Where the small tables without parts can be read.
    old, new
        The sides.
    before, after
        Their tables, by name.
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
        """The partitions of a relation that can differ, none where it is equal; None where any row may."""
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
        """The raw files of a relation that differ; None where that is not known, or not what its rows follow from."""
        if relation in LISTINGS or self.listings is None:
            return None
        return list(changes(*self.listings, relation))

    @cached_property
    def listings(self) -> tuple[Listing, Listing] | None:
        """The raw files of both builds."""
        old, new = (
            read_listing(side.target, side.build) if side.target and side.build else None
            for side in (self.old, self.new)
        )
        return None if old is None or new is None else (old, new)

    def _parts(self, old: Table, new: Table) -> frozenset[str]:
        digests = [{name: part.digest for name, part in table.parts.items()} for table in (old, new)]
        return frozenset(name for name, _ in set(digests[0].items()) ^ set(digests[1].items()))

    def _through(self, view: Table) -> frozenset[str] | None:
        """What of a view can differ since what it reads does."""
        found: set[str] = set()
        for read in view.reads:
            moved = self._seen(read, view.partition)
            if moved is None or (moved and not view.is_split):
                return None
            found |= moved
        return frozenset(found)

    def _seen(self, read: str, column: str | None) -> frozenset[str] | None:
        """The partitions by `column` in which what a view reads can differ; None where any row may."""
        if not read.startswith("raw."):
            moved, table = self.of(read), self.after.get(read)
            return moved if not moved or (table and table.partition == column) else None
        files = self.files(read)
        if files is None:
            return None
        mine = [{one for one in file.partitions if column_of(one) == column} for file in files]
        return frozenset().union(*mine) if all(mine) else None

    def _same_rows(self, old: Table, new: Table) -> bool:
        if [(one.name, one.type) for one in old.columns] != [(one.name, one.type) for one in new.columns]:
            return False
        one, other = old.select(), new.select()
        both = f"(({one}) EXCEPT ALL ({other})) UNION ALL (({other}) EXCEPT ALL ({one}))"
        return not self.connection.execute(f"SELECT 1 FROM ({both}) LIMIT 1").fetchall()


def same_view(old: Table, new: Table) -> bool:
    """Whether two views are one SELECT with the same columns."""
    columns = [[(one.name, one.type) for one in table.columns] for table in (old, new)]
    return old.sql == new.sql and columns[0] == columns[1]
