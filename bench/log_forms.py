"""Log lines in the forms of public launchers, NCCL versions and trainers, independent of the reader."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

VERSIONS = (
    "2.4.7", "2.7.8", "2.10.3", "2.12.12", "2.14.3", "2.16.2", "2.18.1", "2.18.5", "2.20.5", "2.21.5", "2.22.3",
    "2.24.3", "2.26.2", "2.27.7", "2.30.1",
)  # fmt: skip
LAUNCHERS = (
    "none", "horovod", "mpirun", "mpirun rank", "srun", "pdsh address", "pdsh host", "torchrun", "rank", "ray",
    "kubectl", "stern", "stderr", "container",
)  # fmt: skip
TRAINERS = (
    "megatron",
    "fork",
    "wrapped",
    "hugging face",
    "bars",
    "callback",
    "dictionaries",
    "nemo",
    "lightning",
    "none",
)
HOSTS = (
    "node-{}",
    "10{}7",
    "e0a95b6643f{}",
    "gpu{}.cluster.local",
    "ip-10-0-0-{}",
    "NH-DC-28U-GPU-{}",
    "10.0.0.{}",
    "job-worker-{}",
)


@dataclass
class Process:
    """Process of one rank."""

    rank: int
    host: str
    server: int
    local: int
    pid: int
    tid: int


@dataclass
class World:
    """Training task: its processes, and the form of its logs."""

    seed: int
    version: str
    launcher: str
    trainer: str
    processes: list[Process]
    channels: int
    nics: list[str]
    layout: str
    order: str
    chance: Random = field(repr=False)

    @property
    def release(self) -> int:
        """Return the minor version of NCCL."""
        return int(self.version.split(".")[1])

    @property
    def size(self) -> int:
        """Return the number of ranks."""
        return len(self.processes)

    @property
    def has_device_numbers(self) -> bool:
        """Return True if edges name devices by number, not by bus."""
        return self.release > 18 or self.version == "2.18.5"


def make_world(seed: int) -> World:
    """Return a random task for a seed."""
    chance = Random(seed)
    servers, gpus = chance.choice([(1, 2), (2, 1), (2, 2), (2, 4), (3, 2), (3, 4)])
    pattern = chance.choice(HOSTS)
    same_pids = chance.random() < 0.3
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
        chance.choice(TRAINERS),
        processes,
        chance.choice([1, 2, 4]),
        nics,
        chance.choice(["one", "hosts"]),
        chance.choice(["rings first", "trees first", "late"]),
        chance,
    )


def label(world: World, process: Process) -> str:
    """Return the launcher's prefix for lines of a process."""
    pod = f"job-{process.server}"
    return {
        "none": "",
        "horovod": f"[{process.rank}]<stdout>:",
        "mpirun": f"[1,{process.rank}]<stdout>:",
        "mpirun rank": f"[{process.rank}] ",
        "srun": f"{process.rank:>{len(str(world.size))}}: ",
        "pdsh address": f"192.168.7.{process.server}: ",
        "pdsh host": f"{process.host}: ",
        "torchrun": f"[default{process.local}]:",
        "rank": f"[rank{process.rank}]:",
        "ray": f"\x1b[36m(RayTrainWorker pid={process.pid}, ip=10.1.1.{process.server})\x1b[0m ",
        "kubectl": f"[pod/{pod}/pytorch] ",
        "stern": f"{pod} pytorch ",
        "stderr": "[stderr] ",
        "container": f"2024-05-23T16:00:0{process.local}.123456789Z ",
    }[world.launcher]


# NCCL


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


def made(world: World, process: Process, pointer: str, rank: int, ranks: int, comm_id: str, phase: str) -> str:
    """Return the line of a new communicator."""
    before = "ncclCommInitRank " if world.release > 20 else ""
    device = f" nvmlDev {process.local}" if world.has_device_numbers else ""
    name = f" commId {comm_id}" if world.release > 15 else ""
    return (
        f"{before}comm {pointer} rank {rank} nranks {ranks} cudaDev {process.local}{device} "
        f"busId {1 + process.local}b000"
        f"{name} - Init {phase}"
    )


