"""Planted facts, as tables must have them.

- the bytes of every second, one Parquet file;
- the workbook: the port of each NIC, the uplinks and the suspect links;
- servers, links and pauses that are planted for findings, each with its place;
- what the task logs tell: ranks, ports, paths, iterations, and bytes per iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from warehouse.sample.basics import HOUR, START_MS, Row, millisecond_utc, second_utc, server_name
from warehouse.sample.fabric import RECEIVING, SENDING, WRONG_PORT, Fabric, Nic, Place, slot_owner
from warehouse.sample.jobs import GPUS, Iteration, Pod, Task
from warehouse.sample.options import SLOTS
from warehouse.sample.plan import (
    BURST_SECONDS,
    FAVORED_PERCENT,
    LESS_LEAF,
    LESS_PERCENT,
    Faults,
    Plan,
    formula_spine_port,
    other_cable,
    spine_port,
    steady_servers,
)
from warehouse.sample.task_logs import (
    CARDS,
    CHANNELS,
    PAIR_CHANNELS,
    PRINTED,
    WORLD_ID,
    Edge,
    crash,
    nic_of,
    pair_id,
    ring,
    ring_edges,
    tree_edges,
)

_SECONDS = """
  SELECT '{cluster}' AS cluster, names.switch, names.port,
         make_timestamp(seconds.second * 1000000) AS second_utc, seconds.in_bytes, seconds.out_bytes
  FROM seconds JOIN names USING (id)
  ORDER BY seconds.id, seconds.second
"""


def write_seconds(path: Path, cluster: str, plan: Plan) -> None:
    """Write (cluster, switch, port, second_utc, in_bytes, out_bytes); seconds without bytes have no row."""
    ports = sorted((switch.name, port.name) for switch in plan.fabric.switches.values() for port in switch.ports)
    into, out = (
        np.stack([side[switch][plan.fabric.switches[switch].index[port]] for switch, port in ports])
        for side in (plan.traffic.into, plan.traffic.out)
    )
    at = port, second = np.nonzero(into | out)
    columns = {"id": port, "second": START_MS // 1000 + second, "in_bytes": into[at], "out_bytes": out[at]}
    names = ", ".join(f"({number}, '{switch}', '{port}')" for number, (switch, port) in enumerate(ports))
    # One thread, so that equal rows give equal bytes.
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("seconds", columns)
        connection.execute(f"CREATE TABLE names AS SELECT * FROM (VALUES {names}) AS t(id, switch, port)")
        connection.sql(_SECONDS.format(cluster=cluster)).write_parquet(str(path), compression="zstd")


def nic_ports(fabric: Fabric) -> list[Row]:
    """Return each NIC of the NIC sheet with its port in the workbook.

    A NIC without a topology row is unresolved. The reason is `ambiguous` if two or more unlisted ports of the slot's
    physical port are candidates. Otherwise it is `no_topology_row`, even with one candidate. A contradicted row is kept
    as in the workbook (and is in `suspects`).
    """
    return [
        {"server": server_name(place.number), "hca": hca, "nic": name, **_port_of(fabric, place, name)}
        for place in fabric.places.values()
        if place.in_nic_sheet
        for hca, name in sorted((hca, name) for name, hca in place.hca_of.items())
    ]


def _port_of(fabric: Fabric, place: Place, name: str) -> Row:
    nic = next((nic for nic in fabric.nics.get(place.number, ()) if nic.name == name), None)
    if nic is None or not place.in_topology:
        candidates = _unlisted_at(fabric, nic, place) if nic else []
        reason = "ambiguous" if len(candidates) > 1 else "no_topology_row"
        return {"switch": None, "port": None, "status": "unresolved", "reason": reason, "evidence": None}
    inferred = nic.rail in place.null_nic_rails
    return {
        "switch": nic.switch,
        "port": nic.sheet_port,
        "status": "inferred" if inferred else "resolved",
        "reason": None,
        "evidence": "inferred:rail_order" if inferred else "workbook",
    }


def _unlisted_at(fabric: Fabric, nic: Nic, place: Place) -> list[str]:
    """Return the access ports without a row, at the physical port of a server's slot on the leaf of one NIC."""
    listed = {other.sheet_port for other in fabric.all_nics() if other.listed and other.switch == nic.switch}
    return [
        port.name
        for port in fabric.switches[nic.switch].ports
        if port.kind == "access" and port.number == (place.slot + 1) // 2 and port.name not in listed
    ]


def unlisted_ports(fabric: Fabric) -> list[Row]:
    """Return connected access ports that no row of the workbook names, with the NIC that is really cabled there.

    `owner` is what can be inferred: a server if the other half of the cage belongs to its neighbor, one of two servers,
    or only the port.
    """
    return [
        {
            "switch": nic.switch,
            "port": nic.port,
            "server": server_name(nic.server),
            "nic": nic.name,
            **_owner(fabric, nic),
        }
        for nic in fabric.all_nics()
        if not nic.listed or nic.port != nic.sheet_port
    ]


