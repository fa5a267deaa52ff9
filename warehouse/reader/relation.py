"""Description of one table of a warehouse: columns, meaning, checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.project.semantics import NOTHING_SAID, Semantics

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class Table:
    """Relation of a warehouse, as `ls` lists it."""

    name: str
    """`metrics.port_hour`"""
    kind: str
    """One of `table`, `partitioned`, `view`, `raw` and `reference`."""
    rows: int | None
    bytes: int | None
    about: str


@dataclass(frozen=True)
class Column:
    """Column with type, unit and meaning."""

    name: str
    type: str
    unit: str | None
    about: str

    @property
    def comment(self) -> str:
        """Return unit and meaning: `[B] bytes that entered ...`."""
        return f"[{self.unit}] {self.about}" if self.unit else self.about


@dataclass(frozen=True)
class Check:
    """Check of a table and its latest result."""

    check: str
    severity: str
    status: str
    failures: int
    before: tuple[str, ...] = ()
    """Results in earlier kept builds, the latest first: `passed`, or the number of failing rows."""
    rows: tuple[str, ...] = ()
    """First failing rows, as JSON objects."""
    sentences: tuple[str, ...] = ()
    """First failing rows as sentences, if the check defines one."""


@dataclass(frozen=True)
class Relation:
    """Complete description of one table."""

    table: Table
    grain: tuple[str, ...]
    partition_column: str | None
    file: str | None
    sources: str | None
    columns: tuple[Column, ...]
    checks: tuple[Check, ...]
    semantics: Semantics = NOTHING_SAID
    """Aggregations for its numbers, and dimensions to group by."""
    stopped: str | None = None
    """Reason why the last build failed, if it did."""
    dropped: str | None = None
    """Sentence on the hours that `--keep-hours` left out."""


def dropped_hours(connection: duckdb.DuckDBPyConnection, name: str) -> str | None:
    """Return a sentence if `--keep-hours` left out hours of a table, or of what a view reads; else None."""
    last_hours = dict(connection.execute("SELECT model, last_hour FROM meta.dropped").fetchall())
    if not last_hours:
        return None
    views = dict(connection.execute("SELECT model, reads FROM meta.models WHERE kind = 'view'").fetchall())
    waiting, seen = [name], set[str]()
    while waiting:
        table = waiting.pop()
        seen.add(table)
        waiting += set(views.get(table) or ()) - seen
    hours = [last_hours[table] for table in seen & last_hours.keys()]
    return f"{name} has no rows of hours up to {max(hours)} (UTC): --keep-hours left out this detail" if hours else None
