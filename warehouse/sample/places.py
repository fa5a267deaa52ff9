"""A server of the sample: where it stands, and how the two sheets of the workbook see it."""

from __future__ import annotations

from dataclasses import dataclass

from warehouse.sample.names import HCAS, home_group

SWAPPED_HCAS = ("mlx5_2", "mlx5_8", "mlx5_3", "mlx5_9")
"""mlx5_3 and mlx5_8 exchanged."""
OTHER_HCAS = ("mlx5_2", "mlx5_3", "mlx5_4", "mlx5_7")
"""mlx5_4 and mlx5_7 instead of mlx5_8 and mlx5_9."""


@dataclass(frozen=True)
class Place:
    """One server: its number, its slot, and how the two sheets of the workbook see it."""

    number: int
    group: int | None
    """Group of leaves (from 0) that its cables go to; None where those leaves are not in the sample."""
    slot: int
    family: str
    in_topology: bool = True
    in_nic_sheet: bool = True
    hcas: tuple[str, str, str, str] = HCAS
    null_address: bool = False
    """serverIP and switchIP are empty in its four rows."""
    null_nic_rails: tuple[int, ...] = ()
    """Rails whose row has no nicname either."""
    moved: tuple[tuple[int, int], ...] = ()
    """(rail, slot): the cable of that rail ends at another slot; the sheet says so, rightly."""
    wrong_rail: int | None = None
    """Rail whose row names the idle 400G port instead of the port that the cable is in."""

    @property
    def is_visitor(self) -> bool:
        """Whether it stands among the leaves of another group than its number's."""
        return self.group is not None and self.group != home_group(self.number)
