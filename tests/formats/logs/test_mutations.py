"""Damaged logs: cut, beheaded, spliced lines, and random bytes.

The reader never crashes, never gives a value that is not in the line, and never loses a whole line.
"""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.fuzz import damaged_log, known_lines, problems_of
from warehouse.formats.logs.event import Event
from warehouse.formats.logs.lines import readable
from warehouse.formats.logs.reader import LogReader

PLACES = ("line", "segment", "item", "text")
OF_NEIGHBORS = {"progress", "optimizer_step"}
"""Kinds of events that a neighboring line can replace. The rank of a label is given once."""


def events_of(path: Path, content: bytes) -> tuple[list[Event], int]:
    """Return the events of a log, and the number of its rejected lines."""
    path.write_bytes(content)
    rejected: list[int] = []
    return list(LogReader("x.log", lambda line, *_: rejected.append(line)).read(path)), len(rejected)


def refuse_loss(path: Path, lines: list[str], seed: int) -> None:
    """Fail if damaged lines give wrong values, or if a whole line beside them loses an event."""
    content = damaged_log(lines, Random(seed))
    events, _ = events_of(path, content)
    assert [problem for event in events for problem in problems_of(event)] == []
    found: dict[object, list[Event]] = {}
    for event in events:
        found.setdefault(event["segment"], []).append(_bare(event))
    segments = readable(content).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    whole = {re.sub(r"\d", "0", line) for line in lines}
    for number, text in enumerate(segments, 1):
        if re.sub(r"\d", "0", text) in whole:
            alone, rejected = events_of(path, text.encode() + b"\n")
            own = [event for event in alone if event["kind"] not in OF_NEIGHBORS and event.get("name") != "label"]
            assert rejected or all(_bare(event) in found.get(number, []) for event in own), text


def _bare(event: Event) -> Event:
    return {name: value for name, value in event.items() if name not in PLACES}


@pytest.mark.parametrize("seed", range(4))
def test_damaged_lines_of_known_logs(seed: int, tmp_path: Path, known: list[str]) -> None:
    refuse_loss(tmp_path / "x.log", known, seed)


@pytest.fixture(scope="session")
def known() -> list[str]:
    return known_lines(range(24))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=400))
def test_any_bytes_can_be_read(content: bytes, tmp_path: Path) -> None:
    events, rejected = events_of(tmp_path / "x.log", content)
    assert len(events) + rejected <= len(content) + 1


STAMP = "[2024-05-23 16:00:00,000] [INFO] [x.py:1:f] "
NCCL = "node-1:100:200 [0] NCCL INFO "
LONG = {
    "writers": STAMP * 5_000,
    "pairs": STAMP + "a: 1" + ", a: 1" * 40_000 + "x",
    "keys of Megatron": " iteration 1/ 2 |" + " a" * 120_000,
    "sizes": "using world size: " + "a " * 120_000,
    "bars": " 5%| | 1/2 [00:01<00:01, 1.0s/it]" * 7_000,
    "a bar without end": " 0%|" + "|" * 250_000,
    "labels": "a: " * 80_000,
    "dots": "  name " + "." * 250_000,
    "an error": "a." * 120_000 + "Error",
    "lists of NICs": NCCL + "NET/IB : Using " + "[0]={" * 50_000,
    "communicators": NCCL + "Tree 0 : 1 -> 2 -> 3/4/-1" + " comm 0x7a10 nRanks 32" * 10_000,
    "trees": NCCL + "Trees [0] " + "1/-1/-1->0->8|" * 18_000,
    "ranks": NCCL + "Channel 00/08 :" + "   1" * 60_000 + "x",
    "hosts": ("a" * 20 + ":1:2 [0] NCCL INFO x") * 6_000,
}
"""Lines of 250 kB that provoke backtracking or deep nesting."""


@pytest.mark.timeout(20)
@pytest.mark.parametrize("form", LONG)
def test_a_long_line_is_parsed_quickly_and_the_next_is_read(form: str, tmp_path: Path) -> None:
    events, _ = events_of(tmp_path / "x.log", f"{LONG[form]}\n{STAMP}fine\n".encode())

    assert ("message", 2) in {(event["kind"], event["line"]) for event in events}
