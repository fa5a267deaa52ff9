"""Description of one table of a warehouse: columns, meaning, checks."""

from __future__ import annotations

from dataclasses import dataclass

from warehouse.project.semantics import NOTHING_SAID, Semantics


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
    empty: str | None = None
    """Reason why the table has no rows."""
