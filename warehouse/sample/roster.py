"""Servers of a sample: their positions and their oddities.

The small roster has every oddity of the real workbook on a few servers, at other positions than in the real one.
`roster_full` has as many as the real one.
"""

from __future__ import annotations

from dataclasses import replace

from warehouse.sample.names import FAMILIES
from warehouse.sample.options import SLOTS, SampleOptions
from warehouse.sample.places import OTHER_HCAS, SWAPPED_HCAS, Place
from warehouse.sample.roster_full import full_places
from warehouse.sample.special import special_places


def places(options: SampleOptions) -> list[Place]:
    """Return all servers of a sample, by number."""
    found = full_places() if options.full else small_places(options)
    if not options.planted:
        found = [replace(place, wrong_rail=None) for place in found if not place.is_visitor]
    elif not options.full:
        found += special_places(unlisted_slot(options) + 5)
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
