"""A sample like the published data: one hour, five leaves, a task of another week, only ITP's jobs."""

from __future__ import annotations

import shutil
from pathlib import Path

from warehouse.sample import SampleOptions, write_sample

LEAVES = ("Leaf-3", "Leaf-5", "Leaf-7", "Leaf-10", "ST-leaf-1")
"""The leaves that remain; sorted as text, Leaf-10 would come first."""
TASK = "20240516-1556-2"
"""A task that no loaded hour overlaps."""


def write_like_real(root: Path, *, seconds: int = 3600) -> None:
    """Write a sample, then remove what the published data lacks."""
    write_sample(root, SampleOptions(hours=1, leaves=12, seconds=seconds, utilization=False, hour_tables=False))
    for folder in root.glob("zhejiang/*/trafficinfo/*/*"):
        if folder.is_dir() and not any(f"{leaf}_GPU" in folder.name and f"-{leaf}_" in folder.name for leaf in LEAVES):
            shutil.rmtree(folder)
    for folder in root.glob("zhejiang/*/taskinfo/*"):
        if folder.is_dir() and folder.name != TASK:
            shutil.rmtree(folder)
    shutil.rmtree(root / "acme")
