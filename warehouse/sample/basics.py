"""Options of a sample; and what all its writers use: random integers, times, names and addresses, CSV files.

>>> leaf_device(5), sysname(45), gpu_ip(241)
('NH-DC-NM129-D03-ROCE-Leaf-5.GPU.S9825', 'NH-DC-NM129-B05-12U-GPU-45', '10.107.255.1')
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

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
        return (
            replace(self, hours=1, leaves=20, storage_leaves=4, spines=10, servers_per_group=50, jobs=False)
            if self.full
            else self
        )


# Pseudo-random integers, equal on every machine and with every version of NumPy. A draw depends only on the seed and a
# label, never on earlier draws. So a new port or job leaves all other draws unchanged. Only integers are used: no libm,
# no rounding.

Ints = npt.NDArray[np.int64]


def draw(seed: int, label: str, count: int, low: int, high: int) -> Ints:
    """Return `count` integers, uniform from `low` to `high` (both included).

    >>> draw(7, "example", 3, 1, 6).tolist() == draw(7, "example", 3, 1, 6).tolist()
    True
    """
    # Not `hash`, which differs from process to process.
    digest = hashlib.blake2b(f"{seed}/{label}".encode(), digest_size=8).digest()
    # The factors are those of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = np.uint64(int.from_bytes(digest, "little")) + steps
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    # The upper bits are the best mixed, and 52 of them fit a signed integer.
    return (state >> np.uint64(12)).astype(np.int64) % (high - low + 1) + low


def draw_one(seed: int, label: str, low: int, high: int) -> int:
    """Return one integer, uniform from `low` to `high` (both included)."""
    return int(draw(seed, label, 1, low, high)[0])


# Times count from the start of the first hour; texts are UTC, or local time as in the release.

HOUR = 3600
FIRST = datetime(2024, 5, 24, tzinfo=timezone(timedelta(hours=8)))
"""Start of the first hour, in local time."""
START_MS = int(FIRST.timestamp()) * 1000
"""The same in milliseconds since 1970, UTC."""


def hour_folder(hour: int) -> str:
    """Return the name of the hour's folder, which is local time."""
    return f"{FIRST + timedelta(hours=hour):%Y%m%d%H}"


def hour_utc(hour: int) -> str:
    """Return the start of an hour as UTC text."""
    return second_utc(HOUR * hour)


def second_utc(second: int) -> str:
    """Return a second as UTC text, `YYYY-MM-DD HH:MM:SS`."""
    return f"{moment_utc(1000 * second):%Y-%m-%d %H:%M:%S}"


def moment_utc(milliseconds: int) -> datetime:
    """Return a millisecond as a UTC datetime; negative milliseconds are before the first hour."""
    return (FIRST + timedelta(milliseconds=milliseconds)).astimezone(UTC)


def millisecond_utc(milliseconds: int) -> str:
    """Return a millisecond as UTC text, `YYYY-MM-DD HH:MM:SS.mmm`."""
    return f"{moment_utc(milliseconds):%Y-%m-%d %H:%M:%S.%f}"[:-3]  # strftime has microseconds only


def save_time(milliseconds: int) -> str:
    """Return the `SaveTime` of a millisecond : date, Chinese weekday, local time of day."""
    moment = FIRST + timedelta(milliseconds=milliseconds)
    weekday = "一二三四五六日"[moment.weekday()]
    return f"{moment:%Y/%m/%d} 星期{weekday} {moment:%H:%M:%S}.{milliseconds % 1000:03}"


def export_time(second: int, *, zero_hour: bool) -> str:
    """Return a second as local time in the form of the hour-level tables.

    `2024/5/24 上午12:00:00` and `2024/5/24 上午00:00:00` both mean midnight. With `zero_hour` the hour is 00 to 11, two
    digits; else 12, 1 to 11.
    """
    moment = FIRST + timedelta(seconds=second)
    half = "上午" if moment.hour < 12 else "下午"
    hour = f"{moment.hour % 12:02}" if zero_hour else str(moment.hour % 12 or 12)
    return f"{moment.year}/{moment.month}/{moment.day} {half}{hour}:{moment:%M:%S}"


# Names and addresses of devices, files, servers and NICs, as in the release.

Row = dict[str, Any]

RAILS = 4
"""Leaves per group, and NICs per server: one NIC on each leaf."""

FAMILIES: dict[str, tuple[str, str, str, str]] = {
    "ens10": ("ens11np0", "ens10np0", "ens19np0", "ens18np0"),
    "ens24": ("ens24np0", "ens25np0", "ens30np0", "ens31np0"),
}
"""NIC names in the order of the group's leaves. The first family is not in numerical order."""

HCAS = ("mlx5_2", "mlx5_3", "mlx5_8", "mlx5_9")
"""Names of a server's NICs in logs and NIC tables, in ascending order of NIC name."""

_LEAF_RACKS = (("B", 3), ("D", 3), ("F", 2), ("H", 3), ("J", 1))


def leaf_device(leaf: int) -> str:
    """Return the DeviceName of a GPU leaf."""
    letter, first = _LEAF_RACKS[(leaf - 1) // RAILS]
    return f"NH-DC-NM129-{letter}{first + (leaf - 1) % RAILS:02}-ROCE-Leaf-{leaf}.GPU.S9825"


def spine_device(spine: int) -> str:
    """Return the DeviceName of a spine."""
    return f"NH-DC-NM129-E{spine:02}-ROCE-spine-{spine}.GPU.S9825"


def server_name(number: int) -> str:
    """Return the short name of a server."""
    return f"GPU-{number}"


def home_group(number: int) -> int:
    """Return the group of leaves (from 0) of a server's number."""
    return (number - 1) // SLOTS


def sysname(number: int) -> str:
    """Return the server's name in the workbook, with its rack."""
    place = (number - 1) % SLOTS
    letter = "ABCDEFGHIJ"[2 * home_group(number) + place // 30]
    return f"NH-DC-NM129-{letter}{1 + place % 30 // 3:02}-{(28, 20, 12)[place % 3]}U-GPU-{number}"


def gpu_ip(number: int) -> str:
    """Return the server's address in the NIC sheet."""
    return f"10.107.254.{number}" if number <= 240 else f"10.107.255.{number - 240}"


def write_csv(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """Write rows as a CSV file; None is an empty cell."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)
