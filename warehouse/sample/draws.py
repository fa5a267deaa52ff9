"""Pseudo-random integers that are equal on every machine and with every version of NumPy.

A draw depends only on the seed and a label, never on earlier draws. So a new port or job leaves all other draws
unchanged. Only integers are used: no libm, no rounding.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

# This and the factors below are those of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
_STEP = np.uint64(0x9E3779B97F4A7C15)


def draw(seed: int, label: str, count: int, low: int, high: int) -> Ints:
    """Return `count` integers, uniform from `low` to `high` (both included).

    >>> draw(7, "example", 3, 1, 6).tolist() == draw(7, "example", 3, 1, 6).tolist()
    True
    """
    # Not `hash`, which differs from process to process.
    digest = hashlib.blake2b(f"{seed}/{label}".encode(), digest_size=8).digest()
    state = np.uint64(int.from_bytes(digest, "little")) + np.arange(1, count + 1, dtype=np.uint64) * _STEP
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    # The upper bits are the best mixed, and 52 of them fit a signed integer.
    return (state >> np.uint64(12)).astype(np.int64) % (high - low + 1) + low


def draw_one(seed: int, label: str, low: int, high: int) -> int:
    """Return one integer, uniform from `low` to `high` (both included)."""
    return int(draw(seed, label, 1, low, high)[0])
