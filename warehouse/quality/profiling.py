"""Profile of a build: the cost of each part (`warehouse build --profile`).

Parts are built one after another. At the end of a part or stage, what the process used since the last one ended is its
cost. CPU time is that of the whole process: engine threads, NumPy and hashing included. Memory and bytes are those of
DuckDB's profiler, through the engine.
"""

from __future__ import annotations

import resource
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TextIO

from warehouse.graph.plan import Key
from warehouse.runner.reporter import Reporter, Result
from warehouse.store.manifest import Part

RUNNER = "runner, and parts there already"
_MB = 10**6
_NAME = 31
_HEAD = (
    f"{'':<{_NAME}}{'CPU':>7}{'wall':>7}{'rows':>11}{'read':>6}{'wrote':>6}{'mem':>6}{'spill':>6}\n"
    f"{'':<{_NAME}}{'s':>7}{'s':>7}{'':>11}{'MB':>6}{'MB':>6}{'MB':>6}{'MB':>6}"
)
_PEAKS = ("memory", "spill")


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
        for name in (one.name for one in fields(self)):
            both = getattr(self, name), getattr(other, name)
            setattr(self, name, max(both) if name in _PEAKS else sum(both))

    def line(self, name: str) -> str:
        """Return a line of the table."""
        shown = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
        sizes = f"{_mb(self.read):>6}{_mb(self.written):>6}{_mb(self.memory):>6}{_mb(self.spill):>6}"
        rows = f"{self.rows:,}" if self.rows else "-"
        return f"{shown:<{_NAME}}{self.cpu:>7.2f}{self.wall:>7.2f}{rows:>11}{sizes}"


class Profile(Reporter):
    """Reporter that also measures each part and stage."""

    def __init__(self, stream: TextIO | None, target: Path) -> None:
        super().__init__(stream, target)
        self.stages: dict[str, Cost] = defaultdict(Cost)
        self.parts: dict[Key, Cost] = defaultdict(Cost)
        self._stage = "start"
        self._statements = Cost()
        self._cpu, self._wall = 0.0, time.perf_counter() - time.process_time()  # from the start of the process

    def stage_started(self, stage: str) -> None:
        """Show a stage, and measure it from here on."""
        super().stage_started(stage)
        self._turn(stage)

    def part_started(self, model: str, partition: str) -> None:
        """Show a part, and measure it from here on."""
        super().part_started(model, partition)
        self._turn(RUNNER)

    def part_finished(self, part: Part, reused: bool) -> None:
        """Record the cost of a part if it was written, else it is the runner's."""
        super().part_finished(part, reused)
        if not reused:
            spent = self.parts[Key(part.relation, part.partition)]
            spent.rows = part.rows
            self._charge(spent)

    def statement_finished(self, costs: Mapping[str, int]) -> None:
        """Record memory and bytes of a statement."""
        self._statements.add(Cost(**costs))

    def ended(self, result: Result) -> None:
        """Stop measuring and print the result."""
        self._turn("end")
        super().ended(result)

    def _turn(self, stage: str) -> None:
        self._charge(self.stages[self._stage])
        self._stage = stage

    def _charge(self, to: Cost) -> None:
        """Add what was used since the last call to a cost."""
        cpu, wall = time.process_time(), time.perf_counter()
        to.add(self._statements)
        to.add(Cost(cpu - self._cpu, wall - self._wall))
        self._cpu, self._wall, self._statements = cpu, wall, Cost()

    def table(self) -> Iterator[str]:
        """Yield lines of at most 80 columns: models by CPU time, their sum, stages, the whole process."""
        yield _HEAD
        models: dict[str, Cost] = defaultdict(Cost)
        for key, spent in self.parts.items():
            models[key.model].add(spent)
        whole = Cost()
        for name, spent in sorted(models.items(), key=_cost):
            yield spent.line(name)
            whole.add(spent)
        yield whole.line(f"{len(models)} models, {len(self.parts)} parts")
        yield ""
        for name, spent in self.stages.items():
            yield spent.line(name)
            whole.add(spent)
        # Rows of models do not add up, and the process holds more than the engine's buffers.
        whole.rows, whole.memory = 0, _peak()
        yield whole.line("whole process")

    def summary(self) -> dict[str, object]:
        """Return the profile as JSON-able values, in seconds and bytes."""
        return {
            "parts": [key._asdict() | asdict(spent) for key, spent in sorted(self.parts.items(), key=_cost)],
            "outside": [{"stage": name, **asdict(spent)} for name, spent in self.stages.items()],
            "peak": _peak(),
        }


def _peak() -> int:
    """Return the largest resident size of the process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # Linux counts in KiB


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
