"""Hour-level table of links: both ends of every uplink per quarter of an hour, and the servers' NICs once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warehouse.sample import names
from warehouse.sample.clock import export_time
from warehouse.sample.draws import draw, draw_one
from warehouse.sample.jobs import HOUR
from warehouse.sample.uplinks import spine_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.sample.fabric import Fabric, Port, Switch
    from warehouse.sample.names import Cell
    from warehouse.sample.plan import Plan

HEADER = (
    "DeviceName", "IfAbbreviatedName", "DstDevice", "DstPort", "StartTime", "InUcastPkts", "Ip",
    "IfOperStatus", "InOctets", "InPkts", "InMuticastPkts", "InBrdcastPkts", "InSpeed", "InPktSpeed",
    "InUseRatio", "InErrorRatio",
    "OutOctets", "OutPkts", "OutMuticastPkts", "OutBrdcastPkts", "OutSpeed", "OutPktSpeed", "OutUseRatio",
    "EcnMarkedCount", "OutBrdcastPkts",
)  # fmt: skip

QUARTER = 900
_PACKET = 4000


def link_table(plan: Plan, hour: int) -> tuple[list[tuple[Cell, ...]], dict[str, Any]]:
    """Return the rows of one hour by time, and the marked packets of each switch port.

    A row counts the quarter of an hour that begins at its StartTime.
    """
    rows: list[tuple[Cell, ...]] = []
    marked: dict[tuple[str, str], int] = {}
    for quarter in range(0, plan.options.seconds, QUARTER):
        length = min(QUARTER, plan.options.seconds - quarter)
        for switch, port, target in _lines(plan.fabric, first=quarter == 0):
            begin = hour * HOUR + quarter
            ecn = _marked(plan, switch, port, hour, quarter)
            rows += _both_ends(plan, switch, port, target, begin, length, ecn)
            key = (switch.name, port.name)
            marked[key] = marked.get(key, 0) + ecn
            if port.spine:
                key = (f"spine-{port.spine}", spine_port(switch, port, plan.options))
                marked[key] = marked.get(key, 0) + ecn // 3
    truth = [{"switch": switch, "port": port, "ecn_marked": count} for (switch, port), count in sorted(marked.items())]
    return rows, {"ports": truth}


def _lines(fabric: Fabric, *, first: bool) -> Iterator[tuple[Switch, Port, str]]:
    """Yield (switch, port, device at the other end) of uplinks, and in the first quarter of server ports."""
    for switch in fabric.switches:
        for port in switch.ports:
            if port.spine:
                yield switch, port, names.spine_device(port.spine)
    if first:
        for nic in fabric.all_nics():
            if nic.listed and nic.port == nic.sheet_port:
                switch = fabric.switch(nic.switch)
                yield switch, switch.ports[switch.index[nic.port]], names.sysname(nic.server)


def _marked(plan: Plan, switch: Switch, port: Port, hour: int, quarter: int) -> int:
    """Return the marked packets of a quarter; most ports have none."""
    label = f"ecn/{switch.name}/{port.name}"
    if not port.spine or draw_one(plan.options.seed, label, 0, 3):
        return 0
    return draw_one(plan.options.seed, f"{label}/{hour}/{quarter}", 0, 900)


def _both_ends(
    plan: Plan, switch: Switch, port: Port, target: str, begin: int, length: int, ecn: int
) -> list[tuple[Cell, ...]]:
    """Return the switch's row, and the spine's row for the same cable."""
    position = switch.index[port.name]
    into, out = (
        int(side[switch.name][position, begin : begin + length].sum()) for side in (plan.traffic.into, plan.traffic.out)
    )
    time = export_time(begin + 4, plan.options, zero_hour=begin % 1800 == 0)
    rate = port.line_rate
    here = (switch.device, _short(port.name), target)
    if not port.spine:
        return [_row((*here, None, time, switch.ip), into, out, length, rate, ecn)]
    far_port = spine_port(switch, port, plan.options)
    near = (*here, far_port, time, switch.ip)
    far = (target, _short(far_port), switch.device, port.name, time, names.spine_ip(port.spine))
    return [_row(near, into, out, length, rate, ecn), _row(far, out, into, length, rate, ecn // 3)]


def _short(port: str) -> str:
    """Return `400GE1/0/58` for `FourHundredGigE1/0/58`."""
    return port.replace("FourHundredGigE", "400GE").replace("TwoHundredGigE", "200GE")


def _row(
    ends: tuple[str, str, str, str | None, str, str], into: int, out: int, length: int, rate: int, ecn: int
) -> tuple[Cell, ...]:
    """Return one row; the first OutBrdcastPkts holds unicast packets, as in the release's example."""
    device, port, target, target_port, time, ip = ends
    multicast = draw(0, f"multicast/{device}/{port}/{time}", 2, 20, 90).tolist()
    in_packets, out_packets = into // _PACKET + multicast[0], out // _PACKET + multicast[1]
    in_speed, out_speed = into // length, out // length
    return (
        device, port, target, target_port, time, in_packets - multicast[0], ip, "up",
        into, in_packets, multicast[0], 0, in_speed, in_packets // length, percent(in_speed, rate), 0.0,
        out, out_packets, multicast[1], out_packets - multicast[1],
        out_speed, out_packets // length, percent(out_speed, rate), ecn, 0,
    )  # fmt: skip


def percent(speed: int, rate: int) -> float:
    """Return the percentage of the line rate, with two decimals."""
    return (20_000 * speed + rate) // (2 * rate) / 100
