"""Profile of a build: the cost of each part (`warehouse build --profile`).

The profile is a reporter that wraps another one. Whenever the build begins a part or stage, the resources used since
then are added to the previous part or stage. So parts are built one after another. CPU time is that of the whole
process: engine threads, NumPy and hashing included. Memory and bytes are those of DuckDB's profiler, through
`engine/observed.py`.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

from warehouse.graph.plan import Key
from warehouse.runner.reporter import Reporter
from warehouse.store.manifest import Part

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.engine.observed import Statement
    from warehouse.formats.base import Inventory
    from warehouse.runner.result import Result

START = "start"
RUNNER = "runner, and parts there already"
END = "end"
_MB = 10**6
_NAME = 31
_HEAD = (
    f"{'':<{_NAME}}{'CPU':>7}{'wall':>7}{'rows':>11}{'read':>6}{'wrote':>6}{'mem':>6}{'spill':>6}\n"
    f"{'':<{_NAME}}{'s':>7}{'s':>7}{'':>11}{'MB':>6}{'MB':>6}{'MB':>6}{'MB':>6}"
)


class Clocks(NamedTuple):
    """CPU seconds of all threads of the process, and the clock."""

    cpu: float
    wall: float

    @staticmethod
    def now() -> Clocks:
        """Return both as they are now."""
        return Clocks(time.process_time(), time.perf_counter())


@dataclass
class Cost:
    """Resources used by a part, model or stage."""

    cpu: float = 0.0
    """Seconds of user and system time, of all threads."""
    wall: float = 0.0
    rows: int = 0
    read: int = 0
    """Bytes that the engine read from files, but not from its cache."""
    written: int = 0
    memory: int = 0
    """Peak bytes of the engine's buffers."""
    spill: int = 0
    """Peak bytes of the engine's temporary files."""

    def add(self, other: Cost) -> None:
        """Add another cost: the sum of all values, the maximum of memory and spill."""
        for name in ("cpu", "wall", "rows", "read", "written"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.memory, self.spill = max(self.memory, other.memory), max(self.spill, other.spill)

    def line(self, name: str) -> str:
        """Return a line of the table."""
        shown = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
        sizes = f"{_mb(self.read):>6}{_mb(self.written):>6}{_mb(self.memory):>6}{_mb(self.spill):>6}"
        rows = f"{self.rows:,}" if self.rows else "-"
        return f"{shown:<{_NAME}}{self.cpu:>7.2f}{self.wall:>7.2f}{rows:>11}{sizes}"


class Profile(Reporter):
    """Reporter that measures each part and stage, and forwards all calls to another reporter."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self.stages: dict[str, Cost] = {START: Cost()}
        self.parts: dict[Key, Cost] = {}
        self._key: Key | None = None
        self._spent = self.stages[START]
        first = Clocks.now()
        self._last = Clocks(0.0, first.wall - first.cpu)

    # calls of the build -----------------------------------------------------------------------

    def found(self, inventory: Inventory) -> None:
        """Forward the call."""
        self._reporter.found(inventory)

    def started(self, parts: int) -> None:
        """Forward the call."""
        self._reporter.started(parts)

    def note(self, text: str) -> None:
        """Forward the call."""
        self._reporter.note(text)

    def failed(self, target: Path) -> None:
        """Forward the call."""
        self._reporter.failed(target)

    def ended(self, result: Result) -> None:
        """Stop measuring and forward the call."""
        self._turn(Cost())
        self._reporter.ended(result)

    def stage_started(self, stage: str) -> None:
        """Forward the call, and measure a stage from here on."""
        self._reporter.stage_started(stage)
        self._measure(stage)

    def _measure(self, stage: str) -> None:
        self._key = None
        self._turn(self.stages.setdefault(stage, Cost()))

    def published(self) -> None:
        """Forward the call, and measure the end of the build from here on."""
        self._reporter.published()
        self._measure(END)

    def part_started(self, model: str, partition: str) -> None:
        """Forward the call, and measure a part from here on."""
        self._reporter.part_started(model, partition)
        unfinished = self._key is not None  # the last one was a view, of which only checks ran
        spent, self._key = self._spent, Key(model, partition)
        self._turn(Cost())
        if unfinished:
            self.stages.setdefault(RUNNER, Cost()).add(spent)

    def part_finished(self, part: Part, seconds: float, reused: bool) -> None:
        """Record the cost of a part if it was written, else add it to the runner's."""
        spent, begun = self._spent, self._key
        self._measure(RUNNER)  # the runner's own work up to the next part counts here too
        if not reused:
            spent.rows = part.rows
            self.parts[Key(part.relation, part.partition)] = spent
        elif begun is not None:
            self._spent.add(spent)
        self._reporter.part_finished(part, seconds, reused)

    def statement_finished(self, statement: Statement) -> None:
        """Record memory and bytes of a statement."""
        self._spent.memory = max(self._spent.memory, statement.memory)
        self._spent.spill = max(self._spent.spill, statement.spill)
        self._spent.read += statement.read
        self._spent.written += statement.written

    def _turn(self, to: Cost) -> None:
        now = Clocks.now()
        self._spent.cpu += now.cpu - self._last.cpu
        self._spent.wall += now.wall - self._last.wall
        self._spent, self._last = to, now

    @property
    def peak(self) -> int:
        """Peak bytes of the process in memory."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    # results ----------------------------------------------------------------------------------

    def table(self) -> Iterator[str]:
        """Yield lines of at most 80 columns: models by CPU time, their sum, stages, the whole process."""
        yield _HEAD
        models: dict[str, Cost] = {}
        for key, spent in self.parts.items():
            models.setdefault(key.model, Cost()).add(spent)
        inside = Cost()
        for name, spent in sorted(models.items(), key=_cost):
            yield spent.line(name)
            inside.add(spent)
        yield inside.line(f"{len(models)} models, {len(self.parts)} parts")
        yield ""
        for name, spent in self.stages.items():
            yield spent.line(name)
            inside.add(spent)
        inside.rows, inside.memory = 0, self.peak
        yield inside.line("whole process")

    def summary(self) -> dict[str, object]:
        """Return the profile as JSON-able values, in seconds and bytes."""
        return {
            "parts": [
                {"model": key.model, "partition": key.partition, **asdict(spent)}
                for key, spent in sorted(self.parts.items(), key=_cost)
            ],
            "outside": [{"stage": name, **asdict(spent)} for name, spent in self.stages.items()],
            "peak": self.peak,
        }


def _cost(item: tuple[object, Cost]) -> tuple[float, str]:
    return -item[1].cpu, str(item[0])


def _mb(count: int) -> str:
    """Return megabytes in at most four characters up to 9,999 MB; `-` for zero.

    >>> _mb(0), _mb(40_000), _mb(1_260_000), _mb(1_487_000_000)
    ('-', '0.0', '1.3', '1487')
    """
    if not count:
        return "-"
    return f"{count / _MB:.1f}" if count < 10 * _MB else f"{count / _MB:.0f}"
