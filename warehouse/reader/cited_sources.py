"""Text of a citation for people: the answer, and the traces that it is from, with license and address."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from warehouse.base.sql_text import qualified
from warehouse.formats import known_formats
from warehouse.formats.traces import stated, trace_of
from warehouse.reader.connection import connect
from warehouse.reader.guard import check_read_only
from warehouse.reader.text_table import WIDTH, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import duckdb

    from warehouse.formats.traces import Trace
    from warehouse.reader.citations import Citation

JOBS = "staging.trace_jobs"
"""Table that the mappings of all traces fill."""


def write_citation(target: Path, citation: Citation, stream: TextIO) -> None:
    """Write a citation, wrapped on a terminal: the answer, then each trace that it is from."""
    import shutil

    width = min(WIDTH, shutil.get_terminal_size().columns) if stream.isatty() else None
    with connect(target, json_errors=True) as connection:
        tables = {name for statement in check_read_only(connection, citation.sql) for name in statement.tables}
        sources = source_lines(connection, tables)
    for line in (citation.text(), *sources):
        stream.writelines(wrapped(line, width) if width else [f"{line}\n"])


def source_lines(connection: duckdb.DuckDBPyConnection, tables: Iterable[str]) -> list[str]:
    """Return a line for each trace that these tables are from: title, license, DOI and address."""
    return [f"data: {one.source}" for one in traces_of(connection, tables)]


def traces_of(connection: duckdb.DuckDBPyConnection, tables: Iterable[str]) -> list[Trace]:
    """Return the traces with loaded files that these tables read, directly or indirectly.

    A trace of the user's project is known by the source that its raw relations state in the catalog.
    """
    asked = set(tables)
    seen = set(asked)
    rows = connection.execute("SELECT upstream FROM meta.upstream WHERE list_contains($1, model)", [[*seen]]).fetchall()
    seen |= {name for (name,) in rows}
    if not any(name.startswith("raw.") for name in seen):
        return []
    loaded = {one for (one,) in connection.execute("SELECT DISTINCT format FROM raw.files").fetchall()}
    found = {
        trace.name: trace
        for one in known_formats()
        if one.name in loaded
        and any(f"raw.{relation.name}" in seen for relation in one.relations)
        and (trace := trace_of(one.name))
    }
    shipped = {f"raw.{relation.name}" for one in known_formats() for relation in one.relations}
    own = connection.execute("SELECT model, sources FROM meta.models WHERE kind = 'raw' AND sources <> ''").fetchall()
    found |= {text: stated(text) for model, text in own if model in seen - shipped}
    others = _other_traces(connection, asked) if JOBS in seen - asked else set()
    return [trace for name, trace in sorted(found.items()) if name not in others]


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
