"""Bytes of ports in seconds: by the models, by NumPy, and by the rule of docs/metrics/rates.md, second by second."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from tests.models.seconds import COLUMNS, seconds, share
from warehouse.project.project import Project

Polls = Mapping[int, Sequence[tuple[int, int, int]]]
"""Of each port the rows: milliseconds since the start of the hour, bytes in, bytes out."""
HOUR_AND_SWITCH = "hour_utc TIMESTAMP DEFAULT TIMESTAMP '2024-05-23 16:00:00', switch VARCHAR DEFAULT 'Leaf-1'"


def by_rule(port: int, polls: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, ...]]:
    """Yield the rows of one port, whose bytes are corrected for wraps."""
    found: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    anchor = None
    for place, (time, *moved) in enumerate(polls):
        if any(moved):
            start = 0 if anchor is None else max(anchor, polls[place - 1][0] - 1000, 1)
            end = max(time, start + 1)
            for second in range(start // 1000, (end - 1) // 1000 + 1):
                low, high = max(second * 1000, start) - start, min(second * 1000 + 1000, end) - start
                row = found[second]
                for way, amount in enumerate(moved):
                    row[way] += amount * high // (end - start) - amount * low // (end - start)
                row[2] += high - low
                row[3] = max(row[3], end - start)
        if anchor is None or any(moved):
            anchor = time
    yield from ((port, second, *found[second]) for second in sorted(found))


def by_numpy(polls: Polls) -> list[tuple[int, ...]]:
    """Return the rows of all ports, likewise."""
    rows = np.array([(port, *row) for port, listed in polls.items() for row in listed], np.int64).reshape(-1, 4)
    found = seconds(*rows.T)
    return list(zip(*(found[name].tolist() for name in COLUMNS), strict=True))


def by_models(polls: Polls, management: Mapping[int, bool]) -> list[tuple[int, ...]]:
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
        if rows:
            connection.executemany(
                "INSERT INTO staging.port_files (file_key, is_management) VALUES (?, ?)", list(management.items())
            )
            names = ("file_key", "offset_ms", "in_bytes_raw", "out_bytes_raw")
            columns = np.array(rows, np.int64).T
            connection.register("given", pa.table(dict(zip(names, columns, strict=True))))
            connection.execute("INSERT INTO staging.port_readings BY NAME FROM given")
        spread = project.render(project.models["staging.port_seconds"])
        return connection.execute(f"SELECT {', '.join(COLUMNS)} FROM ({spread}\n) ORDER BY ALL").fetchall()


@pytest.mark.parametrize("most", [10, 10**9, 10**15 - 1])
def test_seconds_of_random_ports(most: int) -> None:
    """Idle ports, first polls that show something, gaps, windows of a millisecond, and bytes near the largest."""
    chance = random.Random(most)
    polls: Polls = {
        port: [
            (time, *(chance.choice([0, 0, chance.randrange(most + 1)]) for _ in range(2)))  # type: ignore[misc]
            for time in sorted(chance.sample(range(chance.choice([20, 5_000, 3_600_000])), chance.randrange(1, 20)))
        ]
        for port in sorted(chance.sample(range(1000), 200))
    }
    expected = [row for port, listed in polls.items() for row in by_rule(port, listed)]
    assert len(expected) > 1000
    assert by_numpy(polls) == expected
    assert by_models(polls, dict.fromkeys(polls, False)) == expected


def corrected(polls: Sequence[tuple[int, int]], *, is_management: bool) -> list[int]:
    """Return the bytes of rows (time, delta): a wrap that the line rate allows is corrected, a reset counts as 0."""
    found = []
    before = None
    for time, delta in polls:
        is_possible = before is not None and is_management and delta + 2**32 <= (time - before) * 125_000
        found.append(delta if delta >= 0 else delta + 2**32 if is_possible else 0)
        before = time
    return found


def a_port(chance: random.Random) -> list[tuple[int, int, int]]:
    """Return the stored rows of a port, with wraps at the limit of what is possible, and resets."""
    polls = []
    before = 0
    for time in sorted(chance.sample(range(3_600_000), chance.randrange(2, 12))):
        limit = (time - before) * 125_000 - 2**32  # the largest possible wrap, if below 0
        deltas = [0, chance.randrange(10**12), -chance.randrange(1, 2**32), min(limit, -1), min(limit + 1, -1)]
        polls.append((time, chance.choice(deltas), chance.choice(deltas)))
        before = time
    return polls


def test_wraps_are_corrected_before_bytes_are_spread() -> None:
    chance = random.Random(7)
    management = {port: chance.random() < 0.5 for port in range(10, 90, 2)}
    polls = {port: a_port(chance) for port in management}
    right: dict[int, list[tuple[int, int, int]]] = {}
    for port, rows in polls.items():
        ways = (corrected([(row[0], row[way]) for row in rows], is_management=management[port]) for way in (1, 2))
        right[port] = [(row[0], *moved) for row, *moved in zip(rows, *ways, strict=True)]
    found = by_models(polls, management)
    assert len(found) > 1000
    assert found == by_numpy(right)


def test_seconds_of_nothing() -> None:
    assert by_numpy({}) == by_models({}, {}) == []
    idle = {1: [(5, 0, 0), (9, 0, 0)]}
    assert by_numpy(idle) == by_models(idle, {1: False}) == []


def test_a_share_is_exact_beyond_64_bits() -> None:
    chance = random.Random(3)
    assert share(*np.array([[2**62], [2], [4]])).tolist() == [2**61]  # the product is the first beyond
    cases = [(2**62, 2, 4), *((chance.randrange(10**15), chance.randrange(3_600_000), 3_600_000) for _ in range(200))]
    moved, part, whole = np.array(cases).T
    assert share(moved, part, whole).tolist() == [a * b // c for a, b, c in cases]
    assert share(moved[:0], part[:0], whole[:0]).tolist() == []
