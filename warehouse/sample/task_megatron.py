"""Lines of Megatron-LM and NCCL 2.21: arguments, connections of every rank, iterations of the last rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.sample.task_rings import CHANNELS, nic_of, ring
from warehouse.sample.tasks import GPUS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from warehouse.sample.tasks import Iteration, Task

WORLD_ID = 0x77E0
PAIR_CHANNELS = 2
"""Channels of a communicator of data-parallel ranks."""


def arguments(task: Task) -> Iterator[str]:
    """Yield the lines of rank 0 before training."""
    shape = task.shape
    sizes = f"tensor-model-parallel size: {shape.tensor_parallel}, pipeline-model-parallel size: 1 "
    yield f"using world size: {task.world}, data-parallel size: {task.data_parallel}, {sizes}"
    yield f"{'-' * 24} arguments {'-' * 24}"
    for name, value in (
        ("accumulate_allreduce_grads_in_fp32", True),
        ("bf16", True),
        ("ffn_hidden_size", shape.ffn),
        ("fp16", False),
        ("global_batch_size", task.global_batch),
        ("hidden_size", shape.hidden),
        ("micro_batch_size", shape.micro_batch),
        ("num_attention_heads", shape.heads),
        ("num_layers", shape.layers),
        ("padded_vocab_size", shape.vocabulary),
        ("params_dtype", "torch.bfloat16"),
        ("seq_length", shape.sequence),
        ("train_iters", len(task.iterations)),
        ("use_distributed_optimizer", False),
        ("world_size", task.world),
    ):
        yield f"  {name} {'.' * (48 - len(name))} {value}"
    yield f"{'-' * 20} end of arguments {'-' * 21}"
    for tensor in range(shape.tensor_parallel):
        share = shape.params // shape.tensor_parallel + (tensor < shape.params % shape.tensor_parallel)
        yield f" > number of parameters on (tensor, pipeline) model parallel rank ({tensor}, 0): {share}"


def pair_id(local: int) -> int:
    """Return the identifier of the communicator of data-parallel ranks with this local rank."""
    return WORLD_ID + 1 + local


def connections(task: Task, server: int) -> Iterator[tuple[int, str]]:
    """Yield (GPU, line) of each rank of a server: first the communicator of all ranks, then the data-parallel one."""
    servers = len(task.pods)
    for local in range(GPUS):
        rank = server * GPUS + local
        rings = [ring(channel, servers) for channel in range(CHANNELS)]
        yield from _communicator(rank, local, rings, WORLD_ID, GPUS)
    for local in range(GPUS):
        yield from _communicator(server, local, [list(range(servers))] * PAIR_CHANNELS, pair_id(local), 1)


def _communicator(rank: int, local: int, rings: list[list[int]], comm_id: int, size: int) -> Iterator[tuple[int, str]]:
    """Yield (GPU, line) of one rank in one communicator, which has `size` ranks on each server."""
    world = len(rings[0])
    if rank == 0:
        for channel, ranks in enumerate(rings):
            listed = "".join(f" {member:3d}" for member in ranks)
            yield local, f"Channel {channel:02d}/{len(rings):02d} : {listed}"
    for channel, ranks in enumerate(rings):
        at = ranks.index(rank)
        before, after = ranks[at - 1], ranks[(at + 1) % world]
        ends = f"{before}[{_device(before, local, size)}] -> {rank}[{local}]"
        if before // size != rank // size:
            yield local, f"Channel {channel:02d}/0 : {ends} [receive] via NET/IB/{nic_of(local)}/GDRDMA"
        ends = f"{rank}[{local}] -> {after}[{_device(after, local, size)}]"
        if after // size == rank // size:
            yield local, f"Channel {channel:02d}/0 : {ends} via P2P/CUMEM/read"
        else:
            yield local, f"Channel {channel:02d}/0 : {ends} [send] via NET/IB/{nic_of(local)}/GDRDMA"
    yield local, "Connected all rings"
    about = f"rank {rank} nranks {world} cudaDev {local} nvmlDev {local} busId {0x10000 * (local + 1):x}"
    yield local, f"ncclCommInitRank comm 0x{comm_id * 4096 + rank:x} {about} commId 0x{comm_id:x} - Init COMPLETE"


def _device(rank: int, local: int, size: int) -> int:
    return rank % GPUS if size == GPUS else local


def iteration(task: Task, one: Iteration, moment: datetime) -> str:
    """Return the line of an iteration."""
    fields = (
        f"iteration {one.number:8d}/{len(task.iterations):8d}",
        f"consumed samples: {one.number * task.global_batch:12d}",
        f"elapsed time per iteration (ms): {one.end_ms - one.start_ms:.1f}",
        "learning rate: 1.000000E-04",
        f"global batch size: {task.global_batch:5d}",
        f"lm loss: {2 + 8 / (one.number + 4):.6E}",
        "loss scale: 1.0",
        "grad norm: 1.125",
        f"number of skipped iterations: {0:3d}",
        f"number of nan iterations: {0:3d} |",
    )
    return f" [{moment:%Y-%m-%d %H:%M:%S}] {' | '.join(fields)}"
