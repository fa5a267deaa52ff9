"""Planted traps, each with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warehouse.sample import clock, polls
from warehouse.sample.fabric import WRONG_PORT, Nic
from warehouse.sample.flows import BURST_SECONDS
from warehouse.sample.names import HCAS, gpu_ip, server_name
from warehouse.sample.truth_special import special
from warehouse.sample.truth_topology import one_way, unlisted_at
from warehouse.sample.uplinks import (
    FAVORED_PERCENT,
    HOT_FACTOR,
    formula_spine_port,
    other_cable,
    spine_port,
)
from warehouse.sample.workbook import STRAY_ROW, stray_nic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.sample.places import Place
    from warehouse.sample.plan import Plan

Trap = dict[str, Any]


def traps(plan: Plan, ports: list[dict[str, Any]], strays: list[str]) -> list[Trap]:
    """Return all traps of a sample; `ports` are the totals of the written files."""
    found = [
        *_workbook(plan),
        *_uplinks(plan),
        *_rails(plan),
        *special(plan),
        *_counters(plan, ports),
        *_files(plan, strays),
    ]
    return sorted(found, key=lambda trap: str(trap["kind"]))


def _workbook(plan: Plan) -> Iterator[Trap]:
    for place in plan.fabric.places:
        server = server_name(place.number)
        nics = plan.fabric.nics.get(place.number, ())
        if place.null_address:
            without_name = [_end(nics[rail]) for rail in place.null_nic_rails]
            yield {"kind": "null_cells", "server": server, "rows": 4, "without_nicname": without_name}
        if place.is_visitor and place.in_topology:
            yield {"kind": "server_in_other_group", "server": server, "ports": [_end(nic) for nic in nics]}
        if not place.in_topology:
            yield {"kind": "nic_sheet_only", "server": server, "candidates": _candidates(plan, place)}
        if not place.in_nic_sheet:
            yield {"kind": "topology_only", "server": server}
        if place.hcas != HCAS:
            yield {"kind": "irregular_hca", "server": server, "hcas": list(place.hcas)}
        if place.in_nic_sheet and place.number > 240:
            yield {"kind": "gpu_ip_above_240", "server": server, "gpu_ip": gpu_ip(place.number)}
        for rail, slot in place.moved:
            yield {"kind": "decoy_exchanged_slots", "server": server, "slot": slot, **_end(nics[rail])}
        if place.wrong_rail is not None:
            nic = nics[place.wrong_rail]
            yield {
                "kind": "access_on_idle_400g",
                "server": server,
                "switch": nic.switch,
                "port": WRONG_PORT,
                "candidate_port": nic.port,
            }
    stray = stray_nic(plan.fabric)
    yield {
        "kind": "row_out_of_order",
        "sheet_row": STRAY_ROW + 1,
        "server": server_name(stray.server),
        **_end(stray),
    }


def _candidates(plan: Plan, place: Place) -> dict[str, list[str]]:
    return {nic.switch: unlisted_at(plan.fabric, nic, place) for nic in plan.fabric.nics.get(place.number, ())}


def _end(nic: Nic) -> Trap:
    return {"switch": nic.switch, "port": nic.sheet_port}


def _uplinks(plan: Plan) -> Iterator[Trap]:
    for kind, link in (*one_way(plan.faults), ("uplink_hot_out", plan.faults.hot_out)):
        if link is None:
            continue
        switch_name, port_name = link
        switch = plan.fabric.switch(switch_name)
        spine = switch.ports[switch.index[port_name]].spine
        bundle = [port.name for port in switch.ports if port.spine == spine and port.name != port_name]
        trap: Trap = {"kind": kind, "switch": switch_name, "port": port_name, "neighbours": bundle}
        if kind == "uplink_hot_out":
            if plan.options.hours == 1:
                continue
            trap |= {"factor": HOT_FACTOR, "from_hour_utc": clock.utc_text(clock.hour_start(1, plan.options))}
        yield trap
    if plan.faults.uneven_out:
        leaf, begin = plan.faults.uneven_out
        [uplink] = [port.name for port in plan.fabric.switch(leaf).ports if port.spine == 1]
        minute = clock.second_utc(begin, plan.options)
        yield {"kind": "uneven_minute", "switch": leaf, "direction": "out", "minute_utc": minute, "uplink": uplink}
    if plan.faults.favored_spine:
        yield {"kind": "spine_favored", "spine": f"spine-{plan.faults.favored_spine}", "weight": FAVORED_PERCENT / 100}
    if plan.options.hour_tables:
        leaf, port_name = other_cable(plan.options)
        switch = plan.fabric.switch(leaf)
        port = switch.ports[switch.index[port_name]]
        yield {
            "kind": "spine_port_not_by_formula",
            "switch": leaf,
            "port": port_name,
            "spine_port": spine_port(switch, port, plan.options),
            "spine_port_by_formula": formula_spine_port(switch, port),
        }


def _rails(plan: Plan) -> Iterator[Trap]:
    busy = {server for server, _ in plan.busy}
    for job in plan.jobs:
        if job.rails == 2:
            yield {
                "kind": "two_rail_servers",
                "job": job.name,
                "servers": [server_name(n) for n in job.servers],
            }
    idle = [server_name(number) for number in sorted(plan.fabric.nics) if number not in busy]
    yield {"kind": "idle_servers", "servers": idle}
    for burst in (burst for burst in plan.bursts if burst.seconds == BURST_SECONDS):
        job = next(job for job in plan.jobs if job.name == burst.job)
        source = plan.fabric.nics[job.servers[burst.member]][burst.rail]
        target = plan.fabric.nics[job.servers[(burst.member + 1) % len(job.servers)]][burst.rail]
        yield {
            "kind": "near_line_rate",
            "second_utc": clock.second_utc(burst.second, plan.options),
            "seconds": BURST_SECONDS,
            "into": _end(source),
            "out_of": _end(target),
        }


def _counters(plan: Plan, ports: list[dict[str, Any]]) -> Iterator[Trap]:
    options = plan.options
    for row in ports:
        place = {"switch": row["switch"], "port": row["port"], "hour_utc": row["hour_utc"]}
        if row["wraps"]:
            yield {"kind": "counter_wrap", "direction": "out", "wraps": row["wraps"], **place}
        if row["missing_polls"]:
            yield {"kind": "missing_polls", "missing_polls": row["missing_polls"], **place}
    for switch in plan.fabric.switches:
        zero = [port.name for port in switch.ports if not port.connected]
        yield {"kind": "never_connected", "switch": switch.name, "ports": zero}
        for hour in range(options.hours):
            times = polls.poll_times(switch, hour, options)
            widest = int((times[1:6] - times[:5]).argmax())
            yield {
                "kind": "opening_gap",
                "switch": switch.name,
                "hour_utc": clock.utc_text(clock.hour_start(hour, options)),
                "polls_before": widest + 1,
                "begin_ms": int(times[widest]),
                "end_ms": int(times[widest + 1]),
            }


def _files(plan: Plan, strays: list[str]) -> Iterator[Trap]:
    for path in strays:
        yield {"kind": "stray_file", "path": path}
    for switch in plan.fabric.switches:
        if switch.group is None:
            yield {
                "kind": "prefix_differs_by_case_only",
                "switch": switch.name,
                "prefix": f"{switch.prefix}_",
            }
