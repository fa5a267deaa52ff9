"""Bytes of ports in seconds: by the model, by NumPy, and by the rule of bench.acceptance, second by second."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from bench.acceptance_files import seconds as by_acceptance
from tests.models.seconds import COLUMNS, seconds
from warehouse.project.project import Project

Row = tuple[int, int, int]
"""Milliseconds since the start of the hour, bytes in, bytes out."""
Polls = Mapping[int, Sequence[Row]]
HOUR_AND_SWITCH = "hour_utc TIMESTAMP DEFAULT TIMESTAMP '2024-05-23 16:00:00', switch VARCHAR DEFAULT 'Leaf-1'"


def by_rule(polls: Polls) -> list[tuple[object, ...]]:
    """Return port, second, bytes, covered time and quality."""
    found = {port: by_acceptance(rows) for port, rows in polls.items()}
    return [(port, second, *found[port][second]) for port in sorted(found) for second in sorted(found[port])]


def with_quality(rows: Sequence[Sequence[int]]) -> list[tuple[object, ...]]:
    """Return rows of `COLUMNS` with the quality that follows from the longest window."""
    return [(*row, "fine" if most <= 2000 else "coarse" if most <= 10_000 else "gap") for *row, most in rows]


def by_numpy(polls: Polls) -> list[tuple[object, ...]]:
    rows = np.array([(port, *row) for port, listed in polls.items() for row in listed], np.int64)
    found = seconds(*rows.T)
    return with_quality(list(zip(*(found[name].tolist() for name in COLUMNS), strict=True)))


def by_model(polls: Polls) -> list[tuple[object, ...]]:
    """Return the rows of `staging.port_seconds`, made of stored rows."""
    project = Project.open()
    rows = [(port, *row) for port, listed in polls.items() for row in listed]
    random.Random(1).shuffle(rows)
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA staging")
        connection.execute(
            f"CREATE TABLE staging.port_files (file_key BIGINT, is_management BOOLEAN, {HOUR_AND_SWITCH});"
            "CREATE TABLE staging.port_readings (file_key BIGINT, offset_ms INTEGER, in_bytes_raw BIGINT,"
            f" out_bytes_raw BIGINT, {HOUR_AND_SWITCH})"
        )
        connection.executemany(
            "INSERT INTO staging.port_files (file_key, is_management) VALUES (?, false)", [(port,) for port in polls]
        )
        names = ("file_key", "offset_ms", "in_bytes_raw", "out_bytes_raw")
        given = pa.table(dict(zip(names, np.array(rows, np.int64).T, strict=True)))
        connection.register("given", given)
        connection.execute("INSERT INTO staging.port_readings BY NAME FROM given")
        spread = project.render(project.models["staging.port_seconds"])
        return with_quality(
            connection.execute(f"SELECT {', '.join(COLUMNS)} FROM ({spread}\n) ORDER BY ALL").fetchall()
        )


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
    expected = by_rule(polls)
    assert len(expected) > 1000
    assert by_numpy(polls) == expected
    assert by_model(polls) == expected
