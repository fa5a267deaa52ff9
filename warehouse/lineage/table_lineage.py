"""Table lineage: the upstream relations of a table down to raw files, and its direct downstream tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.base.errors import SettingsError, nearest_hint
from warehouse.base.settings import Settings
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.graph.dag import load_graph
from warehouse.project.model import LAYERS, Model
from warehouse.project.project import Project

if TYPE_CHECKING:
    from warehouse.graph.dag import Graph


@dataclass(frozen=True)
class Lineage:
    """Upstream and direct downstream relations of a relation."""

    name: str
    reads: Mapping[str, Sequence[str]]
    """Direct inputs of the relation and of each relation upstream of it."""
    read_by: Sequence[str]
    files: Mapping[str, str]
    """File of each model."""


def find_model(project: Project, name: str) -> Model:
    """Return the model with this name; the layer can be omitted if the name is unique.

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
    by_word = f"warehouse ls {name} finds tables and columns by a word"
    raise SettingsError(f"no model {name}", hint=nearest_hint(name, project.models) or by_word)


def names_a_column(name: str) -> bool:
    """Return True if a name is that of a column: a table, a dot, a column.

    >>> names_a_column("metrics.port_hour"), names_a_column("port_hour.in_bytes")
    (False, True)
    """
    first, _, rest = name.partition(".")
    return "." in rest or (bool(rest) and first not in (*LAYERS, "raw"))


def table_lineage(settings: Settings, name: str) -> Lineage:
    """Return the lineage of a table from the models' SQL, without a build."""
    project = Project.open(settings.project)
    with closing(DuckDBEngine(memory_bytes=2**28, spill=Path("spill"))) as engine:
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
    """Return a tree of upstream relations with the files of models. A repeated subtree is shortened to `…`."""
    lines = [_label(lineage, lineage.name)]
    seen = {lineage.name}

    def draw(name: str, indent: str) -> None:
        reads = lineage.reads.get(name, ())
        for position, read in enumerate(reads):
            last = position == len(reads) - 1
            shortened = " …" if read in seen and lineage.reads.get(read) else ""
            lines.append(f"{indent}{'└' if last else '├'} {_label(lineage, read)}{shortened}")
            if not shortened:
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
    """Return the lineage as JSON-able values."""
    return {
        "name": lineage.name,
        "reads": {name: list(reads) for name, reads in lineage.reads.items()},
        "read_by": list(lineage.read_by),
    }
