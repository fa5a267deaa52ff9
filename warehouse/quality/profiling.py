"""Profile of a build: the cost of each part (`warehouse build --profile`).

Parts are built one after another. At the end of a part or stage, what the process used since the last one ended is its
cost. CPU time is that of the whole process: engine threads, NumPy and hashing included. Memory is that of DuckDB's
profiler, through the engine.
"""

from __future__ import annotations

import resource
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from warehouse.graph.plan import Key
from warehouse.runner.reporter import Reporter, Result
from warehouse.store.manifest import Part

_NAME = 43


@dataclass
class Cost:
    """Resources used by a part, model or stage."""

    cpu: float = 0.0
    """Seconds of user and system time, of all threads."""
    wall: float = 0.0
    rows: int = 0
    memory: int = 0
    """Peak bytes of the engine's buffers."""

    def add(self, other: Cost) -> None:
        """Add another cost: the sum of all values, the maximum of memory."""
        self.cpu += other.cpu
        self.wall += other.wall
        self.rows += other.rows
        self.memory = max(self.memory, other.memory)

    def line(self, name: str) -> str:
        """Return a line of the table."""
        shown = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
        rows = f"{self.rows:,}" if self.rows else "-"
        return f"{shown:<{_NAME}}{self.cpu:>8.2f}{self.wall:>8.2f}{rows:>13}{self.memory / 10**6:>7.0f}"


class Profile(Reporter):
    """Reporter that also measures each part and stage."""

    def __init__(self, stream: TextIO | None, target: Path) -> None:
        super().__init__(stream, target)
        self.stages: dict[str, Cost] = defaultdict(Cost)
        self.parts: dict[Key, Cost] = defaultdict(Cost)
        self._stage = "start"
        self._memory = 0
        self._cpu, self._wall = 0.0, time.perf_counter() - time.process_time()  # from the start of the process

    def stage_started(self, stage: str) -> None:
        """Show a stage, and measure it from here on."""
        super().stage_started(stage)
        self._turn(stage)

    def part_started(self, model: str, partition: str) -> None:
        """Show a part, and measure it from here on."""
        super().part_started(model, partition)
        self._turn("runner, and parts there already")

    def part_finished(self, part: Part, reused: bool) -> None:
        """Record the cost of a part if it was written, else it is the runner's."""
        super().part_finished(part, reused)
        if not reused:
            spent = self.parts[Key(part.relation, part.partition)]
            spent.rows = part.rows
            self._charge(spent)

    def statement_finished(self, memory: int) -> None:
        """Record the memory of a statement."""
        self._memory = max(self._memory, memory)

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
        to.add(Cost(cpu - self._cpu, wall - self._wall, memory=self._memory))
        self._cpu, self._wall, self._memory = cpu, wall, 0

    def table(self) -> Iterator[str]:
        """Yield lines of at most 80 columns: models by CPU time, their sum, stages, the whole process."""
        yield f"{'':<{_NAME}}{'CPU s':>8}{'wall s':>8}{'rows':>13}{'MB':>7}"
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
