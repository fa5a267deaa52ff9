"""Planted facts, as tables must have them.

- the bytes of every second, one Parquet file;
- the workbook: the port of each NIC, the uplinks and the suspect links;
- servers, links and pauses that are planted for findings, each with its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np

from warehouse.sample import clock, names
from warehouse.sample.clock import START_MS
from warehouse.sample.fabric import RECEIVING, SENDING, WRONG_PORT, Fabric, Nic, Place, slot_owner
from warehouse.sample.flows import (
    BURST_SECONDS,
    FAVORED_PERCENT,
    LESS_LEAF,
    LESS_PERCENT,
    Faults,
    formula_spine_port,
    other_cable,
    spine_port,
    steady_servers,
)
from warehouse.sample.jobs import HOUR
from warehouse.sample.names import server_name
from warehouse.sample.options import SLOTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from warehouse.sample.plan import Plan

_COPY = """
COPY (
  SELECT '{cluster}' AS cluster, names.switch, names.port,
         make_timestamp(seconds.second * 1000000) AS second_utc, seconds.in_bytes, seconds.out_bytes
  FROM seconds JOIN names USING (id)
  ORDER BY seconds.id, seconds.second
) TO '{path}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)
"""


def write_seconds(path: Path, cluster: str, plan: Plan) -> None:
    """Write (cluster, switch, port, second_utc, in_bytes, out_bytes); seconds without bytes have no row."""
    names = sorted((switch.name, port.name) for switch in plan.fabric.switches for port in switch.ports)
    start = START_MS // 1000
    ids, seconds, into, out = [], [], [], []
    for number, (switch_name, port_name) in enumerate(names):
        position = plan.fabric.switch(switch_name).index[port_name]
        row_in, row_out = plan.traffic.into[switch_name][position], plan.traffic.out[switch_name][position]
        moved = np.flatnonzero(row_in | row_out)
        ids.append(np.full(len(moved), number, np.int32))
        seconds.append(start + moved)
        into.append(row_in[moved])
        out.append(row_out[moved])
    columns = {
        "id": np.concatenate(ids),
        "second": np.concatenate(seconds),
        "in_bytes": np.concatenate(into),
        "out_bytes": np.concatenate(out),
    }
    literals = ", ".join(f"({n}, '{switch}', '{port}')" for n, (switch, port) in enumerate(names))
    # One thread, so that equal rows give equal bytes.
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("seconds", columns)
        connection.execute(f"CREATE TABLE names AS SELECT * FROM (VALUES {literals}) AS t(id, switch, port)")
        connection.execute(_COPY.format(cluster=cluster, path=str(path).replace("'", "''")))


Row = dict[str, Any]


def nic_ports(fabric: Fabric) -> list[Row]:
    """Return each NIC of the NIC sheet with its port in the workbook.

    A NIC without a topology row is unresolved. The reason is `ambiguous` if two or more unlisted ports of the slot's
    physical port are candidates. Otherwise it is `no_topology_row`, even with one candidate. A contradicted row is kept
    as in the workbook (and is in `suspects`).
    """
    return [row for place in fabric.places if place.in_nic_sheet for row in _server_nics(fabric, place)]


def _server_nics(fabric: Fabric, place: Place) -> list[Row]:
    rows = []
    hca_of = dict(zip(sorted(names.FAMILIES[place.family]), place.hcas, strict=True))
    cables = {nic.name: nic for nic in fabric.nics.get(place.number, ())}
    for name, hca in hca_of.items():
        nic = cables.get(name)
        row: Row = {"server": names.server_name(place.number), "hca": hca, "nic": name}
        if nic is None or not place.in_topology:
            candidates = _unlisted_at(fabric, nic, place) if nic else []
            reason = "ambiguous" if len(candidates) > 1 else "no_topology_row"
            row |= {"switch": None, "port": None, "status": "unresolved", "reason": reason, "evidence": None}
        else:
            inferred = nic.rail in place.null_nic_rails
            row |= {
                "switch": nic.switch,
                "port": nic.sheet_port,
                "status": "inferred" if inferred else "resolved",
                "reason": None,
                "evidence": "inferred:rail_order" if inferred else "workbook",
            }
        rows.append(row)
    return sorted(rows, key=lambda row: str(row["hca"]))


def _unlisted_at(fabric: Fabric, nic: Nic, place: Place) -> list[str]:
    """Return the access ports without a row, at the physical port of a server's slot on the leaf of one NIC."""
    listed = {other.sheet_port for other in fabric.all_nics() if other.listed and other.switch == nic.switch}
    return [
        port.name
        for port in fabric.switch(nic.switch).ports
        if port.kind == "access" and port.number == (place.slot + 1) // 2 and port.name not in listed
    ]


