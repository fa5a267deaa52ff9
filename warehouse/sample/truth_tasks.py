"""Truth of tasks: their pods, ports, paths of ranks, iterations and expected bytes, as tables must have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from pathlib import Path

import duckdb
import pyarrow as pa

from warehouse.sample.basics import HOUR, Row, millisecond_utc, server_name
from warehouse.sample.jobs import GPUS, Iteration, Pod, Task
from warehouse.sample.plan import Plan
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
    for edge in [*ring_edges(servers), *tree_edges(servers)]:
        is_logged = edge.kind == "tree" or edge.dst == 0
        is_listed = (edge.channel, edge.src, edge.dst) in listed
        evidence = "log" if is_logged else "listed" if is_listed else "inferred:ring_pattern"
        # Rank 0 logs its own NIC.
        nics = [
            "log" if is_logged and rank == 0 else "inferred:ring_pattern" if rank // GPUS * GPUS in known else None
            for rank in (edge.src, edge.dst)
        ]
        yield _path(task, plan, "world-1", edge, evidence, nics)


def _path(
    task: Task,
    plan: Plan,
    communicator: str,
    edge: Edge,
    evidence: str,
    nics: Sequence[str | None],
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
    text = dict.fromkeys(("task", "iteration", "pod", "hca", "status"), pa.string())
    types = text | {"iteration": pa.int32(), "rx_bytes": pa.int64(), "tx_bytes": pa.int64()}
    columns = pa.table(list(zip(*rows, strict=True)), schema=pa.schema(types))
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
            # What the port sends, the NIC receives.
            tx, rx = plan.traffic.moved(nic.switch, nic.sheet_port, max(begin, 0), end)
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
