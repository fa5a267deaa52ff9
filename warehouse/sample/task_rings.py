"""Connections that NCCL would set up between the ranks of a task: rings across servers, one NIC per ring, and trees."""

from __future__ import annotations

from dataclasses import dataclass

from warehouse.sample.tasks import GPUS

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


def ring_edges(channel: int, servers: int) -> list[Edge]:
    """Return the edges of a ring that cross servers, in order."""
    ranks = ring(channel, servers)
    return [
        Edge(channel, "ring", src, dst)
        for src, dst in zip(ranks, [*ranks[1:], ranks[0]], strict=True)
        if src // GPUS != dst // GPUS
    ]


def tree_place(channel: int, servers: int) -> tuple[int, int]:
    """Return (parent, child) of rank 0 on another server, -1 for none.

    Rank 0 is the root of channel 0, and a child of server 1 on channel 4.
    """
    if channel == 0:
        return -1, servers // 2 * GPUS
    return (GPUS, -1) if channel == CARDS else (-1, -1)


def tree_edges(servers: int) -> list[Edge]:
    """Return the tree edges of rank 0 that cross servers, in both directions."""
    found = []
    for channel in range(CHANNELS):
        for other in tree_place(channel, servers):
            if other >= 0:
                found += [Edge(channel, "tree", 0, other), Edge(channel, "tree", other, 0)]
    return found
