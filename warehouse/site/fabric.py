"""Pages of switches and servers: role, cabling, traffic and suspects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from warehouse.base.startup import regex
from warehouse.base.text import plural
from warehouse.site.people_rows import Rows, ask

if TYPE_CHECKING:
    import duckdb

    from warehouse.reader.findings import Finding
    from warehouse.reader.named_queries import Query
    from warehouse.reader.result import Row
    from warehouse.site.people_rows import TextRow

ROLES = {"leaf": "Leaf", "storage_leaf": "Storage leaf", "spine": "Spine"}
_CLASSES = {
    "uplink": "Uplinks",
    "storage_uplink": "Uplinks",
    "access": "Access ports",
    "storage_access": "Access ports",
}
OTHER_PORTS = "Other ports"
PORT_GROUPS = (*dict.fromkeys(_CLASSES.values()), OTHER_PORTS)
_NOT_IN_A_FILE = regex(r"[^\w.-]+")
_SHORT_PORT = regex(r"^[A-Za-z]+(?=\d+/)")


@dataclass(frozen=True)
class Port:
    """A cable end on the page of a switch or server."""

    texts: TextRow
    shares: tuple[float, ...]
    """Utilization in and out (server: received, sent) from 0 to 1; empty without counters."""
    suspect: str = ""
    """Reason to suspect the port, as text."""

    @property
    def percent(self) -> str:
        """Return both utilizations as text.

        >>> Port({}, (0.0371, 1e-9)).percent
        '3.7 % / < 0.1 %'
        """
        return " / ".join(_percent(share) for share in self.shares)


@dataclass(frozen=True)
class Node:
    """A switch or server with all facts of its page."""

    kind: str
    """`switch` or `server`."""
    cluster: str
    name: str
    path: str
    texts: TextRow
    ports: Mapping[str, Sequence[Port]] = field(default_factory=dict)
    """Ports by role."""
    hours: Sequence[TextRow] = ()
    neighbors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Names of neighbors by relation."""
    suspects: Sequence[str] = ()
    """Suspicions, one sentence each."""
    group: Group | None = None

    @property
    def hour(self) -> str:
        """Hour of the port figures."""
        return next(
            (one.texts["hour_utc"] or "" for some in self.ports.values() for one in some if one.texts["hour_utc"]), ""
        )

    @property
    def loaded_hour(self) -> TextRow | None:
        """Traffic of the last loaded hour."""
        return self.hours[-1] if self.hours else None


@dataclass(frozen=True)
class Group:
    """Servers with correlated traffic."""

    cluster: str
    place: str
    """Anchor in the index of switches and servers."""
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
        """Return the path of a switch or server page; None if there is none."""
        return self._paths.get((cluster, name or ""))

    @property
    def clusters(self) -> list[str]:
        """Return the clusters with a switch or server."""
        return sorted({one.cluster for one in self.nodes})

    @cached_property
    def _paths(self) -> dict[tuple[str, str], str]:
        return {(one.cluster, one.name): one.path for one in self.nodes}


def natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that orders numbers in names by value.

    >>> sorted(["Leaf-10", "Leaf-9", "spine-1"], key=natural)
    ['Leaf-9', 'Leaf-10', 'spine-1']
    """
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name) if part]


def short_port(port: str) -> str:
    """Return a port's name without its speed.

    >>> short_port("FourHundredGigE1/0/35"), short_port("ens10np0")
    ('1/0/35', 'ens10np0')
    """
    return _SHORT_PORT.sub("", port)


def fabric_of(
    connection: duckdb.DuckDBPyConnection, queries: Mapping[str, Query], findings: Sequence[Finding]
) -> Fabric:
    """Return the switches and servers of the warehouse; empty if the build has none."""
    rows_of = {name: ask(connection, query) for name, query in queries.items()}
    given = _Given(rows_of, findings)
    if not rows_of["switches"].rows:
        return Fabric()
    groups = given.groups()
    return Fabric(given.switches(), given.servers(groups), groups)


class _Given:
    """Rows of the site's fabric queries, grouped by subject."""

    def __init__(self, rows_of: Mapping[str, Rows], findings: Sequence[Finding]) -> None:
        self.rows_of = rows_of
        self.paths: set[str] = set()
        self.ports = rows_of["ports"].by("cluster", "switch")
        self.port_ends = rows_of["ports"].by("cluster", "peer_switch")
        self.nics = rows_of["nics"].by("cluster", "server")
        self.switch_hours = rows_of["switch-hours"].by("cluster", "switch")
        self.server_hours = rows_of["server-hours"].by("cluster", "server")
        self.suspect_ports = rows_of["suspects"].by("cluster", "switch", "port")
        self.suspect_servers = rows_of["suspects"].by("cluster", "server")
        self.found: dict[str, list[tuple[str, str]]] = {}
        for one in findings:
            if one.severity == "warning":
                self.found.setdefault(one.cluster, []).append((one.where, one.sentence))

    def path(self, cluster: str, name: str) -> str:
        """Return the file of a page: unique, and valid on any file system."""
        path = "/".join(["fabric", *(_NOT_IN_A_FILE.sub("-", one).strip(".") or "-" for one in (cluster, name))])
        while path.lower() in self.paths:
            path += "-"
        self.paths.add(path.lower())
        return f"{path}.html"

    def sentences(self, cluster: str, name: str, rows: Sequence[Row]) -> list[str]:
        """Return the suspicions of a switch or server: findings, then evidence without a finding."""
        suspects = self.rows_of["suspects"]
        found = dict.fromkeys(one for where, one in self.found.get(cluster, ()) if where.split(" ")[0] == name)
        for row in rows:
            where = " ".join(filter(None, (suspects.of(row, "switch"), short_port(suspects.of(row, "port")))))
            sentences = [one for link, one in self.found.get(cluster, ()) if where and (link == where or where in one)]
            evidence = f"{where}: {suspects.of(row, 'evidence')}" if where else suspects.of(row, "evidence")
            found |= dict.fromkeys(sentences or [evidence])
        return list(found)

    def switches(self) -> list[Node]:
        """Return the switches: leaves, storage leaves, spines."""
        rows, nodes = self.rows_of["switches"], []
        for row in sorted(rows.rows, key=lambda one: self._order(rows, one)):
            cluster, name = rows.of(row, "cluster"), rows.of(row, "switch")
            own = self.ports.get((cluster, name), []) or self.port_ends.get((cluster, name), [])
            ports = self.rows_of["ports"]
            suspects = [one for port in own for one in self._against(ports, port)]
            [texts] = rows.text_rows([row])
            nodes.append(
                Node(
                    "switch", cluster, name, self.path(cluster, name), texts, self._ports(ports, own),
                    self.rows_of["switch-hours"].text_rows(self.switch_hours.get((cluster, name), [])),
                    self._neighbors(cluster, name, rows.of(row, "leaf_group")),
                    self.sentences(cluster, name, suspects),
                )
            )  # fmt: skip
        return nodes

    @staticmethod
    def _order(rows: Rows, row: Row) -> tuple[object, ...]:
        roles = list(ROLES)
        role = rows.of(row, "role")
        at = roles.index(role) if role in roles else len(roles)
        return rows.of(row, "cluster"), at, natural(rows.of(row, "switch"))

    def _ports(self, rows: Rows, some: Sequence[Row]) -> dict[str, list[Port]]:
        sides = ("in", "out") if "in_utilization" in rows.names else ("rx", "tx")
        key = ("switch", "port") if sides[0] == "in" else ("hca", "switch", "port")
        ordered = sorted(some, key=lambda row: [natural(rows.of(row, one)) for one in key])
        found: dict[str, list[Port]] = {}
        for row, texts in zip(ordered, rows.text_rows(ordered), strict=True):
            shares = tuple(float(text) for side in sides if (text := rows.of(row, f"{side}_utilization")))
            kinds = [self.rows_of["suspects"].of(one, "kind") for one in self._against(rows, row)]
            of = _CLASSES.get(texts.get("port_class") or "", OTHER_PORTS)
            found.setdefault(of, []).append(Port(texts, shares, ", ".join(kinds).replace("_", " ")))
        return {name: found[name] for name in PORT_GROUPS if name in found}

    def _against(self, rows: Rows, row: Row) -> list[Row]:
        """Return the suspects that name a port."""
        return self.suspect_ports.get((rows.of(row, "cluster"), rows.of(row, "switch"), rows.of(row, "port")), [])

    def _neighbors(self, cluster: str, name: str, leaf_group: str) -> dict[str, list[str]]:
        rows, switches = self.rows_of["ports"], self.rows_of["switches"]
        own = self.ports.get((cluster, name), [])
        spines = [rows.of(row, "peer_switch") for row in own]
        leaves = [rows.of(row, "switch") for row in self.port_ends.get((cluster, name), [])]
        servers = [rows.of(row, "server") for row in own if not rows.of(row, "server").startswith("unlisted:")]
        beside = [
            switches.of(row, "switch")
            for row in switches.rows
            if leaf_group and switches.of(row, "leaf_group") == leaf_group and switches.of(row, "cluster") == cluster
        ]
        others = [one for one in beside if one != name]
        given = {"spines": spines, "leaves": leaves, "servers": servers, f"other leaves of {leaf_group}": others}
        return {label: _distinct(several) for label, several in given.items() if any(several)}

    def servers(self, groups: Sequence[Group]) -> list[Node]:
        """Return the named servers."""
        of_group = {(one.cluster, server): one for one in groups for server in one.servers}
        rows, nodes = self.rows_of["servers"], []
        order = sorted(rows.rows, key=lambda one: (rows.of(one, "cluster"), natural(rows.of(one, "server"))))
        for row, texts in zip(order, rows.text_rows(order), strict=True):
            cluster, name = rows.of(row, "cluster"), rows.of(row, "server")
            suspects = self.suspect_servers.get((cluster, name), [])
            nics = self.nics.get((cluster, name), [])
            leaves = [self.rows_of["nics"].of(one, "switch") for one in nics]
            group = of_group.get((cluster, name))
            near = {
                "leaves": leaves,
                "servers that pulse with it": [one for one in (group.servers if group else ()) if one != name],
            }
            nodes.append(
                Node(
                    "server", cluster, name, self.path(cluster, name), texts,
                    self._ports(self.rows_of["nics"], nics),
                    self.rows_of["server-hours"].text_rows(self.server_hours.get((cluster, name), [])),
                    {label: _distinct(several) for label, several in near.items() if any(several)},
                    self.sentences(cluster, name, suspects), group,
                )
            )  # fmt: skip
        return nodes

    def groups(self) -> list[Group]:
        """Return the traffic groups of the latest hour."""
        rows = self.rows_of["traffic-groups"]
        found = []
        for (cluster, number), some in rows.by("cluster", "group_id").items():
            place = f"group-{_NOT_IN_A_FILE.sub('-', cluster)}-{number}"
            found.append(Group(cluster, place, rows.text_rows(some)[0], [rows.of(row, "server") for row in some]))
        return found


