"""Servers with a part of their own: planted cases of findings, and cases that narrowly are none.

No byte of them leaves a leaf, so that the uplinks carry the same with and without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warehouse.sample.jobs import recorded
from warehouse.sample.names import RAILS
from warehouse.sample.options import SLOTS
from warehouse.sample.places import ANSWERING, EXCHANGED, PAUSING, QUIET, RECEIVING, SENDING, Place

if TYPE_CHECKING:
    from warehouse.sample.fabric import Fabric
    from warehouse.sample.flows import Traffic

STEADY = 500_000_000
"""Bytes per second of each NIC that sends all the time: 7.2 TB an hour and server."""
ANSWER_PERCENT = 8
"""Part of what it receives that a server sends back, more than a server that only receives."""
QUIET_BYTES = 1_200_000_000
"""Bytes that a server moves in an hour, a little more than an idle one."""


def special_places(slot: int) -> list[Place]:
    """Return the servers, at free slots of the first two groups.

    Two servers hold each other's slot. Two train together, and pause. Of the others, one sends, one only receives, one
    receives and answers, and one receives very little.
    """
    roles = (SENDING, RECEIVING, ANSWERING, QUIET)
    return [
        Place(SLOTS + slot + 1, 0, slot, "ens24", role=EXCHANGED),
        Place(slot, 1, slot + 1, "ens10", role=EXCHANGED),
        *(Place(slot + 1 + turn, 0, slot + 1 + turn, "ens10", role=role) for turn, role in enumerate(roles)),
        *(Place(SLOTS + slot + 2 + turn, 1, slot + 2 + turn, "ens24", role=PAUSING) for turn in range(2)),
    ]


def steady_servers(places: tuple[Place, ...]) -> dict[str, int]:
    """Return the numbers of the servers that move bytes all the time, by their role; none if none is planted."""
    return {place.role: place.number for place in places if place.role not in ("", PAUSING, EXCHANGED)}


def add_steady(fabric: Fabric, traffic: Traffic) -> None:
    """Add the bytes of the servers that send or receive all the time, each NIC to that of the same leaf."""
    number_of = steady_servers(fabric.places)
    if not number_of:
        return
    options = fabric.options
    on = recorded(options).astype(np.int64)
    rates = (
        (SENDING, RECEIVING, STEADY),
        (SENDING, ANSWERING, STEADY),
        (ANSWERING, SENDING, STEADY * ANSWER_PERCENT // 100),
        (SENDING, QUIET, QUIET_BYTES // RAILS // options.seconds),
    )
    for source, target, rate in rates:
        for sender, receiver in zip(fabric.nics[number_of[source]], fabric.nics[number_of[target]], strict=True):
            traffic.carry(fabric, (sender.switch, sender.port), (receiver.switch, receiver.port), on * rate)