def _owner(fabric: Fabric, nic: Nic) -> Row:
    """Return the owner of an unlisted port, as far as the sheets imply it."""
    place = fabric.places[nic.server]
    if place.in_topology:  # the cable is in another port than its row says
        short = nic.port.removeprefix("TwoHundredGigE")
        return {"owner": f"unlisted:{nic.switch}:{short}", "evidence": "inferred:port"}
    return {"owner": slot_owner(place, fabric.places), "evidence": "inferred:slot"}


def suspects(fabric: Fabric, faults: Faults) -> list[Row]:
    """Return the expected rows of `metrics.suspect_links`, apart from those of link tables."""
    rows = [_suspect(kind, *link) for kind, link in one_way(faults) if link]
    for nic in fabric.all_nics():
        of = {"server": server_name(nic.server), "nic": nic.name}
        if nic.sheet_port == WRONG_PORT:
            rows.append(_suspect("access_on_idle_400g", nic.switch, WRONG_PORT, **of, candidate_port=nic.port))
        if fabric.places[nic.server].is_visitor and nic.listed:
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
    in_table = plan.options.hour_tables
    return [
        {
            "leaf": switch.name,
            "leaf_port": port.name,
            "spine": f"spine-{port.spine}",
            "spine_port": spine_port(switch, port, plan.options) if in_table else formula_spine_port(switch, port),
            "spine_port_by_formula": formula_spine_port(switch, port),
            "source": "link_table" if in_table else "inferred:uplink_formula",
        }
        for switch in plan.fabric.switches.values()
        for port in switch.ports
        if port.spine
    ]


def traps(plan: Plan) -> list[Row]:
    """Return the planted cases that other facts do not tell, each with its place."""
    found = [*_uplinks(plan), *_servers(plan), *_jobs(plan)]
    return sorted(found, key=lambda trap: str(trap["kind"]))


def _uplinks(plan: Plan) -> Iterator[Row]:
    faults, options = plan.faults, plan.options
    for kind, link in (*one_way(faults), ("uplink_hot_out", faults.hot_out if options.hours > 1 else None)):
        if link is not None:
            yield {"kind": kind, "switch": link[0], "port": link[1]}
    if faults.uneven_out:
        leaf, begin = faults.uneven_out
        [uplink] = [port.name for port in plan.fabric.switches[leaf].ports if port.spine == 1]
        minute = second_utc(begin)
        yield {"kind": "uneven_minute", "switch": leaf, "direction": "out", "minute_utc": minute, "uplink": uplink}
    if faults.favored_spine:
        yield {"kind": "spine_favored", "spine": f"spine-{faults.favored_spine}", "weight": FAVORED_PERCENT / 100}
    if faults.no_data_out and options.spines > 1 and not options.full:
        yield {"kind": "less_from_spine", "switch": LESS_LEAF, "spine": "spine-1", "percent": LESS_PERCENT}
    if options.hour_tables:
        leaf, port = other_cable(options)
        yield {"kind": "spine_port_not_by_formula", "switch": leaf, "port": port}


def _servers(plan: Plan) -> Iterator[Row]:
    """Yield servers that hold each other's slots, that move bytes one way, and that are idle."""
    # A visitor -> the number of the server whose slot it holds.
    visitors = {
        place.number: SLOTS * place.group + place.slot
        for place in plan.fabric.places.values()
        if place.group is not None and place.is_visitor and place.in_topology
    }
    for number, mate in visitors.items():
        if visitors.get(mate) == number < mate:
            yield {"kind": "servers_exchanged", "servers": [server_name(number), server_name(mate)]}
    steady = steady_servers(plan.fabric.places)
    if steady:
        yield {
            "kind": "one_way_servers",
            "send": server_name(steady[SENDING]),
            "receive": server_name(steady[RECEIVING]),
        }
        yield from ({"kind": "steady_server", "server": server_name(number)} for number in steady.values())
    busy = {*steady.values(), *(number for job in plan.jobs for number in job.servers)}
    idle = [server_name(number) for number in sorted(plan.fabric.nics) if number not in busy]
    yield {"kind": "idle_servers", "servers": idle}


