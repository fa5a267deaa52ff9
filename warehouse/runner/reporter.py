"""Result of a build, and progress reporters: terminal with a progress bar, plain lines, or silent."""

from __future__ import annotations

import io
import shutil
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO, TypeVar, cast

from warehouse.base.settings import DEFAULT_TARGET
from warehouse.base.text import JOINED, for_target, grouped, joined, on_one_line, plural, size
from warehouse.formats.base import IGNORED, PARTIAL, SKIPPED, UNKNOWN, Inventory
from warehouse.store.manifest import ALL, CheckResult, Part, readable_manifest

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from warehouse.engine.duckdb import Observer
    from warehouse.graph.plan import Key


_BAR = 12
Item = TypeVar("Item")
_BESIDE, _NAME_AT_LEAST = 56, 12
"""Cells for all columns but the name of the step, and the minimum width of that name."""
_TASK = cast("TaskID", 0)
"""The only task of a bar."""


def with_progress(items: Sequence[Item], bar: Bar | None, name: Callable[[Item], str] = str) -> Iterator[Item]:
    """Yield each item; show its name on the bar, if given, and advance the bar after it."""
    if bar and items:
        bar.count(len(items))
    for item in items:
        if bar:
            bar.turn_to(name(item))
        yield item
        if bar:
            bar.advance()


class Bar:
    """Progress bar on the last line of a terminal, cleared at the end of the work.

    Parameters
    ----------
    stream
        The stream to draw on, if it is a terminal.
    label
        The name of the work, such as `Build`.
    what
        The first step.
    """

    def __init__(self, stream: TextIO, label: str, what: str = "") -> None:
        self._what = what
        self._stream = stream
        self._label = label
        self._progress: Progress | None = None

    def __enter__(self) -> Bar:
        self.turn_to(self._what)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def turn_to(self, what: str) -> None:
        """Show the current step; draw the bar if necessary."""
        if self._progress is None and self._stream.isatty():
            self._progress = self._open()
        if self._progress:
            room = self._progress.console.width - _BESIDE
            self._progress.update(_TASK, what=what[:room] if room >= _NAME_AT_LEAST else "")

    def count(self, total: int) -> None:
        """Set the number of steps. Until then, the bar shows no percentage."""
        self.turn_to("")
        if self._progress:
            self._progress.reset(_TASK, total=total)

    def advance(self) -> None:
        """Advance by a step."""
        if self._progress:
            self._progress.advance(_TASK)

    def print(self, text: str) -> None:
        """Print text above the bar, in one write, so that an interrupt leaves no partial line."""
        if self._progress:
            self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            self._stream.write(f"{text}\n")
            self._stream.flush()

    def close(self) -> None:
        """Clear the bar."""
        if self._progress:
            self._progress.stop()
            self._progress = None

    def _open(self) -> Progress:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.table import Column

        progress = Progress(
            TextColumn(f"{self._label:<6}"),
            BarColumn(bar_width=_BAR),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TaskProgressColumn(table_column=Column(no_wrap=True)),
            TimeElapsedColumn(table_column=Column(no_wrap=True)),
            TimeRemainingColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[what]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
            console=Console(file=self._stream),
            transient=True,
        )
        progress.start()
        progress.add_task(self._label, total=None, what="")
        return progress


class Result(NamedTuple):
    """Result of a published build."""

    build: str
    target: Path
    inventory: Inventory
    parts: Mapping[Key, Part]
    results: Mapping[Key, Sequence[CheckResult]]
    """Results of the checks of each part, and of the views that have checks."""
    made: Set[Key]
    """The parts that this build has made."""
    stale: Set[str]
    """Models outside the selection whose published parts are out of date, and models downstream of them."""
    bytes: int
    """Size of the published parts and the catalog, in bytes."""
    changed: bool
    """True if this build differs from the one published before."""

    def checks(self) -> list[tuple[Key, CheckResult]]:
        """Return all check results."""
        return [(key, one) for key in sorted(self.results) for one in self.results[key]]

    def summary(self) -> dict[str, object]:
        """Return the result as JSON-able values."""
        found = self.checks()
        noted = [(key, one) for key, one in found if one.failures or one.not_checked]
        return {
            "build": self.build,
            "target": str(self.target),
            "changed": self.changed,
            "files": dict(sorted(self.inventory.statuses().items())),
            "parts": len(self.parts),
            "made": [{"model": key.model, "partition": key.partition} for key in sorted(self.made)],
            "stale": sorted(self.stale),
            "bytes": self.bytes,
            "checks": {
                "passed": len(found) - len(noted),
                "warned": [
                    {"model": key.model, "partition": key.partition, "check": one.check, "rows": one.failures}
                    for key, one in noted
                    if one.failures
                ],
                "not_checked": [
                    {"model": key.model, "partition": key.partition, "check": one.check, "why": one.not_checked}
                    for key, one in noted
                    if one.not_checked
                ],
            },
        }


_WIDTH, _NARROW = 80, 50
"""Characters of a line, and the minimum on a narrow terminal."""
_SHOWN = 5
_SHOWN_SENTENCES = 3


