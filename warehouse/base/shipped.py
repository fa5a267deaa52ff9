"""Folder of the files that ship with the package."""

from __future__ import annotations

from pathlib import Path


def shipped_root() -> Path:
    """Return the folder with the shipped models/, sql/ and data/: in the package or in the checkout around it."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "shipped"
    return inside if inside.is_dir() else package.parent