def _jobs(plan: Plan) -> Iterator[Row]:
    for job in plan.jobs:
        for server in job.other_rails:
            yield {"kind": "rails_differ", "server": server_name(server)}
        for begin, end in job.pauses:
            if begin % HOUR < plan.options.seconds and (end - begin) * 1000 > job.period_ms:
                start = second_utc(begin)
                yield {"kind": "job_pause", "job": job.name, "start_utc": start, "seconds": end - begin}
    for burst in plan.bursts:
        if burst.seconds > BURST_SECONDS:
            job = next(job for job in plan.jobs if job.name == burst.job)
            ends = [plan.fabric.nics[job.servers[member]][burst.rail] for member in (burst.member, burst.member + 1)]
            yield {
                "kind": "nics_at_line_rate",
                "second_utc": second_utc(burst.second),
                "seconds": burst.seconds,
                "nics": [{"server": server_name(nic.server), "switch": nic.switch, "port": nic.port} for nic in ends],
            }


BYTES = 2
"""Bytes per weight, and per gradient unless stated otherwise."""


def task_row(task: Task, plan: Plan) -> Row:
    """Return what is planted of a task."""
    nominal, implemented = volumes(task)
    job = next((job for job in plan.jobs if job.name == task.job), None)
    logged = task.iterations[: task.logged]
    return {
        "task": task.name,
        "trainer": task.trainer,
        "job": task.job,
        "period_seconds": job.period_ms / 1000 if job else None,
        "pods": [
            {
                "pod": pod.name,
                "server": server_name(pod.server),
                "start_utc": millisecond_utc(pod.start_ms)[:19],
                "first_rank": pod.first_rank if _has_ranks(task, pod) else None,
                "ranks": GPUS,
            }
            for pod in task.pods
        ],
        "ports": [
            {
                "pod": pod.name,
                "hca": nic.hca,
                "hca_index": index,
                "nic": nic.name,
                "switch": nic.switch,
                "port": nic.sheet_port,
                # The logs of all pods of Megatron-LM list their NICs, else that of the first rank.
                "evidence": "log" if task.trainer == "megatron" or not pod.first_rank else "inferred:nic_sheet_order",
            }
            for pod in task.pods
            for index, nic in enumerate(plan.fabric.nics[pod.server])
        ],
        "paths": list(paths(task, plan)),
        "iterations": len(logged),
        "first_iteration_utc": millisecond_utc(logged[0].end_ms),
        "last_iteration_utc": millisecond_utc(logged[-1].end_ms),
        "checkpoints": [{"iteration": number, "extra_seconds": cost / 1000} for number, cost in task.checkpoints],
        "restarts": [_restart(task, task.resumed_ms)] if task.resumed_ms else [],
        "params": task.shape.params,
        "tokens_per_iteration": task.global_batch * task.shape.sequence,
        "expected_nominal_bytes": _expected(task, nominal),
        "expected_implemented_bytes": _expected(task, implemented),
    }


def _restart(task: Task, resumed_ms: int) -> Row:
    last = task.lost[-1]
    return {
        "after_iteration": last.number,
        "lost_iterations": len(task.lost),
        "down_seconds": (resumed_ms - last.end_ms) / 1000,
        "reason": crash(task.by_rank[0]),
    }


def _has_ranks(task: Task, pod: Pod) -> bool:
    """Return True if lines of the pod name a rank; a plain trainer's do so only for NCCL's first rank."""
    return task.trainer != "hf_trainer" or pod.first_rank == 0


def volumes(task: Task) -> tuple[int, int]:
    """Return the bytes per parameter: nominal, and as the framework implements it."""
    k, stage = task.shape.accumulation, task.shape.zero_stage
    if task.trainer == "megatron":
        # Its arguments have gradients in fp32: 4 bytes.
        return 2 * BYTES, 2 * 4
    if stage is None:
        return 2 * BYTES, 2 * BYTES
    if stage == 3:
        # Each micro batch gathers the weights twice and scatters the gradients once.
        return 3 * BYTES, 3 * k * BYTES
    # DeepSpeed from 0.12 on reduces to all ranks, which costs twice the bytes (docs/metrics/tasks.md).
    return 2 * BYTES, (3 if stage == 1 else 2 * k + 1) * BYTES


def _expected(task: Task, volume: int) -> int:
    copies = task.data_parallel
    return task.shape.params * volume * (copies - 1) // (copies * CARDS)


