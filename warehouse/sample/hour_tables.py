"""The four hour-level tables, CSV files.

- flows: samples of the queue pairs between the NICs of a job;
- links: both ends of every uplink per quarter of an hour, and the servers' NICs once;
- NICs: cumulative counters, per minute and in the last second;
- ports: bytes and lost packets per minute for a few ports of each switch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from warehouse.sample.basics import (
    HOUR,
    Ints,
    Row,
    draw,
    draw_one,
    export_time,
    gpu_ip,
    hour_folder,
    hour_utc,
    server_name,
    spine_device,
    sysname,
    write_csv,
)
from warehouse.sample.fabric import Fabric, Nic, Port, Switch
from warehouse.sample.plan import Plan, spine_port

FLOW_HEADER = (
    "SourceServer", "DestServer", "SourceSwitch", "DestSwitch", "Time", "SourceIp", "DestIp",
    "SourceQp", "DestQp", "Rtt", "ReadPkts", "WritePkts", "SendPkts", "NakPkts",
)  # fmt: skip

_ROUND_TRIPS = {"same_leaf": (3_200, 6_400), "same_group": (7_100, 11_900), "across_groups": (9_800, 17_500)}
"""Range of round-trip times, in nanoseconds."""


class Sample(NamedTuple):
    """One row of the table."""

    second: int
    source: Nic
    target: Nic
    source_qp: int
    target_qp: int
    round_trip: int
    read: int
    write: int
    send: int
    nak: int


def flow_table(plan: Plan, hour: int) -> tuple[list[tuple[object, ...]], Row]:
    """Return the rows of one hour by time, and their planted totals."""
    found = sorted(_samples(plan, hour), key=lambda s: (s.second, s.source.ip, s.target.ip, s.source_qp))
    return [_flow_row(plan, sample, position) for position, sample in enumerate(found)], _truth(plan, found)


def locality(plan: Plan, source: Nic, target: Nic) -> str:
    """Return the kind of path between two NICs."""
    if source.switch == target.switch:
        return "same_leaf"
    groups = {plan.fabric.switches[nic.switch].group for nic in (source, target)}
    return "same_group" if len(groups) == 1 else "across_groups"


def _samples(plan: Plan, hour: int) -> Iterator[Sample]:
    """Yield samples of three queue pairs per NIC: two to the same rail of the next server, one to the next rail."""
    options = plan.options
    each = 1 if options.full else 5
    for job in plan.jobs:
        begin, end = max(job.start, hour * HOUR), min(job.end, hour * HOUR + options.seconds)
        if begin >= end:
            continue
        for member, number in enumerate(job.servers):
            following = job.servers[(member + 1) % len(job.servers)]
            for rail in range(job.rails):
                for turn, target_rail in enumerate((rail, rail, rail if job.other_rails else (rail + 1) % job.rails)):
                    source, target = (
                        plan.fabric.nics[server][job.rail(server, place)]
                        for server, place in ((number, rail), (following, target_rail))
                    )
                    label = f"flow/{job.name}/{member}/{rail}/{turn}"
                    pair = draw(options.seed, f"{label}/qp", 2, 600, 16_000).tolist()
                    far = _ROUND_TRIPS[locality(plan, source, target)]
                    for sample in range(each):
                        drawn = f"{label}/{hour}/{sample}"
                        yield Sample(
                            draw_one(options.seed, f"{drawn}/at", begin, end - 1),
                            source,
                            target,
                            pair[0],
                            pair[1],
                            draw_one(options.seed, f"{drawn}/rtt", *far),
                            draw_one(options.seed, f"{drawn}/read", 0, 40) // 38,
                            draw_one(options.seed, f"{drawn}/write", 200, 4000) // (1 if turn < 2 else 6),
                            draw_one(options.seed, f"{drawn}/send", 0, 3),
                            max(draw_one(options.seed, f"{drawn}/nak", -56, 4), 0) if turn == 2 else 0,
                        )


def _flow_row(plan: Plan, sample: Sample, position: int) -> tuple[object, ...]:
    return (
        sysname(sample.source.server),
        sysname(sample.target.server),
        plan.fabric.switches[sample.source.switch].device,
        plan.fabric.switches[sample.target.switch].device,
        export_time(sample.second, zero_hour=position % 7 == 3),
        sample.source.ip,
        sample.target.ip,
        *sample[3:],
    )


def _truth(plan: Plan, samples: list[Sample]) -> Row:
    found: dict[str, list[Sample]] = {place: [] for place in _ROUND_TRIPS}
    ends: dict[tuple[int, int], list[tuple[int, str]]] = {}
    for sample in samples:
        source, target = sample.source, sample.target
        found[locality(plan, source, target)].append(sample)
        ends.setdefault((source.server, source.rail), []).append((sample.source_qp, target.ip))
        ends.setdefault((target.server, target.rail), []).append((sample.target_qp, source.ip))
    return {
        "localities": {
            place: {
                "rows": len(those),
                "flows": len({(one.source.ip, one.target.ip, one.source_qp, one.target_qp) for one in those}),
                "packets": sum(one.read + one.write + one.send for one in those),
                "nak_packets": sum(one.nak for one in those),
            }
            for place, those in found.items()
        },
        "nics": [
            {
                "server": server_name(server),
                "nic": nic.name,
                "hca": nic.hca if plan.fabric.places[server].in_nic_sheet else None,
                "switch": nic.switch,
                "ip": nic.ip,
                "queue_pairs": len({pair for pair, _ in seen}),
                "peers": len({peer for _, peer in seen}),
            }
            for (server, rail), seen in sorted(ends.items())
            for nic in (plan.fabric.nics[server][rail],)
        ],
        "pairs": _pairs(samples),
    }


def _pairs(samples: list[Sample]) -> list[Row]:
    """Return the samples of each sender, receiver and minute; minutes count from the start of the first hour."""
    found: dict[tuple[int, int, int], list[Sample]] = {}
    for sample in samples:
        found.setdefault((sample.source.server, sample.target.server, sample.second // 60), []).append(sample)
    return [
        {
            "src_server": server_name(source),
            "dst_server": server_name(target),
            "minute": minute,
            "queue_pairs": len({(s.source.ip, s.source_qp, s.target.ip, s.target_qp) for s in those}),
            "read_packets": sum(s.read for s in those),
            "write_packets": sum(s.write for s in those),
            "send_packets": sum(s.send for s in those),
            "nak_packets": sum(s.nak for s in those),
            "round_trips": sorted(s.round_trip for s in those),
        }
        for (source, target, minute), those in sorted(found.items())
    ]


LINK_HEADER = (
    "DeviceName", "IfAbbreviatedName", "DstDevice", "DstPort", "StartTime", "InUcastPkts", "Ip",
    "IfOperStatus", "InOctets", "InPkts", "InMuticastPkts", "InBrdcastPkts", "InSpeed", "InPktSpeed",
    "InUseRatio", "InErrorRatio",
    "OutOctets", "OutPkts", "OutMuticastPkts", "OutBrdcastPkts", "OutSpeed", "OutPktSpeed", "OutUseRatio",
    "EcnMarkedCount", "OutBrdcastPkts",
)  # fmt: skip

QUARTER = 900
_LINK_PACKET = 4000


def link_table(plan: Plan, hour: int) -> tuple[list[tuple[object, ...]], Row]:
    """Return the rows of one hour by time, and the marked packets of each switch port.

    A row counts the quarter of an hour that begins at its StartTime.
    """
    rows: list[tuple[object, ...]] = []
    marked = Counter[tuple[str, str]]()
    for quarter in range(0, plan.options.seconds, QUARTER):
        length = min(QUARTER, plan.options.seconds - quarter)
        for switch, port, target in _lines(plan.fabric, first=quarter == 0):
            begin = hour * HOUR + quarter
            ecn = _marked(plan, switch, port, hour, quarter)
            rows += _both_ends(plan, switch, port, target, begin, length, ecn)
            marked[switch.name, port.name] += ecn
            if port.spine:
                marked[f"spine-{port.spine}", spine_port(switch, port, plan.options)] += ecn // 3
    return rows, {
        "ports": [
            {"switch": switch, "port": port, "ecn_marked": count} for (switch, port), count in sorted(marked.items())
        ]
    }


def _lines(fabric: Fabric, *, first: bool) -> list[tuple[Switch, Port, str]]:
    """Return (switch, port, device at the other end) of uplinks, and in the first quarter of server ports."""
    found = [
        (switch, port, spine_device(port.spine))
        for switch in fabric.switches.values()
        for port in switch.ports
        if port.spine
    ]
    for nic in fabric.all_nics() if first else ():
        if nic.listed and nic.port == nic.sheet_port:
            switch = fabric.switches[nic.switch]
            found.append((switch, switch.ports[switch.index[nic.port]], sysname(nic.server)))
    return found


def _marked(plan: Plan, switch: Switch, port: Port, hour: int, quarter: int) -> int:
    """Return the marked packets of a quarter; most ports have none."""
    label = f"ecn/{switch.name}/{port.name}"
    if not port.spine or draw_one(plan.options.seed, label, 0, 3):
        return 0
    return draw_one(plan.options.seed, f"{label}/{hour}/{quarter}", 0, 900)


def _both_ends(
    plan: Plan, switch: Switch, port: Port, target: str, begin: int, length: int, ecn: int
) -> list[tuple[object, ...]]:
    """Return the switch's row, and the spine's row for the same cable."""
    into, out = plan.traffic.moved(switch.name, port.name, begin, begin + length)
    time = export_time(begin + 4, zero_hour=begin % 1800 == 0)
    rate = port.line_rate
    here = (switch.device, _short(port.name), target)
    if not port.spine:
        return [_link_row((*here, None, time, switch.ip), into, out, length, rate, ecn)]
    far_port = spine_port(switch, port, plan.options)
    near = (*here, far_port, time, switch.ip)
    far = (target, _short(far_port), switch.device, port.name, time, f"10.107.208.{100 + port.spine}")
    return [_link_row(near, into, out, length, rate, ecn), _link_row(far, out, into, length, rate, ecn // 3)]


def _short(port: str) -> str:
    """Return `400GE1/0/58` for `FourHundredGigE1/0/58`."""
    return port.replace("FourHundredGigE", "400GE").replace("TwoHundredGigE", "200GE")


def _link_row(
    ends: tuple[str, str, str, str | None, str, str], into: int, out: int, length: int, rate: int, ecn: int
) -> tuple[object, ...]:
    """Return one row; the first OutBrdcastPkts holds unicast packets, as in the release's example."""
    device, port, target, target_port, time, ip = ends
    multicast = draw(0, f"multicast/{device}/{port}/{time}", 2, 20, 90).tolist()
    in_packets, out_packets = into // _LINK_PACKET + multicast[0], out // _LINK_PACKET + multicast[1]
    in_speed, out_speed = into // length, out // length
    return (
        device, port, target, target_port, time, in_packets - multicast[0], ip, "up",
        into, in_packets, multicast[0], 0, in_speed, in_packets // length, percent(in_speed, rate), 0.0,
        out, out_packets, multicast[1], out_packets - multicast[1],
        out_speed, out_packets // length, percent(out_speed, rate), ecn, 0,
    )  # fmt: skip


