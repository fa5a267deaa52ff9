"""Logs with known truth: launcher x NCCL version x trainer x hosts per file x damage, from a seed.

Damage is a cut, a splice, an overwrite or a wrap. It never changes a digit, and never splits or joins numbers: a line
cut from `NET/IB/12` to `NET/IB/1` would be a valid line with another number, which no reader can detect. Two adjacent
lines are never damaged. This module is independent of the reader.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from bench.log_forms import (
    Process,
    World,
    edge,
    inside,
    iteration,
    label,
    made,
    make_world,
    nic_list,
    noise,
    ring_list,
    speak,
    tree_list,
)

DAMAGES = ("none", "cut", "splice", "overwrite", "wrap")
WIDTHS = (80, 100, 132, 160)
DAMAGED_SHARE = 0.08

Key = tuple[object, ...]


@dataclass
class Truth:
    """Content of a log, by kind."""

    edges: Counter[Key] = field(default_factory=Counter)
    """(kind, channel, source, destination), once per communicator."""
    ranks: Counter[Key] = field(default_factory=Counter)
    """(host, pid, rank, ranks)"""
    iterations: dict[int, float | None] = field(default_factory=dict)
    """Loss of each iteration; None if no line has it."""
    devices: Counter[Key] = field(default_factory=Counter)
    """(channel, source, destination, end, NIC)"""


@dataclass
class Sample:
    """Logs of a task."""

    name: str
    files: dict[str, bytes]
    truth: Truth
    damage: str
    about: str


def make_sample(seed: int) -> Sample:
    """Generate the logs of a seed in memory."""
    world = make_world(seed)
    truth = Truth()
    chance = world.chance
    damage = chance.choice(DAMAGES)
    spoken = {process.rank: _start(world, process, truth) for process in world.processes}
    _count_edges(world, truth)
    trainer = _training(world, truth)
    files: dict[str, bytes] = {}
    groups = [world.processes] if world.layout == "one" else [
        [one for one in world.processes if one.server == server] for server in {one.server for one in world.processes}
    ]  # fmt: skip
    for number, group in enumerate(groups):
        lines = _interleaved(world, [spoken[process.rank] for process in group])
        if group[-1] is world.processes[-1]:
            lines += trainer
        files[f"pod-{number}.log"] = ("\n".join(_damaged(world, lines, damage)) + "\n").encode()
    about = f"{world.launcher}, NCCL {world.version}, {world.trainer}, {world.layout}, {world.order}, {damage}"
    return Sample(f"seed-{seed}", files, truth, damage, about)


def _ring(world: World, channel: int) -> list[int]:
    """Return the ranks in order of a ring; each channel starts at another GPU of each server."""
    members: list[int] = []
    for server in sorted({one.server for one in world.processes}):
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


def _connections(world: World, process: Process, kind: str, truth: Truth) -> list[str]:
    lines = []
    for channel, src, dst in _neighbors(world, process, kind):
        near, far = world.processes[src], world.processes[dst]
        if near.server == far.server:
            if process.rank == src and kind == "ring":
                lines.append(inside(world, channel, near, far))
            continue
        nic = _nic(world, process, channel)
        way = "send" if process.rank == src else "receive"
        lines.append(edge(world, (channel, src, dst), way, nic))
        if nic < len(world.nics):
            truth.devices[channel, src, dst, way, world.nics[nic]] = 1
    return lines


def _start(world: World, process: Process, truth: Truth) -> list[str]:
    """Return NCCL's lines of one process, from its version to the communicator of all ranks and a smaller one."""
    pointer, comm_id = f"0x5b8{process.local:03x}0", f"0x7a{world.seed:06x}"
    lines = [noise(world), f"NCCL version {world.version}+cuda12.4", nic_list(world, process)]
    if world.has_device_numbers:
        lines.append(made(world, process, pointer, process.rank, world.size, comm_id, "START"))
    lines += [ring_list(world, channel, _ring(world, channel)) for channel in range(world.channels)]
    lines += ["Ring 00 : 1 -> 0 -> 1", "Tree 0 : 1 -> 0 -> 1/-1/-1"] if world.seed % 4 == 0 else []
    lines.append(tree_list(world, _places(world, process.rank)))
    rings = [*_connections(world, process, "ring", truth), "Connected all rings"]
    trees = [*_connections(world, process, "tree", truth), "Connected all trees"]
    end = made(world, process, pointer, process.rank, world.size, comm_id, "COMPLETE")
    if world.order == "late" and world.release > 21:
        lines += [end, *rings, *trees]
    else:
        lines += [*(trees + rings if world.order == "trees first" else rings + trees), end]
    truth.ranks[process.host, process.pid, process.rank, world.size] = 1
    lines += _pairs(world, process, truth)
    lines += _part(world, process, truth)
    said = []
    for one in lines:
        is_plain = one.startswith("NCCL version") or one == lines[0]
        said.append(label(world, process) + one if is_plain else speak(world, process, one))
    return said


def _pairs(world: World, process: Process, truth: Truth) -> list[str]:
    """Return the lines of sends and receives of rank 0 with the last rank."""
    last = world.size - 1
    if world.processes[0].server == world.processes[last].server or process.rank not in (0, last) or world.release < 12:
        return []
    way = "send" if process.rank == 0 else "receive"
    nic = _nic(world, process, 0)
    truth.edges["p2p", 0, 0, last] = 1
    if nic < len(world.nics):
        truth.devices[0, 0, last, way, world.nics[nic]] = 1
    return [edge(world, (0, 0, last), way, nic, is_p2p=True)]


def _part(world: World, process: Process, truth: Truth) -> list[str]:
    """Return the lines of a communicator of each server's first GPU, which have an identifier in later versions."""
    servers = len({one.server for one in world.processes})
    if process.local or servers == 1 or servers == world.size or world.seed % 2 or world.release < 16:
        return []
    truth.ranks[process.host, process.pid, process.server, servers] += 1
    comm_id, pointer = f"0x9c{world.seed:06x}", "0x6c0000"
    lines = (
        [made(world, process, pointer, process.server, servers, comm_id, "START")] if world.has_device_numbers else []
    )
    lines.append(ring_list(world, 0, list(range(servers))).replace(f"/{world.channels:02d} ", "/01 "))
    return [*lines, made(world, process, pointer, process.server, servers, comm_id, "COMPLETE")]


def _count_edges(world: World, truth: Truth) -> None:
    """Count the edges between servers: rings, trees, sends and receives."""
    for process in world.processes:
        for kind in ("ring", "tree"):
            for channel, src, dst in _neighbors(world, process, kind):
                if world.processes[src].server != world.processes[dst].server:
                    truth.edges[kind, channel, src, dst] = 1
    servers = len({one.server for one in world.processes})
    if any(ranks == servers and ranks < world.size for *_, ranks in truth.ranks):
        for at in range(servers):
            truth.edges["ring", 0, at, (at + 1) % servers] += 1


def _training(world: World, truth: Truth) -> list[str]:
    """Return the lines of the last rank's trainer."""
    steps = world.chance.randint(4, 40)
    process = world.processes[-1]
    lines = []
    for step in range(1, steps + 1):
        loss = round(world.chance.uniform(1, 9), 4)
        printed = iteration(world, step, steps, loss)
        if printed:
            truth.iterations[step] = None if world.trainer == "bars" else loss
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
    if damage == "wrap":
        width = world.chance.choice(WIDTHS)
        return [line[at : at + width] for line in lines for at in range(0, max(len(line), 1), width)]
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