def unlisted_ports(fabric: Fabric) -> list[Row]:
    """Return connected access ports that no row of the workbook names, with the NIC that is really cabled there.

    `owner` is what can be inferred: a server if the other half of the cage belongs to its neighbor, one of two servers,
    or only the port.
    """
    place_of = {place.number: place for place in fabric.places}
    return [
        {
            "switch": nic.switch,
            "port": nic.port,
            "server": names.server_name(nic.server),
            "nic": nic.name,
            **_owner(nic, place_of),
        }
        for nic in fabric.all_nics()
        if not nic.listed or nic.port != nic.sheet_port
    ]


def _owner(nic: Nic, place_of: Mapping[int, Place]) -> Row:
    """Return the owner of an unlisted port, as far as the sheets imply it."""
    place = place_of[nic.server]
    if place.in_topology:  # the cable is in another port than its row says
        short = nic.port.removeprefix("TwoHundredGigE")
        return {"owner": f"unlisted:{nic.switch}:{short}", "evidence": "inferred:port"}
    return {"owner": slot_owner(place, place_of), "evidence": "inferred:slot"}


def suspects(fabric: Fabric, faults: Faults) -> list[Row]:
    """Return the expected rows of `metrics.suspect_links`, apart from those of link tables."""
    rows = [_suspect(kind, *link) for kind, link in one_way(faults) if link]
    for place in fabric.places:
        for nic in fabric.nics.get(place.number, ()):
            of = {"server": names.server_name(place.number), "nic": nic.name}
            if nic.sheet_port == WRONG_PORT:
                rows.append(_suspect("access_on_idle_400g", nic.switch, WRONG_PORT, **of, candidate_port=nic.port))
            if place.is_visitor and place.in_topology:
                rows.append(_suspect("server_in_other_group", nic.switch, nic.sheet_port, **of))
    return sorted(rows, key=lambda row: (row["kind"], row["switch"], row["port"]))


def _suspect(kind: str, switch: str, port: str, **of: str) -> Row:
    return {"kind": kind, "switch": switch, "port": port, "server": None, "nic": None, "candidate_port": None, **of}


def one_way(faults: Faults) -> list[tuple[str, tuple[str, str] | None]]:
    """Return the kinds of uplinks without data one way, each with its link."""
    return [
        ("uplink_no_data_in", faults.no_data_in),
        ("uplink_no_data_out", faults.no_data_out),
        ("uplink_silent_in", faults.silent_in),
    ]


def other_ends(plan: Plan) -> list[Row]:
    """Return the expected rows of `metrics.suspect_links` for cables that end elsewhere than the formula says."""
    return [
        _suspect("peer_differs", link["leaf"], link["leaf_port"])
        for link in uplink_rows(plan)
        if link["spine_port_by_formula"] not in (None, link["spine_port"])
    ]


