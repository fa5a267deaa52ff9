"""Hour-level table of ports: bytes and lost packets per minute for a few ports of each switch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warehouse.sample.clock import export_time
from warehouse.sample.draws import draw
from warehouse.sample.hour_link import percent
from warehouse.sample.jobs import HOUR

if TYPE_CHECKING:
    from warehouse.sample.fabric import Port, Switch
    from warehouse.sample.names import Cell
    from warehouse.sample.plan import Plan

HEADER = (
    "DeviceName", "PortName", "Time", "InBytes", "InUseRatio", "InSpeed", "InPktsLoss",
    "OutBytes", "OutUseRatio", "OutSpeed", "OutPktsLoss",
)  # fmt: skip

MINUTE = 60


def port_table(plan: Plan, hour: int) -> tuple[list[tuple[Cell, ...]], dict[str, Any]]:
    """Return the rows of one hour by time, and the lost packets of each port.

    A row counts the minute before its Time.
    """
    options = plan.options
    ports = [(switch, port) for switch in plan.fabric.switches for port in _chosen(switch)]
    minutes = range(-(-options.seconds // MINUTE))
    lost = {
        (switch.name, port.name): [
            draw(options.seed, f"loss/{switch.name}/{port.name}/{hour}/{side}", len(minutes), -400, 20).clip(0).tolist()
            for side in ("in", "out")
        ]
        for switch, port in ports
    }
    rows: list[tuple[Cell, ...]] = []
    for minute in minutes:
        end = hour * HOUR + minute * MINUTE
        time = export_time(end, options, zero_hour=minute % 2 == 0)
        for switch, port in ports:
            begin = max(end - MINUTE, 0)
            into, out = (
                int(side[switch.name][switch.index[port.name], begin:end].sum())
                for side in (plan.traffic.into, plan.traffic.out)
            )
            in_lost, out_lost = (side[minute] for side in lost[switch.name, port.name])
            rows.append(
                (
                    switch.device,
                    port.name,
                    time,
                    into,
                    percent(into // MINUTE, port.line_rate),
                    into // MINUTE,
                    in_lost,
                    out,
                    percent(out // MINUTE, port.line_rate),
                    out // MINUTE,
                    out_lost,
                )
            )
    truth = [
        {"switch": switch, "port": port, "in_loss_packets": sum(into), "out_loss_packets": sum(out)}
        for (switch, port), (into, out) in sorted(lost.items())
    ]
    return rows, {"ports": truth}


def _chosen(switch: Switch) -> list[Port]:
    """Return the first two uplinks and the first two access ports."""
    uplinks = [port for port in switch.ports if port.spine]
    access = [port for port in switch.ports if port.kind in ("access", "storage_access") and port.connected]
    return uplinks[:2] + access[:2]
