"""Column lineage as text and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence

from warehouse.base.startup import regex
from warehouse.base.text import grouped
from warehouse.formats import known_formats
from warehouse.lineage.column_lineage import Node, Trace
from warehouse.lineage.steps import ROWS
from warehouse.lineage.table_lineage import tree
from warehouse.project.project import Project

_WORD = regex(r"\w+")
_LONGEST = 12
"""Lines of an expression at most."""
_WIDTH = 80
"""Longest line of the summary, apart from lines of SQL."""


def summary_text(
    trace: Trace, about: str, parents: Sequence[Node], expression: Sequence[str], ends: Mapping[str, str]
) -> str:
    """Return where a column is from in a few lines: its expression, the tables it reads, and the raw files.

    Parameters
    ----------
    trace
        The lineage of the column.
    about
        Its meaning, from the contract.
    parents
        Columns of other relations that the column is computed from.
    expression
        Lines of the model that compute the column.
    ends
        The files of each source relation, from `read_from`.
    """
    lines = [f"{trace.column}  {_steps(trace, trace.column)}".rstrip()]
    lines += [_wrapped(f"    {about}")] if about else []
    lines += [f"    {line}" for line in expression]
    if parents:
        lines += ["", "reads", *(_wrapped(f"  {line}") for line in _by_relation(parents).values())]
    lines += ["", f"{trace.column} comes from"]
    for relation, columns in _by_relation(sorted(trace.ends)).items():
        lines += [_wrapped(f"  {columns}"), f"    {ends.get(relation, 'raw')}"]
    lines += [f"  a literal, {place}" for place in trace.literals]
    between = dict.fromkeys(node.relation for node in trace.origins if node.relation != trace.column.relation)
    lines += [_wrapped(f"  by way of {', '.join(between)}")] if between else []
    return "\n".join(lines)


def _wrapped(line: str) -> str:
    """Return a line in lines of the width; what follows the first is indented by two more."""
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _by_relation(nodes: Iterable[Node]) -> dict[str, str]:
    """Return each relation with its columns, by relation."""
    found = grouped((node.relation, "its rows" if node.column == ROWS else node.column) for node in nodes)
    return {relation: f"{relation}: {', '.join(columns)}" for relation, columns in found.items()}


def _steps(trace: Trace, node: Node) -> str:
    return ", ".join(f"{one.kind} {one.place}" for one in trace.origins.get(node, ()))


def steps_text(trace: Trace, ends: Mapping[str, str]) -> str:
    """Return a tree of all steps, and the clauses that determine the rows.

    Parameters
    ----------
    trace
        The lineage of the column.
    ends
        The files of each source relation, from `read_from`.
    """

    def inputs(node: Node) -> list[Node]:
        origins = () if node.column == ROWS else trace.origins.get(node, ())
        return list(dict.fromkeys(one for origin in origins for one in origin.inputs))

    def label(node: Node) -> str:
        said = "the number of rows" if node.column == ROWS else _steps(trace, node) or ends.get(node.relation, "")
        return f"{node}  {said}"

    lines = tree(trace.column, inputs, label)
    lines += ["", "rows decided by"] if trace.deciders else []
    lines += [f"  {one.kind:<8} {one.place}  {', '.join(map(str, one.inputs))}" for one in trace.deciders]
    return "\n".join(lines)


def expression_lines(text: str, line: int) -> list[str]:
    """Return the lines of a SELECT that compute the column whose expression ends in this line; none if too long.

    >>> expression_lines("SELECT\\n    a,\\n    CASE\\n        WHEN b THEN 1 -- one\\n    END AS c,\\n    d", 5)
    ['CASE', '    WHEN b THEN 1', 'END AS c']
    """
    # A comment may have brackets or CASE of its own.
    above = [one.partition("--")[0].rstrip() for one in text.splitlines()[:line]]
    found: list[str] = []
    while above and len(found) < _LONGEST:
        found.insert(0, above.pop())
        begins = found[0].lstrip().startswith("SELECT ") or (above or [""])[-1].endswith((",", "SELECT", "("))
        words = [word.upper() for word in _WORD.findall("\n".join(found))]
        text = "\n".join(found)
        if begins and text.count("(") == text.count(")") and words.count("CASE") == words.count("END"):
            return textwrap.dedent(text).removesuffix(",").splitlines()
    return []


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
    sources = {
        "raw.files": "names and folders of the raw files",
        "raw.rejected_rows": "the lines that could not be read",
    }
    for one in known_formats(traces=project.traces):
        sources |= {relation.full_name: f"files of {one.name}" for relation in one.relations}
    return sources | {name: f"data/{one.path.name}" for name, one in project.references.items()}
