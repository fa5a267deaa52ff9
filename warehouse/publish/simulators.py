"""The leaf matrix of the latest hour for simulators: CSV and NumPy, SimAI, htsim. Docs: docs/metrics/matrix.md."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from warehouse.base.errors import QueryError
from warehouse.base.startup import duckdb
from warehouse.base.text import natural
from warehouse.publish.export import replaced, write_checksums, write_json
from warehouse.reader.connection import connect
from warehouse.reader.table_info import list_tables
from warehouse.store.manifest import EXPORT, MANIFEST

TABLE = "metrics.leaf_matrix"
COLUMNS = ("src", "dst", "bytes_low", "bytes_estimate", "bytes_high", "evidence")
OUTSIDE = "outside"
WINDOWS = 3_600_000
"""Milliseconds of an hour: flows carry the mean of one, since htsim holds the bytes of a flow in 32 bits."""

_LINKS = """
    SELECT p.switch, p.port, NULL AS spine, p.line_rate_bps
    FROM topology.ports AS p
    LEFT JOIN metrics.port_hour AS h
        ON h.cluster = p.cluster AND h.switch = p.switch AND h.port = p.port AND h.hour_utc = $2
    WHERE p.cluster = $1 AND p.port_class IN ('access', 'storage_access')
        AND (p.server IS NOT NULL OR h.in_bytes + h.out_bytes > 0)
        AND EXISTS (FROM metrics.leaf_hour AS l WHERE l.cluster = p.cluster AND l.switch = p.switch AND l.hour_utc = $2)
    UNION ALL
    SELECT u.leaf, u.leaf_port, u.spine, p.line_rate_bps
    FROM topology.uplinks AS u
    JOIN topology.ports AS p ON p.cluster = u.cluster AND p.switch = u.leaf AND p.port = u.leaf_port
    JOIN metrics.leaf_hour AS l ON l.cluster = u.cluster AND l.switch = u.leaf AND l.hour_utc = $2
    WHERE u.cluster = $1
"""


class Fabric(NamedTuple):
    """Cells of one cluster's matrix, and the links of its leaves: hosts by leaf, then uplinks."""

    cells: list[tuple[str, str, int, int, int, str]]
    hosts: dict[str, list[tuple[str, int]]]
    """Port and rate of each access link."""
    uplinks: list[tuple[str, str, int]]
    """Leaf, spine and rate."""
    gpu: str
    about: str

    def flows(self) -> Iterator[tuple[tuple[str, int], tuple[str, int], int]]:
        """Yield the bytes of a millisecond from host to host of each leaf, all hosts of the sending leaf alike."""
        for src, dst, _, estimate, _, _ in self.cells:
            if OUTSIDE in (src, dst) or not self.hosts[src] or not self.hosts[dst]:
                continue
            # The remainder goes to the first hosts, so that no byte is lost by rounding.
            each, rest = divmod(estimate // WINDOWS, senders := len(self.hosts[src]))
            for place in range(senders):
                # Within a leaf, the next host: none sends to itself.
                target = (place + (src == dst)) % len(self.hosts[dst])
                size = each + (place < rest)
                if size and (src, place) != (dst, target):
                    yield (src, place), (dst, target), size


def export_matrix(target: Path, directory: Path, simulator: str) -> Path:
    """Write the matrix of the latest hour, of each cluster, in the form of a simulator; return the directory.

    Raises
    ------
    QueryError
        When the warehouse has no leaf matrix or no row of it, or the directory holds files that no export wrote.
    """
    with replaced(directory, target, EXPORT) as folder:
        with connect(target, outputs=[folder]) as connection:
            if TABLE not in {table.name for table in list_tables(connection)}:
                raise QueryError(f"no table {TABLE} in this warehouse", hint="warehouse build makes it")
            [(build,)] = connection.execute("SELECT build_id FROM meta.build").fetchall()
            hours = connection.execute(f"SELECT cluster, max(hour_utc) FROM {TABLE} GROUP BY ALL ORDER BY ALL")
            latest = hours.fetchall()
            for cluster, hour in latest:
                FORMS[simulator](folder, cluster, _fabric(connection, cluster, hour))
        if not latest:
            raise QueryError(f"{TABLE} has no rows", hint="it needs counters of a leaf: warehouse doctor -d DIR")
        files = [{"path": path.name, "table": TABLE} for path in sorted(folder.iterdir())]
        write_json(folder / MANIFEST, {"kind": EXPORT, "build": build, "files": files, "left_out": []})
        write_checksums(folder)
    return directory.resolve()


def _fabric(connection: duckdb.DuckDBPyConnection, cluster: str, hour: object) -> Fabric:
    ask = f"SELECT {', '.join(COLUMNS)} FROM {TABLE} WHERE cluster = $1 AND hour_utc = $2"
    cells = connection.execute(ask, [cluster, hour]).fetchall()
    links = sorted(
        connection.execute(_LINKS, [cluster, hour]).fetchall(), key=lambda row: [natural(row[0]), natural(row[1])]
    )
    leaves = sorted({src for src, *_ in cells} - {OUTSIDE}, key=natural)
    hosts = {leaf: [(port, rate) for at, port, spine, rate in links if at == leaf and spine is None] for leaf in leaves}
    uplinks = [(leaf, spine, rate) for leaf, _, spine, rate in links if spine is not None]
    known = connection.execute("SELECT gpu_model FROM reference.clusters WHERE cluster = $1", [cluster]).fetchall()
    gpu = str(known[0][0]) if known and known[0][0] else "NONE"
    order = {leaf: place for place, leaf in enumerate([*leaves, OUTSIDE])}
    cells.sort(key=lambda cell: (order[cell[0]], order[cell[1]]))
    return Fabric(cells, hosts, uplinks, gpu, f"{cluster}, hour {hour} UTC, {TABLE}.bytes_estimate")


def _write_arrays(folder: Path, cluster: str, fabric: Fabric) -> None:
    """Write the matrix as CSV, and as NumPy arrays with the order of nodes and the unit."""
    import numpy as np

    with (folder / f"{cluster}.leaf_matrix.csv").open("w", encoding="utf-8", newline="") as file:
        # The default of the module is CRLF.
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *fabric.cells])
    nodes = [*fabric.hosts, OUTSIDE]
    low, estimate, high = (np.zeros((len(nodes), len(nodes)), np.int64) for _ in range(3))
    for src, dst, *values, _ in fabric.cells:
        for array, value in zip((low, estimate, high), values, strict=True):
            array[nodes.index(src), nodes.index(dst)] = value
    place = folder / f"{cluster}.leaf_matrix.npz"
    np.savez(place, nodes=np.array(nodes), unit=np.array("B"), bytes_low=low, bytes_estimate=estimate, bytes_high=high)


