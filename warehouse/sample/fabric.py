"""Wiring: servers with their NICs and oddities, switches with their ports, uplinks with their spines.

The small roster has every oddity of the real workbook on a few servers, at other positions than in the real one. The
full roster has as many as the real one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from warehouse.sample.basics import (
    FAMILIES,
    HCAS,
    RAILS,
    SLOTS,
    Row,
    SampleOptions,
    draw_one,
    gpu_ip,
    home_group,
    leaf_device,
    server_name,
    sysname,
)

SWAPPED_HCAS = ("mlx5_2", "mlx5_8", "mlx5_3", "mlx5_9")
"""mlx5_3 and mlx5_8 are swapped."""
OTHER_HCAS = ("mlx5_2", "mlx5_3", "mlx5_4", "mlx5_7")
"""mlx5_4 and mlx5_7 replace mlx5_8 and mlx5_9."""

EXCHANGED, PAUSING, OTHER_RAILS = "exchanged", "pausing", "other rails"
SENDING, RECEIVING, ANSWERING, QUIET = STEADY = "sending", "receiving", "answering", "quiet"
"""Roles of servers that are planted for findings."""


@dataclass(frozen=True)
class Place:
    """Number and slot of one server, and the oddities of its rows in the workbook."""

    number: int
    group: int | None
    """Group of leaves (from 0) of its cables; None if these leaves are not in the sample."""
    slot: int
    family: str
    in_topology: bool = True
    in_nic_sheet: bool = True
    hcas: tuple[str, str, str, str] = HCAS
    null_address: bool = False
    """True if serverIP and switchIP are empty in its four rows."""
    null_nic_rails: tuple[int, ...] = ()
    """Rails whose row lacks the nicname, too."""
    moved: tuple[tuple[int, int], ...] = ()
    """(rail, slot): the cable of this rail ends at another slot; the sheet says so correctly."""
    wrong_rail: int | None = None
    """Rail whose row names the idle 400G port instead of the cable's port."""
    role: str = ""
    """Role of a server that is planted for findings, see `warehouse.sample.fabric`; other servers have none."""

    @property
    def is_visitor(self) -> bool:
        """True if the server is in a group of leaves other than the group of its number."""
        return self.group is not None and self.group != home_group(self.number)

    @property
    def hca_of(self) -> dict[str, str]:
        """NIC name -> HCA."""
        return dict(zip(sorted(FAMILIES[self.family]), self.hcas, strict=True))


def slot_owner(place: Place, place_of: Mapping[int, Place]) -> str:
    """Return the owner of a server's ports: the server, or one of two servers if the topology sheet lists neither."""
    first = place.number - (place.slot + 1) % 2
    mate = place_of.get(2 * first + 1 - place.number)
    is_known = place.in_topology or (mate is not None and mate.in_topology)
    return server_name(place.number) if is_known else f"GPU-{first}/{first + 1}"


def places(options: SampleOptions) -> list[Place]:
    """Return all servers of a sample, by number."""
    found = full_places() if options.full else small_places(options)
    if not options.planted:
        found = [replace(place, wrong_rail=None) for place in found if not place.is_visitor]
    elif not options.full:
        found += special_places(unlisted_slot(options) + 5, options.seconds)
    return sorted(found, key=lambda place: place.number)


