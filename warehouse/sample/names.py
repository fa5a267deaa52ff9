"""Names and addresses of devices, files, servers and NICs, as in the release.

>>> leaf_device(5), sysname(45), gpu_ip(241)
('NH-DC-NM129-D03-ROCE-Leaf-5.GPU.S9825', 'NH-DC-NM129-B05-12U-GPU-45', '10.107.255.1')
"""

from __future__ import annotations

from warehouse.sample.options import SLOTS

Cell = str | int | float | None

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
_UNITS = (28, 20, 12)


def leaf_device(leaf: int) -> str:
    """Return the DeviceName of a GPU leaf."""
    letter, first = _LEAF_RACKS[(leaf - 1) // RAILS]
    return f"NH-DC-NM129-{letter}{first + (leaf - 1) % RAILS:02}-ROCE-Leaf-{leaf}.GPU.S9825"


def storage_device(leaf: int) -> str:
    """Return the DeviceName of a storage leaf."""
    return f"NH-DC-NM224-J{4 + leaf:02}-ROCE-ST-leaf-{leaf}.GPU.S9825"


def spine_device(spine: int) -> str:
    """Return the DeviceName of a spine."""
    return f"NH-DC-NM129-E{spine:02}-ROCE-spine-{spine}.GPU.S9825"


def folder(device: str) -> str:
    """Return the name of a switch's folder."""
    return device.replace(".", "_")


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
    return f"NH-DC-NM129-{letter}{1 + place % 30 // 3:02}-{_UNITS[place % 3]}U-GPU-{number}"


def gpu_ip(number: int) -> str:
    """Return the server's address in the NIC sheet."""
    return f"10.107.254.{number}" if number <= 240 else f"10.107.255.{number - 240}"


def nic_ip(leaf: int, slot: int) -> str:
    """Return the address of the NIC at a slot of a leaf, in the topology sheet."""
    return f"10.107.{221 + leaf}.{slot}"


def leaf_ip(leaf: int) -> str:
    """Return the address of a GPU leaf."""
    return f"10.107.208.{110 + leaf}"


def storage_ip(leaf: int) -> str:
    """Return the address of a storage leaf."""
    return f"10.107.208.{140 + leaf}"


def spine_ip(spine: int) -> str:
    """Return the address of a spine."""
    return f"10.107.208.{100 + spine}"
