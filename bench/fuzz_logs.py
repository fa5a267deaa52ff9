"""Fuzz training logs: a damaged line never ends in a traceback, nor in an event that its text does not hold."""

from __future__ import annotations

import math
import re
import tempfile
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from random import Random

from bench.log_truth import make_sample
from warehouse.formats.logs.event import Event
from warehouse.formats.logs.line_kinds import line_kinds
from warehouse.formats.logs.reader import LogReader

WHOLE = (
    "step", "steps", "samples", "rank", "ranks", "local_rank", "pid", "tid", "channel", "channels", "src_rank",
    "dst_rank", "nic_index", "proxy_rank",
)  # fmt: skip
UNITS = (1.0, 1e3, 1e6, 1 / 60)
BEFORE = {"nccl": "node-1:1:2 [0] NCCL INFO ", "logger": "[2024-04-29 06:15:13,208] [INFO] [x.py:1:f] "}
LABELS = ("", "", "[rank3]:", "3: ", "(Worker pid=7, ip=10.0.0.1) ", "2024-05-23T16:00:00.5Z ", "job-worker-0 pytorch ")
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
LINES = 40


def fuzz_logs(seed: int, minutes: float, keep: Path) -> int:
    """Read damaged logs for some minutes; print each finding, keep its log, return the number of findings."""
    lines = known_lines(range(seed, seed + 40))
    logs = events = findings = 0
    ends = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory(prefix="warehouse-fuzz-") as scratch:
        path = Path(scratch) / "x.log"
        while time.monotonic() < ends:
            path.write_bytes(damaged_log(lines, Random(f"{seed}/{logs}")))
            found, problems = _read(path)
            for problem in problems:
                print(f"seed {seed}, log {logs}: {problem}", flush=True)
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{seed}-{logs}.log").write_bytes(path.read_bytes())
            logs, events, findings = logs + 1, events + found, findings + len(problems)
    print(f"{logs:,} damaged logs of {LINES} lines, {events:,} events, {findings:,} findings")
    return findings


def known_lines(seeds: Iterable[int]) -> list[str]:
    """Return the examples of all kinds of lines, and the lines of logs with these seeds."""
    files = [content for seed in seeds for content in make_sample(seed).files.values()]
    examples = [BEFORE.get(kind.scope, "") + kind.example for kind in line_kinds()]
    return examples + [line for content in files for line in content.decode(errors="replace").split("\n")]


def damaged_log(lines: list[str], chance: Random) -> bytes:
    """Return a log of random lines, about half of them damaged."""
    few = [chance.choice(lines) for _ in range(8)]
    return b"".join(_line(few, chance) + chance.choice((b"\n", b"\n", b"\n", b"\r", b"\r\n")) for _ in range(LINES))


def _line(few: list[str], chance: Random) -> bytes:
    text = chance.choice(few)
    text = re.sub(r"\d", lambda digit: str(chance.randrange(10)) if chance.random() < 0.2 else digit[0], text)
    line = (chance.choice(LABELS) + text).encode()
    at = chance.randint(0, len(line))
    match chance.choice(("whole", "whole", "whole", "digits", "cut", "behead", "splice", "bytes")):
        case "cut":
            return line[:at]
        case "behead":
            return line[at:]
        case "splice":
            other = chance.choice(few).encode()
            return line[:at] + other[chance.randint(0, len(other)) :]
        case "bytes":
            return line[:at] + chance.randbytes(chance.randint(1, 4)).replace(b"\n", b"") + line[at + 2 :]
    return line


def _read(path: Path) -> tuple[int, list[str]]:
    try:
        events = list(LogReader("x.log", lambda *_: None).read(path))
    except Exception:
        return 0, [traceback.format_exc()]
    return len(events), [problem for event in events for problem in problems_of(event)]


def problems_of(event: Event) -> Iterable[str]:
    """Yield the values of an event that its text does not hold."""
    text = str(event["text"])
    bare = text.replace(",", "")
    digits = {int(one) for written in (text, bare) for one in re.findall(r"\d+", written)}
    numbers = [float(one) for written in (text, bare) for one in NUMBER.findall(written)]
    for name in WHOLE:
        value = event.get(name)
        if value is not None and value not in digits and (name, event["family"]) != ("step", "lightning"):
            yield f"{name} {value} is not in {text!r}"
    for name in ("loss", "learning_rate", "seconds"):
        value = event.get(name)
        if not isinstance(value, float) or not math.isfinite(value) or not value:
            continue
        near = [unit * value for unit in UNITS] + [1 / value] if name == "seconds" else [value]
        if not any(math.isclose(one, number, rel_tol=1e-9) for one in near for number in numbers):
            yield f"{name} {value} is not in {text!r}"
    host = event.get("host")
    if host is not None and str(host) not in text:
        yield f"host {host} is not in {text!r}"