def uplink_rows(plan: Plan) -> list[Row]:
    """Return each uplink with its spine port: from the link table if there is one, else by the formula."""
    rows = []
    for switch in plan.fabric.switches:
        for port in switch.ports:
            if port.spine:
                by_formula = formula_spine_port(switch, port)
                in_table = plan.options.hour_tables
                rows.append(
                    {
                        "leaf": switch.name,
                        "leaf_port": port.name,
                        "spine": f"spine-{port.spine}",
                        "spine_port": spine_port(switch, port, plan.options) if in_table else by_formula,
                        "spine_port_by_formula": by_formula,
                        "source": "link_table" if in_table else "inferred:uplink_formula",
                    }
                )
    return rows


Trap = dict[str, Any]


def traps(plan: Plan) -> list[Trap]:
    """Return the planted cases that other facts do not tell, each with its place."""
    found = [*_uplinks(plan), *_servers(plan), *_jobs(plan)]
    return sorted(found, key=lambda trap: str(trap["kind"]))


def _uplinks(plan: Plan) -> Iterator[Trap]:
    faults, options = plan.faults, plan.options
    for kind, link in (*one_way(faults), ("uplink_hot_out", faults.hot_out if options.hours > 1 else None)):
        if link is not None:
            yield {"kind": kind, "switch": link[0], "port": link[1]}
    if faults.uneven_out:
        leaf, begin = faults.uneven_out
        [uplink] = [port.name for port in plan.fabric.switch(leaf).ports if port.spine == 1]
        minute = clock.second_utc(begin)
        yield {"kind": "uneven_minute", "switch": leaf, "direction": "out", "minute_utc": minute, "uplink": uplink}
    if faults.favored_spine:
        yield {"kind": "spine_favored", "spine": f"spine-{faults.favored_spine}", "weight": FAVORED_PERCENT / 100}
    if faults.no_data_out and options.spines > 1 and not options.full:
        yield {"kind": "less_from_spine", "switch": LESS_LEAF, "spine": "spine-1", "percent": LESS_PERCENT}
    if options.hour_tables:
        leaf, port = other_cable(options)
        yield {"kind": "spine_port_not_by_formula", "switch": leaf, "port": port}


def _servers(plan: Plan) -> Iterator[Trap]:
    """Yield servers that hold each other's slots, that move bytes one way, and that are idle."""
    visitors = {place.number: place for place in plan.fabric.places if place.is_visitor and place.in_topology}
    for number, place in visitors.items():
        mate = None if place.group is None else visitors.get(SLOTS * place.group + place.slot)
        if mate and mate.group is not None and SLOTS * mate.group + mate.slot == number < mate.number:
            yield {"kind": "servers_exchanged", "servers": [server_name(number), server_name(mate.number)]}
    server = {role: server_name(number) for role, number in steady_servers(plan.fabric.places).items()}
    if server:
        yield {"kind": "one_way_servers", "send": server[SENDING], "receive": server[RECEIVING]}
        yield from ({"kind": "steady_server", "server": name} for name in server.values())
    busy = {number for number, _ in plan.busy}
    idle = [server_name(number) for number in sorted(plan.fabric.nics) if number not in busy]
    yield {"kind": "idle_servers", "servers": idle}


def _jobs(plan: Plan) -> Iterator[Trap]:
    for job in plan.jobs:
        for server in job.other_rails:
            yield {"kind": "rails_differ", "server": server_name(server)}
        for begin, end in job.pauses:
            if begin % HOUR < plan.options.seconds and (end - begin) * 1000 > job.period_ms:
                start = clock.second_utc(begin)
                yield {"kind": "job_pause", "job": job.name, "start_utc": start, "seconds": end - begin}
    for burst in plan.bursts:
        if burst.seconds > BURST_SECONDS:
            job = next(job for job in plan.jobs if job.name == burst.job)
            ends = [plan.fabric.nics[job.servers[member]][burst.rail] for member in (burst.member, burst.member + 1)]
            yield {
                "kind": "nics_at_line_rate",
                "second_utc": clock.second_utc(burst.second),
                "seconds": burst.seconds,
                "nics": [{"server": server_name(nic.server), "switch": nic.switch, "port": nic.port} for nic in ends],
            }
