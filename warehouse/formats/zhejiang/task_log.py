"""Files of a training task in `taskinfo/<task>/`. Docs: docs/formats/logs.md.

Logs have the lines of a pod; `pod-node-starttime.log` has the start time and the node of each pod.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from warehouse.base.errors import DataError, Place
from warehouse.base.startup import regex
from warehouse.formats import streams
from warehouse.formats.base import COMPRESSIONS, PARTIAL, READ, SKIPPED, RawFile, RawRelation, Rejected
from warehouse.formats.logs.event import COLUMNS, LOG_FILE, STAMP, has_text, is_iteration, time_of
from warehouse.formats.logs.line_kinds import LineKind, fingerprint, line_kinds

FOLDER = "taskinfo"
_IN_TASK = regex(rf"[^/]*/{FOLDER}/[^/]+/.")
"""Release path of a file below the folder of a task."""
_LOG_NAME = regex(r"(?:\.|^)(?:log|out|err|txt|stdout|stderr)(?:[.-][\w-]+)*$", re.IGNORECASE)
"""Names of logs that are looked for outside `taskinfo/<task>/`: `slurm-48213.out`, `train.log.1`."""
_OTHER_NAME = regex(r"\.(?:csv|tsv|jsonl?|ya?ml|xlsx?|md|pdf|py|sh|html?|parquet|pkl)$", re.IGNORECASE)
"""Names of files in the folder of a task that are no logs, though some quote lines of logs."""
_SIGNS = frozenset({"iteration", "progress", "optimizer_step", "loss", "train_start", "rank", "checkpoint_start"})
_SEEN_BYTES = 64 * 1024
"""Bytes at the start of a file that must have a log line, unless it is a `.log` in the folder of a task."""
NO_LINE = "none of the lines in its first 64 kB is of a known log"
WRONG_PLACE = f"a training log outside the folder of a task: put it as {FOLDER}/<task>/<pod>.log"
VERSION = 13
"""Increased when the code, not a pattern, yields different rows from the same log."""
_BINARY = 64
"""Maximum share of NUL bytes at the start of a log: 1 in 64. A log that was cut by a crash has some."""

_CONTROLS = frozenset(b"\t\n\r\x1b\x08\x0c\x00")
BOMB_BYTES, BOMB = 1 << 30, "1 GB"
BOMB_RATIO = 500


class TaskLog:
    """Format `zhejiang.task_log`."""

    name = "zhejiang.task_log"
    relations: Sequence[RawRelation] = (
        RawRelation(
            "log_events", "Events read from the lines of training logs, one row per event, with the line.", COLUMNS
        ),
    )

    def __init__(self, log_lines: Sequence[Path] = ()) -> None:
        self._log_lines = tuple(log_lines)
        self.version = VERSION << 32 | int(fingerprint(self._log_lines)[:8], 16)  # above the 32 bits of the patterns

    def claims(self, path: Path) -> bool:
        """Return True if the file is in a task's folder, or is named like a log."""
        if is_pod_starts(path):
            return False
        name = bare_name(path)
        is_like_a_log = _LOG_NAME.search(name) is not None or FOLDER in path.parent.parent.parts
        return is_like_a_log and not _OTHER_NAME.search(name)

    def inspect(self, file: RawFile) -> RawFile:
        """Look for log lines, unless it is a `.log` in the folder of a task; a log that ends inside a line is torn."""
        is_in_task = bool(_IN_TASK.match(file.release_path))
        if not (is_in_task and bare_name(file.path).endswith(".log")):
            start = _start(file.path)
            no_text = _not_a_log(start[: streams.HEAD_BYTES])
            kinds = set() if no_text else _kinds(start, line_kinds(self._log_lines))
            if not is_in_task:
                is_log = any(kind in _SIGNS or kind.startswith("nccl_") for kind in kinds)
                return file.but(status=SKIPPED, reason=WRONG_PLACE) if is_log else file.but(format=None)
            if not kinds - {"config", "damaged"}:  # any text can have lines that look like settings
                return file.but(format=None, reason=no_text or NO_LINE)
        try:
            head = streams.head(file.path)
            if reason := _not_a_log(head):
                return file.but(status=SKIPPED, reason=reason)
            if is_bomb(file.path):
                return file.but(
                    status=SKIPPED, reason=f"it unpacks to more than {BOMB_RATIO} times its size, and {BOMB}"
                )
            torn = not streams.ends_with_newline(file.path)
        except streams.STREAM_ERRORS as error:
            return file.but(status=PARTIAL, reason=f"the compressed stream is damaged: {error}")
        return file.but(status=PARTIAL, reason="torn: the log ends inside a line") if torn else file.but(status=READ)

    def read(self, files: Sequence[RawFile], relation: str, reject: list[Rejected]) -> Iterator[Mapping[str, object]]:
        """Yield the events of each log, one log after another, each with the event that sums it up.

        Raises
        ------
        DataError
            If a file cannot be opened.
        ModelError
            If a kind of line is not valid.
        """
        from warehouse.formats.logs.reader import LogReader

        kinds = line_kinds(self._log_lines)
        for file in files:
            try:
                reader = LogReader(file.release_path, partial(_reject, file, reject), kinds)
                yield from reader.read(file.path)
                yield reader.summary()
            except OSError as error:
                raise DataError(f"cannot be read: {error.strerror}", place=Place(file.path)) from error

    def remarks(self, files: Sequence[RawFile]) -> list[tuple[RawFile, str]]:
        """Return the logs with text of each task without an iteration. A log is read up to its first iteration.

        Raises
        ------
        DataError
            If a file cannot be opened.
        """
        tasks: dict[str, list[RawFile]] = {}
        for file in files:
            tasks.setdefault(file.release_path.rpartition("/")[0], []).append(file)
        found: list[tuple[RawFile, str]] = []
        for logs in tasks.values():
            texts = []
            for file in logs:
                events = self.read([file], "log_events", [])
                last = next(one for one in events if one["kind"] == LOG_FILE or is_iteration(one))
                if last["kind"] != LOG_FILE:
                    break
                texts += [file] if has_text(last) else []
            else:
                found += [(file, "read, no iteration found") for file in texts]
        return found