def percent(speed: int, rate: int) -> float:
    """Return the percentage of the line rate, with two decimals."""
    # Rounded half up in integers: the same digits on every machine.
    return (20_000 * speed + rate) // (2 * rate) / 100


NIC_HEADER = (
    "SaveTime", "DeviceName", "Ip", "PortName", "ReceivedBytes", "TransmittedBytes",
    "ReceivedPacketsByPort", "ReceiveddPacketsByUnicast",
    "TransmittedPacketsByPort", "TransmitteddPacketsByUnicast",
)  # fmt: skip

_NIC_PACKET = 4096


def nic_table(plan: Plan, hour: int) -> tuple[list[tuple[object, ...]], Row]:
    """Return the rows of one hour by time, and the bytes of each NIC between its first and last row.

    Byte counters are floats, as in the release. Above 2^53 they are exact only to 2 bytes, so the planted totals are
    differences of these floats.
    """
    options = plan.options
    shown = [nic for nic in plan.fabric.all_nics() if plan.fabric.places[nic.server].in_nic_sheet]
    nics = sorted(shown, key=lambda nic: (nic.server, nic.hca))
    at = hour * HOUR + np.array([*range(0, options.seconds - 1, 60), options.seconds - 1])
    counters = [(nic, _counter(plan, nic, at, "out"), _counter(plan, nic, at, "in")) for nic in nics]
    rows: list[tuple[object, ...]] = []
    for number, second in enumerate(at.tolist()):
        time = export_time(second, zero_hour=number % 3 != 1)
        for nic, rx, tx in counters:
            both = float(rx[number]), float(tx[number])
            packets = [float(one[number] // _NIC_PACKET) for one in (rx, rx, tx, tx)]
            rows.append((time, sysname(nic.server), gpu_ip(nic.server), nic.hca, *both, *packets))
    truth = [
        {
            "server": server_name(nic.server),
            "hca": nic.hca,
            "nic": nic.name,
            # As floats, which is how the table holds them.
            "rx_bytes": int(float(rx[-1])) - int(float(rx[0])),
            "tx_bytes": int(float(tx[-1])) - int(float(tx[0])),
        }
        for nic, rx, tx in counters
    ]
    return rows, {"nics": truth}


def _counter(plan: Plan, nic: Nic, at: Ints, direction: str) -> Ints:
    """Return the NIC's counter at the start of each second. Bytes that the NIC receives leave the switch port."""
    per_second = (plan.traffic.into if direction == "in" else plan.traffic.out)[nic.switch]
    line = per_second[plan.fabric.switches[nic.switch].index[nic.port]]
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(line)])
    # Above 2^53, where a float no longer has every integer.
    base = 10**16 + 10**11 * draw_one(plan.options.seed, f"base/{nic.server}/{nic.rail}/{direction}", 1, 85_000)
    return np.asarray(base + before[at], dtype=np.int64)


