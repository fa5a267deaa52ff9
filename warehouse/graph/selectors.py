"""Selectors (`-s`): a name, a layer or a glob, with `+` for upstream or downstream models."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from warehouse.base.errors import SettingsError, nearest_hint
from warehouse.graph.dag import Graph
from warehouse.project.model import LAYERS


def select_models(graph: Graph, selectors: Sequence[str]) -> set[str]:
    """Return the models that match the selectors; all models without a selector.

    A selector is a name (`metrics.port_hour`), a layer (`metrics`), or a glob (`*.port_*`). A leading `+` adds all
    upstream models, a trailing `+` all downstream models.

    Raises
    ------
    SettingsError
        When a selector matches no model.
    """
    if not selectors:
        return set(graph.nodes)
    chosen: set[str] = set()
    for selector in (part.strip() for given in selectors for part in given.split(",") if part.strip()):
        core = selector.strip("+")
        pattern = f"{core}.*" if core in LAYERS else core
        found = set(fnmatch.filter(graph.nodes, pattern))
        if not found:
            raise SettingsError(
                f"--select {selector}: no model has this name",
                hint=nearest_hint(core, [*graph.nodes, *LAYERS]),
            )
        chosen |= found
        if selector.startswith("+"):
            chosen |= {name for one in found for name in graph.ancestors(one) if name in graph.nodes}
        if selector.endswith("+"):
            chosen |= {name for one in found for name in graph.descendants(one)}
    return chosen
