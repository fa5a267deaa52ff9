"""Logs with known truth: launcher x NCCL version x trainer x hosts per file x damage, from a seed.

Lines have the forms of public launchers, NCCL versions and trainers. Damage is a cut, a splice or an overwrite, never
between two digits or in two adjacent lines: a line cut from `NET/IB/12` to `NET/IB/1` would be a valid line with
another number, which no reader can detect. This module is independent of the reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random
from typing import NamedTuple

VERSIONS = (
    "2.4.7", "2.7.8", "2.10.3", "2.12.12", "2.14.3", "2.16.2", "2.18.1", "2.18.5", "2.20.5", "2.21.5", "2.22.3",
    "2.24.3", "2.26.2", "2.27.7", "2.30.1",
)  # fmt: skip
LABELS = {
    "none": "",
    "horovod": "[{rank}]<stdout>:",
    "mpirun": "[1,{rank}]<stdout>:",
    "mpirun rank": "[{rank}] ",
    "srun": "{rank:>{width}}: ",
    "pdsh address": "192.168.7.{server}: ",
    "pdsh host": "{host}: ",
    "torchrun": "[default{local}]:",
    "rank": "[rank{rank}]:",
    "ray": "\x1b[36m(RayTrainWorker pid={pid}, ip=10.1.1.{server})\x1b[0m ",
    "kubectl": "[pod/job-{server}/pytorch] ",
    "stern": "job-{server} pytorch ",
    "stderr": "[stderr] ",
    "container": "2024-05-23T16:00:0{local}.123456789Z ",
}
"""What launchers write before each line of a process."""
LAUNCHERS = tuple(LABELS)
BAR = "{percent:3d}%|{blocks:<10}| {step}/{steps} [{clock}<1:02:03,  7.01s/it"
MEGATRON = (
    "iteration {step:8d}/{steps:8d} | consumed samples: {samples:12d} | elapsed time per iteration (ms): 7012.5 | "
    "learning rate: 1.000000E-05 | global batch size:    64 | lm loss: {loss:.6E} | loss scale: 1.0 | "
    "grad norm: 1.125 | number of skipped iterations:   0 | number of nan iterations:   0 |"
)
FORK = (
    " consumed tokens: 1.258B | iteration {step:8d}/{steps:8d} | elpased time per iteration (ms): 7012.5 | "
    "eta: 0:00:00 | learnig rate: 1.000E-05 | lm loss: {loss:.6E} | timestamp: {epoch}.25 |"
)
CALLBACK = (
    "[{stamp},125] [INFO] [callback.py:53:on_log] loss: {loss:.4f}, learning_rate: 1e-05, epoch: 0.0, "
    "iter: {step}/{steps},  {clock} < 1:02:03,  7.01s/it"
)
NEMO = (
    "Training epoch 0, iteration {step}/{steps} | lr: 3e-05 | global_batch_size: 64 | global_step: {step} | "
    "reduced_train_loss: {loss:.4f} | train_step_timing in s: 7.01"
)
TRAINERS = {
    "megatron": [f" [{{stamp}}] {MEGATRON}"],
    "fork": [FORK],
    "hugging face": ["{bar}]{{'loss': '{loss:.4f}', 'grad_norm': ' 1.25', 'learning_rate': '1e-05', 'epoch': '0.01'}}"],
    "bars": [
        "Training: {bar}]",
        "[{stamp},125] [INFO] [logging.py:96:log_dist] [Rank {rank}] step={step}, skipped=0, lr=[1e-05], mom=[0.9]",
    ],
    "callback": [CALLBACK],
    "dictionaries": ["{{'loss': {loss:.4f}, 'learning_rate': 1e-05, 'step': {step}, 'epoch': 0.1}}"],
    "nemo": [NEMO],
    "lightning": ["Epoch 0: {bar}, v_num=7]", "Epoch 0: {bar}, v_num=7, reduced_train_loss={loss:.4f}]"],
    "none": [],
}
"""Lines of each trainer for one iteration."""
NOISE = (
    "",
    "Loading extension module cpu_adam...",
    "pytorch_model.bin: 100%|██████████| 1.2G/1.2G [00:10<00:00, 120MB/s]",
    "Loading checkpoint shards: 100%|██████████| 2/2 [00:10<00:00,  5.0s/it]",
    " validation loss at iteration 3 | lm loss value: 2.5E+00 | lm loss PPL: 1.2E+01 |",
    "Evaluating iter 3/10",
    " time (ms) | forward: 1.2 | backward: 2.3",
    "/opt/x.py:12: UserWarning: iteration order",
    "{'eval_loss': 1.25, 'eval_runtime': 3.4, 'epoch': 1.0}",
    "NCCL version VERSION+cuda12.4",
)
HOSTS = (
    "node-{}", "10{}7", "e0a95b6643f{}", "gpu{}.cluster.local", "ip-10-0-0-{}", "NH-DC-28U-GPU-{}", "10.0.0.{}",
    "job-worker-{}",
)  # fmt: skip
DAMAGES = ("none", "cut", "splice", "overwrite")
DAMAGED_SHARE = 0.08

Key = tuple[object, ...]


class Process(NamedTuple):
    """Process of one rank."""

    rank: int
    host: str
    server: int
    local: int
    pid: int
    tid: int


class Sample:
    """Logs of a random task, and their truth: edges, ranks, iterations and devices."""

    def __init__(self, seed: int) -> None:
        self.seed, self.name = seed, f"seed-{seed}"
        chance = self.chance = Random(seed)
        self.servers, gpus = chance.choice([(1, 2), (2, 1), (2, 2), (2, 4), (3, 2), (3, 4)])
        host = chance.choice(HOSTS)
        same_pids = chance.random() < 0.3  # as in containers: a pid alone names no process
        self.processes: list[Process] = []
        for server, local in product(range(self.servers), range(gpus)):
            pid = 4000 + local if same_pids else 4000 + 97 * server + 7 * local
            self.processes.append(Process(len(self.processes), host.format(server + 1), server, local, pid, pid + 300))
        self.size = len(self.processes)
        self.nics = [f"mlx5_{2 * number}" for number in range(chance.choice([1, 2, 4]))]
        self.version = chance.choice(VERSIONS)
        self.release = int(self.version.split(".")[1])
        self.has_device_numbers = self.release > 18 or self.version == "2.18.5"  # edges name no bus
        self.launcher = chance.choice(LAUNCHERS)
        self.trainer = chance.choice(tuple(TRAINERS))
        self.channels = chance.choice([1, 2, 4])
        self.layout = chance.choice(["one", "hosts"])
        self.order = chance.choice(["rings first", "trees first", "late"])
        self.damage = chance.choice(DAMAGES)
        parts = (self.launcher, f"NCCL {self.version}", self.trainer, self.layout, self.order, self.damage)
        self.about = ", ".join(parts)
        self.edges: Counter[Key] = Counter()
        """(kind, channel, source, destination), once per communicator."""
        self.ranks: Counter[Key] = Counter()
        """(host, pid, rank, ranks)"""
        self.iterations: Counter[Key] = Counter()
        """(iteration, loss), whose loss is None if no line has it"""
        self.devices: Counter[Key] = Counter()
        """(channel, source, destination, end, NIC)"""
        self.files = {name: ("\n".join(lines) + "\n").encode() for name, lines in self._logs()}

    def write(self, folder: Path) -> None:
        """Write the logs into the folder of their task."""
        task = folder / self.name
        task.mkdir(parents=True)
        for name, content in self.files.items():
            (task / name).write_bytes(content)

    def _logs(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the name and the lines of each file: one file, or one per host."""
        spoken = [self._start(process) for process in self.processes]
        trainer = self._training()
        step = self.size if self.layout == "one" else self.size // self.servers
        for number, begin in enumerate(range(0, self.size, step)):
            lines = self._interleaved(spoken[begin : begin + step])
            lines += trainer if begin + step == self.size else []
            yield f"pod-{number}.log", self._damaged(lines)

    def _start(self, process: Process) -> list[str]:
        """Return NCCL's lines of one process, from its version to the communicator of all ranks and a smaller one."""
        label = self._label(process)
        bare = [label + self._noise(), f"{label}NCCL version {self.version}+cuda12.4"]
        begin, end = self._communicator(process, f"0x5b8{process.local:03x}0", process.rank, self.size, "0x7a")
        nics = " ".join(
            f"[{number}]{name}:1/{'IB/SHARP' if number else 'RoCE'}" for number, name in enumerate(self.nics)
        )
        lines = [f"NET/IB : Using {nics} [RO]; OOB ib0.0065:10.1.1.{process.server}<0>", *begin]
        lines += [self._ring_list(channel, self.channels, self._ring(channel)) for channel in range(self.channels)]
        lines += ["Ring 00 : 1 -> 0 -> 1", "Tree 0 : 1 -> 0 -> 1/-1/-1"] if self.seed % 4 == 0 else []
        lines.append(self._tree_list(process.rank))
        rings = [*self._connections(process, "ring"), "Connected all rings"]
        trees = [*self._connections(process, "tree"), "Connected all trees"]
        both = trees + rings if self.order == "trees first" else rings + trees
        lines += [end, *both] if self.order == "late" and self.release > 21 else [*both, end]
        lines += [*self._pairs(process), *self._part(process)]
        prefix = f"{label}{process.host}:{process.pid}:{process.tid} [{process.local}] NCCL INFO "
        return bare + [prefix + line for line in lines]

    def _label(self, process: Process) -> str:
        return LABELS[self.launcher].format(**process._asdict(), width=len(str(self.size)))

    def _noise(self) -> str:
        """Return a line without relevant content."""
        return self.chance.choice(NOISE).replace("VERSION", self.version)

    def _communicator(self, process: Process, at: str, rank: int, ranks: int, kind: str) -> tuple[list[str], str]:
        """Return the line that a communicator starts, if the version has one, and the line that it is complete."""
        self.ranks[process.host, process.pid, rank, ranks] += 1
        before = "ncclCommInitRank " if self.release > 20 else ""
        device = f" nvmlDev {process.local}" if self.has_device_numbers else ""
        name = f" commId {kind}{self.seed:06x}" if self.release > 15 else ""
        line = f"{before}comm {at} rank {rank} nranks {ranks} cudaDev {process.local}{device} "
        line += f"busId {1 + process.local}b000{name} - Init "
        return [f"{line}START"] if self.has_device_numbers else [], f"{line}COMPLETE"

    def _ring(self, channel: int) -> list[int]:
        """Return the ranks in order of a ring; each channel starts at another GPU of each server."""
        gpus = self.size // self.servers
        members = [server * gpus + (channel + at) % gpus for server in range(self.servers) for at in range(gpus)]
        return [*members[members.index(0) :], *members[: members.index(0)]]

    def _tree(self, channel: int, rank: int) -> tuple[int, list[int]]:
        """Return parent (or -1) and children of a rank in a binary tree, whose root is the channel's number."""
        at = (rank - channel) % self.size
        children = [(2 * at + k + channel) % self.size for k in (1, 2) if 2 * at + k < self.size]
        return -1 if at == 0 else ((at - 1) // 2 + channel) % self.size, children

    def _ring_list(self, channel: int, channels: int, members: list[int]) -> str:
        width = len(str(self.size - 1)) if self.release > 22 else 3
        total = f"/{channels:02d}" if self.release > 4 else ""
        return f"Channel {channel:02d}{total} :" + "".join(f" {rank:{width}d}" for rank in members)

    def _tree_list(self, rank: int) -> str:
        """Return the line of a rank's places in the trees of all channels."""
        items = []
        for channel in range(self.channels):
            parent, children = self._tree(channel, rank)
            down = "/".join(str(child) for child in [*children, -1, -1, -1][:3])
            up = f"{parent}->{rank}->{down}"
            both = f"{down}->{rank}->{parent}"
            items.append(f"[{channel}] {up if self.release < 5 else both + '|' + up if self.release < 8 else both}")
        return "Trees " + " ".join(items)

    def _connections(self, process: Process, kind: str) -> list[str]:
        """Return the lines of a process about its connections in the rings or trees."""
        rank, edges = process.rank, []
        for channel in range(self.channels):
            if kind == "ring":
                ring = self._ring(channel)
                at = ring.index(rank)
                edges += [(channel, ring[at - 1], rank), (channel, rank, ring[(at + 1) % self.size])]
            else:
                parent, children = self._tree(channel, rank)
                for other in [parent, *children] if parent >= 0 else children:
                    edges += [(channel, other, rank), (channel, rank, other)]
        lines = []
        for channel, src, dst in edges:
            near, far = self.processes[src], self.processes[dst]
            if near.server != far.server:
                lines.append(self._edge(kind, process, channel, src, dst))
            elif rank == src and kind == "ring":
                number = "/0" if self.release > 13 else ""
                ends = f"{src}[{near.local}] -> {dst}[{far.local}]"
                lines.append(f"{self._word()} {channel:02d}{number} : {ends} via P2P/IPC")
        return lines

    def _word(self) -> str:
        return "Ring" if self.release < 7 else "Channel"

    def _edge(self, kind: str, process: Process, channel: int, src: int, dst: int) -> str:
        """Return the line of a connection over the network, as printed by one of its ends; count the edge and its NIC.

        In some tasks the NIC is a number beyond the list, as for a fused device.
        """
        count = len(self.nics)
        nic = count + channel % 2 if self.seed % 11 == 0 else (process.local + channel) % count
        way = "send" if process.rank == src else "receive"
        self.edges[kind, channel, src, dst] += way == "send"  # both ends print it
        if nic < count:
            self.devices[channel, src, dst, way, self.nics[nic]] = 1
        locals_ = [self.processes[rank].local for rank in (src, dst)]
        near, far = (str(one) if self.has_device_numbers else f"{1 + one}b000" for one in locals_)
        number = f"/{int(kind == 'p2p')}" if self.release > 11 else ""
        plugin = ("IB", "IBext_v8", "NCCL RDMA Plugin v8")[self.seed % 3 if self.release > 17 else 0]
        proxy = f"({src})" if way == "send" and self.release > 11 and self.seed % 5 == 0 else ""
        more = "/GDRDMA" + ("(PCI)" if self.release > 25 else "") if nic % 2 == 0 else ""
        shared = "/Shared" if kind == "p2p" else ""
        ends = f"{src}[{near}] -> {dst}[{far}] [{way}]"
        return f"{self._word()} {channel:02d}{number} : {ends} via NET/{plugin}/{nic}{proxy}{more}{shared}"

    def _pairs(self, process: Process) -> list[str]:
        """Return the lines of sends and receives of rank 0 with the last rank."""
        last = self.size - 1
        is_local = self.processes[last].server == 0
        return (
            []
            if is_local or process.rank not in (0, last) or self.release < 12
            else [self._edge("p2p", process, 0, 0, last)]
        )

    def _part(self, process: Process) -> list[str]:
        """Return the lines of a communicator of each server's first GPU, which have an identifier in later versions."""
        servers, at = self.servers, process.server
        if process.local or servers in (1, self.size) or self.seed % 2 or self.release < 16:
            return []
        self.edges["ring", 0, at, (at + 1) % servers] += 1
        begin, end = self._communicator(process, "0x6c0000", at, servers, "0x9c")
        return [*begin, self._ring_list(0, 1, list(range(servers))), end]

    def _training(self) -> list[str]:
        """Return the lines of the last rank's trainer."""
        steps, label = self.chance.randint(4, 40), self._label(self.processes[-1])
        lines = []
        for step in range(1, steps + 1):
            loss = round(self.chance.uniform(1, 9), 4)
            if self.trainer != "none":
                self.iterations[step, None if self.trainer == "bars" else loss] = 1
            lines += [label + line for line in self._iteration(step, steps, loss)]
            if step % 5 == 0:
                lines.append(label + self._noise())
        return lines

    def _iteration(self, step: int, steps: int, loss: float) -> list[str]:
        """Return the trainer's lines for one iteration."""
        values = {"step": step, "steps": steps, "loss": loss, "rank": self.size - 1, "samples": step * 64}
        clock, stamp = f"{step * 7 // 60:02d}:{step * 7 % 60:02d}", f"2024-05-23 16:{step // 60:02d}:{step % 60:02d}"
        blocks = "█" * (step * 10 // steps)
        bar = BAR.format(**values, percent=100 * step // steps, blocks=blocks, clock=clock)
        known = {"clock": clock, "stamp": stamp, "bar": bar, "epoch": 1716480000 + step}
        lines = [one.format(**values, **known) for one in TRAINERS[self.trainer]]
        if self.trainer == "bars":  # the last bar is printed twice, DeepSpeed's own line every second step
            lines[1:1] = [f"{bar}]"] if step == steps else []
            return lines if step % 2 == 0 else lines[:-1]
        return lines

    def _interleaved(self, several: list[list[str]]) -> list[str]:
        """Interleave the lines of several processes; each process keeps its order."""
        queues = [list(reversed(one)) for one in several]
        lines = []
        while any(queues):
            queue = self.chance.choice([one for one in queues if one])
            lines += [queue.pop() for _ in range(min(len(queue), self.chance.randint(1, 4)))]
        return lines

    def _damaged(self, lines: list[str]) -> list[str]:
        out: list[str] = []
        rest = list(reversed(lines))
        whole_next = False
        while rest:
            line = rest.pop()
            if self.damage == "none" or whole_next or len(line) < 8 or self.chance.random() > DAMAGED_SHARE:
                out.append(line)
                whole_next = False
                continue
            other = rest.pop() if rest and self.damage != "cut" else ""
            out += self._spoiled(line, other)
            whole_next = True
        return out

    def _spoiled(self, line: str, other: str) -> list[str]:
        """Return one or two lines after the damage, or the line unchanged if damage would split or join digits."""
        unchanged = [line, other] if other else [line]
        at = self.chance.randint(1, len(line) - 1)
        if _is_number(line[at - 1] + line[at]):
            return unchanged
        if self.damage == "cut":
            return [line[:at]] if self.chance.random() < 0.5 else [line[at:]]
        if not other.strip() or _is_number(line[at - 1] + other[0]) or _is_number(other[-1] + line[at]):
            return unchanged
        if self.damage == "splice":
            return [line[:at] + other, line[at:]]
        end = at + len(other)
        return (
            unchanged
            if _is_number(other[-1] + line[end : end + 1]) and end < len(line)
            else [line[:at] + other + line[end:]]
        )


def _is_number(text: str) -> bool:
    return all(one.isalnum() or one in ".-+" for one in text)