class Reporter:
    """Reporter of a build: a progress bar on a terminal, plain lines on another stream, nothing without a stream.

    Parameters
    ----------
    stream
        The stream to write to; None to be silent.
    target
        The target, for which commands in texts are.
    bar
        The progress bar, if it is not on the stream. The caller must close it if the build fails.
    """

    statement_finished: Observer | None = None
    """Receiver of the cost of each SQL statement, if any. Then parts are built one after another."""

    def __init__(self, stream: TextIO | None = None, target: Path = DEFAULT_TARGET, *, bar: Bar | None = None) -> None:
        self.bar = bar or Bar(stream or io.StringIO(), "Build")
        self._stream = stream
        self._target = target
        self._width = shutil.get_terminal_size().columns if stream and stream.isatty() else _WIDTH
        self._started = time.perf_counter()
        self._noted: set[str] = set()

    def _say(self, label: str, text: str, *, wrap: bool = True) -> None:
        """Print a text with a label; wrap it with a hanging indent unless it contains a path.

        Commands in the text are for the target, and no line breaks within one.
        """
        lines = [f"{label:<6} {text}".rstrip()]
        if wrap:
            lines = textwrap.wrap(
                joined(for_target(text, self._target)),
                max(min(self._width, _WIDTH), _NARROW),
                initial_indent=f"{label:<7}",
                subsequent_indent=" " * 7,
                break_long_words=False,
                break_on_hyphens=False,
            )
        if self._stream:
            self.bar.print("\n".join(lines).replace(JOINED, " "))

    def found(self, inventory: Inventory) -> None:
        """Report the files that are read on one line, and the others on a second line."""
        hours = grouped((file.format or "", file.hour_utc) for file in inventory.files if file.is_read)
        counts = []
        for name, of_files in sorted(hours.items()):
            count = len({*of_files} - {None})
            when = f" ({plural(count, 'hour')})" if count else ""
            counts.append(f"{len(of_files):,} {name.partition('.')[2].replace('_', ' ')}{when}")
        self._say("Found", ", ".join(counts))
        others = inventory.statuses()
        words = {PARTIAL: "read in part", SKIPPED: "skipped", UNKNOWN: "not recognised", IGNORED: "ignored"}
        unread = [f"{others[status]:,} {word}" for status, word in words.items() if status in others]
        if unread:
            self._say("", f"{' · '.join(unread)} · details: warehouse doctor")

    def started(self, parts: int) -> None:
        """Start counting and timing the parts of this build."""
        self._started = time.perf_counter()
        self.bar.count(parts)

    def stage_started(self, stage: str) -> None:
        """Show a stage that begins, outside of parts, such as raw files or the catalog."""
        self.bar.turn_to(stage)

    def part_started(self, model: str, partition: str) -> None:
        """Show the part that begins."""
        self.bar.turn_to(_named(model, partition))

    def part_finished(self, part: Part, reused: bool) -> None:
        """Advance the progress bar."""
        self.bar.advance()

    def note(self, text: str) -> None:
        """Report a note, once."""
        if text not in self._noted:
            self._noted.add(text)
            self._say("", text)

    @contextmanager
    def reporting_failure(self, target: Path) -> Iterator[None]:
        """Report a failure or an interrupt of the block, which runs a build. The caller prints the error."""
        try:
            yield
        except BaseException:
            self.bar.close()
            last = readable_manifest(target)
            if last is not None:
                self._say("", f"Nothing was published; {target} still holds {last.build[:8]}.", wrap=False)
            raise

    def ended(self, result: Result) -> None:
        """Report models, check results and the target of a published build."""
        self.bar.close()
        models = len({key.model for key in result.parts})
        reused = len(result.parts) - len(result.made)
        took = time.perf_counter() - self._started
        reused_text = f", {reused:,} there already" if reused else ""
        self._say("Build", f"{plural(models, 'model')}, {plural(len(result.parts), 'part')}{reused_text}  {took:.1f} s")
        self._checks(result)
        same = "" if result.changed else " (as before)"
        self._say("Built", f"{result.build[:8]}{same} → {result.target} ({size(result.bytes)})", wrap=False)
        for name in sorted(result.stale):
            self._say("stale", f"{name} was not selected and keeps its last rows")

    def _checks(self, result: Result) -> None:
        found = result.checks()
        warned = [(key, one) for key, one in found if one.failures and one.warn]
        skipped = sorted({(key.model, one.check, one.status) for key, one in found if one.not_checked})
        tail = f", {plural(len(warned), 'warning')}" if warned else ""
        tail += f", {plural(len(skipped), 'check')} not run" if skipped else ""
        passed = sum(one.status == "passed" for _, one in found)
        self._say("Check", f"{passed:,} passed{tail}")
        for key, one in warned[:_SHOWN]:
            said = f"{one.check}: {plural(one.failures, 'row')}"
            if one.says:
                more = f" .. {one.failures - _SHOWN_SENTENCES:,} more" if one.failures > _SHOWN_SENTENCES else ""
                said = "; ".join(on_one_line(sentence) for sentence in one.sentences[:_SHOWN_SENTENCES]) + more
            self._say("warn", f"{_named(*key)}: {said}")
        for model, check, status in skipped[:_SHOWN]:
            self._say("", f"{model}: {check}: {status}")


def _named(model: str, partition: str) -> str:
    return model if partition == ALL else f"{model} {partition}"