def paths(task: Task, plan: Plan) -> Iterator[Row]:
    """Yield the edges between servers that the logs show or imply."""
    servers = len(task.pods)
    if task.trainer == "megatron":
        for edge in ring_edges(servers):
            yield _path(task, plan, f"commId 0x{WORLD_ID:x}", edge, "log", ("log", "log"))
        for local, channel, server in product(range(GPUS), range(PAIR_CHANNELS), range(servers)):
            edge = Edge(channel, "ring", server, (server + 1) % servers)
            ranks = (server * GPUS + local, edge.dst * GPUS + local)
            yield _path(task, plan, f"commId 0x{pair_id(local):x}", edge, "log", ("log", "log"), ranks)
        return
    known = {pod.first_rank for pod in task.pods if _has_ranks(task, pod)}
    listed = {
        (channel, *pair) for channel in range(CHANNELS) for pair in pairwise([*ring(channel, servers), 0][:PRINTED])
    }
    for edge in ring_edges(servers):
        is_listed = (edge.channel, edge.src, edge.dst) in listed
        evidence = "log" if edge.dst == 0 else "listed" if is_listed else "inferred:ring_pattern"
        yield _path(task, plan, "world-1", edge, evidence, _ends(edge, edge.dst == 0, known))
    for edge in tree_edges(servers):
        yield _path(task, plan, "world-1", edge, "log", _ends(edge, True, known))


def _ends(edge: Edge, is_logged: bool, known: set[int]) -> tuple[str | None, str | None]:
    """Return the evidence for the NICs of both ends; rank 0 logs its own NIC."""

    def end(rank: int) -> str | None:
        if is_logged and rank == 0:
            return "log"
        return "inferred:ring_pattern" if rank // GPUS * GPUS in known else None

    return end(edge.src), end(edge.dst)


def _path(
    task: Task,
    plan: Plan,
    communicator: str,
    edge: Edge,
    evidence: str,
    nics: tuple[str | None, str | None],
    ranks: tuple[int, int] | None = None,
) -> Row:
    """Return one edge. `ranks` are the global ranks, for a communicator that numbers its own ranks."""
    found: Row = {"communicator": communicator, "channel": edge.channel, "kind": edge.kind}
    found |= {"src_rank": edge.src, "dst_rank": edge.dst, "evidence": evidence}
    for end, rank, known in zip(("src", "dst"), ranks or (edge.src, edge.dst), nics, strict=True):
        pod = task.by_rank[rank // GPUS]
        nic = plan.fabric.nics[pod.server][nic_of(rank)]
        found[f"{end}_server"] = server_name(pod.server) if known else None
        found[f"{end}_hca"] = nic.hca if known else None
        found[f"{end}_port"] = nic.sheet_port if known else None
        found[f"{end}_evidence"] = known
    return found


ITERATION = pa.schema(
    [
        (name, pa.int32() if name == "iteration" else pa.string())
        for name in ("task", "iteration", "pod", "hca", "status")
    ]
    + [(name, pa.int64()) for name in ("rx_bytes", "tx_bytes")]
)


def write_iterations(path: Path, plan: Plan) -> int:
    """Write (task, iteration, pod, hca, status, rx_bytes, tx_bytes) per iteration and NIC; return the number of rows.

    Bytes are all traffic of the NIC's port in the workbook, whichever task caused it. They cover the whole seconds from
    the start of an iteration to its end.
    """
    rows = [
        row
        for task in plan.tasks
        for iteration in task.iterations[: task.logged]
        for row in _moved(task, iteration, plan)
    ]
    columns = pa.table(list(zip(*rows, strict=True)), schema=ITERATION)
    with duckdb.connect(config={"threads": 1}) as connection:
        ordered = connection.from_arrow(columns).order("task, iteration, pod, hca")
        ordered.write_parquet(str(path), compression="zstd")
    return len(rows)


def _moved(task: Task, iteration: Iteration, plan: Plan) -> Iterator[tuple[object, ...]]:
    begin, end = iteration.start_ms // 1000, iteration.end_ms // 1000
    for pod in task.pods:
        for nic in plan.fabric.nics[pod.server]:
            place = (task.name, iteration.number, pod.name, nic.hca)
            if end <= 0 or begin >= plan.options.hours * HOUR:
                yield *place, "no_overlap", None, None
                continue
            at = plan.fabric.switches[nic.switch].index[nic.sheet_port], slice(max(begin, 0), end)
            rx, tx = (int(side[nic.switch][at].sum()) for side in (plan.traffic.out, plan.traffic.into))
            yield *place, "shared" if _is_shared(task, pod, iteration, plan) else "ok", rx, tx


def _is_shared(task: Task, pod: Pod, iteration: Iteration, plan: Plan) -> bool:
    """Return True if another task uses the server at that time.

    A task uses its servers from the start of its pods to its last line. Megatron-LM writes whole seconds.
    """
    # A line in whole seconds seems to be written up to a second earlier than it was.
    late = iteration.end_ms % 1000 if task.trainer == "megatron" else 0
    return any(
        other.name != task.name
        and any(its.server == pod.server for its in other.pods)
        and min(its.start_ms for its in other.pods) < iteration.end_ms - late
        and other.last_line_ms - (other.last_line_ms % 1000 if other.trainer == "megatron" else 0)
        > iteration.start_ms - late
        for other in plan.tasks
    )
