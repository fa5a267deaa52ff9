"""Hour-level table of cumulative NIC counters: one sample per minute and one in the last second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warehouse.sample import names
from warehouse.sample.clock import export_time
from warehouse.sample.draws import Ints, draw_one
from warehouse.sample.jobs import HOUR

if TYPE_CHECKING:
    from warehouse.sample.fabric import Nic
    from warehouse.sample.names import Cell
    from warehouse.sample.plan import Plan

HEADER = (
    "SaveTime", "DeviceName", "Ip", "PortName", "ReceivedBytes", "TransmittedBytes",
    "ReceivedPacketsByPort", "ReceiveddPacketsByUnicast",
    "TransmittedPacketsByPort", "TransmitteddPacketsByUnicast",
)  # fmt: skip

_PACKET = 4096


def nic_table(plan: Plan, hour: int) -> tuple[list[tuple[Cell, ...]], dict[str, Any]]:
    """Return the rows of one hour by time, and the bytes of each NIC between its first and last row.

    Byte counters are floats, as in the release. Above 2^53 they are exact only to 2 bytes, so the planted totals are
    differences of these floats.
    """
    options = plan.options
    known = {place.number for place in plan.fabric.places if place.in_nic_sheet}
    nics = sorted((nic for nic in plan.fabric.all_nics() if nic.server in known), key=lambda n: (n.server, n.hca))
    offsets = [*range(0, options.seconds - 1, 60), options.seconds - 1]
    at = np.array([hour * HOUR + offset for offset in offsets])
    received = [_counter(plan, nic, at, "out") for nic in nics]
    sent = [_counter(plan, nic, at, "in") for nic in nics]
    rows: list[tuple[Cell, ...]] = []
    for number, second in enumerate(at.tolist()):
        text = export_time(second, options, zero_hour=number % 3 != 1)
        for nic, rx, tx in zip(nics, received, sent, strict=True):
            rx_packets, tx_packets = float(rx[number] // _PACKET), float(tx[number] // _PACKET)
            rows.append(
                (
                    text,
                    names.sysname(nic.server),
                    names.gpu_ip(nic.server),
                    nic.hca,
                    float(rx[number]),
                    float(tx[number]),
                    rx_packets,
                    rx_packets,
                    tx_packets,
                    tx_packets,
                )
            )
    truth = [
        {
            "server": names.server_name(nic.server),
            "hca": nic.hca,
            "nic": nic.name,
            "rx_bytes": int(float(rx[-1])) - int(float(rx[0])),
            "tx_bytes": int(float(tx[-1])) - int(float(tx[0])),
            "covered_seconds": offsets[-1],
        }
        for nic, rx, tx in zip(nics, received, sent, strict=True)
    ]
    return rows, {"nics": truth}


def _counter(plan: Plan, nic: Nic, at: Ints, direction: str) -> Ints:
    """Return the NIC's counter at the start of each second. Bytes that the NIC receives leave the switch port."""
    per_second = (plan.traffic.into if direction == "in" else plan.traffic.out)[nic.switch]
    line = per_second[plan.fabric.switch(nic.switch).index[nic.port]]
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(line)])
    base = 10**16 + 10**11 * draw_one(plan.options.seed, f"base/{nic.server}/{nic.rail}/{direction}", 1, 85_000)
    return np.asarray(base + before[at], dtype=np.int64)
