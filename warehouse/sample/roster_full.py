"""Servers of the full sample: the same number of servers and of oddities as in the real workbook."""

from __future__ import annotations

from warehouse.sample.names import HCAS, home_group
from warehouse.sample.options import SLOTS
from warehouse.sample.places import OTHER_HCAS, SWAPPED_HCAS, Place

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
