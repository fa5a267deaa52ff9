"""Switches and servers of the build: one page, with the named queries that say more of one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warehouse.base.text import grouped
from warehouse.site.people_rows import TextRow, ask

if TYPE_CHECKING:
    import duckdb

    from warehouse.reader.named_queries import Query

QUERIES = ("switches", "servers", "suspects", "traffic-groups")
"""Queries of the site on switches and servers."""
PAGE = "fabric.html"
_PARAMETERS = {"leaf": "leaf", "switch": "leaf", "spine": "spine", "server": "server"}
"""Parameters of queries on one switch or server, and the role of what they name."""


def anchor(cluster: str, name: str) -> str:
    """Return the anchor of a switch or server on the page: without spaces, and unlike those of other clusters."""
    return re.sub(r"\s+", "-", f"{cluster}/{name}")


@dataclass(frozen=True)
class Fabric:
    """All switches and servers of the build, as rows of readable text."""

    switches: Sequence[TextRow] = ()
    servers: Sequence[TextRow] = ()
    groups: Sequence[TextRow] = ()
    """Servers with correlated traffic."""
    suspicions: Mapping[tuple[str, str], Sequence[TextRow]] = field(default_factory=dict)
    """What to look at, each with the place that says more, by cluster and name."""

    def nodes(self) -> Iterator[tuple[str, str, str]]:
        """Yield the cluster, name and role of each switch and server."""
        for row in (*self.switches, *self.servers):
            yield row["cluster"] or "", row["name"] or "", row["role"] or ""

    def path(self, cluster: str, name: str) -> str | None:
        """Return the place of a switch or server; None if the page does not list it."""
        known = any((cluster, name) == (of, one) for of, one, _ in self.nodes())
        return f"{PAGE}#{anchor(cluster, name)}" if known else None

    def commands(self, queries: Iterable[Query]) -> Iterator[tuple[Query, str]]:
        """Yield the queries on one switch or server, each with options that name one to look at, else any."""
        for query in queries:
            wanted = next((one for one in _PARAMETERS if one in query.parameters), None)
            named = [(cluster, name) for cluster, name, role in self.nodes() if wanted and role == _PARAMETERS[wanted]]
            if named:
                # An example is worth more on a switch that has something to look at.
                _, name = next((one for one in named if one in self.suspicions), named[0])
                yield query, f"{query.name} --{wanted} {name}"


def fabric_of(connection: duckdb.DuckDBPyConnection, queries: Mapping[str, Query]) -> Fabric:
    """Return the switches and servers of the warehouse; empty if the build has none."""
    switches, servers, suspects, groups = (ask(connection, queries[name]).text_rows() for name in QUERIES)
    suspicions = grouped(((row["cluster"] or "", row["name"] or ""), row) for row in suspects)
    return Fabric(switches, servers, groups, suspicions)
