"""What a warehouse says of one table: columns, meaning, checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.project.semantics import NOTHING_SAID, Semantics

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class Table:
    """A relation of the warehouse."""

    name: str
    """`metrics.port_hour`"""
    kind: str
    """`table`, `partitioned`, `view`, `raw` or `reference`."""
    rows: int | None
    bytes: int | None
    about: str


@dataclass(frozen=True)
class Column:
    """A column and what it means."""

    name: str
    type: str
    unit: str | None
    about: str

    @property
    def comment(self) -> str:
        """Meaning and unit: `[B] bytes that entered ...`."""
        return f"[{self.unit}] {self.about}" if self.unit else self.about


@dataclass(frozen=True)
class Check:
    """A check of a table and what it last found."""

    check: str
    severity: str
    status: str
    failures: int
    before: tuple[str, ...] = ()
    """What it found in the builds before that are kept, the last one first: `passed`, or how many rows failed."""
    rows: tuple[str, ...] = ()
    """The first rows that fail, as JSON objects."""
    sentences: tuple[str, ...] = ()
    """The same rows as sentences, where the check has one."""


@dataclass(frozen=True)
class Relation:
    """All that is known of one table."""

    table: Table
    grain: tuple[str, ...]
    partition_column: str | None
    file: str | None
    sources: str | None
    columns: tuple[Column, ...]
    checks: tuple[Check, ...]
    semantics: Semantics = NOTHING_SAID
    """How to sum its numbers, and by what to group."""
    stopped: str | None = None
    """What ended the last build, where that published nothing."""


def has_meta(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Whether the build has a table `meta.NAME`, which one of an earlier version may not."""
    found = connection.execute("SELECT 1 FROM duckdb_tables() WHERE schema_name = 'meta' AND table_name = $1", [name])
    return found.fetchone() is not None
