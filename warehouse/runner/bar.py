"""A line on a terminal that says what long work does, how far it is, and how long it takes; nothing elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from rich.progress import Progress, TaskID

_BAR = 12
_BESIDE, _NAME_AT_LEAST = 56, 12
"""Cells of the line beside the name of what is done, and of a name that tells something."""


def told(names: Sequence[str], bar: Bar | None) -> Iterator[str]:
    """Yield each name once the bar says it, if there is one."""
    if bar:
        bar.count(len(names))
    for name in names:
        if bar:
            bar.turn_to(name)
        yield name
        if bar:
            bar.advance()


class Bar:
    """The last line of a terminal while work goes on; it is gone in the end.

    Parameters
    ----------
    stream
        Where it is drawn, if that is a terminal.
    label
        What the work is called, as `Build`.
    what
        What is done first.
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
        """Say what is done now; the line is drawn if it is not there."""
        if not self._stream.isatty():
            return
        if self._progress is None:
            self._open()
        if self._progress is not None and self._task is not None:
            room = self._progress.console.width - _BESIDE
            self._progress.update(self._task, what=what[:room] if room >= _NAME_AT_LEAST else "")

    def count(self, total: int) -> None:
        """Say of how many steps the work is; before, the bar moves to and fro."""
        self.turn_to("")
        if self._progress is not None and self._task is not None:
            self._progress.reset(self._task, total=total)

    def advance(self) -> None:
        """Say that a step is done."""
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task)

    def print(self, text: str) -> None:
        """Print a line above; all of it goes out in one write, so that an interrupt leaves none without its end."""
        if self._progress is not None:
            self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            self._stream.write(f"{text}\n")
            self._stream.flush()

    def close(self) -> None:
        """Wipe the line."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
        from rich.table import Column
        from rich.text import Text

        class Steps(ProgressColumn):
            """`12/51  24%`, nothing as long as nobody knows how many there are."""

            def render(self, task: Task) -> Text:
                known = task.total is not None
                return Text(f"{task.completed:,.0f}/{task.total:,.0f} {task.percentage:3.0f}%" if known else "")

        class Left(ProgressColumn):
            """`, 0:00:12 left`, once that can be told."""

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
