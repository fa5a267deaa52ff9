"""Servers of a sample: their positions, their oddities, and their rows in the two sheets of the workbook.

The small roster has every oddity of the real workbook on a few servers, at other positions than in the real one. The
full roster has as many as the real one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warehouse.sample.names import FAMILIES, HCAS, home_group, server_name
from warehouse.sample.options import SLOTS, SampleOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """Role of a server that is planted for findings, see `warehouse.sample.roster`; other servers have none."""

    @property
    def is_visitor(self) -> bool:
        """True if the server is in a group of leaves other than the group of its number."""
        return self.group is not None and self.group != home_group(self.number)


def slot_owner(place: Place, place_of: Mapping[int, Place]) -> str:
    """Return the owner of a server's ports: the server, or one of two servers if the topology sheet lists neither."""
    first = place.number - (place.slot + 1) % 2
    mate = place_of.get(2 * first + 1 - place.number)
    is_known = place.in_topology or (mate is not None and mate.in_topology)
    return server_name(place.number) if is_known else f"GPU-{first}/{first + 1}"


LEAST_SECONDS = 900
"""Recorded seconds of an hour from which on there is time for pauses and for terabytes."""


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
    families = tuple(FAMILIES)
    found = []
    for group in range(options.leaves // 4):
        for slot in range(1, options.servers_per_group + 1):
            plain = Place(SLOTS * group + slot, group, slot, families[group % 2])
            found.append(_odd(plain))
    first = unlisted_slot(options)
    found += [
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


def _odd(place: Place) -> Place:
    """Return the server with its oddity, if its number has one."""
    number, group, slot, family = place.number, place.group, place.slot, place.family
    if number == 2:
        return Place(number, group, slot, family, hcas=SWAPPED_HCAS)
    if number == 3:
        return Place(number, group, slot, family, null_address=True, null_nic_rails=(2, 3))
    if number == SLOTS + 1:
        return Place(number, group, slot, family, wrong_rail=0)
    if number == SLOTS + 2:
        return Place(number, group, slot, family, moved=((1, 3),))
    if number == SLOTS + 3:
        return Place(number, group, slot, family, moved=((1, 2),))
    if number == SLOTS + 4:
        return Place(number, group, slot, family, in_nic_sheet=False)
    return place


def special_places(slot: int, seconds: int) -> list[Place]:
    """Return the servers, at free slots of the first two groups.

    Two servers hold each other's slot. Three train together, one of them on other rails, and pause. Of the others, one
    sends, one only receives, one receives and answers, and one receives very little.
    """
    exchanged = [
        Place(SLOTS + slot + 1, 0, slot, "ens24", role=EXCHANGED),
        Place(slot, 1, slot + 1, "ens10", role=EXCHANGED),
    ]
    if seconds < LEAST_SECONDS:
        return exchanged
    roles = (SENDING, RECEIVING, ANSWERING, QUIET)
    return [
        *exchanged,
        *(Place(slot + 1 + turn, 0, slot + 1 + turn, "ens10", role=role) for turn, role in enumerate(roles)),
        *(
            Place(SLOTS + slot + 2 + turn, 1, slot + 2 + turn, "ens24", role=role)
            for turn, role in enumerate((PAUSING, PAUSING, OTHER_RAILS))
        ),
    ]


_ABSENT = {263}
_NIC_SHEET_ONLY = {*range(121, 131), 132}
_TOPOLOGY_ONLY = {51, 168, 172, 228}
_VISITORS = {76: (3, 48), 228: (1, 16)}
"""Server number -> the group and slot where its cables really are."""
_ODD_HCAS = {35: SWAPPED_HCAS, 132: OTHER_HCAS}
_MOVED = {192: ((0, 21),), 201: ((0, 12),)}
"""Two servers whose cables are swapped on the first leaf of their group."""


def full_places() -> list[Place]:
    """Return all 264 servers: 249 in both sheets, 11 only in the NIC sheet, 4 only in the topology sheet."""
    return [_place(number) for number in range(1, 266) if number not in _ABSENT]


def _place(number: int) -> Place:
    group, slot = _VISITORS.get(number, (home_group(number), (number - 1) % SLOTS + 1))
    return Place(
        number,
        group,
        slot,
        "ens10" if number <= 60 or 121 <= number <= 172 else "ens24",
        in_topology=number not in _NIC_SHEET_ONLY,
        in_nic_sheet=number not in _TOPOLOGY_ONLY,
        hcas=_ODD_HCAS.get(number, HCAS),
        null_address=number in (153, 228),
        null_nic_rails=(2, 3) if number == 153 else (),
        moved=_MOVED.get(number, ()),
        wrong_rail=0 if number == 89 else None,
    )
