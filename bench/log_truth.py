"""Logs with known truth: launcher x NCCL version x trainer x hosts per file x damage, from a seed.

Lines have the forms of public launchers, NCCL versions and trainers. Damage is a cut, a splice or an overwrite, never
between two digits or in two adjacent lines: a line cut from `NET/IB/12` to `NET/IB/1` would be a valid line with
another number, which no reader can detect. This module is independent of the reader.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
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


@dataclass
class World:
    """Training task: its processes, the form of its logs, and what the logs hold."""

    seed: int
    version: str
    launcher: str
    trainer: str
    processes: list[Process]
    channels: int
    nics: list[str]
    layout: str
    order: str
    chance: Random
    edges: Counter[Key] = field(default_factory=Counter)
    """(kind, channel, source, destination), once per communicator."""
    ranks: Counter[Key] = field(default_factory=Counter)
    """(host, pid, rank, ranks)"""
    iterations: dict[int, float | None] = field(default_factory=dict)
    """Loss of each iteration; None if no line has it."""
    devices: Counter[Key] = field(default_factory=Counter)
    """(channel, source, destination, end, NIC)"""

    def __post_init__(self) -> None:
        self.release = int(self.version.split(".")[1])  # minor version of NCCL
        self.size = len(self.processes)
        self.servers = len({one.server for one in self.processes})
        self.has_device_numbers = self.release > 18 or self.version == "2.18.5"  # edges name no bus


def make_world(seed: int) -> World:
    """Return a random task for a seed."""
    chance = Random(seed)
    servers, gpus = chance.choice([(1, 2), (2, 1), (2, 2), (2, 4), (3, 2), (3, 4)])
    pattern = chance.choice(HOSTS)
    same_pids = chance.random() < 0.3  # as in containers: a pid alone names no process
    processes: list[Process] = []
    for server in range(servers):
        for local in range(gpus):
            pid = 4000 + local if same_pids else 4000 + 97 * server + 7 * local
            processes.append(Process(len(processes), pattern.format(server + 1), server, local, pid, pid + 300))
    nics = [f"mlx5_{2 * number}" for number in range(chance.choice([1, 2, 4]))]
    return World(
        seed,
        chance.choice(VERSIONS),
        chance.choice(LAUNCHERS),
        chance.choice(tuple(TRAINERS)),
        processes,
        chance.choice([1, 2, 4]),
        nics,
        chance.choice(["one", "hosts"]),
        chance.choice(["rings first", "trees first", "late"]),
        chance,
    )


@dataclass
class Sample:
    """Logs of a task."""

    name: str
    files: dict[str, bytes]
    truth: World
    damage: str
    about: str


def make_sample(seed: int) -> Sample:
    """Generate the logs of a seed in memory."""
    world = make_world(seed)
    damage = world.chance.choice(DAMAGES)
    spoken = {process.rank: _start(world, process) for process in world.processes}
    _count_edges(world)
    trainer = _training(world)
    files: dict[str, bytes] = {}
    by_server = [[one for one in world.processes if one.server == server] for server in range(world.servers)]
    groups = [world.processes] if world.layout == "one" else by_server
    for number, group in enumerate(groups):
        lines = _interleaved(world, [spoken[process.rank] for process in group])
        if group[-1] is world.processes[-1]:
            lines += trainer
        files[f"pod-{number}.log"] = ("\n".join(_damaged(world, lines, damage)) + "\n").encode()
    about = f"{world.launcher}, NCCL {world.version}, {world.trainer}, {world.layout}, {world.order}, {damage}"
    return Sample(f"seed-{seed}", files, world, damage, about)


def _ring(world: World, channel: int) -> list[int]:
    """Return the ranks in order of a ring; each channel starts at another GPU of each server."""
    members: list[int] = []
    for server in range(world.servers):
        local = [one.rank for one in world.processes if one.server == server]
        turn = channel % len(local)
        members += [*local[turn:], *local[:turn]]
    return [*members[members.index(0) :], *members[: members.index(0)]]


def _places(world: World, rank: int) -> list[tuple[int, int, list[int]]]:
    """Return a rank's place in a binary tree of each channel, whose root is the channel's number."""
    places = []
    for channel in range(world.channels):
        at = (rank - channel) % world.size
        children = [(2 * at + k + channel) % world.size for k in (1, 2) if 2 * at + k < world.size]
        places.append((-1 if at == 0 else ((at - 1) // 2 + channel) % world.size, rank, children))
    return places


def _neighbors(world: World, process: Process, kind: str) -> list[tuple[int, int, int]]:
    """Return the edges of a process: (channel, source, destination)."""
    found = []
    for channel in range(world.channels):
        if kind == "ring":
            ring = _ring(world, channel)
            at = ring.index(process.rank)
            found += [(channel, ring[at - 1], process.rank), (channel, process.rank, ring[(at + 1) % len(ring)])]
        else:
            parent, rank, children = _places(world, process.rank)[channel]
            for other in [parent, *children]:
                if other >= 0:
                    found += [(channel, other, rank), (channel, rank, other)]
    return list(dict.fromkeys(found))


def _nic(world: World, process: Process, channel: int) -> int:
    """Return the NIC of a process; in some tasks a number beyond the list, as for a fused device."""
    if world.seed % 11 == 0:
        return len(world.nics) + channel % 2
    return (process.local + channel) % len(world.nics)


def _end(world: World, process: Process, one: tuple[int, int, int], *, is_p2p: bool = False) -> str:
    """Return the line of a process about a connection over the network; count its NIC."""
    nic = _nic(world, process, one[0])
    way = "send" if process.rank == one[1] else "receive"
    if nic < len(world.nics):
        world.devices[(*one, way, world.nics[nic])] = 1
    return edge(world, one, way, nic, is_p2p=is_p2p)


def _connections(world: World, process: Process, kind: str) -> list[str]:
    lines = []
    for channel, src, dst in _neighbors(world, process, kind):
        near, far = world.processes[src], world.processes[dst]
        if near.server != far.server:
            lines.append(_end(world, process, (channel, src, dst)))
        elif process.rank == src and kind == "ring":
            lines.append(inside(world, channel, near, far))
    return lines


def _start(world: World, process: Process) -> list[str]:
    """Return NCCL's lines of one process, from its version to the communicator of all ranks and a smaller one."""
    bare = [noise(world), f"NCCL version {world.version}+cuda12.4"]
    start, end = made(world, process, f"0x5b8{process.local:03x}0", process.rank, world.size, f"0x7a{world.seed:06x}")
    lines = [nic_list(world, process), *start]
    lines += [ring_list(world, channel, _ring(world, channel)) for channel in range(world.channels)]
    lines += ["Ring 00 : 1 -> 0 -> 1", "Tree 0 : 1 -> 0 -> 1/-1/-1"] if world.seed % 4 == 0 else []
    lines.append(tree_list(world, _places(world, process.rank)))
    rings = [*_connections(world, process, "ring"), "Connected all rings"]
    trees = [*_connections(world, process, "tree"), "Connected all trees"]
    if world.order == "late" and world.release > 21:
        lines += [end, *rings, *trees]
    else:
        lines += [*(trees + rings if world.order == "trees first" else rings + trees), end]
    world.ranks[process.host, process.pid, process.rank, world.size] = 1
    lines += [*_pairs(world, process), *_part(world, process)]
    return [label(world, process) + one for one in bare] + [speak(world, process, one) for one in lines]


