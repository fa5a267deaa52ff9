"""Where a table is from: the relations it stands on, down to raw files, and those that stand on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.base.errors import SettingsError, nearest_hint
from warehouse.base.settings import Settings
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.graph.loading import load_graph
from warehouse.project.model import LAYERS, Model
from warehouse.project.project import Project

if TYPE_CHECKING:
    from warehouse.graph.dag import Graph


@dataclass(frozen=True)
class Lineage:
    """A relation, what it reads (and those in turn), and what reads it."""

    name: str
    reads: Mapping[str, Sequence[str]]
    """Direct inputs of the relation and of everything below it."""
    read_by: Sequence[str]
    files: Mapping[str, str]
    """The model file of each relation that has one."""


def find_model(project: Project, name: str) -> Model:
    """The model of that name, its layer left out where that is clear.

    Raises
    ------
    SettingsError
        With the nearest name.
    """
    if name in project.models:
        return project.models[name]
    short = [full for full in project.models if full.split(".")[1] == name]
    if len(short) == 1:
        return project.models[short[0]]
    raise SettingsError(f"no model {name}", hint=nearest_hint(name, project.models) or "warehouse ls lists the tables")


def names_a_column(name: str) -> bool:
    """Whether a name is a column's: it has a table before its last dot.

    >>> names_a_column("metrics.port_hour"), names_a_column("port_hour.in_bytes")
    (False, True)
    """
    first, _, rest = name.partition(".")
    return "." in rest or (bool(rest) and first not in (*LAYERS, "raw"))


def table_lineage(settings: Settings, name: str) -> Lineage:
    """The lineage of a table, read off the models' SQL; nothing needs to be built."""
    project = Project.open(settings.project)
    with closing(DuckDBEngine(threads=1, memory_bytes=2**28, spill=Path("spill"))) as engine:
        graph = load_graph(project, engine)
    full = name if name in graph.source_columns else find_model(project, name).name
    return Lineage(
        full,
        _below(graph, full),
        sorted(other for other, node in graph.nodes.items() if full in node.reads),
        {other: node.model.shown_path for other, node in graph.nodes.items()},
    )


def _below(graph: Graph, name: str) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {}
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one not in found and one in graph.nodes:
            found[one] = graph.nodes[one].reads
            waiting += found[one]
    return found


def as_text(lineage: Lineage) -> str:
    """A tree for people; what was drawn above is not drawn again.

    The file of each model stands beside it.
    """
    lines = [_label(lineage, lineage.name)]
    seen = {lineage.name}

    def draw(name: str, indent: str) -> None:
        reads = lineage.reads.get(name, ())
        for position, read in enumerate(reads):
            last = position == len(reads) - 1
            again = " …" if read in seen and lineage.reads.get(read) else ""
            lines.append(f"{indent}{'└' if last else '├'} {_label(lineage, read)}{again}")
            if not again:
                seen.add(read)
                draw(read, indent + ("  " if last else "│ "))

    draw(lineage.name, "")
    if lineage.read_by:
        lines += ["", f"read by {', '.join(lineage.read_by)}"]
    return "\n".join(lines)


def _label(lineage: Lineage, name: str) -> str:
    file = lineage.files.get(name)
    return f"{name}  ({file})" if file else name


def as_json(lineage: Lineage) -> dict[str, object]:
    """The same for programs."""
    return {
        "name": lineage.name,
        "reads": {name: list(reads) for name, reads in lineage.reads.items()},
        "read_by": list(lineage.read_by),
    }
