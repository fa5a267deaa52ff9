"""Wiring: switches with their ports, servers with their NICs, uplinks with their spines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from warehouse.sample import names
from warehouse.sample.draws import draw_one
from warehouse.sample.names import FAMILIES, RAILS
from warehouse.sample.options import SLOTS, SampleOptions
from warehouse.sample.roster import Place, places

LINE_RATES = {"management": 125_000_000, "access": 25_000_000_000}
"""Bytes per second; every other kind of port has 400 Gb/s."""

WRONG_PORT = "FourHundredGigE1/0/64"
"""Idle port that one access row of the workbook names."""


@dataclass(frozen=True)
class Port:
    """One switch port and its file."""

    name: str
    stem: str
    """File name without the switch's prefix: `0`, `5_1`, `33`."""
    kind: str
    connected: bool = True
    """A connected port has a little chatter even when idle; an unconnected port counts exactly 0."""
    spine: int = 0

    @property
    def line_rate(self) -> int:
        """Line rate in bytes per second."""
        return LINE_RATES.get(self.kind, 50_000_000_000)

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
    rail: int
    number: int

    @cached_property
    def index(self) -> dict[str, int]:
        """Port name -> position in `ports`."""
        return {port.name: position for position, port in enumerate(self.ports)}

    @property
    def folder(self) -> str:
        """Name of the switch's folder within an hour."""
        return names.folder(self.device)


@dataclass(frozen=True)
class Fabric:
    """All servers, NICs and switches, with their cables."""

    options: SampleOptions
    places: tuple[Place, ...]
    nics: dict[int, tuple[Nic, ...]]
    """Server number -> its four NICs, in the order of the group's leaves; only cabled servers."""
    switches: tuple[Switch, ...]

    @cached_property
    def _by_name(self) -> dict[str, Switch]:
        return {switch.name: switch for switch in self.switches}

    def switch(self, name: str) -> Switch:
        """Return the switch with this short name."""
        return self._by_name[name]

    def all_nics(self) -> list[Nic]:
        """Return all NICs, by server and rail."""
        return [nic for number in sorted(self.nics) for nic in self.nics[number]]


def build_fabric(options: SampleOptions) -> Fabric:
    """Return the wiring of a sample; `options` must be resolved."""
    found = places(options)
    nics = {place.number: _cables(place, place.group, options) for place in found if place.group is not None}
    special = {place.number for place in found if place.role}
    leaves = [_leaf(number, nics, special, options) for number in range(1, options.leaves + 1)]
    storage = [_storage_leaf(number, options) for number in range(1, options.storage_leaves + 1)]
    return Fabric(options, tuple(found), nics, (*leaves, *storage))


def access_port(seed: int, leaf: int, slot: int) -> str:
    """Return the port of a slot: the physical port of its pair of slots; the half differs from leaf to leaf."""
    physical = (slot + 1) // 2
    half = (draw_one(seed, f"half/{leaf}/{physical}", 0, 1) + slot) % 2 + 1
    return f"TwoHundredGigE1/0/{physical}:{half}"


def _cables(place: Place, group: int, options: SampleOptions) -> tuple[Nic, ...]:
    family = FAMILIES[place.family]
    by_name = sorted(family)
    moved = dict(place.moved)
    cables = []
    for rail in range(RAILS):
        leaf = RAILS * group + rail + 1
        port = access_port(options.seed, leaf, moved.get(rail, place.slot))
        cables.append(
            Nic(
                server=place.number,
                rail=rail,
                name=family[rail],
                hca=place.hcas[by_name.index(family[rail])],
                switch=f"Leaf-{leaf}",
                port=port,
                sheet_port=WRONG_PORT if rail == place.wrong_rail else port,
                ip=names.nic_ip(leaf, place.slot),
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
    ports = [Port("M-GigabitEthernet0/0/0", "0", "management")]
    ports += [Port(p, p.rpartition("/")[2].replace(":", "_"), "access", p in cabled) for p in access]
    ports += [Port(f"FourHundredGigE1/0/{p}", str(p), "spare", connected=False) for p in spares]
    ports += [
        Port(f"FourHundredGigE1/0/{p}", str(p), "uplink", spine=(p - 33) // 3 + 1)
        for p in range(33, 33 + 3 * options.spines)
    ]
    # last, so that draws by the place of a port are the same with and without them
    ports += [Port(p, p.rpartition("/")[2].replace(":", "_"), "access") for p in last]
    group, rail = divmod(number - 1, RAILS)
    return Switch(name, names.leaf_device(number), names.leaf_ip(number), name, tuple(ports), group, rail, number)


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
    ports = [Port("M-GigabitEthernet0/0/0", "0", "management")]
    ports += [Port(f"FourHundredGigE1/0/{p}", str(p), "storage_access", p <= connected) for p in range(1, total + 1)]
    ports += [
        Port(f"FourHundredGigE1/0/{p}", str(p), "storage_uplink", spine=p - 54) for p in range(55, 55 + options.spines)
    ]
    device = names.storage_device(number)
    return Switch(
        f"ST-leaf-{number}", device, names.storage_ip(number), f"leaf-{number}", tuple(ports), None, 0, number
    )