def _pairs(world: World, process: Process) -> list[str]:
    """Return the lines of sends and receives of rank 0 with the last rank."""
    last = world.size - 1
    if world.processes[0].server == world.processes[last].server or process.rank not in (0, last) or world.release < 12:
        return []
    world.edges["p2p", 0, 0, last] = 1
    return [_end(world, process, (0, 0, last), is_p2p=True)]


def _part(world: World, process: Process) -> list[str]:
    """Return the lines of a communicator of each server's first GPU, which have an identifier in later versions."""
    if process.local or world.servers == 1 or world.servers == world.size or world.seed % 2 or world.release < 16:
        return []
    world.ranks[process.host, process.pid, process.server, world.servers] += 1
    start, end = made(world, process, "0x6c0000", process.server, world.servers, f"0x9c{world.seed:06x}")
    ring = ring_list(world, 0, list(range(world.servers))).replace(f"/{world.channels:02d} ", "/01 ")
    return [*start, ring, end]


def _count_edges(world: World) -> None:
    """Count the edges between servers: rings, trees, sends and receives."""
    for process in world.processes:
        for kind in ("ring", "tree"):
            for channel, src, dst in _neighbors(world, process, kind):
                if world.processes[src].server != world.processes[dst].server:
                    world.edges[kind, channel, src, dst] = 1
    if any(ranks == world.servers and ranks < world.size for *_, ranks in world.ranks):
        for at in range(world.servers):
            world.edges["ring", 0, at, (at + 1) % world.servers] += 1


