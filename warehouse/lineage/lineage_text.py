"""A column's path as text for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping

from warehouse.formats import known_formats
from warehouse.lineage.column_lineage import Node, Trace
from warehouse.lineage.steps import ROWS
from warehouse.project.project import Project


def as_text(trace: Trace, ends: Mapping[str, str]) -> str:
    """A tree for people, then what decides the rows; what was drawn above is not drawn again.

    Parameters
    ----------
    ends
        Of each relation at the rim, where it is read from.
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
        said = ", ".join(f"{origin.kind} {origin.place}" for origin in origins) or ends.get(node.relation, "")
        lines.append(f"{before}{node}  {said}")
        for position, one in enumerate(inputs):
            last = position == len(inputs) - 1
            draw(one, f"{indent}{'└' if last else '├'} ", f"{indent}{'  ' if last else '│ '}")

    draw(trace.column, "", "")
    lines += ["", "ends in"]
    lines += [f"  {node if node.column != ROWS else f'the rows of {node.relation}'}" for node in sorted(trace.ends)]
    lines += [f"  a literal, {place}" for place in trace.literals]
    if trace.deciders:
        lines += ["", "rows decided by"]
        lines += [f"  {one.kind:<8} {one.place}  {', '.join(map(str, one.inputs))}" for one in trace.deciders]
    return "\n".join(lines)


def as_json(trace: Trace) -> dict[str, object]:
    """The same for programs."""
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
    """Where each relation at the rim is read from: the kinds of files, or the file of data/."""
    said = {"raw.files": "the list of files", "raw.rejected_rows": "the lines that could not be read"}
    for one in known_formats():
        said |= {f"raw.{relation.name}": f"files of {one.name}" for relation in one.relations}
    return said | {name: f"data/{one.path.name}" for name, one in project.references.items()}
