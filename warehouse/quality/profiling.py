"""What each part of a build costs: `warehouse build --profile`.

A reporter around the usual one. Each time the build turns to something else, what the process has used since the
last turn goes to what it was at; hence parts are made one after another, and every figure is of one of them alone.
CPU time and bytes are the operating system's, for the whole process: the engine's threads, numpy and the hashing of
what was written are all in. Memory and spilling are the engine's own word, told by `engines/observed.py`.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from warehouse.graph.parts import Key
from warehouse.runner.reporter import Silent
from warehouse.store.part_records import ALL, Part

if TYPE_CHECKING:
    from warehouse.engine.observed import Statement
    from warehouse.formats.base import Inventory
    from warehouse.runner.result import Result

START = "start"
THERE = "runner, and parts there already"
_MB = 10**6
_NAME = 31
_HEAD = (
    f"{'':<{_NAME}}{'CPU':>7}{'wall':>7}{'rows':>11}{'read':>6}{'wrote':>6}{'mem':>6}{'spill':>6}\n"
    f"{'':<{_NAME}}{'s':>7}{'s':>7}{'':>11}{'MB':>6}{'MB':>6}{'MB':>6}{'MB':>6}"
)


class Reading(NamedTuple):
    """The process so far."""

    cpu: float
    wall: float
    read: int
    written: int

    @staticmethod
    def now() -> Reading:
        """CPU seconds of all threads, a clock, bytes of all reads and writes."""
        try:
            said = dict(line.split(": ") for line in Path("/proc/self/io").read_text(encoding="ascii").splitlines())
        except OSError:  # no Linux
            said = {}
        return Reading(time.process_time(), time.perf_counter(), int(said.get("rchar", 0)), int(said.get("wchar", 0)))


@dataclass
class Spent:
    """What something has used."""

    cpu: float = 0.0
    """Seconds of user and system time."""
    wall: float = 0.0
    rows: int = 0
    read: int = 0
    """Bytes, of files and pipes; a page that the system had in memory counts, one that the engine had does not."""
    written: int = 0
    memory: int = 0
    """Bytes at most: the engine's buffers, or what the process grew by where that is more."""
    spill: int = 0
    """Bytes at most in the engine's temporary files."""

    def add(self, other: Spent) -> None:
        """Sums, and the largest of memory and spill."""
        for name in ("cpu", "wall", "rows", "read", "written"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.memory, self.spill = max(self.memory, other.memory), max(self.spill, other.spill)

    def line(self, name: str) -> str:
        """Its line of the table."""
        shown = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
        sizes = f"{_mb(self.read):>6}{_mb(self.written):>6}{_mb(self.memory):>6}{_mb(self.spill):>6}"
        rows = f"{self.rows:,}" if self.rows else "-"
        return f"{shown:<{_NAME}}{self.cpu:>7.2f}{self.wall:>7.2f}{rows:>11}{sizes}"


class Profile(Silent):
    """Reads the process at every turn of a build, and passes on what it is told.

    Parameters
    ----------
    told
        Who tells the build to people.
    plans
        A folder for the engine's plans, a file a model; it is made where it is not there.
    """

    one_at_a_time = True

    def __init__(self, told: Silent, plans: Path | None = None) -> None:
        self._told = told
        self._plans = plans
        self._begun: set[str] = set()
        self.stages: dict[str, Spent] = {START: Spent()}
        self.parts: dict[Key, Spent] = {}
        self._key: Key | None = None
        self._spent = self.stages[START]
        first = Reading.now()
        self._last = first._replace(cpu=0.0, wall=first.wall - _age(), read=0, written=0)
        self._resident = _memory("VmRSS")
        self.peak = 0

    # what a build tells -----------------------------------------------------------------------

    def found(self, inventory: Inventory) -> None:
        """Pass it on."""
        self._told.found(inventory)

    def started(self, parts: int) -> None:
        """Pass it on."""
        self._told.started(parts)

    def note(self, text: str) -> None:
        """Pass it on."""
        self._told.note(text)

    def failed(self, target: Path) -> None:
        """Pass it on."""
        self._told.failed(target)

    def ended(self, result: Result) -> None:
        """Pass it on; nothing more is measured."""
        self._turn(Spent())
        self._told.ended(result)

    def doing(self, stage: str) -> None:
        """What follows is of this stage."""
        self._key = None
        self._turn(self.stages.setdefault(stage, Spent()))

    def making(self, model: str, partition: str) -> None:
        """What follows is of this part."""
        unfinished = self._key is not None  # a part that was there, of a model that is not wanted now
        spent, self._key = self._spent, Key(model, partition)
        self._turn(Spent())
        if unfinished:
            self.stages.setdefault(THERE, Spent()).add(spent)

    def finished(self, part: Part, seconds: float, reused: bool) -> None:
        """What was used is the part's, if it was made."""
        spent, key = self._spent, Key(part.relation, part.partition)
        self.doing(THERE)  # which is also where the runner looks for what is next
        if reused:
            self._spent.add(spent)
        else:
            spent.rows = part.rows
            self.parts[key] = spent
        self._told.finished(part, seconds, reused)

    def ran(self, statement: Statement) -> None:
        """The engine ran a statement."""
        self._spent.memory = max(self._spent.memory, statement.memory)
        self._spent.spill = max(self._spent.spill, statement.spill)
        if self._plans is not None and self._key is not None:
            _keep_plan(self._plans, self._key, statement, first=self._key.model not in self._begun)
            self._begun.add(self._key.model)

    def _turn(self, to: Spent) -> None:
        now, last = Reading.now(), self._last
        used = Spent(now.cpu - last.cpu, now.wall - last.wall, 0, now.read - last.read, now.written - last.written)
        peak = _memory("VmHWM")
        self._spent.add(used)
        self._spent.memory = max(self._spent.memory, peak - self._resident)
        self.peak = max(self.peak, peak)
        _forget_peak()
        self._resident = _memory("VmRSS")
        self._spent, self._last = to, now

    # what it tells ----------------------------------------------------------------------------

    def models(self) -> dict[str, Spent]:
        """The parts of each model together, the costliest first."""
        found: dict[str, Spent] = {}
        for key, spent in self.parts.items():
            found.setdefault(key.model, Spent()).add(spent)
        return dict(sorted(found.items(), key=_cost))

    def table(self, *, by_part: bool = False) -> Iterator[str]:
        """Lines of at most 80 columns: models or parts by CPU time, their sum, what lies outside, all of it."""
        yield _HEAD
        models = self.models()
        if by_part:
            for key, spent in sorted(self.parts.items(), key=_cost):
                yield spent.line(key.model if key.partition == ALL else f"{key.model} {key.partition}")
        else:
            for name, spent in models.items():
                yield spent.line(name)
        inside, outside = Spent(), Spent()
        for spent in models.values():
            inside.add(spent)
        for spent in self.stages.values():
            outside.add(spent)
        yield inside.line(f"{len(models)} models, {len(self.parts)} parts")
        yield ""
        for name, spent in self.stages.items():
            yield spent.line(name)
        inside.add(outside)
        inside.rows, inside.memory = 0, self.peak or inside.memory
        yield inside.line("whole process")

    def summary(self) -> dict[str, object]:
        """The same as JSON-able values; seconds and bytes."""
        return {
            "parts": [
                {"model": key.model, "partition": key.partition, **asdict(spent)}
                for key, spent in sorted(self.parts.items(), key=_cost)
            ],
            "outside": [{"stage": name, **asdict(spent)} for name, spent in self.stages.items()],
            "peak": self.peak,
        }


def _cost(item: tuple[object, Spent]) -> tuple[float, str]:
    return -item[1].cpu, str(item[0])


def _mb(count: int) -> str:
    """Megabytes in four characters; little is written out, and nothing is a dash.

    >>> _mb(0), _mb(40_000), _mb(1_260_000), _mb(1_487_000_000)
    ('-', '0.0', '1.3', '1487')
    """
    if not count:
        return "-"
    return f"{count / _MB:.1f}" if count < 10 * _MB else f"{count / _MB:.0f}"


def _keep_plan(folder: Path, key: Key, statement: Statement, *, first: bool) -> None:
    """Append what ran, and how, to the model's file."""
    folder.mkdir(parents=True, exist_ok=True)
    where = "" if key.partition == ALL else f" {key.partition}"
    with (folder / f"{key.model}.txt").open("w" if first else "a", encoding="utf-8") as stream:
        sql = re.sub(r"\n\s*\n", "\n", statement.sql.strip())  # where the front matter stood, lines are empty
        stream.write(f"-- {key.model}{where}\n{sql}\n\n{statement.plan.strip()}\n\n\n")


# the process, as Linux tells it; elsewhere these figures are missing -----------------------------------


def _memory(name: str) -> int:
    """`VmRSS` or `VmHWM` in bytes."""
    try:
        with Path("/proc/self/status").open(encoding="ascii", errors="replace") as stream:
            return next(int(line.split()[1]) * 1024 for line in stream if line.startswith(f"{name}:"))
    except (OSError, StopIteration):
        return 0


def _forget_peak() -> None:
    """Have `VmHWM` start anew; where that is not allowed it stays the highest so far."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _age() -> float:
    """Seconds since the process started."""
    try:
        began = int(Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])
        up = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return time.process_time()
    return max(0.0, up - began / os.sysconf("SC_CLK_TCK"))