def _percent(share: float) -> str:
    return "0 %" if not share else "< 0.1 %" if share < 0.001 else f"{100 * share:.1f} %"


def _distinct(names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name}, key=natural)


def lead(node: Node) -> str:
    """Return a sentence that describes a switch or server."""
    texts = node.texts
    if node.kind == "server":
        nics = sum(map(len, node.ports.values()))
        on = f" on {texts['leaf_group']}" if texts["leaf_group"] else ""
        return f"Server{on} with {plural(nics, 'NIC')}, in {node.cluster}."
    of = f" of {texts['leaf_group']}" if texts["leaf_group"] else ""
    role = ROLES.get(texts["role"] or "", texts["role"] or "Switch")
    spines, leaves = len(node.neighbors.get("spines", ())), len(node.neighbors.get("leaves", ()))
    others = plural(spines, "spine") if spines else "1 leaf" if leaves == 1 else f"{leaves} leaves"
    parts = [f"{plural(int(texts['uplinks'] or 0), 'link')} to {others}"] if spines or leaves else []
    if texts["servers"] not in ("0", None):
        parts = [f"{plural(int(texts['servers'] or 0), 'server')} on {texts['access_ports']} access ports", *parts]
    elif texts["access_ports"] not in ("0", None):
        parts = [f"{texts['access_ports']} access ports", *parts]
    return f"{role}{of} with {' and '.join(parts) or 'no cable that is known'}, in {node.cluster}."