def _start(path: Path) -> bytes:
    """Return the first 64 kB of a file; of a damaged compressed file, what comes before the damage."""
    start = b""
    with streams.open_bytes(path) as stream, suppress(*streams.STREAM_ERRORS):
        while len(start) < _SEEN_BYTES and (more := stream.read(streams.HEAD_BYTES)):
            start += more
    return start


def _kinds(text: bytes, kinds: Sequence[LineKind]) -> set[str]:
    """Return the kinds of the events in the text of a log."""
    from warehouse.formats.logs.reader import LogReader

    with tempfile.NamedTemporaryFile() as copy:
        copy.write(text)
        copy.flush()
        return {str(event["kind"]) for event in LogReader("", lambda *_: None, kinds).read(Path(copy.name))}


def _not_a_log(head: bytes) -> str | None:
    """Return the reason why the first bytes of a file are not a log's, or None."""
    if not head:
        return "empty file"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16, not UTF-8: convert it, as with iconv -f UTF-16 -t UTF-8"
    # In UTF-16, every second byte of English text is 0.
    zeros = [head[place::2].count(0) for place in (0, 1)]
    if len(head) > 4 and max(zeros) * 3 > len(head) and min(zeros) * 50 < len(head):
        return "UTF-16 without a mark, not UTF-8: convert it, as with iconv -f UTF-16LE -t UTF-8"
    if head.count(0) * _BINARY > len(head):
        return "not text"
    controls = sum(byte < 32 and byte not in _CONTROLS for byte in head)
    return "not text" if controls * 16 > len(head) else None


def is_bomb(path: Path) -> bool:
    """Return True if a compressed file unpacks to more than 1 GB and more than 500 times its size."""
    if path.suffix.lower() not in COMPRESSIONS:
        return False
    most = max(BOMB_BYTES, BOMB_RATIO * path.stat().st_size)
    unpacked = 0
    with streams.open_bytes(path) as stream:
        while chunk := stream.read(1 << 20):
            unpacked += len(chunk)
            if unpacked > most:
                return True
    return False


def _reject(file: RawFile, rejected: list[Rejected], line: int, reason: str, shown: str) -> None:
    rejected.append(Rejected(file.release_path, line, reason, shown[:500]))


def bare_name(path: Path) -> str:
    """Return the file name without `.gz` or `.zst`."""
    return path.name.removesuffix(path.suffix) if path.suffix.lower() in COMPRESSIONS else path.name


def is_pod_starts(path: Path) -> bool:
    """Return True if the file is the list of pod start times, which is named like a log."""
    return bare_name(path) == "pod-node-starttime.log"


_ROW = regex(rf"(\S+)\s+(\d{{1,3}}(?:\.\d{{1,3}}){{3}})\s+(\S+)\s+({STAMP.replace(' ', 'T')})(?:\.\d+)?Z\s*")


class PodStarts(streams.LineTable):
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

    def rows(self, file: RawFile) -> Iterator[tuple[int, bytes, Mapping[str, object] | ValueError]]:
        """Yield a row per pod."""
        for number, line, damage in streams.numbered_lines(file.path):
            if line.strip() or damage:
                problem = ValueError(damage or "not a pod, an address, a node and a time")
                yield number, line, problem if damage else _fields(line) or problem


def _fields(line: bytes) -> dict[str, object] | None:
    found = _ROW.fullmatch(line.decode("utf-8", "backslashreplace"))
    start = time_of(found[4].replace("T", " ")) if found else None
    return {"pod": found[1], "ip": found[2], "node": found[3], "start": start} if found and start else None


POD_STARTS = PodStarts()
