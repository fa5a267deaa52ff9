"""Load the graph of a project: parse, order and bind all models."""

from __future__ import annotations

from warehouse.engine.base import Engine
from warehouse.formats import known_formats
from warehouse.graph.binding import bind
from warehouse.graph.dag import Graph
from warehouse.ingest.schemas import rim
from warehouse.project.project import Project
from warehouse.store.parse_cache import Memo, memo_of_models


def load_graph(project: Project, engine: Engine) -> Graph:
    """Parse, order and bind all models: after this, no model has a mistake that shows without rows.

    What the project's cache knows is not parsed or bound again.
    """
    memo = project.memo or cache_of(project, engine)
    project = project.remembering(memo)
    known = (rim(known_formats()) if project.reads_raw else {}) | {
        name: one.columns for name, one in project.references.items()
    }
    graph = Graph.build(project, known, engine, memo)
    bind(graph, engine, memo)
    memo.save()
    return graph


def cache_of(project: Project, engine: Engine, *, paranoid: bool = False) -> Memo:
    """Return the cache of parse and bind results of a project; with `paranoid` nothing in it is believed."""
    return memo_of_models(project.folders, f"{engine.name} {engine.version}", paranoid=paranoid)
