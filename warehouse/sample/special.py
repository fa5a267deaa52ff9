"""Traffic of servers that send or receive all the time: planted cases of findings, and cases that narrowly are none.

No byte of it leaves a leaf, so that the uplinks carry the same with and without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warehouse.sample.jobs import recorded
from warehouse.sample.names import RAILS
from warehouse.sample.places import ANSWERING, QUIET, RECEIVING, SENDING, STEADY, Place

if TYPE_CHECKING:
    from warehouse.sample.fabric import Fabric
    from warehouse.sample.flows import Traffic

RATE = 500_000_000
"""Bytes per second of each NIC that sends all the time: 7.2 TB an hour and server."""
ANSWER_PERCENT = 8
"""Part of what it receives that a server sends back, more than a server that only receives."""
QUIET_BYTES = 1_200_000_000
"""Bytes that a server moves in an hour, a little more than an idle one."""


def steady_servers(places: tuple[Place, ...]) -> dict[str, int]:
    """Return the numbers of the servers that move bytes all the time, by their role; none if none is planted."""
    return {place.role: place.number for place in places if place.role in STEADY}


def add_steady(fabric: Fabric, traffic: Traffic) -> None:
    """Add the bytes of the servers that send or receive all the time, each NIC to that of the same leaf."""
    number_of = steady_servers(fabric.places)
    if not number_of:
        return
    options = fabric.options
    on = recorded(options).astype(np.int64)
    rates = (
        (SENDING, RECEIVING, RATE),
        (SENDING, ANSWERING, RATE),
        (ANSWERING, SENDING, RATE * ANSWER_PERCENT // 100),
        (SENDING, QUIET, QUIET_BYTES // RAILS // options.seconds),
    )
    for source, target, rate in rates:
        for sender, receiver in zip(fabric.nics[number_of[source]], fabric.nics[number_of[target]], strict=True):
            traffic.carry(fabric, (sender.switch, sender.port), (receiver.switch, receiver.port), on * rate)
