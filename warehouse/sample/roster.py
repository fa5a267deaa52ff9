"""Servers of a sample: their positions and their oddities.

The small roster has every oddity of the real workbook on a few servers, at other positions than in the real one.
`roster_full` has as many as the real one.
"""

from __future__ import annotations

from dataclasses import replace

from warehouse.sample.names import FAMILIES
from warehouse.sample.options import SLOTS, SampleOptions
from warehouse.sample.places import (
    ANSWERING,
    EXCHANGED,
    OTHER_HCAS,
    OTHER_RAILS,
    PAUSING,
    QUIET,
    RECEIVING,
    SENDING,
    SWAPPED_HCAS,
    Place,
)
from warehouse.sample.roster_full import full_places

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
