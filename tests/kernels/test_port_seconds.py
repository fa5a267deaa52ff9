"""The kernel of port seconds against the rule of docs/metrics/rates.md, a window and a second at a time."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from warehouse.kernels import Arrays, kernel_rows, port_seconds
from warehouse.kernels.port_readings import PortFile, PortHour
from warehouse.kernels.port_seconds import COLUMNS, corrected, seconds, share

Polls = dict[int, list[tuple[int, int, int]]]
HOUR = np.datetime64("2024-05-23T16:00:00", "us")


def _seconds_of(port: int, polls: list[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """The rows of one port by the rule of docs/metrics/rates.md, a window and a second at a time."""
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


@pytest.mark.parametrize("most", [10, 10**9, 10**15 - 1])
def test_seconds_of_random_ports(most: int) -> None:
    """Idle ports, first polls that show something, gaps, windows of a millisecond, and bytes near the largest."""
    chance = random.Random(most)
    polls = {
        port: [
            (time, *(chance.choice([0, 0, chance.randrange(most + 1)]) for _ in range(2)))
            for time in sorted(chance.sample(range(chance.choice([20, 5_000, 3_600_000])), chance.randrange(1, 20)))
        ]
        for port in sorted(chance.sample(range(1000), 200))
    }
    rows = np.array([(port, *row) for port, listed in polls.items() for row in listed])
    found = seconds(*rows.T)
    expected = [row for port, listed in polls.items() for row in _seconds_of(port, listed)]
    assert len(expected) > 1000
    assert list(zip(*(found[name].tolist() for name in COLUMNS), strict=True)) == expected


def test_seconds_of_nothing() -> None:
    assert {name: len(values) for name, values in seconds(*np.zeros((4, 0), np.int64)).items()} == dict.fromkeys(
        COLUMNS, 0
    )


def _corrected_of(polls: list[tuple[int, int]], is_management: bool) -> list[int]:
    """The bytes of a port's rows (time, delta): a wrap that the line rate allows is corrected, a reset counts as 0."""
    found = []
    before = None
    for time, delta in polls:
        is_possible = before is not None and is_management and delta + 2**32 <= (time - before) * 125_000
        found.append(delta if delta >= 0 else delta + 2**32 if is_possible else 0)
        before = time
    return found


def _port(chance: random.Random) -> list[tuple[int, int, int]]:
    times = sorted(chance.sample(range(3_600_000), chance.randrange(2, 12)))
    polls = []
    before = 0
    for time in times:
        limit = (time - before) * 125_000 - 2**32  # the largest possible wrap, if below 0
        deltas = [0, chance.randrange(10**12), -chance.randrange(1, 2**32), min(limit, -1), min(limit + 1, -1)]
        polls.append((time, chance.choice(deltas), chance.choice(deltas)))
        before = time
    return polls


class Readings:
    """Reader of ports of three switches; the rows of a switch are in no order."""

    def __init__(
        self, ports: dict[int, list[tuple[int, int, int]]], switches: list[str], management: list[bool]
    ) -> None:
        keys = sorted(ports)
        hours = HOUR + np.arange(len(keys)).astype("timedelta64[s]")  # distinct, to see whose it is
        self.files: Arrays = {
            "file_key": np.array(keys, np.int64), "hour_utc": hours, "switch": np.array(switches, object),
            "is_management": np.array(management),
        }  # fmt: skip
        rows = [(key, *row) for key in keys for row in ports[key]]
        random.Random(1).shuffle(rows)
        columns = np.array(rows, np.int64).reshape(-1, 4).T
        names = ("file_key", "offset_ms", "in_bytes_raw", "out_bytes_raw")
        self.readings = dict(zip(names, columns, strict=True))

    def arrays(self, sql: str) -> Arrays:
        between = re.search(r"BETWEEN (\d+) AND (\d+)$", sql)
        if between is None:
            return self.files
        first, last = map(int, between.groups())
        keys = self.readings["file_key"]
        chosen = (keys >= first) & (keys <= last)
        return {name: values[chosen] for name, values in self.readings.items()}


