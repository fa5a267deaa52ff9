"""Comparison of a build with the reviewed rows of the whole public hour, `data/public_hour.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from warehouse.base.settings import shipped_root
from warehouse.base.startup import duckdb
from warehouse.base.text import plural
from warehouse.reader.connection import connect

if TYPE_CHECKING:
    from pathlib import Path

SAME, DIFFERS, NOT_COMPARABLE = "same", "differs", "not comparable"
_ROWS_SHOWN = 3

_FILES = """
SELECT format, count(*) FROM raw.files
WHERE status = 'read' AND cluster = $cluster AND (hour_utc = $hour OR hour_utc IS NULL) GROUP BY ALL
"""


@dataclass(frozen=True)
class Compared:
    """Result of one query of the reference."""

    name: str
    about: str
    verdict: str
    """`same`, `differs` or `not comparable`."""
    details: tuple[str, ...] = ()
    """Files that are missing, or the rows that differ."""
    sql: str = ""


def compare(target: Path) -> list[Compared]:
    """Run each query of the reference on a published build, and compare every cell.

    A query is not comparable if the build has not all files of the public cluster and hour that it needs.

    Raises
    ------
    QueryError
        If there is no warehouse.
    """
    reference = json.loads((shipped_root() / "data" / "public_hour.json").read_text("utf-8"))
    cluster = reference["cluster"]
    place = {"cluster": cluster, "hour": datetime.fromisoformat(f"{reference['hour']}:00")}
    with connect(target) as connection:
        files = dict(connection.execute(_FILES, place).fetchall())
        return [_compare(connection, query, files, cluster) for query in reference["queries"]]


def _compare(
    connection: duckdb.DuckDBPyConnection, query: Mapping[str, Any], files: Mapping[str, int], cluster: str
) -> Compared:
    name, about, sql = query["name"], query["about"], query["sql"]
    missing = [
        f"{plural(count, 'file')} {kind} of {cluster}, this build has {files.get(kind, 0):,}"
        for kind, count in query["needs"].items()
        if files.get(kind, 0) != count
    ]
    if missing:
        return Compared(name, about, NOT_COMPARABLE, (f"needs {' and '.join(missing)}",), sql)
    cursor = connection.execute(sql)
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, map(_plain, row), strict=True)) for row in cursor.fetchall()]
    if rows == query["rows"]:
        return Compared(name, about, SAME, (), sql)
    return Compared(name, about, DIFFERS, tuple(_differences(query["rows"], rows)), sql)


def _plain(value: object) -> object:
    """Return a value as JSON has it."""
    return int(value) if isinstance(value, Decimal) and value == int(value) else value


def _differences(expected: Sequence[Mapping[str, object]], rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the first rows that differ, as they are published and as they are here."""
    pairs = [pair for pair in zip_longest(expected, rows) if pair[0] != pair[1]]
    found = [line for one, other in pairs[:_ROWS_SHOWN]
             for line in (f"published  {_text(one)}", f"here       {_text(other)}")]  # fmt: skip
    more = len(pairs) - _ROWS_SHOWN
    return [*found, f"and {more:,} more rows"] if more > 0 else found


def _text(row: Mapping[str, object] | None) -> str:
    return "no such row" if row is None else ", ".join(f"{name} {value}" for name, value in row.items())
