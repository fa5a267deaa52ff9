"""The logs of a training task: `taskinfo/<task>/<pod>.log`, one file a pod. Docs: docs/formats/logs.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.errors import DataError, Place
from warehouse.formats import text
from warehouse.formats.base import COMPRESSIONS, PARTIAL, READ, SKIPPED, RawFile, RawRelation, Rejected
from warehouse.formats.logs.event import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

FOLDER = "taskinfo"
_BINARY = 64
"""Part of the first bytes, one in so many, that may be NUL: a log that was cut by a crash has some."""


class TaskLog:
    """The format `zhejiang.task_log`."""

    name = "zhejiang.task_log"
    version = 3
    relations: Sequence[RawRelation] = (
        RawRelation("log_events", "What the lines of training logs say, a row an event, with the line.", COLUMNS),
    )

    def claims(self, path: Path) -> bool:
        """Tell whether it is a `.log` in the folder of a task."""
        return path.parent.parent.name == FOLDER and bare_name(path).endswith(".log") and not is_pod_starts(path)

    def inspect(self, file: RawFile) -> RawFile:
        """Look whether it is text; a log whose last line has no end was cut off there."""
        try:
            head = text.head(file.path)
            torn = not text.ends_with_newline(file.path)
        except text.STREAM_ERRORS as error:
            return file.but(status=PARTIAL, reason=f"the compressed stream is damaged: {error}")
        if not head:
            return file.but(status=SKIPPED, reason="empty file")
        if head.count(b"\0") * _BINARY > len(head):
            return file.but(status=SKIPPED, reason="not text")
        return file.but(status=PARTIAL, reason="torn: the log ends inside a line") if torn else file.but(status=READ)

    def read(self, files: Sequence[RawFile], relation: str, reject: list[Rejected]) -> Iterator[Mapping[str, object]]:
        """Give the events of each log, one log after another.

        Raises
        ------
        DataError
            When a file cannot be opened.
        """
        from warehouse.formats.logs.reader import LogReader

        for file in files:
            try:
                yield from LogReader(file.release_path, _Rejects(file, reject)).read(file.path)
            except OSError as error:
                raise DataError(f"cannot be read: {error.strerror}", place=Place(file.path)) from error


class _Rejects:
    """Appends what a log's reader cannot read."""

    def __init__(self, file: RawFile, rejected: list[Rejected]) -> None:
        self._file = file
        self._rejected = rejected

    def __call__(self, line: int, reason: str, shown: str) -> None:
        self._rejected.append(Rejected(self._file.release_path, line, reason, shown[:500]))


def bare_name(path: Path) -> str:
    """The file's name without `.gz` or `.zst`."""
    return path.name.removesuffix(path.suffix) if path.suffix.lower() in COMPRESSIONS else path.name


def is_pod_starts(path: Path) -> bool:
    """Whether the file is the list of pod start times, which is named like a log."""
    return bare_name(path) == "pod-node-starttime.log"


TASK_LOG = TaskLog()
