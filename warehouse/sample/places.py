"""A server of the sample: its position, and its rows in the two sheets of the workbook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.sample.names import HCAS, home_group, server_name

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
