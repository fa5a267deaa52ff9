"""Start times and nodes of a task's pods: `taskinfo/<task>/pod-node-starttime.log`. Docs: docs/formats/logs.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.base.errors import DataError, Place
from warehouse.base.startup import regex
from warehouse.formats import compressed, torn_lines
from warehouse.formats.base import PARTIAL, READ, SKIPPED, RawFile, RawRelation, Rejected
from warehouse.formats.logs.event import STAMP, time_of
from warehouse.formats.zhejiang.task_log import FOLDER, is_pod_starts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_ROW = regex(rf"(\S+)\s+(\d{{1,3}}(?:\.\d{{1,3}}){{3}})\s+(\S+)\s+({STAMP.replace(' ', 'T')})(?:\.\d+)?Z\s*")


class PodStarts:
    """Format `zhejiang.pod_starts`: no header; pod, address, node and start, separated by blanks."""

    name = "zhejiang.pod_starts"
    version = 1
    relations: Sequence[RawRelation] = (
        RawRelation(
            "pod_starts",
            "Start time and node of each pod of a task, as published.",
            {"pod": "VARCHAR", "ip": "VARCHAR", "node": "VARCHAR", "start": "TIMESTAMP", "line": "INTEGER"},
        ),
    )

    def claims(self, path: Path) -> bool:
        """Return True if the file is the list of pod start times of a task."""
        return path.parent.parent.name == FOLDER and is_pod_starts(path)

    def inspect(self, file: RawFile) -> RawFile:
        """Check that at least one row is valid; bad rows are rejected by `read`."""
        try:
            lines = list(torn_lines.numbered_lines(file.path))
        except compressed.STREAM_ERRORS as error:
            return file.but(status=SKIPPED, reason=f"cannot be decompressed: {error}")
        good = [line for _, line, damage in lines if not damage and _fields(line)]
        if not good:
            return file.but(status=SKIPPED, reason="no line holds a pod, an address, a node and a time")
        bad = [number for number, line, damage in lines if damage or (line.strip() and not _fields(line))]
        return file.but(status=PARTIAL, reason=f"line {bad[0]} is no pod's") if bad else file.but(status=READ)

    def read(self, files: Sequence[RawFile], relation: str, reject: list[Rejected]) -> Iterator[Mapping[str, object]]:
        """Yield one row per pod.

        Raises
        ------
        DataError
            If a file cannot be opened.
        """
        for file in files:
            try:
                for number, line, damage in torn_lines.numbered_lines(file.path):
                    found = None if damage else _fields(line)
                    if found:
                        yield {**found, "line": number, "filename": file.release_path}
                    elif line.strip() or damage:
                        problem = damage or "not a pod, an address, a node and a time"
                        reject.append(
                            Rejected(file.release_path, number, problem, line.decode("utf-8", "backslashreplace")[:500])
                        )
            except OSError as error:
                raise DataError(f"cannot be read: {error.strerror}", place=Place(file.path)) from error


def _fields(line: bytes) -> dict[str, object] | None:
    found = _ROW.fullmatch(line.decode("utf-8", "backslashreplace"))
    start = time_of(found[4].replace("T", " ")) if found else None
    return {"pod": found[1], "ip": found[2], "node": found[3], "start": start} if found and start else None


POD_STARTS = PodStarts()
