"""Options of a sample, and their limits."""

from __future__ import annotations

from dataclasses import dataclass, replace

SLOTS = 60
"""Slots for servers on one leaf: thirty physical ports with two halves each."""

SERVERS_A_SPINE = 12
"""Number of servers in a group that can communicate at once over three uplinks per leaf to one spine."""

_LIMITS = {
    "seed": (0, 2**63 - 1),
    "hours": (1, 24),
    "leaves": (8, 20),
    "storage_leaves": (1, 4),
    "spines": (1, 10),
    "servers_per_group": (4, 50),
    "seconds": (60, 3600),
}


@dataclass(frozen=True)
class SampleOptions:
    """Size and seed of a sample. `full` overrides the size: every file of a 24-switch release, one hour."""

    seed: int = 7
    hours: int = 2
    leaves: int = 8
    storage_leaves: int = 1
    spines: int = 3
    servers_per_group: int = 4
    seconds: int = 3600
    """Recorded seconds of each hour; no port carries traffic in the rest of the hour.

    If `seconds` is below 300, the opening gap ends after a fifth of it.
    """
    full: bool = False
    hour_tables: bool = True
    utilization: bool = True
    """True to write a folder in the form of AcmeTrace's utilization, too."""
    jobs: bool = True
    """True to write small job traces in the forms of AcmeTrace and ITP, too; ignored if `full`."""
    planted: bool = True
    """True to plant faults: uplinks without data one way or hot ones, servers that the workbook puts elsewhere.

    False keeps the oddities of every release (gaps, wraps, empty cells, stray files). A `full` sample always has
    faults.
    """

    def __post_init__(self) -> None:
        for name, (low, high) in _LIMITS.items():
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} must be between {low} and {high}: {getattr(self, name)}.")
        if self.leaves % 4:
            raise ValueError(f"leaves must be a multiple of 4, as they come in groups of four: {self.leaves}.")
        if self.servers_per_group > SERVERS_A_SPINE * self.spines and not self.full:
            raise ValueError(
                f"{self.servers_per_group} servers in a group need at least "
                f"{-(-self.servers_per_group // SERVERS_A_SPINE)} spines, not {self.spines}."
            )
        if self.full and not self.planted:
            raise ValueError("a full sample is always planted.")

    @property
    def cluster(self) -> str:
        """Name of the cluster's folder. Each size has its own name, which is listed in `data/clusters.csv`."""
        if self.full:
            return "cluster_sample_full"
        size = "" if self.leaves == 8 else f"_{self.leaves}"
        return f"cluster_sample{size}" + ("" if self.storage_leaves == 1 else f"_{self.storage_leaves}")

    def resolved(self) -> SampleOptions:
        """Return the options with what `full` implies."""
        if not self.full:
            return self
        return replace(self, hours=1, leaves=20, storage_leaves=4, spines=10, servers_per_group=50, jobs=False)
