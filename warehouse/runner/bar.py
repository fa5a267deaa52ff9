"""Progress bar for long work: current step, progress and remaining time, on terminals only."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from rich.progress import Progress, TaskID

_BAR = 12
Item = TypeVar("Item")
_BESIDE, _NAME_AT_LEAST = 56, 12
"""Cells for all columns but the name of the step, and the minimum width of that name."""


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
        self._task: TaskID | None = None

    def __enter__(self) -> Bar:
        self.turn_to(self._what)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def turn_to(self, what: str) -> None:
        """Show the current step; draw the bar if necessary."""
        if not self._stream.isatty():
            return
        if self._progress is None:
            self._open()
        if self._progress is not None and self._task is not None:
            room = self._progress.console.width - _BESIDE
            self._progress.update(self._task, what=what[:room] if room >= _NAME_AT_LEAST else "")

    def count(self, total: int) -> None:
        """Set the number of steps. Until then, the bar shows no percentage."""
        self.turn_to("")
        if self._progress is not None and self._task is not None:
            self._progress.reset(self._task, total=total)

    def advance(self, steps: int = 1) -> None:
        """Advance by some steps."""
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, steps)

    def print(self, text: str) -> None:
        """Print text above the bar, in one write, so that an interrupt leaves no partial line."""
        if self._progress is not None:
            self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            self._stream.write(f"{text}\n")
            self._stream.flush()

    def close(self) -> None:
        """Clear the bar."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
        from rich.table import Column
        from rich.text import Text

        class Steps(ProgressColumn):
            """Column `12/51  24%`; empty while the number of steps is unknown."""

            def render(self, task: Task) -> Text:
                known = task.total is not None
                return Text(f"{task.completed:,.0f}/{task.total:,.0f} {task.percentage:3.0f}%" if known else "")

        class Left(ProgressColumn):
            """Column `0:00:12 left`; empty while the remaining time is unknown."""

            max_refresh = 0.5

            def render(self, task: Task) -> Text:
                if task.time_remaining is None:
                    return Text("")
                minutes, seconds = divmod(round(task.time_remaining), 60)
                return Text(f"{minutes // 60}:{minutes % 60:02}:{seconds:02} left")

        self._progress = Progress(
            TextColumn(f"{self._label:<6}"),
            BarColumn(bar_width=_BAR),
            Steps(table_column=Column(no_wrap=True)),
            TimeElapsedColumn(table_column=Column(no_wrap=True)),
            Left(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[what]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
            console=Console(file=self._stream),
            transient=True,
        )
        self._progress.start()
        self._task = self._progress.add_task(self._label, total=None, what="")