def _write_simai(folder: Path, cluster: str, fabric: Fabric) -> None:
    """Write a topology and a flow file as SimAI's network simulator reads them, and the names of the nodes."""
    hosts = [(leaf, place) for leaf, ports in fabric.hosts.items() for place in range(len(ports))]
    spines = sorted({spine for _, spine, _ in fabric.uplinks}, key=natural)
    switches = [*fabric.hosts, *spines]
    number: dict[object, int] = {name: place for place, name in enumerate([*hosts, *switches])}
    links = [(number[leaf, place], number[leaf], fabric.hosts[leaf][place][1]) for leaf, place in hosts]
    links += [(number[leaf], number[spine], rate) for leaf, spine, rate in fabric.uplinks]
    lines = [f"{len(number)} 1 0 {len(switches)} {len(links)} {fabric.gpu}"]
    lines.append(" ".join(str(number[name]) for name in switches))
    # Nobody measured the delay of a link: that of the templates of SimAI.
    lines += [f"{a} {b} {rate // 10**9}Gbps 0.0005ms 0" for a, b, rate in links]
    (folder / f"{cluster}.topology.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    flows = [f"{number[a]} {number[b]} 3 100 {size} 0" for a, b, size in fabric.flows()]
    (folder / f"{cluster}.flow.txt").write_text("\n".join([str(len(flows)), *flows]) + "\n", encoding="utf-8")
    names = [f"{number[host]},nic,{host[0]},{fabric.hosts[host[0]][host[1]][0]}" for host in hosts]
    names += [f"{number[name]},switch,{name}," for name in switches]
    (folder / f"{cluster}.nodes.csv").write_text("\n".join(["node,kind,switch,port", *names]) + "\n", encoding="utf-8")


def _write_htsim(folder: Path, cluster: str, fabric: Fabric) -> None:
    """Write a connection matrix of htsim, in which each leaf has as many hosts as the largest one."""
    width = max(len(ports) for ports in fabric.hosts.values())
    first = {leaf: place * width for place, leaf in enumerate(fabric.hosts)}
    flows = [f"{first[a] + i}->{first[b] + j} start 0 size {size}" for (a, i), (b, j), size in fabric.flows()]
    lines = [f"# {fabric.about}: bytes of a mean millisecond", f"# {width} hosts a leaf: {' '.join(first)}"]
    lines += [f"Nodes {width * len(first)}", f"Connections {len(flows)}", *flows]
    (folder / f"{cluster}.leaf_matrix.cm").write_text("\n".join(lines) + "\n", encoding="utf-8")


FORMS: dict[str, Callable[[Path, str, Fabric], None]] = {
    "matrix": _write_arrays, "simai": _write_simai, "htsim": _write_htsim,
}  # fmt: skip
"""Simulators, as `--for` names them."""
