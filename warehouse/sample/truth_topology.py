"""Expected results of reading the workbook: the port of each NIC, the uplinks and the suspect links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warehouse.sample import names
from warehouse.sample.fabric import WRONG_PORT, Fabric, Nic
from warehouse.sample.places import Place, slot_owner
from warehouse.sample.uplinks import Faults, formula_spine_port, spine_port

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from warehouse.sample.plan import Plan

Row = dict[str, Any]


def nic_ports(fabric: Fabric) -> list[Row]:
    """Return each NIC of the NIC sheet with its port in the workbook.

    A NIC without a topology row is unresolved. The reason is `ambiguous` if two or more unlisted ports of the slot's
    physical port are candidates. Otherwise it is `no_topology_row`, even with one candidate. A contradicted row is kept
    as in the workbook (and is in `suspects`).
    """
    return [row for place in fabric.places if place.in_nic_sheet for row in _server_nics(fabric, place)]


def _server_nics(fabric: Fabric, place: Place) -> list[Row]:
    rows = []
    hca_of = dict(zip(sorted(names.FAMILIES[place.family]), place.hcas, strict=True))
    cables = {nic.name: nic for nic in fabric.nics.get(place.number, ())}
    for name, hca in hca_of.items():
        nic = cables.get(name)
        row: Row = {"server": names.server_name(place.number), "hca": hca, "nic": name}
        if nic is None or not place.in_topology:
            candidates = unlisted_at(fabric, nic, place) if nic else []
            reason = "ambiguous" if len(candidates) > 1 else "no_topology_row"
            row |= {"switch": None, "port": None, "status": "unresolved", "reason": reason, "evidence": None}
        else:
            inferred = nic.rail in place.null_nic_rails
            row |= {
                "switch": nic.switch,
                "port": nic.sheet_port,
                "status": "inferred" if inferred else "resolved",
                "reason": None,
                "evidence": "inferred:rail_order" if inferred else "workbook",
            }
        rows.append(row)
    return sorted(rows, key=lambda row: str(row["hca"]))


def unlisted_at(fabric: Fabric, nic: Nic, place: Place) -> list[str]:
    """Return the access ports without a row, at the physical port of a server's slot on the leaf of one NIC."""
    listed = {other.sheet_port for other in fabric.all_nics() if other.listed and other.switch == nic.switch}
    return [
        port.name
        for port in fabric.switch(nic.switch).ports
        if port.kind == "access" and port.number == (place.slot + 1) // 2 and port.name not in listed
    ]


def unlisted_ports(fabric: Fabric, busy: Set[tuple[int, int]]) -> list[Row]:
    """Return connected access ports that no row of the workbook names, with the NIC that is really cabled there.

    `owner` is what can be inferred: a server if the other half of the cage belongs to its neighbor, one of two servers,
    or only the port. `busy` has the (server, rail) that carry the traffic of a job.
    """
    place_of = {place.number: place for place in fabric.places}
    return [
        {
            "switch": nic.switch,
            "port": nic.port,
            "server": names.server_name(nic.server),
            "nic": nic.name,
            "busy": (nic.server, nic.rail) in busy,
            **_owner(nic, place_of),
        }
        for nic in fabric.all_nics()
        if not nic.listed or nic.port != nic.sheet_port
    ]


def _owner(nic: Nic, place_of: Mapping[int, Place]) -> Row:
    """Return the owner of an unlisted port, as far as the sheets imply it."""
    place = place_of[nic.server]
    if place.in_topology:  # the cable is in another port than its row says
        short = nic.port.removeprefix("TwoHundredGigE")
        return {"owner": f"unlisted:{nic.switch}:{short}", "evidence": "inferred:port"}
    return {"owner": slot_owner(place, place_of), "evidence": "inferred:slot"}


def suspects(fabric: Fabric, faults: Faults) -> list[Row]:
    """Return the expected rows of `metrics.suspect_links`, apart from those of link tables."""
    rows: list[Row] = []
    for place in fabric.places:
        for nic in fabric.nics.get(place.number, ()):
            row: Row = {
                "switch": nic.switch,
                "port": nic.sheet_port,
                "server": names.server_name(place.number),
                "nic": nic.name,
                "candidate_port": None,
            }
            if nic.sheet_port == WRONG_PORT:
                rows.append(row | {"kind": "access_on_idle_400g", "candidate_port": nic.port})
            if place.is_visitor and place.in_topology:
                rows.append(row | {"kind": "server_in_other_group"})
    for kind, link in one_way(faults):
        if link is None:
            continue
        switch, port = link
        rows.append(
            {
                "kind": kind,
                "switch": switch,
                "port": port,
                "server": None,
                "nic": None,
                "candidate_port": None,
            }
        )
    return sorted(rows, key=lambda row: (row["kind"], row["switch"], row["port"]))


def one_way(faults: Faults) -> list[tuple[str, tuple[str, str] | None]]:
    """Return the kinds of uplinks without data one way, each with its link."""
    return [
        ("uplink_no_data_in", faults.no_data_in),
        ("uplink_no_data_out", faults.no_data_out),
        ("uplink_silent_in", faults.silent_in),
    ]


def other_ends(plan: Plan) -> list[Row]:
    """Return the expected rows of `metrics.suspect_links` for cables that end elsewhere than the formula says."""
    return [
        {
            "kind": "peer_differs",
            "switch": link["leaf"],
            "port": link["leaf_port"],
            "server": None,
            "nic": None,
            "candidate_port": None,
        }
        for link in uplink_rows(plan)
        if link["spine_port_by_formula"] not in (None, link["spine_port"])
    ]


def uplink_rows(plan: Plan) -> list[Row]:
    """Return each uplink with its spine port: from the link table if there is one, else by the formula."""
    rows = []
    for switch in plan.fabric.switches:
        for port in switch.ports:
            if port.spine:
                by_formula = formula_spine_port(switch, port)
                in_table = plan.options.hour_tables
                rows.append(
                    {
                        "leaf": switch.name,
                        "leaf_port": port.name,
                        "spine": f"spine-{port.spine}",
                        "spine_port": spine_port(switch, port, plan.options) if in_table else by_formula,
                        "spine_port_by_formula": by_formula,
                        "source": "link_table" if in_table else "inferred:uplink_formula",
                    }
                )
    return rows
