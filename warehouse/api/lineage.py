"""Lineage of tables and columns as text or JSON: `warehouse lineage`, and `Table.lineage`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError
from warehouse.base.next_step import for_target
from warehouse.lineage import column_lineage, lineage_text
from warehouse.lineage.table_lineage import as_json as table_as_json
from warehouse.lineage.table_lineage import as_text, names_a_column, table_lineage
from warehouse.project.project import Project
from warehouse.reader.connection import connect

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.base.settings import Settings


def lineage(
    settled: Settings, name: str, *, as_json: bool = False, steps: bool = False, width: int | None = None
) -> str:
    """Return what a table or a column comes from, down to raw files.

    Parameters
    ----------
    settled
        The project, and the target whose files are counted; it may have no build.
    name
        A table, or a column of it (`port_hour.in_bytes`).
    as_json
        JSON instead of text.
    steps
        Of a column: each step, with file and line.
    width
        Width of the terminal; None to break no line.
    """
    if names_a_column(name):
        return _column(settled, name, as_json=as_json, steps=steps, width=width)
    found = table_lineage(settled, name)
    return json.dumps(table_as_json(found), indent=1) if as_json else as_text(found)


def _column(settled: Settings, name: str, *, as_json: bool, steps: bool, width: int | None) -> str:
    """Return where a column is from: a summary, with each step, or JSON."""
    project = Project.open(settled.project)
    found = column_lineage.Columns(project)
    relation, column = column_lineage.column_named(found, project, name)
    trace = found.trace(relation, column)
    if as_json:
        return json.dumps(lineage_text.as_json(trace), indent=1)
    ends = lineage_text.read_from(project)
    files = lineage_text.described(ends, _loaded_files(settled.target))
    origins, expression = trace.origins.get(trace.column, ()), list[str]()
    if len(origins) == 1 and origins[0].place.rpartition(":")[0].endswith(".sql"):
        text = project.models[relation].path.read_text(encoding="utf-8")
        expression = lineage_text.expression_lines(text, int(origins[0].place.rpartition(":")[2]))
    parents = found.made_of(relation, column)
    columns = project.models[relation].columns if relation in project.models else ()
    about = next((one.about for one in columns if one.name == column), "")
    summary = lineage_text.summary_text(trace, about, parents, expression, files, width)
    if steps:
        return f"{summary}\n\n{lineage_text.steps_text(trace, ends, width)}"
    following = for_target(f"warehouse lineage {trace.column} --steps", settled.target)
    return f"{summary}\n\nNext:  {following}" if origins else summary


def _loaded_files(target: Path) -> dict[str, tuple[int, int, str]]:
    """Return the number of loaded files of each format, of their folders, and one path; none without a build."""
    try:
        connection = connect(target)
    except QueryError:
        return {}
    try:
        rows = connection.execute(
            "SELECT format, count(*), count(DISTINCT parse_dirpath(release_path)), min(release_path) FROM raw.files "
            "WHERE status IN ('read', 'partial') GROUP BY format"
        ).fetchall()
    finally:
        connection.close()
    return {name: (files, folders, path) for name, files, folders, path in rows}