def _training(world: World) -> list[str]:
    """Return the lines of the last rank's trainer."""
    steps = world.chance.randint(4, 40)
    process = world.processes[-1]
    lines = []
    for step in range(1, steps + 1):
        loss = round(world.chance.uniform(1, 9), 4)
        printed = iteration(world, step, steps, loss)
        if printed:
            world.iterations[step] = None if world.trainer == "bars" else loss
        lines += [label(world, process) + one for one in printed]
        if step % 5 == 0:
            lines.append(label(world, process) + noise(world))
    return lines


def _interleaved(world: World, several: list[list[str]]) -> list[str]:
    """Interleave the lines of several processes; each process keeps its order."""
    queues = [list(reversed(one)) for one in several]
    lines = []
    while any(queues):
        queue = world.chance.choice([one for one in queues if one])
        lines += [queue.pop() for _ in range(min(len(queue), world.chance.randint(1, 4)))]
    return lines


def _damaged(world: World, lines: list[str], damage: str) -> list[str]:
    out: list[str] = []
    rest = list(reversed(lines))
    whole_next = False
    while rest:
        line = rest.pop()
        if damage == "none" or whole_next or len(line) < 8 or world.chance.random() > DAMAGED_SHARE:
            out.append(line)
            whole_next = False
            continue
        other = rest.pop() if rest and damage != "cut" else ""
        out += _spoiled(world, line, other, damage)
        whole_next = True
    return out


def _spoiled(world: World, line: str, other: str, damage: str) -> list[str]:
    """Return one or two lines after the damage, or the line unchanged if damage would split or join digits."""
    at = world.chance.randint(1, len(line) - 1)
    if _is_number(line[at - 1]) and _is_number(line[at]):
        return [line, other] if other else [line]
    if damage == "cut":
        return [line[:at]] if world.chance.random() < 0.5 else [line[at:]]
    joins = (line[at - 1] + other[:1], other[-1:] + line[at])
    if not other.strip() or any(len(pair) == 2 and all(map(_is_number, pair)) for pair in joins):
        return [line, other] if other else [line]
    if damage == "splice":
        return [line[:at] + other, line[at:]]
    end = at + len(other)
    if end < len(line) and _is_number(other[-1]) and _is_number(line[end]):
        return [line, other]
    return [line[:at] + other + line[end:]]


def _is_number(one: str) -> bool:
    return one.isalnum() or one in ".-+"


def write_sample(folder: Path, sample: Sample) -> None:
    """Write the logs of a sample into the folder of its task."""
    task = folder / sample.name
    task.mkdir(parents=True)
    for name, content in sample.files.items():
        (task / name).write_bytes(content)


# forms of lines: launchers, NCCL


def label(world: World, process: Process) -> str:
    """Return the launcher's prefix for lines of a process."""
    return LABELS[world.launcher].format(**process._asdict(), width=len(str(world.size)))


def speak(world: World, process: Process, message: str) -> str:
    """Return a line of NCCL's."""
    return f"{label(world, process)}{process.host}:{process.pid}:{process.tid} [{process.local}] NCCL INFO {message}"


def ring_list(world: World, channel: int, members: list[int]) -> str:
    """Return the line of a ring."""
    width = len(str(world.size - 1)) if world.release > 22 else 3
    total = f"/{world.channels:02d}" if world.release > 4 else ""
    return f"Channel {channel:02d}{total} :" + "".join(f" {rank:{width}d}" for rank in members)


