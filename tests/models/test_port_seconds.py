"""Bytes of ports in seconds by NumPy, for planted hours, equal the rule of bench.acceptance, which checks the model."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bench.acceptance_files import seconds as by_acceptance
from tests.models.seconds import COLUMNS, seconds


@pytest.mark.parametrize("most", [10, 10**15 - 1])
def test_seconds_of_random_ports(most: int) -> None:
    """Idle ports, first polls that show something, gaps, windows of a millisecond, and bytes near the largest."""
    chance = random.Random(most)
    polls = {
        port: [
            (time, chance.choice([0, 0, chance.randrange(most + 1)]), chance.choice([0, 0, chance.randrange(most + 1)]))
            for time in sorted(chance.sample(range(chance.choice([20, 5_000, 3_600_000])), chance.randrange(1, 20)))
        ]
        for port in sorted(chance.sample(range(1000), 200))
    }
    expected = [
        (port, second, *cells) for port in sorted(polls) for second, cells in sorted(by_acceptance(polls[port]).items())
    ]
    assert len(expected) > 1000
    rows = np.array([(port, *row) for port, listed in polls.items() for row in listed], np.int64)
    found = seconds(*rows.T)
    cells = zip(*(found[name].tolist() for name in COLUMNS), strict=True)
    assert [
        (*row, "fine" if longest <= 2000 else "coarse" if longest <= 10_000 else "gap") for *row, longest in cells
    ] == expected