def nic_list(world: World, process: Process) -> str:
    """Return the line with the NICs of a host."""
    listed = " ".join(
        f"[{number}]{name}:1/{'IB/SHARP' if number else 'RoCE'}" for number, name in enumerate(world.nics)
    )
    return f"NET/IB : Using {listed} [RO]; OOB ib0.0065:10.1.1.{process.server}<0>"


# trainers: each returns the lines of one iteration


def iteration(world: World, step: int, steps: int, loss: float) -> list[str]:
    """Return the trainer's lines for one iteration."""
    clock = f"{step * 7 // 60:02d}:{step * 7 % 60:02d}"
    said = f"{loss:.4f}"
    bar = f"{100 * step // steps:3d}%|{'█' * (step * 10 // steps):<10}| {step}/{steps} [{clock}<1:02:03,  7.01s/it"
    stamp = f"2024-05-23 16:{step // 60:02d}:{step % 60:02d}"
    dictionary = f"{{'loss': {said!r}, 'grad_norm': ' 1.25', 'learning_rate': '1e-05', 'epoch': '0.01'}}"
    standard = (
        f"consumed samples: {step * 64:12d} | elapsed time per iteration (ms): 7012.5 | learning rate: 1.000000E-05 | "
        f"global batch size: {64:5d} | lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: 1.125 | number of skipped "
        "iterations:   0 | number of nan iterations:   0 |"
    )
    match world.trainer:
        case "megatron":
            return [f" [{stamp}] iteration {step:8d}/{steps:8d} | {standard}"]
        case "fork":
            head = (
                f" consumed tokens: 1.258B | iteration {step:8d}/{steps:8d} | elpased time per iteration (ms): 7012.5 |"
            )
            rest = (
                f" eta: 0:00:00 | learnig rate: 1.000E-05 | lm loss: {loss:.6E} | timestamp: {1716480000 + step}.25 |"
            )
            return [head + rest]
        case "wrapped":
            line = f" [{stamp}] iteration {step:8d}/{steps:8d} | {standard}"
            at = line.index("| learning rate") + 1
            return [line[:at], line[at:]]
        case "hugging face":
            return [f"{bar}]{dictionary}"]
        case "bars":
            last = [f"{bar}]"] if step == steps else []
            own = f"[{stamp},125] [INFO] [logging.py:96:log_dist] [Rank {world.size - 1}] "
            own += f"step={step}, skipped=0, lr=[1e-05], mom=[0.9]"
            return [f"Training: {bar}]", *last, *([own] if step % 2 == 0 else [])]
        case "callback":
            text = (
                f"loss: {said}, learning_rate: 1e-05, epoch: 0.0, iter: {step}/{steps},  {clock} < 1:02:03,  7.01s/it"
            )
            return [f"[{stamp},125] [INFO] [callback.py:53:on_log] {text}"]
        case "dictionaries":
            return [f"{{'loss': {said}, 'learning_rate': 1e-05, 'step': {step}, 'epoch': 0.1}}"]
        case "nemo":
            head = f"Training epoch 0, iteration {step}/{steps} | lr: 3e-05 | global_batch_size: 64 | "
            return [f"{head}global_step: {step} | reduced_train_loss: {said} | train_step_timing in s: 7.01"]
        case "lightning":
            return [f"Epoch 0: {bar}, v_num=7]", f"Epoch 0: {bar}, v_num=7, reduced_train_loss={said}]"]
        case _:
            return []


def noise(world: World) -> str:
    """Return a line without relevant content."""
    return world.chance.choice(
        (
            "",
            "Loading extension module cpu_adam...",
            "pytorch_model.bin: 100%|██████████| 1.2G/1.2G [00:10<00:00, 120MB/s]",
            "Loading checkpoint shards: 100%|██████████| 2/2 [00:10<00:00,  5.0s/it]",
            " validation loss at iteration 3 | lm loss value: 2.5E+00 | lm loss PPL: 1.2E+01 |",
            "Evaluating iter 3/10",
            " time (ms) | forward: 1.2 | backward: 2.3",
            "/opt/x.py:12: UserWarning: iteration order",
            "{'eval_loss': 1.25, 'eval_runtime': 3.4, 'epoch': 1.0}",
            "NCCL version " + world.version + "+cuda12.4",
        )
    )