PORT_HEADER = (
    "DeviceName", "PortName", "Time", "InBytes", "InUseRatio", "InSpeed", "InPktsLoss",
    "OutBytes", "OutUseRatio", "OutSpeed", "OutPktsLoss",
)  # fmt: skip

MINUTE = 60


def port_table(plan: Plan, hour: int) -> tuple[list[tuple[object, ...]], Row]:
    """Return the rows of one hour by time, and the lost packets of each port.

    A row counts the minute before its Time.
    """
    minutes = range(-(-plan.options.seconds // MINUTE))
    lost = [
        (switch, port, [_losses(plan, switch, port, f"{hour}/{side}", len(minutes)) for side in ("in", "out")])
        for switch in plan.fabric.switches.values()
        for port in _chosen(switch)
    ]
    rows: list[tuple[object, ...]] = []
    for minute in minutes:
        end = hour * HOUR + minute * MINUTE
        time = export_time(end, zero_hour=minute % 2 == 0)
        for switch, port, losses in lost:
            # The first minute of the first hour ends where the timeline begins.
            both = plan.traffic.moved(switch.name, port.name, max(end - MINUTE, 0), end)
            into, out = (
                (moved, percent(moved // MINUTE, port.line_rate), moved // MINUTE, loss[minute])
                for moved, loss in zip(both, losses, strict=True)
            )
            rows.append((switch.device, port.name, time, *into, *out))
    truth = [
        {"switch": switch.name, "port": port.name, "in_loss_packets": sum(into), "out_loss_packets": sum(out)}
        for switch, port, (into, out) in sorted(lost, key=lambda one: (one[0].name, one[1].name))
    ]
    return rows, {"ports": truth}


def _losses(plan: Plan, switch: Switch, port: Port, label: str, minutes: int) -> list[int]:
    """Return the lost packets of each minute in one direction."""
    drawn = draw(plan.options.seed, f"loss/{switch.name}/{port.name}/{label}", minutes, -400, 20)
    return [max(loss, 0) for loss in drawn.tolist()]


def _chosen(switch: Switch) -> list[Port]:
    """Return the first two uplinks and the first two access ports."""
    uplinks = [port for port in switch.ports if port.spine]
    access = [port for port in switch.ports if port.kind in ("access", "storage_access") and port.connected]
    return uplinks[:2] + access[:2]


def write_hour_tables(root: Path, plan: Plan) -> list[Row]:
    """Write the tables of every hour under `root`; return their planted totals, one entry per hour."""
    truth = []
    for hour in range(plan.options.hours):
        folder = hour_folder(hour)
        planted: Row = {}
        for name, header, make in (
            ("flow", FLOW_HEADER, flow_table),
            ("nic", NIC_HEADER, nic_table),
            ("link", LINK_HEADER, link_table),
            ("port", PORT_HEADER, port_table),
        ):
            rows, totals = make(plan, hour)
            write_csv(root / folder / f"{folder}_{name}.csv", [header, *rows])
            planted[name] = {"rows": len(rows), **totals}
        files = [f"{folder}_{name}.csv" for name in planted]
        truth.append({"hour_utc": hour_utc(hour), "folder": folder, "files": files, **planted})
    return truth
