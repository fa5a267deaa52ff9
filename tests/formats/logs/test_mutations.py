"""Damaged logs: cut, doubled, reordered and spliced lines, and random bytes.

The reader never crashes, never reports values that are not in the line, and never loses an undamaged line. The lines
come from the sample's tasks and, if available, from the published task.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warehouse.formats.logs.reader import LogReader
from warehouse.formats.logs.segments import readable
from warehouse.sample import SampleOptions
from warehouse.sample.plan import make_plan
from warehouse.sample.task_logs import write_logs

Events = list[dict[str, Any]]
NUMBERS = (
    "step", "steps", "samples", "rank", "ranks", "local_rank", "pid", "tid", "channel", "channels", "src_rank",
    "dst_rank", "nic_index",
)  # fmt: skip
PLACES = ("line", "segment", "item", "filename", "text")
CONTEXT = {"progress", "optimizer_step"}
"""Kinds of events that a neighboring line can replace."""


class Lines(list[bytes]):
    """Lines to damage; the short repr keeps the output of hypothesis readable."""

    def __repr__(self) -> str:
        return f"{len(self)} lines"


@pytest.fixture(scope="session")
def sample_lines(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """Return up to three lines of each form in the sample's logs."""
    folder = tmp_path_factory.mktemp("logs")
    options = SampleOptions(seconds=120).resolved()
    plan = make_plan(options)
    for task in plan.tasks:
        write_logs(folder / task.name, task, plan.fabric, options)
    return _forms(sorted(folder.rglob("*-*.log")))


def _forms(paths: list[Path]) -> Lines:
    """Return lines that differ in more than their numbers, up to three of each form."""
    found: dict[bytes, list[bytes]] = {}
    for path in paths:
        if path.name.startswith("pod-node"):
            continue
        for line in re.split(rb"[\r\n]", path.read_bytes())[:-1]:
            found.setdefault(re.sub(rb"\d+", b"0", line), []).append(line)
    return Lines(line for lines in found.values() for line in lines[:3] if line.strip())


@cache
def _real_lines() -> Lines:
    root = Path(os.environ.get("WAREHOUSE_REAL", "data/real"))
    return _forms(sorted(root.glob("zhejiang/*/taskinfo/*/llama*.log")))


def _read(folder: Path, content: bytes) -> tuple[Events, list[tuple[int, str, str]]]:
    path = folder / "x.log"
    path.write_bytes(content)
    rejected: list[tuple[int, str, str]] = []
    reader = LogReader("x.log", lambda *rejection: rejected.append(rejection))
    events = [{name: value for name, value in event.items() if value is not None} for event in reader.read(path)]
    return events, rejected


def _damaged(lines: Lines, chance: Random) -> list[bytes]:
    """Return random lines, each whole or damaged in one way."""
    chosen = [chance.choice(lines) for _ in range(chance.randint(1, 25))]
    out: list[bytes] = []
    for line in chosen:
        kind = chance.choice(["whole", "whole", "whole", "cut", "double", "swap", "splice", "bytes", "behead"])
        at = chance.randint(0, len(line))
        if kind == "cut":
            out.append(line[:at])
        elif kind == "behead":
            out.append(line[at:])
        elif kind == "double":
            out += [line, line]
        elif kind == "swap" and out:
            out.insert(chance.randrange(len(out)), line)
        elif kind == "splice":
            other = chance.choice(lines)
            out.append(line[:at] + other[chance.randint(0, len(other)) :])
        elif kind == "bytes":
            noise = bytes(chance.randrange(256) for _ in range(chance.randint(1, 4)))
            out.append(line[:at] + noise + line[at + chance.randint(0, 4) :])
        else:
            out.append(line)
    return out


