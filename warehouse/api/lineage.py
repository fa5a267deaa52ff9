"""Lineage of tables and columns as text or JSON: `warehouse lineage`, and `Table.lineage`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from warehouse.base.text import for_target
from warehouse.lineage.table_lineage import names_a_column, table_lineage
from warehouse.project.project import Project

if TYPE_CHECKING:
    from warehouse.base.settings import Settings


def lineage(settled: Settings, name: str, *, as_json: bool = False, steps: bool = False) -> str:
    """Return what a table or a column comes from, down to raw files.

    Parameters
    ----------
    settled
        The project, and the target of the command that is named for more.
    name
        A table, or a column of it (`port_hour.in_bytes`).
    as_json
        JSON instead of text.
    steps
        Of a column: each step, with file and line.
    """
    if names_a_column(name):
        return _column(settled, name, as_json=as_json, steps=steps)
    text, values = table_lineage(settled, name)
    return json.dumps(values, indent=1) if as_json else text


def _column(settled: Settings, name: str, *, as_json: bool, steps: bool) -> str:
    """Return where a column is from: a summary, with each step, or JSON."""
    from warehouse.lineage import column_lineage  # imports sqlglot, which is slow

    project = Project.open(settled.project)
    found = column_lineage.Columns(project)
    relation, column = column_lineage.column_named(found, project, name)
    trace = found.trace(relation, column)
    if as_json:
        return json.dumps(column_lineage.as_json(trace), indent=1)
    ends = column_lineage.read_from(project)
    origins, expression = trace.origins.get(trace.column, ()), list[str]()
    if len(origins) == 1 and origins[0].place.rpartition(":")[0].endswith(".sql"):
        text = project.models[relation].path.read_text(encoding="utf-8")
        expression = column_lineage.expression_lines(text, int(origins[0].place.rpartition(":")[2]))
    parents = found.made_of(relation, column)
    columns = project.models[relation].columns if relation in project.models else ()
    about = next((one.about for one in columns if one.name == column), "")
    summary = column_lineage.summary_text(trace, about, parents, expression, ends)
    if steps:
        return f"{summary}\n\n{column_lineage.steps_text(trace, ends)}"
    following = for_target(f"warehouse lineage {trace.column} --steps", settled.target)
    return f"{summary}\n\nNext:  {following}" if origins else summary
