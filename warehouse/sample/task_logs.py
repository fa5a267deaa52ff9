"""Writer of the logs of tasks, one file per pod, and of the list of pod starts.

Lines have the form of real programs; their sentences are made up. Progress bars end with LF in some pods and with a
bare CR in others, as with real launchers. NCCL sets up rings across servers, one NIC per ring, and trees. Megatron-LM
and NCCL 2.21 write arguments, connections of every rank, and iterations of the last rank.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from warehouse.sample.basics import SampleOptions, gpu_ip, millisecond_utc, moment_utc, sysname
from warehouse.sample.fabric import Fabric
from warehouse.sample.jobs import GPUS, LAST_WORDS_MS, VOCABULARY, Iteration, Pod, Task

CHANNELS = 8
CARDS = 4
PRINTED = 20
"""Ranks of a ring that NCCL up to 2.22 prints."""


@dataclass(frozen=True)
class Edge:
    """One connection between servers."""

    channel: int
    kind: str
    src: int
    dst: int


def nic_of(rank: int) -> int:
    """Return the index of a rank's NIC: a pair of GPUs shares one."""
    return rank % GPUS * CARDS // GPUS


def ring(channel: int, servers: int) -> list[int]:
    """Return the ranks of a ring from rank 0 on; it enters each server at GPU 2c and leaves at 2c + 1, by NIC c.

    >>> ring(1, 2)
    [0, 7, 6, 5, 4, 3, 10, 9, 8, 15, 14, 13, 12, 11, 2, 1]
    """
    entry = channel % CARDS * (GPUS // CARDS)
    inside = [(entry - step) % GPUS for step in range(GPUS)]
    whole = [server * GPUS + local for server in range(servers) for local in inside]
    begin = whole.index(0)
    return whole[begin:] + whole[:begin]


def ring_edges(servers: int) -> list[Edge]:
    """Return the edges of all rings that cross servers, in order."""
    return [
        Edge(channel, "ring", src, dst)
        for channel in range(CHANNELS)
        for src, dst in pairwise([*ring(channel, servers), 0])
        if src // GPUS != dst // GPUS
    ]


def tree_place(channel: int, servers: int) -> tuple[int, int]:
    """Return (parent, child) of rank 0 on another server, -1 for none.

    Rank 0 is the root of channel 0, and a child of server 1 on channel 4.
    """
    places = {0: (-1, servers // 2 * GPUS), CARDS: (GPUS, -1)}
    return places.get(channel, (-1, -1))


def tree_edges(servers: int) -> list[Edge]:
    """Return the tree edges of rank 0 that cross servers, in both directions."""
    return [
        Edge(channel, "tree", *ends)
        for channel in range(CHANNELS)
        for other in tree_place(channel, servers)
        if other >= 0
        for ends in ((0, other), (other, 0))
    ]


WORLD_ID = 0x77E0
PAIR_CHANNELS = 2
"""Channels of a communicator of data-parallel ranks."""


def arguments(task: Task) -> Iterator[str]:
    """Yield the lines of rank 0 before training."""
    shape = task.shape
    yield (
        f"using world size: {task.world}, data-parallel size: {task.data_parallel}, "
        f"tensor-model-parallel size: {shape.tensor_parallel}, pipeline-model-parallel size: 1 "
    )
    yield f"{'-' * 24} arguments {'-' * 24}"
    values = {
        "accumulate_allreduce_grads_in_fp32": True,
        "bf16": True,
        "ffn_hidden_size": shape.ffn,
        "fp16": False,
        "global_batch_size": task.global_batch,
        "hidden_size": shape.hidden,
        "micro_batch_size": shape.micro_batch,
        "num_attention_heads": shape.heads,
        "num_layers": shape.layers,
        "padded_vocab_size": VOCABULARY,
        "params_dtype": "torch.bfloat16",
        "seq_length": shape.sequence,
        "train_iters": len(task.iterations),
        "use_distributed_optimizer": False,
        "world_size": task.world,
    }
    yield from (f"  {name} {'.' * (48 - len(name))} {value}" for name, value in values.items())
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
    rings = [ring(channel, servers) for channel in range(CHANNELS)]
    for local in range(GPUS):
        yield from _communicator(server * GPUS + local, local, rings, WORLD_ID, GPUS)
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
        # A rank with its GPU; a communicator with one rank a server has the same GPU everywhere.
        before, here, after = (
            f"{one}[{one % GPUS if size == GPUS else local}]" for one in (ranks[at - 1], rank, ranks[(at + 1) % world])
        )
        net = f"via NET/IB/{nic_of(local)}/GDRDMA"
        if ranks[at - 1] // size != rank // size:
            yield local, f"Channel {channel:02d}/0 : {before} -> {here} [receive] {net}"
        is_local = ranks[(at + 1) % world] // size == rank // size
        yield (
            local,
            f"Channel {channel:02d}/0 : {here} -> {after} {'via P2P/CUMEM/read' if is_local else f'[send] {net}'}",
        )
    yield local, "Connected all rings"
    about = f"rank {rank} nranks {world} cudaDev {local} nvmlDev {local} busId {0x10000 * (local + 1):x}"
    yield local, f"ncclCommInitRank comm 0x{comm_id * 4096 + rank:x} {about} commId 0x{comm_id:x} - Init COMPLETE"


def iteration(task: Task, one: Iteration) -> str:
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
    return f" [{moment_utc(one.end_ms):%Y-%m-%d %H:%M:%S}] {' | '.join(fields)}"


PIDS = 4_000
"""Process id of the first process of a pod."""


def write_logs(folder: Path, task: Task, fabric: Fabric, options: SampleOptions) -> None:
    """Write all files of one task."""
    folder.mkdir(parents=True)
    starts = "".join(
        f"{pod.name:<40} {gpu_ip(pod.server):<16} nm129-gpu-{pod.server:<6} "
        f"{moment_utc(pod.start_ms):%Y-%m-%dT%H:%M:%S}Z\n"
        for pod in task.pods
    )
    (folder / "pod-node-starttime.log").write_bytes(starts.encode())
    for number, pod in enumerate(task.pods):
        log = _Log(task, pod, fabric, options, bare_returns=number % 2 == 1)
        (folder / f"{pod.name}.log").write_bytes(log.content())


def crash(pod: Pod) -> str:
    """Return the line of the error that a task crashes with."""
    return f"RuntimeError: NCCL communicator was aborted on rank {pod.first_rank}."


class _Log:
    """Writer of one log."""

    def __init__(self, task: Task, pod: Pod, fabric: Fabric, options: SampleOptions, *, bare_returns: bool) -> None:
        self._task, self._pod, self._fabric, self._options = task, pod, fabric, options
        self._break = "\r" if bare_returns else "\n"
        self._host = sysname(pod.server)
        self._text: list[str] = []
        self._training_ms = task.iterations[0].start_ms + (pod.first_rank // GPUS) * 7

    def content(self) -> bytes:
        """Return the whole log."""
        self._line('Defaulted container "pytorch" out of: pytorch, wait-for-master (init)')
        if self._task.trainer == "megatron":
            self._megatron()
        else:
            self._hugging_face()
        return "".join(self._text).encode()

    def _line(self, text: str) -> None:
        self._text.append(f"{text}\n")

    def _stamp(self, ms: int) -> str:
        return millisecond_utc(ms).replace(".", ",")

    def _app(self, ms: int, place: str, text: str, level: str = "INFO") -> None:
        self._line(f"[{self._stamp(ms)}] [{level}] [{place}] {text}")

    def _hf(self, ms: int, place: str, text: str) -> None:
        self._line(f"[INFO|{place}] {self._stamp(ms)} >> {text}")

    def _nccl(self, local: int, text: str) -> None:
        self._line(f"{self._host}:{PIDS + local}:{PIDS + 500 + local} [{local}] NCCL INFO {text}")

    # DeepSpeed and the Hugging Face Trainer

    def _hugging_face(self) -> None:
        task, pod, shape = self._task, self._pod, self._task.shape
        up = pod.start_ms + 60_000
        for local in range(GPUS):
            self._app(
                up + local, "train.py:189:main", f"Process rank: {local}, device: cuda:{local}, n_gpu: 1", "WARNING"
            )
        self._hf(up + 500, "configuration_utils.py:792", "Model config LlamaConfig {")
        values = {
            "_name_or_path": shape.model,
            "hidden_size": shape.hidden,
            "intermediate_size": shape.ffn,
            "num_attention_heads": shape.heads,
            "num_hidden_layers": shape.layers,
            "torch_dtype": "bfloat16",
            "vocab_size": VOCABULARY,
        }
        self._line("".join(f"  {json.dumps(name)}: {json.dumps(value)},\n" for name, value in values.items()) + "}\n")
        if pod.first_rank == 0:
            self._old_nccl()
        self._app(
            up + 20_000,
            "data.py:40:build",
            f"train_batch_size: {shape.micro_batch}, gradient_accumulation_steps: {shape.accumulation}, "
            f"world_size: {task.world}, pipeline: 1",
        )
        self._line(f"     sequence length:           {shape.sequence}")
        if task.trainer == "deepspeed":
            self._deepspeed(self._training_ms - 3_000)
        self._trainer_header()
        self._hugging_face_iterations()
        if not task.is_cut:
            self._app(task.iterations[-1].end_ms + LAST_WORDS_MS + pod.first_rank, "train.py:243:main", "\n done")

    def _deepspeed(self, ms: int) -> None:
        shape, pod = self._task.shape, self._pod
        if pod.first_rank == 0:
            self._app(ms, "logging.py:96:log_dist", "[Rank 0] DeepSpeed info: version=0.12.4, git-hash=unknown")
            self._app(
                ms + 5,
                "logging.py:96:log_dist",
                f"[Rank 0] Creating torch.bfloat16 ZeRO stage {shape.zero_stage} optimizer",
            )
            for name, value in {
                "bfloat16_enabled": True,
                "communication_data_type": None,
                "global_rank": 0,
                "gradient_accumulation_steps": shape.accumulation,
                "train_batch_size": self._task.global_batch,
                "train_micro_batch_size_per_gpu": shape.micro_batch,
                "world_size": self._task.world,
                "zero_config": f"stage={shape.zero_stage} reduce_scatter=True use_multi_rank_bucket_allreduce=True",
            }.items():
                dots = f" {'.' * (29 - len(name))} " if len(name) < 29 else "  "
                self._app(ms + 9, "config.py:983:print", f"  {name}{dots}{value}")
        else:
            shard = f"bf16_zero_pp_rank_{pod.first_rank}_mp_rank_00_optim_states.pt"
            self._app(ms + 20, "torch_checkpoint_engine.py:27:load", f"[Torch] Loading checkpoint from out/{shard}...")

    def _trainer_header(self) -> None:
        task, shape, ms = self._task, self._task.shape, self._training_ms
        batches = "Total train batch size (w. parallel, distributed & accumulation)"
        self._hf(ms, "trainer.py:1723", "***** Running training *****")
        for name, value in (
            ("Instantaneous batch size per device", shape.micro_batch),
            (batches, task.global_batch),
            ("Gradient Accumulation steps", shape.accumulation),
            ("Total optimization steps", len(task.iterations)),
            ("Number of trainable parameters", shape.params),
        ):
            self._hf(ms + 1, "trainer.py:1729", f"  {name} = {value:,}")

    def _hugging_face_iterations(self) -> None:
        task, pod, total = self._task, self._pod, len(self._task.iterations)
        saved = dict(task.checkpoints)
        smoothed = 0.0
        for iteration in task.printed:
            if iteration.start_ms == task.resumed_ms:
                self._restart(task.resumed_ms)
            number = iteration.number
            at = task.line_ms(pod, iteration, self._options)
            each = (iteration.end_ms - iteration.start_ms) / 1000
            # The smoothing of tqdm.
            smoothed = each if number == 1 else 0.3 * each + 0.7 * smoothed
            elapsed = (at - self._training_ms) // 1000
            left = int(smoothed * (total - number))
            loss, rate = f"{2 + 8 / (number + 4):.4f}", repr(round(1e-4 * number / total, 10))
            bar = (
                f"{100 * number // total:3d}%|{'█' * (10 * number // total):<10}| {number}/{total} "
                f"[{_clock(elapsed)}<{_clock(left)}, {smoothed:.2f}s/it]"
            )
            values = f"{{'loss': {loss}, 'learning_rate': {rate}, 'epoch': 0.01}}"
            self._text.append(f"{self._break}{bar}{values}\n")
            if task.trainer == "deepspeed":
                line = (
                    f"loss: {loss}, learning_rate: {rate}, epoch: 0.01, iter: {number}/{total},  "
                    f"{_clock(elapsed)} < {_clock(left)},  {round(smoothed, 2)}s/it"
                )
                # Each pod's log ends an iteration later than that of the pod before it, inside a line.
                if number > task.logged + pod.first_rank // GPUS:
                    self._text.append(f"[{self._stamp(at)}] [INFO] [callback.py:53:on_log] {line}"[:61])
                    return
                self._app(at, "callback.py:53:on_log", line)
            if number in saved:
                self._checkpoint(at, number, saved[number])

    def _restart(self, ms: int) -> None:
        """Write the crash, and the start of training after it."""
        place = '  File "/workspace/train.py", line 250, in <module>'
        self._line(f"Traceback (most recent call last):\n{place}\n{crash(self._pod)}")
        self._training_ms = ms + (self._pod.first_rank // GPUS) * 7
        self._trainer_header()

    def _checkpoint(self, at: int, number: int, cost_ms: int) -> None:
        if self._pod.first_rank == 0:
            self._app(at + 300, "trainer.py:116:_save", f"Saving model checkpoint to out/tmp-checkpoint-{number}")
        shard = f"bf16_zero_pp_rank_{self._pod.first_rank}_mp_rank_00_optim_states.pt"
        engine, step = "torch_checkpoint_engine.py", f"global_step{number}"
        self._app(at + cost_ms // 2, f"{engine}:23:save", f"[Torch] Saved out/{step}/{shard}.")
        self._app(at + cost_ms - 50, f"{engine}:33:commit", f"[Torch] Checkpoint {step} is ready now!")

    def _old_nccl(self) -> None:
        """Write the lines of NCCL 2.14 for rank 0, the only process with NCCL's debug output."""
        servers, world = len(self._task.pods), self._task.world
        self._nccl(0, f"Bootstrap : Using bond0:{gpu_ip(self._pod.server)}<0>")
        self._line("NCCL version 2.14.3+cuda11.7")
        self._nccl(0, self._cards())
        for channel in range(CHANNELS):
            ranks = "".join(f" {rank:3d}" for rank in ring(channel, servers)[:PRINTED])
            self._nccl(0, f"Channel {channel:02d}/{CHANNELS:02d} : {ranks}")
        places = [
            # Where rank 0 has neither on another server, its parent is the last rank of its own.
            f"[{channel}] 1/{child}/-1->0->{GPUS - 1 if parent == child else parent}"
            for channel, (parent, child) in enumerate(tree_place(channel, servers) for channel in range(CHANNELS))
        ]
        self._nccl(0, f"Trees {' '.join(places)}")
        rings = [edge for edge in ring_edges(servers) if edge.dst == 0]
        for what, bus, edges in (("rings", 16000, rings), ("trees", 14000, tree_edges(servers))):
            for edge in sorted(edges, key=lambda edge: (edge.channel, edge.src == 0)):
                receives = f"{edge.src}[{bus}] -> 0[10000] [receive]"
                ends = receives if edge.dst == 0 else f"0[10000] -> {edge.dst}[{bus}] [send]"
                self._nccl(0, f"Channel {edge.channel:02d}/0 : {ends} via NET/IB/0/GDRDMA")
            self._nccl(0, f"Connected all {what}")
        self._nccl(0, f"comm 0x5b84 rank 0 nranks {world} cudaDev 0 busId 10000 - Init COMPLETE")

    def _cards(self) -> str:
        listed = " ".join(f"[{at}]{nic.hca}:1/RoCE" for at, nic in enumerate(self._fabric.nics[self._pod.server]))
        return f"NET/IB : Using {listed} [RO]; OOB bond0:{gpu_ip(self._pod.server)}<0>"

    # Megatron-LM

    def _megatron(self) -> None:
        task, pod = self._task, self._pod
        last = pod.first_rank == task.world - GPUS
        if pod.first_rank == 0:
            self._line("\n".join(arguments(task)))
        self._line("NCCL version 2.21.5+cuda12.4")
        for local in range(GPUS):
            self._nccl(local, f"Bootstrap : Using bond0:{gpu_ip(pod.server)}<0>")
            self._nccl(local, self._cards())
        for local, text in connections(task, pod.first_rank // GPUS):
            self._nccl(local, text)
        if pod.first_rank == 0:
            began = millisecond_utc(self._training_ms)[:19]
            self._line(f"[before the start of training step] datetime: {began} ")
        for one in task.iterations if last else ():
            self._line(iteration(task, one))


def _clock(seconds: int) -> str:
    """Return a duration as in progress bars: `[H:]MM:SS`."""
    hours, rest = divmod(max(seconds, 0), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60:02d}:{rest % 60:02d}"