def _check(lines: Lines, seed: int, folder: Path) -> None:
    chance = Random(seed)
    damaged = _damaged(lines, chance)
    content = b"".join(line + chance.choice([b"\n", b"\n", b"\r", b"\r\n"]) for line in damaged)
    events, _ = _read(folder, content)
    line_by_line, _ = _read(folder, content)
    assert events == line_by_line

    segments = readable(content).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for event in events:  # all values of an event are in its own segment
        text = segments[event["segment"] - 1]
        assert event["text"] == text[:4000]
        wrapped = text + "".join(segments[event["segment"] :])  # a Megatron iteration may continue in the next line
        numbers = {int(number) for number in re.findall(r"\d+", text.replace(",", ""))}
        numbers |= {int(number) for number in re.findall(r"\d+", wrapped if event["family"] == "megatron" else text)}
        for name in NUMBERS:
            assert event.get(name, 0) in numbers | {0}, (name, event)
        if "host" in event:
            hosts = {host for line in lines for host in re.findall(r"([^\s:]+):\d+:\d+ \[", readable(line))}
            assert event["host"] in text or any(event["host"] in host for host in hosts)

    whole = {readable(line) for line in lines}
    by_segment: dict[int, Events] = {}
    for event in events:
        by_segment.setdefault(event["segment"], []).append(event)
    for number, text in enumerate(segments, 1):  # no whole line is lost
        if text not in whole:
            continue
        expected, rejected = _alone(folder, text)
        found = [_without_place(event) for event in by_segment.get(number, [])]
        if not rejected:
            assert all(event in found for event in expected), text


_ALONE: dict[str, tuple[Events, bool]] = {}


def _alone(folder: Path, text: str) -> tuple[Events, bool]:
    """Return the events of a line alone, without their places, and True if a line was rejected."""
    if text not in _ALONE:
        events, rejected = _read(folder, text.encode() + b"\n")
        found = [_without_place(event) for event in events if event["kind"] not in CONTEXT]
        _ALONE[text] = found, bool(rejected)
    return _ALONE[text]


def test_a_bar_before_an_iteration_of_another_trainer(tmp_path: Path) -> None:
    """A bar and the next iteration of the same step count once, on the fast path and line by line."""
    bar = b" 40%|####      | 4/10 [00:37<00:55, 9.26s/it]\n"
    iteration = (
        b" [2024-05-23 16:00:57] iteration        4/       6 | consumed samples:          128 | elapsed time per "
        b"iteration (ms): 10976.0 | learning rate: 1.000000E-04 | global batch size:    32 | lm loss: 3.000000E+00 | "
        b"loss scale: 1.0 | grad norm: 1.125 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )
    assert [event["family"] for event in _read(tmp_path, bar + iteration)[0]] == ["megatron"]
    assert _read(tmp_path, bar + iteration)[0] == _read(tmp_path, bar + iteration)[0]


def _without_place(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name not in PLACES}


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_damaged_lines_of_the_sample(seed: int, sample_lines: Lines, tmp_path: Path) -> None:
    _check(sample_lines, seed, tmp_path)


@pytest.mark.real
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_damaged_lines_of_the_published_task(seed: int, tmp_path: Path) -> None:
    if not _real_lines():
        pytest.skip("no published task at hand: set WAREHOUSE_REAL, or lay the real files out in data/real")
    _check(_real_lines(), seed, tmp_path)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=400))
def test_any_bytes_can_be_read(content: bytes, tmp_path: Path) -> None:
    events, rejected = _read(tmp_path, content)

    assert len(events) + len(rejected) <= len(content) + 1


STAMP = "[2024-05-23 16:00:00,000] [INFO] [x.py:1:f] "
NCCL = "node-1:100:200 [0] NCCL INFO "
LONG = {
    "writers": STAMP * 5_000,
    "pairs": STAMP + "a: 1" + ", a: 1" * 40_000 + "x",
    "words": STAMP + "a, " * 80_000 + "= x",
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
    events, _ = _read(tmp_path, f"{LONG[form]}\n{STAMP}fine\n".encode())

    assert ("message", 2) in {(event["kind"], event["line"]) for event in events}
