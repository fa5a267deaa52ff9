"""Column lineage as text and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence

from warehouse.base.startup import regex
from warehouse.base.text import grouped, plural
from warehouse.formats import known_formats
from warehouse.formats.traces import trace_of
from warehouse.lineage.column_lineage import Node, Trace
from warehouse.lineage.steps import ROWS
from warehouse.project.project import Project

_LEAST = 24
"""Minimum number of characters of a line after its indent, on a narrow terminal."""


_WORD = regex(r"\w+")
_LONGEST = 12
"""Lines of an expression at most."""


def summary_text(
    trace: Trace,
    about: str,
    parents: Sequence[Node],
    expression: Sequence[str],
    ends: Mapping[str, str],
    width: int | None = None,
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
        The files of each source relation, from `described`.
    width
        The width of the terminal; None to break no line.
    """
    steps = ", ".join(f"{one.kind} {one.place}" for one in trace.origins.get(trace.column, ()))
    lines = _broken(f"{trace.column}  {steps}".rstrip(), width, "    ")
    lines += _broken(f"    {about}", width, "    ") if about else []
    for line in expression:
        lines += _broken(f"    {line}", width, "      ")
    if parents:
        lines += ["", "reads"]
        for relation, columns in _by_relation(parents).items():
            lines += _broken(f"  {relation}: {', '.join(columns)}", width, "    ")
    lines += ["", f"{trace.column} comes from"]
    for relation, columns in _by_relation(sorted(trace.ends)).items():
        lines += _broken(f"  {relation}: {', '.join(columns)}", width, "    ")
        lines += _broken(f"    {ends.get(relation, 'raw')}", width, "    ")
    lines += [f"  a literal, {place}" for place in trace.literals]
    between = dict.fromkeys(node.relation for node in trace.origins if node.relation != trace.column.relation)
    if between:
        lines += _broken(f"  by way of {', '.join(between)}", width, "    ")
    return "\n".join(lines)


def _by_relation(nodes: Iterable[Node]) -> dict[str, list[str]]:
    """Return the columns of each relation."""
    return grouped((node.relation, "its rows" if node.column == ROWS else node.column) for node in nodes)


def steps_text(trace: Trace, ends: Mapping[str, str], width: int | None = None) -> str:
    """Return a tree of all steps, and the clauses that determine the rows.

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
    return "\n".join(lines)


def expression_lines(text: str, line: int) -> list[str]:
    """Return the lines of a SELECT that compute the column whose expression ends in this line; none if too long.

    >>> expression_lines("SELECT\\n    a,\\n    CASE\\n        WHEN b THEN 1\\n    END AS c,\\n    d", 5)
    ['CASE', '    WHEN b THEN 1', 'END AS c']
    """
    above = [one.partition("--")[0].rstrip() for one in text.splitlines()[:line]]
    found: list[str] = []
    while above and len(found) < _LONGEST:
        found.insert(0, above.pop())
        begins = found[0].lstrip().startswith("SELECT ") or (above or [""])[-1].endswith((",", "SELECT", "("))
        if begins and _is_whole("\n".join(found)):
            return textwrap.dedent("\n".join(found)).removesuffix(",").splitlines()
    return []


def _is_whole(text: str) -> bool:
    """Return True if parentheses and CASE .. END are balanced."""
    words = [word.upper() for word in _WORD.findall(text)]
    return text.count("(") == text.count(")") and words.count("CASE") == words.count("END")


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


def described(ends: Mapping[str, str], files: Mapping[str, tuple[int, int, str]]) -> dict[str, str]:
    """Return the files of each source relation in words.

    Parameters
    ----------
    ends
        From `read_from`.
    files
        Loaded files of each format: number, number of folders, and one path. Empty if nothing is built.
    """
    found = dict(ends) | {"raw.files": "names and folders of the raw files"}
    for one in sorted(known_formats(), key=lambda one: one.name in files):  # loaded formats of a relation win
        number, folders, example = files.get(one.name, (0, 0, ""))
        trace = trace_of(one.name)
        kind = one.name + (f", {trace.title}" if trace else "")
        where = f"{plural(number, 'file')} in {plural(folders, 'folder')}, such as {_short(example)}"
        where = where if number else "no file of it is loaded" if files else ""
        for relation in one.relations:
            found[f"raw.{relation.name}"] = " ".join(f"{relation.about} {where} ({kind})".split())
    return found


def _short(path: str) -> str:
    """Return a release path with its cluster or trace, its last folder and its name.

    >>> _short("c/trafficinfo/2024052400/Leaf-5/Leaf-5_0.csv"), _short("itp/raw-traces/cluster01.csv")
    ('c/…/Leaf-5/Leaf-5_0.csv', 'itp/raw-traces/cluster01.csv')
    """
    parts = path.split("/")
    return "/".join([parts[0], "…", *parts[-2:]] if len(parts) > len(("trace", "folder", "name")) else parts)
