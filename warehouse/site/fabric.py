"""Switches and servers of the build: one page, with the named queries that say more of one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from warehouse.base.text import natural, plural
from warehouse.site.people_rows import Rows, ask
from warehouse.site.prose import Anchors

if TYPE_CHECKING:
    import duckdb

    from warehouse.reader.findings import Finding
    from warehouse.reader.named_queries import Query
    from warehouse.site.people_rows import TextRow

ROLES = {"leaf": "Leaf", "storage_leaf": "Storage leaf", "spine": "Spine"}
QUERIES = ("switches", "servers", "suspects", "traffic-groups")
"""Queries of the site on switches and servers."""
PAGE = "fabric.html"
HEADINGS = ("ask", "switches", "servers", "groups", "filter", "only-odd")
"""Anchors of the page that no switch or server may have."""
_PARAMETERS = {"leaf": "leaf", "switch": "leaf", "spine": "spine", "server": "server"}
"""Parameters of queries on one switch or server, and the role of what they name."""


@dataclass(frozen=True)
class Node:
    """A switch or server with the facts of its row."""

    kind: str
    """`switch` or `server`."""
    cluster: str
    name: str
    anchor: str
    """Anchor of its row, unique in the page."""
    texts: TextRow
    suspicions: Sequence[tuple[str, str]] = ()
    """What to look at, each with the place that says more."""
    group: Group | None = None

    @property
    def path(self) -> str:
        """Place of its row in the site."""
        return f"{PAGE}#{self.anchor}"

    @property
    def role(self) -> str:
        """Role of a switch, or `server`."""
        return self.texts.get("role") or self.kind


@dataclass(frozen=True)
class Group:
    """Servers with correlated traffic."""

    cluster: str
    anchor: str
    texts: TextRow
    servers: Sequence[str]


@dataclass(frozen=True)
class Fabric:
    """All switches and servers of the build."""

    switches: Sequence[Node] = ()
    servers: Sequence[Node] = ()
    groups: Sequence[Group] = ()

    @property
    def nodes(self) -> Iterable[Node]:
        """Return switches, then servers."""
        return (*self.switches, *self.servers)

    def path(self, cluster: str, name: str | None) -> str | None:
        """Return the place of a switch or server; None if the page does not list it."""
        return self._paths.get((cluster, name or ""))

    @property
    def clusters(self) -> list[str]:
        """Return the clusters with a switch or server."""
        return sorted({one.cluster for one in self.nodes})

    def commands(self, queries: Iterable[Query]) -> list[tuple[Query, str]]:
        """Return the queries on one switch or server, each with options that name one to look at, else any."""
        found = []
        for query in queries:
            wanted = next((one for one in _PARAMETERS if one in query.parameters), None)
            nodes = [one for one in self.nodes if wanted and one.role == _PARAMETERS[wanted]]
            if nodes:
                shown = next((one for one in nodes if one.suspicions), nodes[0])
                found.append((query, f"{query.name} --{wanted} {shown.name}"))
        return found

    @cached_property
    def _paths(self) -> dict[tuple[str, str], str]:
        return {(one.cluster, one.name): one.path for one in self.nodes}


def fabric_of(
    connection: duckdb.DuckDBPyConnection, queries: Mapping[str, Query], findings: Sequence[Finding]
) -> Fabric:
    """Return the switches and servers of the warehouse; empty if the build has none."""
    switches, servers, suspects, of_groups = (ask(connection, queries[name]) for name in QUERIES)
    if not switches.rows:
        return Fabric()
    anchors = Anchors(HEADINGS)
    groups = [
        Group(cluster, anchors.of(f"group-{cluster}-{number}"), of_groups.text_rows(rows)[0],
              [of_groups.of(row, "server") for row in rows])
        for (cluster, number), rows in of_groups.by("cluster", "group_id").items()
    ]  # fmt: skip
    suspicions: dict[tuple[str, str], dict[str, str]] = {}
    for one in findings:
        if one.severity == "warning":
            named = suspicions.setdefault((one.cluster, one.where.partition(" ")[0]), {})
            named[one.what] = f"index.html#finding-{one.kind}"
    for (cluster, name), rows in suspects.by("cluster", "name").items():
        evidence = {suspects.of(row, "kind"): "queries.html#suspect-links" for row in rows}
        suspicions.setdefault((cluster, name), evidence)
    of_group = {(one.cluster, server): one for one in groups for server in one.servers}

    def nodes(kind: str, rows: Rows, roles: Sequence[str]) -> list[Node]:
        found = [
            Node(kind, cluster, name, anchors.of(name), texts, [*suspicions.get((cluster, name), {}).items()],
                 of_group.get((cluster, name)) if kind == "server" else None)
            for texts in rows.text_rows()
            for cluster, name in [(texts["cluster"] or "", texts[kind] or "")]
        ]  # fmt: skip
        return sorted(found, key=lambda one: (one.cluster, [*roles, one.role].index(one.role), natural(one.name)))

    return Fabric(nodes("switch", switches, [*ROLES]), nodes("server", servers, []), groups)


def lead(node: Node) -> str:
    """Return a sentence that describes a switch or server."""
    texts = node.texts
    if node.kind == "server":
        on = f" on {texts['leaf_group']}" if texts["leaf_group"] else ""
        return f"Server{on}, in {node.cluster}."
    of = f" of {texts['leaf_group']}" if texts["leaf_group"] else ""
    counts = [
        plural(int(count), word) for word, count in (("server", texts["servers"]), ("link", texts["uplinks"])) if count
    ]
    role = ROLES.get(node.role, node.role)
    return f"{role}{of} with {' and '.join(counts) or 'no cable that is known'}, in {node.cluster}."
