"""Text of a citation for people: the answer, and the traces that it is from, with license and address."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from warehouse.base.sql_text import qualified
from warehouse.base.text import wrapped
from warehouse.formats.traces import stated
from warehouse.reader.connection import connect
from warehouse.reader.guard import check_read_only
from warehouse.reader.text_table import WIDTH

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import duckdb

    from warehouse.formats.traces import Trace
    from warehouse.reader.citations import Citation

JOBS = "staging.trace_jobs"
"""Table that the mappings of all traces fill."""


def citation_lines(target: Path, citation: Citation, stream: TextIO) -> list[str]:
    """Return the lines of a citation, wrapped for a terminal: the answer, then each trace that it is from."""
    import shutil

    width = min(WIDTH, shutil.get_terminal_size().columns) if stream.isatty() else None
    with connect(target, json_errors=True) as connection:
        tables = {name for statement in check_read_only(connection, citation.sql) for name in statement.tables}
        sources = source_lines(connection, tables)
    return [part for line in (citation.text(), *sources) for part in wrapped(line, width)]


def source_lines(connection: duckdb.DuckDBPyConnection, tables: Iterable[str]) -> list[str]:
    """Return a line for each trace that these tables are from: title, license, DOI and address."""
    return [f"data: {one.source.partition(': ')[2]}" for one in traces_of(connection, tables)]


def traces_of(connection: duckdb.DuckDBPyConnection, tables: Iterable[str]) -> list[Trace]:
    """Return the traces with loaded files that these tables read, directly or indirectly: raw relations state them."""
    asked = set(tables)
    seen = set(asked)
    rows = connection.execute("SELECT upstream FROM meta.upstream WHERE list_contains($1, model)", [[*seen]]).fetchall()
    seen |= {name for (name,) in rows}
    rows = connection.execute(
        "SELECT DISTINCT sources FROM meta.models WHERE kind = 'raw' AND sources <> '' AND list_contains($1, model) "
        "ORDER BY ALL",
        [[*seen]],
    ).fetchall()
    found = [stated(source) for (source,) in rows]
    others = _other_traces(connection, asked) if found and JOBS in seen - asked else set()
    return [trace for trace in found if trace.name not in others]


def _other_traces(connection: duckdb.DuckDBPyConnection, tables: set[str]) -> set[str]:
    """Return the traces with jobs of which these tables have no cluster."""
    having = dict(
        connection.execute(
            "SELECT model, bool_or(column_name = 'cluster') FROM meta.columns SEMI JOIN meta.upstream AS u "
            "ON u.model = columns.model AND u.upstream = $2 WHERE list_contains($1, model) GROUP BY model",
            [[*tables], JOBS],
        ).fetchall()
    )
    if not having or not all(having.values()):
        return set()
    clusters = " UNION ".join(f"SELECT cluster FROM {qualified(name)}" for name in sorted(having))
    rows = connection.execute(
        f"SELECT trace FROM {JOBS} EXCEPT SELECT trace FROM {JOBS} SEMI JOIN ({clusters}) USING (cluster)"
    )
    return {trace for (trace,) in rows.fetchall()}
