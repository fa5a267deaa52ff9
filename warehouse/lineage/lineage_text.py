"""Column lineage as text and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from warehouse.formats import known_formats
from warehouse.lineage.column_lineage import Node, Trace
from warehouse.lineage.steps import ROWS
from warehouse.project.project import Project

_LEAST = 24
"""Minimum number of characters of a line after its indent, on a narrow terminal."""


def as_text(trace: Trace, ends: Mapping[str, str], width: int | None = None) -> str:
    """Return a tree of steps, the clauses that determine the rows, and a summary.

    A repeated subtree is shortened to `…`.

    Parameters
    ----------
    trace
        The lineage of the column.
    ends
        The files of each source relation, from `read_from`.
    width
        The width of the terminal; None to break no line.
    """
    lines: list[str] = []
    seen: set[Node] = set()

    def draw(node: Node, before: str, indent: str) -> None:
        origins = trace.origins.get(node, ())
        if node.column == ROWS:
            lines.append(f"{before}{node}  the number of rows")
            return
        inputs = dict.fromkeys(one for origin in origins for one in origin.inputs)
        if node in seen and inputs:
            lines.append(f"{before}{node} …")
            return
        seen.add(node)
        steps = ", ".join(f"{origin.kind} {origin.place}" for origin in origins) or ends.get(node.relation, "")
        lines.extend(_broken(f"{before}{node}  {steps}", width, indent + ("│   " if inputs else "    ")))
        for position, one in enumerate(inputs):
            last = position == len(inputs) - 1
            draw(one, f"{indent}{'└' if last else '├'} ", f"{indent}{'  ' if last else '│ '}")

    draw(trace.column, "", "")
    if trace.deciders:
        lines += ["", "rows decided by"]
        for one in trace.deciders:
            lines += _broken(f"  {one.kind:<8} {one.place}  {', '.join(map(str, one.inputs))}", width, " " * 11)
    lines += ["", f"{trace.column} comes from"]
    read: dict[str, list[str]] = {}
    for node in sorted(trace.ends):
        read.setdefault(node.relation, []).append("its rows" if node.column == ROWS else node.column)
    for relation, columns in read.items():
        lines += _broken(f"  {relation}: {', '.join(columns)}  ({ends.get(relation, 'raw')})", width, "    ")
    lines += [f"  a literal, {place}" for place in trace.literals]
    steps = dict.fromkeys(node.relation for node in trace.origins if node.relation != trace.column.relation)
    if steps:
        lines += _broken(f"  by way of {', '.join(steps)}", width, "    ")
    return "\n".join(lines)


def _broken(line: str, width: int | None, indent: str) -> list[str]:
    """Return a line as wrapped lines with a hanging indent."""
    if width is None or len(line) <= width:
        return [line]
    lead = len(line) - len(line.lstrip(" │├└"))
    return textwrap.wrap(
        line[lead:],
        max(width, len(indent) + _LEAST),
        initial_indent=line[:lead],
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def as_json(trace: Trace) -> dict[str, object]:
    """Return the lineage as JSON-able values."""
    return {
        "column": trace.column.full,
        "steps": [
            {"column": node.full, "kind": one.kind, "place": one.place, "inputs": [given.full for given in one.inputs]}
            for node, origins in trace.origins.items()
            for one in origins
        ],
        "ends": [node.full for node in trace.ends],
        "literals": list(trace.literals),
        "rows": [
            {"how": one.kind, "place": one.place, "columns": [node.full for node in one.inputs]}
            for one in trace.deciders
        ],
    }


def read_from(project: Project) -> dict[str, str]:
    """Return the files of each source relation: the kind of raw files, or the file of `data/`."""
    sources = {"raw.files": "the list of files", "raw.rejected_rows": "the lines that could not be read"}
    for one in known_formats():
        sources |= {relation.full_name: f"files of {one.name}" for relation in one.relations}
    return sources | {name: f"data/{one.path.name}" for name, one in project.references.items()}