def tree_list(world: World, places: list[tuple[int, int, list[int]]]) -> str:
    """Return the line of a rank's places in the trees of all channels: (parent, rank, children)."""
    items = []
    for channel, (parent, rank, children) in enumerate(places):
        down = "/".join(str(child) for child in [*children, -1, -1, -1][:3])
        up = f"{parent}->{rank}->{down}"
        both = f"{down}->{rank}->{parent}"
        items.append(f"[{channel}] {up if world.release < 5 else both + '|' + up if world.release < 8 else both}")
    return "Trees " + " ".join(items)


def edge(world: World, one: tuple[int, int, int], way: str, nic: int, *, is_p2p: bool = False) -> str:
    """Return the line of a network connection, as printed by one of its ends."""
    channel, src, dst = one
    near, far = (world.processes[rank] for rank in (src, dst))
    devices = [str(p.local) if world.has_device_numbers else f"{1 + p.local}b000" for p in (near, far)]
    number = f"/{1 if is_p2p else 0}" if world.release > 11 else ""
    word = "Ring" if world.release < 7 else "Channel"
    plugin = {0: "IB", 1: "IBext_v8", 2: "NCCL RDMA Plugin v8"}[world.seed % 3] if world.release > 17 else "IB"
    more = "/GDRDMA" + ("(PCI)" if world.release > 25 else "") if nic % 2 == 0 else ""
    proxy = f"({src})" if way == "send" and world.release > 11 and world.seed % 5 == 0 else ""
    shared = "/Shared" if is_p2p else ""
    return (
        f"{word} {channel:02d}{number} : {src}[{devices[0]}] -> {dst}[{devices[1]}] [{way}] via "
        f"NET/{plugin}/{nic}{proxy}{more}{shared}"
    )


def inside(world: World, channel: int, src: Process, dst: Process) -> str:
    """Return the line of a connection inside a server."""
    number = "/0" if world.release > 13 else ""
    word = "Ring" if world.release < 7 else "Channel"
    return f"{word} {channel:02d}{number} : {src.rank}[{src.local}] -> {dst.rank}[{dst.local}] via P2P/IPC"


def made(world: World, process: Process, pointer: str, rank: int, ranks: int, comm_id: str) -> tuple[list[str], str]:
    """Return the line that a new communicator starts, if the version has one, and the line that it is complete."""
    before = "ncclCommInitRank " if world.release > 20 else ""
    device = f" nvmlDev {process.local}" if world.has_device_numbers else ""
    name = f" commId {comm_id}" if world.release > 15 else ""
    line = (
        f"{before}comm {pointer} rank {rank} nranks {ranks} cudaDev {process.local}{device} "
        f"busId {1 + process.local}b000{name} - Init "
    )
    return [f"{line}START"] if world.has_device_numbers else [], f"{line}COMPLETE"


def nic_list(world: World, process: Process) -> str:
    """Return the line with the NICs of a host."""
    listed = " ".join(
        f"[{number}]{name}:1/{'IB/SHARP' if number else 'RoCE'}" for number, name in enumerate(world.nics)
    )
    return f"NET/IB : Using {listed} [RO]; OOB ib0.0065:10.1.1.{process.server}<0>"


def iteration(world: World, step: int, steps: int, loss: float) -> list[str]:
    """Return the trainer's lines for one iteration."""
    values: dict[str, object] = {
        "step": step,
        "steps": steps,
        "loss": loss,
        "clock": f"{step * 7 // 60:02d}:{step * 7 % 60:02d}",
        "stamp": f"2024-05-23 16:{step // 60:02d}:{step % 60:02d}",
        "epoch": 1716480000 + step,
        "samples": step * 64,
        "rank": world.size - 1,
    }
    values["bar"] = BAR.format(**values, percent=100 * step // steps, blocks="█" * (step * 10 // steps))
    lines = [one.format(**values) for one in TRAINERS[world.trainer]]
    if world.trainer == "bars":  # the last bar is printed twice, DeepSpeed's own line every second step
        lines[1:1] = [f"{values['bar']}]"] if step == steps else []
        return lines if step % 2 == 0 else lines[:-1]
    return lines


def noise(world: World) -> str:
    """Return a line without relevant content."""
    return world.chance.choice(NOISE).replace("VERSION", world.version)
