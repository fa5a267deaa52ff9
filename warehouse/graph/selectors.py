"""Selectors (`-s`): a name, a layer or a glob, with `+` for what is upstream or downstream."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from warehouse.base.errors import SettingsError, nearest_hint
from warehouse.graph.dag import Graph
from warehouse.project.model import LAYERS


def select_models(graph: Graph, selectors: Sequence[str]) -> set[str]:
    """Return the models that selectors name.

    A selector is a name (`metrics.port_hour`), a layer (`metrics`), or a glob (`*.port_*`); a `+` before
    it adds all that it stands on, a `+` after it all that stands on it. No selector means all.

    Raises
    ------
    SettingsError
        When one names nothing.
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