def small_places(options: SampleOptions) -> list[Place]:
    """Return `servers_per_group` servers per group, all oddities in the first two groups, and a few extra servers."""
    usual = [
        Place(SLOTS * group + slot, group, slot, [*FAMILIES][group % 2])
        for group in range(options.leaves // 4)
        for slot in range(1, options.servers_per_group + 1)
    ]
    first = unlisted_slot(options)
    found = [
        *(replace(place, **_ODD.get(place.number, {})) for place in usual),
        Place(first, 0, first, "ens10", in_topology=False),
        Place(first + 1, 0, first + 1, "ens10", in_topology=False),
        Place(first + 2, 0, first + 2, "ens10", in_topology=False, hcas=OTHER_HCAS),
        Place(first + 3, 0, first + 3, "ens10"),
        Place(SLOTS + first + 4, 0, first + 4, "ens24"),
    ]
    if options.leaves < 20:
        found.append(Place(241, None, 1, "ens24", in_topology=False))
    return found


def unlisted_slot(options: SampleOptions) -> int:
    """Return the first odd-numbered slot after the listed servers of the first group."""
    return options.servers_per_group + 1 + options.servers_per_group % 2


_ODD: dict[int, dict[str, Any]] = {
    2: {"hcas": SWAPPED_HCAS},
    3: {"null_address": True, "null_nic_rails": (2, 3)},
    SLOTS + 1: {"wrong_rail": 0},
    SLOTS + 2: {"moved": ((1, 3),)},
    SLOTS + 3: {"moved": ((1, 2),)},
    SLOTS + 4: {"in_nic_sheet": False},
}
"""Number of a server of the small roster -> its oddity."""


def special_places(slot: int, seconds: int) -> list[Place]:
    """Return the servers, at free slots of the first two groups.

    Two servers hold each other's slot. Three train together, one of them on other rails, and pause. Of the others, one
    sends, one only receives, one receives and answers, and one receives very little.
    """
    exchanged = [
        Place(SLOTS + slot + 1, 0, slot, "ens24", role=EXCHANGED),
        Place(slot, 1, slot + 1, "ens10", role=EXCHANGED),
    ]
    if seconds < 900:  # no time for pauses and for terabytes
        return exchanged
    return [
        *exchanged,
        *(Place(slot + 1 + turn, 0, slot + 1 + turn, "ens10", role=role) for turn, role in enumerate(STEADY)),
        *(
            Place(SLOTS + slot + 2 + turn, 1, slot + 2 + turn, "ens24", role=role)
            for turn, role in enumerate((PAUSING, PAUSING, OTHER_RAILS))
        ),
    ]


_ODD_OF_FULL: dict[int, dict[str, Any]] = {
    35: {"hcas": SWAPPED_HCAS},
    **{number: {"in_nic_sheet": False} for number in (51, 168, 172)},
    76: {"group": 3, "slot": 48},  # where its cables really are
    89: {"wrong_rail": 0},
    **{number: {"in_topology": False} for number in range(121, 131)},
    132: {"in_topology": False, "hcas": OTHER_HCAS},
    153: {"null_address": True, "null_nic_rails": (2, 3)},
    # two servers whose cables are swapped on the first leaf of their group
    192: {"moved": ((0, 21),)},
    201: {"moved": ((0, 12),)},
    228: {"group": 1, "slot": 16, "in_nic_sheet": False, "null_address": True},
}
"""The same of the full roster."""


def full_places() -> list[Place]:
    """Return all 264 servers: 249 in both sheets, 11 only in the NIC sheet, 4 only in the topology sheet."""
    usual = [
        Place(n, home_group(n), (n - 1) % SLOTS + 1, "ens10" if n <= 60 or 121 <= n <= 172 else "ens24")
        for n in range(1, 266)
        if n != 263  # a number that no server has
    ]
    return [replace(place, **_ODD_OF_FULL.get(place.number, {})) for place in usual]


WRONG_PORT = "FourHundredGigE1/0/64"
"""Idle port that one access row of the workbook names."""


@dataclass(frozen=True)
class Port:
    """One switch port and its file."""

    name: str
    kind: str
    connected: bool = True
    """A connected port has a little chatter even when idle; an unconnected port counts exactly 0."""
    spine: int = 0

    @property
    def line_rate(self) -> int:
        """Line rate in bytes per second: of most kinds of ports 400 Gb/s."""
        return {"management": 125_000_000, "access": 25_000_000_000}.get(self.kind, 50_000_000_000)

    @property
    def stem(self) -> str:
        """File name without the switch's prefix: `0`, `5_1`, `33`."""
        return self.name.rpartition("/")[2].replace(":", "_")

    @property
    def number(self) -> int:
        """Number of the physical port."""
        return int(self.stem.partition("_")[0])


@dataclass(frozen=True)
class Nic:
    """One NIC of a server and its cable."""

    server: int
    rail: int
    name: str
    hca: str
    switch: str
    port: str
    """Switch port of the cable."""
    sheet_port: str
    """Switch port in the workbook; it differs from `port` in one row."""
    ip: str
    listed: bool
    """True if the topology sheet has a row for the NIC."""

    @property
    def end(self) -> tuple[str, str]:
        """Switch and port of the cable."""
        return self.switch, self.port


@dataclass(frozen=True)
class Switch:
    """One leaf or storage leaf."""

    name: str
    device: str
    ip: str
    prefix: str
    ports: tuple[Port, ...]
    """Ports by name, the management port first, those of servers with a role last."""
    group: int | None
    number: int

    @cached_property
    def index(self) -> dict[str, int]:
        """Port name -> position in `ports`."""
        return {port.name: position for position, port in enumerate(self.ports)}

    @property
    def folder(self) -> str:
        """Name of the switch's folder within an hour."""
        return self.device.replace(".", "_")


@dataclass(frozen=True)
class Fabric:
    """All servers, NICs and switches, with their cables."""

    options: SampleOptions
    places: dict[int, Place]
    """Server number -> its place, in this order."""
    nics: dict[int, tuple[Nic, ...]]
    """Server number -> its four NICs, in the order of the group's leaves; only cabled servers."""
    switches: dict[str, Switch]
    """Name -> switch: the leaves, then the storage leaves."""

    def all_nics(self) -> list[Nic]:
        """Return all NICs, by server and rail."""
        return [nic for number in sorted(self.nics) for nic in self.nics[number]]


def build_fabric(options: SampleOptions) -> Fabric:
    """Return the wiring of a sample; `options` must be resolved."""
    found = places(options)
    nics = {place.number: _cables(place, place.group, options) for place in found if place.group is not None}
    special = {place.number for place in found if place.role}
    switches = [_leaf(number, nics, special, options) for number in range(1, options.leaves + 1)]
    switches += [_storage_leaf(number, options) for number in range(1, options.storage_leaves + 1)]
    return Fabric(options, {place.number: place for place in found}, nics, {switch.name: switch for switch in switches})


def access_port(seed: int, leaf: int, slot: int) -> str:
    """Return the port of a slot: the physical port of its pair of slots; the half differs from leaf to leaf."""
    physical = (slot + 1) // 2
    # The parity of the slot gives the two slots of one physical port different halves.
    half = (draw_one(seed, f"half/{leaf}/{physical}", 0, 1) + slot) % 2 + 1
    return f"TwoHundredGigE1/0/{physical}:{half}"


def _cables(place: Place, group: int, options: SampleOptions) -> tuple[Nic, ...]:
    cables = []
    for rail, name in enumerate(FAMILIES[place.family]):
        leaf = RAILS * group + rail + 1
        port = access_port(options.seed, leaf, dict(place.moved).get(rail, place.slot))
        cables.append(
            Nic(
                server=place.number,
                rail=rail,
                name=name,
                hca=place.hca_of[name],
                switch=f"Leaf-{leaf}",
                port=port,
                sheet_port=WRONG_PORT if rail == place.wrong_rail else port,
                ip=f"10.107.{221 + leaf}.{place.slot}",
                listed=place.in_topology,
            )
        )
    return tuple(cables)


def _leaf(number: int, nics: dict[int, tuple[Nic, ...]], special: set[int], options: SampleOptions) -> Switch:
    name = f"Leaf-{number}"
    here = [nic for cables in nics.values() for nic in cables if nic.switch == name]
    cabled = {nic.port for nic in here}
    last = sorted((nic.port for nic in here if nic.server in special), key=_access_order)
    if options.full:
        access = [f"TwoHundredGigE1/0/{p}:{h}" for p in range(1, SLOTS // 2 + 1) for h in (1, 2)]
        spares = [31, 32, 63, 64]
    else:
        access = sorted(cabled - {*last}, key=_access_order)
        spares = [31] + [64 for nic in here if nic.sheet_port == WRONG_PORT]
    ports = (
        Port("M-GigabitEthernet0/0/0", "management"),
        *(Port(p, "access", p in cabled) for p in access),
        *(Port(f"FourHundredGigE1/0/{p}", "spare", connected=False) for p in spares),
        *(
            Port(f"FourHundredGigE1/0/{p}", "uplink", spine=(p - 33) // 3 + 1)
            for p in range(33, 33 + 3 * options.spines)
        ),
        # last, so that draws by the place of a port are the same with and without them
        *(Port(p, "access") for p in last),
    )
    ip = f"10.107.208.{110 + number}"
    return Switch(name, leaf_device(number), ip, name, ports, (number - 1) // RAILS, number)


def _access_order(port: str) -> tuple[int, ...]:
    physical, half = port.rpartition("/")[2].split(":")
    return int(physical), int(half)


def storage_access(number: int, options: SampleOptions) -> tuple[int, int, int]:
    """Return the number of busy, connected and all access ports of a storage leaf."""
    if not options.full:
        return (4 if number == 1 else 0), 5, 6
    return ((20, 22, 54), (0, 0, 54), (0, 40, 54), (0, 40, 54))[number - 1]


def _storage_leaf(number: int, options: SampleOptions) -> Switch:
    _, connected, total = storage_access(number, options)
    ports = (
        Port("M-GigabitEthernet0/0/0", "management"),
        *(Port(f"FourHundredGigE1/0/{p}", "storage_access", p <= connected) for p in range(1, total + 1)),
        *(Port(f"FourHundredGigE1/0/{p}", "storage_uplink", spine=p - 54) for p in range(55, 55 + options.spines)),
    )
    device = f"NH-DC-NM224-J{4 + number:02}-ROCE-ST-leaf-{number}.GPU.S9825"
    return Switch(f"ST-leaf-{number}", device, f"10.107.208.{140 + number}", f"leaf-{number}", ports, None, number)


# The workbook: two sheets, all cells text, with the empty cells and odd rows of the roster.


def write_workbook(path: Path, fabric: Fabric) -> None:
    """Write both sheets, dated like the release's workbook."""
    from xlsxwriter import Workbook

    sheets = {
        "cluster topology": [
            ("accessport", "serverIP", "nicname", "portname", "switchIP", "switchname", "sysname"),
            *topology_rows(fabric),
        ],
        "GPU NIC info": [("GPU IP", "NIC name1", "NIC name 2"), *nic_rows(fabric)],
    }
    with Workbook(path) as book:
        book.set_properties({"created": datetime(2024, 5, 24)})  # noqa: DTZ001 - a workbook's date has no zone
        for title, rows in sheets.items():
            sheet = book.add_worksheet(title)
            for number, row in enumerate(rows):
                sheet.write_row(number, 0, row)


def topology_rows(fabric: Fabric) -> list[tuple[str | None, ...]]:
    """Return one row per listed NIC, by leaf and text of the address; rows without address come last.

    One row of the last leaf is the fourth, among those of the first leaf.
    """
    listed = [nic for nic in fabric.all_nics() if nic.listed]
    full = [nic for nic in listed if not fabric.places[nic.server].null_address]
    full.sort(key=lambda nic: (int(nic.switch.rpartition("-")[2]), nic.ip))
    stray = [nic for nic in full if not fabric.places[nic.server].role][-2]
    full.remove(stray)
    full.insert(3, stray)
    empty = [nic for nic in listed if fabric.places[nic.server].null_address]
    return [_row(fabric, nic, fabric.places[nic.server]) for nic in full + empty]


def nic_rows(fabric: Fabric) -> list[tuple[str | None, ...]]:
    """Return four rows per server, in numerical order of address, and in the order of its leaves."""
    return [
        (gpu_ip(place.number), place.hca_of[nic], nic)
        for place in fabric.places.values()
        if place.in_nic_sheet
        for nic in FAMILIES[place.family]
    ]


def _row(fabric: Fabric, nic: Nic, place: Place) -> tuple[str | None, ...]:
    switch = fabric.switches[nic.switch]
    return (
        nic.sheet_port,
        None if place.null_address else nic.ip,
        None if nic.rail in place.null_nic_rails else nic.name,
        nic.sheet_port,
        None if place.null_address else switch.ip,
        switch.device,
        sysname(place.number),
    )


# What tables must have of the workbook.


def nic_ports(fabric: Fabric) -> list[Row]:
    """Return each NIC of the NIC sheet with its port in the workbook.

    A NIC without a topology row is unresolved. The reason is `ambiguous` if two or more unlisted ports of the slot's
    physical port are candidates. Otherwise it is `no_topology_row`, even with one candidate. A contradicted row is kept
    as in the workbook (and is in `suspects`).
    """
    return [
        {"server": server_name(place.number), "hca": hca, "nic": name, **_port_of(fabric, place, name)}
        for place in fabric.places.values()
        if place.in_nic_sheet
        for hca, name in sorted((hca, name) for name, hca in place.hca_of.items())
    ]


def _port_of(fabric: Fabric, place: Place, name: str) -> Row:
    nic = next((nic for nic in fabric.nics.get(place.number, ()) if nic.name == name), None)
    if nic is None or not place.in_topology:
        candidates = _unlisted_at(fabric, nic, place) if nic else []
        reason = "ambiguous" if len(candidates) > 1 else "no_topology_row"
        return {"switch": None, "port": None, "status": "unresolved", "reason": reason, "evidence": None}
    inferred = nic.rail in place.null_nic_rails
    return {
        "switch": nic.switch,
        "port": nic.sheet_port,
        "status": "inferred" if inferred else "resolved",
        "reason": None,
        "evidence": "inferred:rail_order" if inferred else "workbook",
    }


def _unlisted_at(fabric: Fabric, nic: Nic, place: Place) -> list[str]:
    """Return the access ports without a row, at the physical port of a server's slot on the leaf of one NIC."""
    listed = {other.sheet_port for other in fabric.all_nics() if other.listed and other.switch == nic.switch}
    return [
        port.name
        for port in fabric.switches[nic.switch].ports
        if port.kind == "access" and port.number == (place.slot + 1) // 2 and port.name not in listed
    ]


def unlisted_ports(fabric: Fabric) -> list[Row]:
    """Return connected access ports that no row of the workbook names, with the NIC that is really cabled there.

    `owner` is what can be inferred: a server if the other half of the cage belongs to its neighbor, one of two servers,
    or only the port.
    """
    return [
        {
            "switch": nic.switch,
            "port": nic.port,
            "server": server_name(nic.server),
            "nic": nic.name,
            **_owner(fabric, nic),
        }
        for nic in fabric.all_nics()
        if not nic.listed or nic.port != nic.sheet_port
    ]


def _owner(fabric: Fabric, nic: Nic) -> Row:
    """Return the owner of an unlisted port, as far as the sheets imply it."""
    place = fabric.places[nic.server]
    if place.in_topology:  # the cable is in another port than its row says
        return {
            "owner": f"unlisted:{nic.switch}:{nic.port.removeprefix('TwoHundredGigE')}",
            "evidence": "inferred:port",
        }
    return {"owner": slot_owner(place, fabric.places), "evidence": "inferred:slot"}
