"""Table lineage: the upstream relations of a table down to raw files, and its direct downstream tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from warehouse.base.errors import SettingsError, nearest_hint
from warehouse.base.settings import Settings
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.graph.dag import load_graph
from warehouse.project.model import LAYERS, Model
from warehouse.project.project import Project

Item = TypeVar("Item")


def find_model(project: Project, name: str) -> Model:
    """Return the model with this name; the layer can be omitted if the name is unique.

    Raises
    ------
    SettingsError
        With the nearest name.
    """
    found = [full for full in project.models if name in (full, full.split(".")[1])]
    if len(found) == 1:
        return project.models[found[0]]
    by_word = f"warehouse ls {name} finds tables and columns by a word"
    raise SettingsError(f"no model {name}", hint=nearest_hint(name, project.models) or by_word)


def names_a_column(name: str) -> bool:
    """Return True if a name is that of a column: a table, a dot, a column.

    >>> names_a_column("metrics.port_hour"), names_a_column("port_hour.in_bytes")
    (False, True)
    """
    first, _, rest = name.partition(".")
    return "." in rest or (bool(rest) and first not in (*LAYERS, "raw"))


def table_lineage(settings: Settings, name: str) -> tuple[str, dict[str, object]]:
    """Return the lineage of a table from the models' SQL, without a build: as a tree, and as JSON-able values."""
    project = Project.open(settings.project)
    with closing(DuckDBEngine(memory_bytes=2**28, spill=Path("spill"))) as engine:
        graph = load_graph(project, engine)
    full = name if name in graph.source_columns else find_model(project, name).name
    reads = {one: list(node.reads) for one, node in graph.nodes.items()}
    read_by = sorted(other for other, inputs in reads.items() if full in inputs)
    files = {one: f"{one}  ({node.model.shown_path})" for one, node in graph.nodes.items()}
    lines = tree(full, lambda one: reads.get(one, ()), lambda one: files.get(one, one))
    text = "\n".join([*lines, *(["", f"read by {', '.join(read_by)}"] if read_by else [])])
    upstream = {full, *graph.ancestors(full)}
    return text, {
        "name": full,
        "reads": {one: reads[one] for one in graph.order if one in upstream},
        "read_by": read_by,
    }


def tree(root: Item, below: Callable[[Item], Sequence[Item]], label: Callable[[Item], str]) -> list[str]:
    """Return the lines of a tree. A repeated subtree is shortened to `…`."""
    lines: list[str] = []
    seen: set[Item] = set()

    def draw(item: Item, before: str, indent: str) -> None:
        inputs = below(item)
        is_repeated = bool(inputs) and item in seen
        lines.append(f"{before}{label(item)}{' …' if is_repeated else ''}")
        seen.add(item)
        for rank, one in enumerate(() if is_repeated else inputs, 1):
            is_last = rank == len(inputs)
            draw(one, f"{indent}{'└' if is_last else '├'} ", f"{indent}{'  ' if is_last else '│ '}")

    draw(root, "", "")
    return lines
