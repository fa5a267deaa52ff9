"""Load the DAG of a project: parse, order and bind all models."""

from __future__ import annotations

from warehouse.engine.duckdb import DuckDBEngine
from warehouse.formats import known_formats
from warehouse.graph.binding import bind
from warehouse.graph.dag import Graph
from warehouse.ingest.schemas import source_columns
from warehouse.project.contract import Column
from warehouse.project.project import Project
from warehouse.store.parse_cache import ParseCache, cache_of_models


def load_graph(project: Project, engine: DuckDBEngine) -> Graph:
    """Parse, order and bind all models, except those in the project's cache.

    This finds every mistake that can be found without rows. Raises ModelError.
    """
    if not project.parse_cache.is_on_disk:
        project = project.with_cache(cache_of(project, engine))
    graph = Graph.build(project, columns_outside(project), engine)
    bind(graph, engine, project.parse_cache)
    project.parse_cache.save()
    return graph


def columns_outside(project: Project) -> dict[str, tuple[Column, ...]]:
    """Return the columns of the relations that no model makes: raw ones and reviewed tables."""
    raw = source_columns(known_formats()) if project.reads_raw else {}
    return raw | {name: one.columns for name, one in project.references.items()}


def cache_of(project: Project, engine: DuckDBEngine, *, paranoid: bool = False) -> ParseCache:
    """Return the cache of parse and bind results of a project; with `paranoid`, an empty one."""
    return cache_of_models(project.folders, f"{engine.name} {engine.version}", paranoid=paranoid)
