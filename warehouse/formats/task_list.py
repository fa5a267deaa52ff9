"""Tasks without a log: `tasks.csv`, as people get it from Slurm, from Kubernetes or by hand.

Docs: docs/formats/tasks.md. One row says that a task ran on some servers in a time. Columns are found by name, in any
order; `|`, tabs, semicolons or runs of blanks may separate them. Host lists of Slurm are expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from warehouse.base.startup import regex
from warehouse.formats import streams
from warehouse.formats.base import RawFile, RawRelation
from warehouse.formats.named_csv import split

_NAMES = {
    "task": ("task", "taskid", "jobid", "job", "jobname", "name", "pod"),
    "host": (
        "server",
        "servers",
        "nodelist",
        "nodes",
        "node",
        "nodename",
        "host",
        "hosts",
        "hostname",
        "ip",
        "address",
    ),
    "start": ("start", "starttime", "startutc", "started"),
    "end": ("end", "endtime", "endutc", "ended", "finished"),
    "first_rank": ("firstrank",),
    "ranks": ("ranks",),
    "hcas": ("hca", "hcas"),
    "cluster": ("cluster",),
}
"""Names of columns in a header, in small letters and without other signs; the first that is there counts."""
_NEEDED = ("task", "host", "start")
# sacct writes Unknown, kubectl <none>.
_OPEN_ENDS = frozenset({"", "unknown", "none", "<none>", "n/a", "na", "null", "-"})
# Without -X, sacct lists the steps of each job, too.
_STEP = regex(r"(.+)\.(?:batch|extern|interactive|\d+)")
_LIST = regex(r"([^,\[\]]*)(?:\[([^\[\]]*)\]([^,\[\]]*))?")
_MOST_HOSTS = 10_000
"""Limit of the hosts of one row: a range of a slip, such as gpu[1-99999999], must not fill the memory."""

Row = dict[str, object]


class TaskList(streams.LineTable):
    """Format `own.tasks`."""

    name = "own.tasks"
    version = 1
    relations: Sequence[RawRelation] = (
        RawRelation(
            "task_list",
            "Tasks that users list: where and when they ran, one row a task and server.",
            {
                "task": "VARCHAR",
                "host": "VARCHAR",
                "start_utc": "TIMESTAMP",
                "end_utc": "TIMESTAMP",
                "first_rank": "INTEGER",
                "ranks": "INTEGER",
                "hcas": "VARCHAR",
                "cluster": "VARCHAR",
                "line": "INTEGER",
            },
        ),
    )

    def claims(self, path: Path) -> bool:
        """Return True for a file named tasks.csv."""
        return path.name.lower() == "tasks.csv"

    def rows(self, file: RawFile) -> Iterator[tuple[int, bytes, Row | ValueError]]:
        """Yield a row per task and server."""
        header: tuple[str, Mapping[str, int]] | None = None
        for number, line, _ in streams.numbered_lines(file.path):  # a list by hand may lack the last newline
            text = line.decode("utf-8-sig", "backslashreplace").strip("\r\n")
            if not text.strip() or text.startswith("#"):
                continue
            if header is None:
                header = _header(text)
                continue
            separator, columns = header
            try:
                for row in _expanded(_cells(text, separator), columns):
                    yield number, line, row
            except ValueError as error:
                yield number, line, error
        if header is None:
            raise ValueError("empty file: it needs a header with task, server, start and end")


def _cells(text: str, separator: str) -> list[str]:
    if separator == " ":  # columns of kubectl; two blanks or more, since a cell may hold one
        return re.split(r" {2,}", text.strip())
    return [cell.strip() for cell in split(text.encode(), separator)]


def _header(text: str) -> tuple[str, Mapping[str, int]]:
    """Return the separator and the place of each known column; a blank stands for runs of two or more."""
    best = max("|\t;,", key=text.count)
    separator = best if best in text else " "
    try:
        names = _cells(text, separator)
    except ValueError as error:
        raise ValueError(f"the header: {error}") from None
    folded = [re.sub(r"[^a-z]", "", name.lower()) for name in names]
    places = {column: [folded.index(one) for one in known if one in folded] for column, known in _NAMES.items()}
    if missing := [name.replace("host", "server") for name in _NEEDED if not places[name]]:
        raise ValueError(f"the header has no column {' or '.join(missing)}: it has {', '.join(names)[:200]}")
    return separator, {column: found[0] for column, found in places.items() if found}


def _expanded(cells: Sequence[str], columns: Mapping[str, int]) -> Iterator[Row]:
    """Yield a row for each server of a line. Raises ValueError with the problem."""
    given = {name: cells[at] if at < len(cells) else "" for name, at in columns.items()}
    if not given["task"]:
        raise ValueError("no task")
    if step := _STEP.fullmatch(given["task"]):
        raise ValueError(f"a step of job {step[1]}, whose own line counts")
    start = _time(given["start"], "start")
    if start is None:
        raise ValueError("no start")
    end = _time(given.get("end", ""), "end")
    if end is not None and end <= start:
        raise ValueError("the end is not after the start")
    hosts = host_list(given["host"])
    if not hosts:
        raise ValueError("no server")
    first, ranks = (_whole(given.get(name, ""), name) for name in ("first_rank", "ranks"))
    for place, host in enumerate(hosts):
        yield {
            "task": given["task"],
            "host": host,
            "start_utc": start,
            "end_utc": end,
            "first_rank": None if first is None else first + place * (ranks or 0),
            "ranks": ranks,
            "hcas": given.get("hcas") or None,
            "cluster": given.get("cluster") or None,
        }


def host_list(text: str) -> list[str]:
    """Return the hosts of a list of Slurm, or of names with blanks, commas or plus signs between.

    Raises
    ------
    ValueError
        If a range is no range, or there are more than 10,000 hosts.

    >>> host_list("gpu[31-33,068],login1"), host_list("GPU-1 GPU-2")
    (['gpu31', 'gpu32', 'gpu33', 'gpu068', 'login1'], ['GPU-1', 'GPU-2'])
    """
    hosts: list[str] = []
    for part in re.split(r"[\s,;+]+(?![^\[]*\])", text.strip()):  # commas in brackets separate ranges
        found = _LIST.fullmatch(part)
        if part and found is None:
            raise ValueError(f"{part[:50]!r} is no list of servers")
        if found and found[2] is None:
            hosts += [found[1]] if found[1] else []
        elif found:
            hosts += [f"{found[1]}{one}{found[3] or ''}" for one in _numbers(found[2])]
        if len(hosts) > _MOST_HOSTS:
            raise ValueError(f"more than {_MOST_HOSTS:,} servers")
    return list(dict.fromkeys(hosts))


def _numbers(ranges: str) -> list[str]:
    numbers: list[str] = []
    for one in ranges.split(","):
        first, _, last = one.strip().partition("-")
        last = last or first
        if not (first.isdecimal() and last.isdecimal() and len(last) <= 9) or int(first) > int(last):
            raise ValueError(f"{one[:50]!r} is no range of servers")
        if int(last) - int(first) > _MOST_HOSTS:
            raise ValueError(f"more than {_MOST_HOSTS:,} servers")
        # Slurm keeps leading zeros: gpu[068-070] is gpu068 and so on.
        numbers += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return numbers


def _time(text: str, column: str) -> str | None:
    """Return a time in UTC as text of a TIMESTAMP; None for none. A time without an offset is UTC."""
    if text.lower() in _OPEN_ENDS:
        return None
    try:
        time = datetime.fromisoformat(re.sub(r"(?<=\d) (?=[+-]\d{2}:?\d{2}$)", "", text))
    except ValueError as error:
        raise ValueError(f"{column} {text[:50]!r} is no time such as 2024-05-23T16:00:00+08:00") from error
    return time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def _whole(text: str, column: str) -> int | None:
    if text.lower() in _OPEN_ENDS:
        return None
    if not text.isdecimal() or len(text) > 9:
        raise ValueError(f"{column} {text[:50]!r} is no number")
    return int(text)


TASK_LIST = TaskList()