def test_rows_of_all_ports_of_all_switches() -> None:
    """More ports than a chunk has, ports and a switch without rows, and management ports among the others."""
    chance = random.Random(7)
    switches = ["Leaf-1"] * 21 + ["Leaf-2"] * 2 + ["Leaf-3"] * 9
    management = [chance.random() < 0.5 for _ in switches]
    ports = {
        10 + 2 * place: [] if place in range(8, 16) or switch == "Leaf-2" else _port(chance)
        for place, switch in enumerate(switches)
    }
    reader: Any = Readings(ports, switches, management)
    found = list(kernel_rows("port_seconds", reader))
    assert [len(set(one["file_key"].tolist())) for one in found] == [8, 5, 8, 1]
    assert {str(one[name].dtype) for one in found for name in ("second", "covered_ms", "longest_ms")} == {"int32"}
    expected = []
    for place, (key, polls) in enumerate(ports.items()):
        bytes_of = [_corrected_of([(row[0], row[way]) for row in polls], management[place]) for way in (1, 2)]
        rows = [(row[0], *moved) for row, *moved in zip(polls, *bytes_of, strict=True)]
        hour = reader.files["hour_utc"][place].item()
        expected += [(*row, hour) for row in _seconds_of(key, rows)]
    names = [*COLUMNS, "hour_utc"]
    assert [row for one in found for row in zip(*(one[name].tolist() for name in names), strict=True)] == expected


def test_seconds_of_a_block_of_readings_are_those_of_its_files() -> None:
    """The readings of 19 files come in a chunk each, and are taken eight at a time."""
    chance = random.Random(11)
    switches, management = ["Leaf-1"] * 19, [chance.random() < 0.5 for _ in range(19)]
    reader: Any = Readings({place: _port(chance) for place in range(19)}, switches, management)
    rows = port_seconds._in_order(reader.readings)
    chunks = [{name: values[rows["file_key"] == key] for name, values in rows.items()} for key in range(19)]
    hours = reader.files["hour_utc"]
    block = [
        PortFile(key, PortHour(hours[key].item(), "", "", is_management), "", "")
        for key, is_management in enumerate(management)
    ]
    found = list(port_seconds.following(block, chunks))
    assert [len(set(one["file_key"].tolist())) for one in found] == [8, 8, 3]
    expected = list(kernel_rows("port_seconds", reader))
    assert [{name: values.tolist() for name, values in one.items()} for one in found] == [
        {name: values.tolist() for name, values in one.items()} for one in expected
    ]


def test_no_ports_give_no_rows() -> None:
    reader: Any = Readings({}, [], [])
    assert list(kernel_rows("port_seconds", reader)) == []


def test_rows_in_order_are_taken_as_they_are_and_others_sorted() -> None:
    rows = {"file_key": np.array([1, 1, 2]), "offset_ms": np.array([5, 7, 1])}
    assert port_seconds._in_order(rows) is rows
    for order in ([1, 0, 2], [2, 0, 1], [0, 2, 1]):
        mixed = {name: values[order] for name, values in rows.items()}
        in_order = port_seconds._in_order(mixed)
        assert {name: values.tolist() for name, values in in_order.items()} == {
            "file_key": [1, 1, 2],
            "offset_ms": [5, 7, 1],
        }


def test_bytes_that_do_not_fall_are_not_corrected() -> None:
    raw = np.array([0, 5])
    assert corrected(raw, np.array([1, 1]), np.array([0, 1]), np.array([True, True])) is raw


def test_a_share_is_exact_beyond_64_bits() -> None:
    chance = random.Random(3)
    assert share(*np.array([[2**62], [2], [4]])).tolist() == [2**61]  # the product is the first beyond
    cases = [(2**62, 2, 4), *((chance.randrange(10**15), chance.randrange(3_600_000), 3_600_000) for _ in range(200))]
    moved, part, whole = np.array(cases).T
    assert share(moved, part, whole).tolist() == [a * b // c for a, b, c in cases]
    assert share(moved[:0], part[:0], whole[:0]).tolist() == []
