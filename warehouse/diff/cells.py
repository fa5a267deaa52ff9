"""Two parts with the same rows from two engines, cell by cell: equal, or doubles that differ in their last digits.

Engines add and interpolate doubles in another order, or with a fused rounding: `docs/portable_sql.md` says where.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warehouse.engines.duckdb_sql import identifier, literal
from warehouse.engines.globs import escape_glob
from warehouse.extension import duckdb

TOLERANCE = 1e-12
"""Doubles of two engines are the same number when they differ by no more, relative to the larger one."""


@dataclass(frozen=True)
class Cells:
    """What a comparison of cells came to."""

    cells: int = 0
    close: int = 0
    """Doubles that differ, within the tolerance."""
    worst: float = 0.0
    """The largest relative difference among these."""
    different: int = 0
    """Cells that differ otherwise, or stand in one part only."""

    def __add__(self, other: Cells) -> Cells:
        return Cells(
            self.cells + other.cells,
            self.close + other.close,
            max(self.worst, other.worst),
            self.different + other.different,
        )

    def summary(self) -> dict[str, object]:
        """The comparison as JSON-able values."""
        return {**vars(self), "tolerance": TOLERANCE}


def compare_cells(connection: duckdb.DuckDBPyConnection, old: Path, new: Path) -> Cells:
    """Compare two parts, whose rows lie in the order of their grain; with other rows or columns, all cells differ."""
    files = [f"read_parquet({literal(escape_glob(str(path)))}, hive_partitioning=false)" for path in (old, new)]
    shapes = [[column[:2] for column in connection.execute(f"DESCRIBE FROM {file}").fetchall()] for file in files]
    rows = [_one(connection, f"SELECT count(*) FROM {file}")[0] for file in files]
    cells = max(rows) * len(shapes[0])
    if shapes[0] != shapes[1] or rows[0] != rows[1]:
        return Cells(cells, different=cells)
    if not cells:
        return Cells()
    asked = [
        f"count(*) FILTER (WHERE {unequal} AND {close}), max({apart}) FILTER (WHERE {unequal} AND {close}), "
        f"count(*) FILTER (WHERE {unequal} AND NOT {close})"
        for unequal, close, apart in (_conditions(str(name), str(kind)) for name, kind in shapes[0])
    ]
    found = _one(connection, f"SELECT {', '.join(asked)} FROM {files[0]} AS a POSITIONAL JOIN {files[1]} AS b")
    close, worst, different = found[0::3], found[1::3], found[2::3]
    return Cells(cells, sum(close), max((one for one in worst if one is not None), default=0.0), sum(different))


def compare_all(pairs: Iterable[tuple[Path, Path]]) -> list[Cells]:
    """Compare pairs of parts."""
    with duckdb.connect(":memory:") as connection:
        return [compare_cells(connection, old, new) for old, new in pairs]


def _conditions(name: str, kind: str) -> tuple[str, str, str]:
    """(the cells are not equal, they are doubles that are close, how far apart these are) as SQL."""
    a, b = f"a.{identifier(name)}", f"b.{identifier(name)}"
    if kind != "DOUBLE":
        return f"{a} IS DISTINCT FROM {b}", "false", "NULL::DOUBLE"
    apart = f"(abs({a} - {b}) / greatest(abs({a}), abs({b})))"
    return f"{a} IS DISTINCT FROM {b}", f"coalesce({apart} <= {TOLERANCE!r}, false)", apart


def _one(connection: duckdb.DuckDBPyConnection, sql: str) -> Sequence[int]:
    row = connection.execute(sql).fetchone()
    assert row is not None
    return row
