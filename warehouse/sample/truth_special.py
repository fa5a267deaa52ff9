"""Truth of the servers and links that are planted for findings, with what narrowly is no finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warehouse.sample import clock
from warehouse.sample.flows import BURST_SECONDS
from warehouse.sample.jobs import HOUR
from warehouse.sample.names import server_name
from warehouse.sample.options import SLOTS
from warehouse.sample.places import ANSWERING, QUIET, RECEIVING, SENDING
from warehouse.sample.special import steady_servers
from warehouse.sample.uplinks import LESS_LEAF, LESS_PERCENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.sample.plan import Plan

Trap = dict[str, Any]


def special(plan: Plan) -> Iterator[Trap]:
    """Yield the planted cases, each with its near misses."""
    yield from _exchanged(plan)
    number_of = steady_servers(plan.fabric.places)
    if number_of:
        server = {role: server_name(number) for role, number in number_of.items()}
        yield {
            "kind": "one_way_servers",
            "send": server[SENDING],
            "receive": server[RECEIVING],
            "answers_too_much": server[ANSWERING],
            "receives_too_little": server[QUIET],
        }
        yield {"kind": "hardly_idle", "server": server[QUIET]}
        yield from ({"kind": "steady_server", "server": name} for name in server.values())
    if plan.faults.no_data_out and plan.options.spines > 1 and not plan.options.full:
        yield {"kind": "less_from_spine", "switch": LESS_LEAF, "spine": "spine-1", "percent": LESS_PERCENT}
    yield from _jobs(plan)


def _exchanged(plan: Plan) -> Iterator[Trap]:
    """Yield each pair of servers whose cables are where those of the other belong."""
    visitors = {place.number: place for place in plan.fabric.places if place.is_visitor and place.in_topology}
    for number, place in visitors.items():
        mate = None if place.group is None else visitors.get(SLOTS * place.group + place.slot)
        if mate and mate.group is not None and SLOTS * mate.group + mate.slot == number < mate.number:
            yield {"kind": "servers_exchanged", "servers": [server_name(number), server_name(mate.number)]}


def _jobs(plan: Plan) -> Iterator[Trap]:
    options = plan.options
    for job in plan.jobs:
        for server in job.other_rails:
            others = [server_name(one) for one in job.servers if one != server]
            yield {"kind": "rails_differ", "server": server_name(server), "little_on_another_rail": others[:2]}
        for begin, end in job.pauses:
            if begin % HOUR < options.seconds:
                yield {
                    "kind": "job_pause" if (end - begin) * 1000 > job.period_ms else "job_late",
                    "job": job.name,
                    "start_utc": clock.second_utc(begin, options),
                    "seconds": end - begin,
                }
    for burst in plan.bursts:
        if burst.seconds > BURST_SECONDS:
            job = next(job for job in plan.jobs if job.name == burst.job)
            ends = [plan.fabric.nics[job.servers[member]][burst.rail] for member in (burst.member, burst.member + 1)]
            yield {
                "kind": "nics_at_line_rate",
                "second_utc": clock.second_utc(burst.second, options),
                "seconds": burst.seconds,
                "nics": [{"server": server_name(nic.server), "switch": nic.switch, "port": nic.port} for nic in ends],
            }
