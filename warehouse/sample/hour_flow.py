"""Hour-level table of flows: samples of the queue pairs between the NICs of a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warehouse.sample import names
from warehouse.sample.clock import export_time
from warehouse.sample.draws import draw, draw_one
from warehouse.sample.jobs import HOUR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.sample.fabric import Nic
    from warehouse.sample.names import Cell
    from warehouse.sample.plan import Plan

HEADER = (
    "SourceServer", "DestServer", "SourceSwitch", "DestSwitch", "Time", "SourceIp", "DestIp",
    "SourceQp", "DestQp", "Rtt", "ReadPkts", "WritePkts", "SendPkts", "NakPkts",
)  # fmt: skip

_ROUND_TRIPS = {"same_leaf": (3_200, 6_400), "same_group": (7_100, 11_900), "across_groups": (9_800, 17_500)}
"""Range of round-trip times, in nanoseconds."""


@dataclass(frozen=True)
class Sample:
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

    @property
    def packets(self) -> int:
        """Packets of all three verbs."""
        return self.read + self.write + self.send


def flow_table(plan: Plan, hour: int) -> tuple[list[tuple[Cell, ...]], dict[str, Any]]:
    """Return the rows of one hour by time, and their planted totals."""
    found = sorted(_samples(plan, hour), key=lambda s: (s.second, s.source.ip, s.target.ip, s.source_qp))
    return [_row(plan, sample, position) for position, sample in enumerate(found)], _truth(plan, found)


def locality(plan: Plan, source: Nic, target: Nic) -> str:
    """Return the kind of path between two NICs."""
    if source.switch == target.switch:
        return "same_leaf"
    groups = {plan.fabric.switch(nic.switch).group for nic in (source, target)}
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
                for turn, target_rail in enumerate((rail, rail, rail if job.is_local else (rail + 1) % job.rails)):
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


def _row(plan: Plan, sample: Sample, position: int) -> tuple[Cell, ...]:
    devices = [plan.fabric.switch(nic.switch).device for nic in (sample.source, sample.target)]
    return (
        names.sysname(sample.source.server),
        names.sysname(sample.target.server),
        *devices,
        export_time(sample.second, plan.options, zero_hour=position % 7 == 3),
        sample.source.ip,
        sample.target.ip,
        sample.source_qp,
        sample.target_qp,
        sample.round_trip,
        sample.read,
        sample.write,
        sample.send,
        sample.nak,
    )


def _truth(plan: Plan, samples: list[Sample]) -> dict[str, Any]:
    by_locality = {place: {"rows": 0, "flows": 0, "packets": 0, "nak_packets": 0} for place in _ROUND_TRIPS}
    pairs: dict[str, set[tuple[str, str, int, int]]] = {place: set() for place in _ROUND_TRIPS}
    nics: dict[tuple[int, int], dict[str, set[object]]] = {}
    for sample in samples:
        place = locality(plan, sample.source, sample.target)
        total = by_locality[place]
        total["rows"] += 1
        total["packets"] += sample.packets
        total["nak_packets"] += sample.nak
        pairs[place].add((sample.source.ip, sample.target.ip, sample.source_qp, sample.target_qp))
        ends = (
            (sample.source, sample.source_qp, sample.target),
            (sample.target, sample.target_qp, sample.source),
        )
        for position, (nic, queue_pair, peer) in enumerate(ends):
            seen = nics.setdefault((nic.server, nic.rail), {"qp": set(), "peer": set(), "out": set(), "to": set()})
            seen["qp"].add(queue_pair)
            seen["peer"].add(peer.ip)
            if position == 0:
                seen["out"].add(queue_pair)
                seen["to"].add(peer.ip)
    for place, found in pairs.items():
        by_locality[place]["flows"] = len(found)
    places = {place.number: place for place in plan.fabric.places}
    rows = []
    for (server, rail), seen in sorted(nics.items()):
        nic, place_of = plan.fabric.nics[server][rail], places[server]
        rows.append(
            {
                "server": names.server_name(server),
                "nic": nic.name,
                "hca": nic.hca if place_of.in_nic_sheet else None,
                "switch": nic.switch,
                "ip": nic.ip,
                "ip_in_workbook": nic.listed and not place_of.null_address,
                "queue_pairs": len(seen["qp"]),
                "peers": len(seen["peer"]),
                "queue_pairs_as_source": len(seen["out"]),
                "peers_as_source": len(seen["to"]),
            }
        )
    return {"localities": by_locality, "nics": rows, "pairs": _pairs(samples)}


def _pairs(samples: list[Sample]) -> list[dict[str, Any]]:
    """Return the samples of each sender, receiver and minute; minutes count from the start of the first hour."""
    found: dict[tuple[int, int, int], list[Sample]] = {}
    for sample in samples:
        found.setdefault((sample.source.server, sample.target.server, sample.second // 60), []).append(sample)
    return [
        {
            "src_server": names.server_name(source),
            "dst_server": names.server_name(target),
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
