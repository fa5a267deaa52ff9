"""Prefixes of lines: NCCL's `host:pid:tid [device]`, and the level, time and place that loggers write."""

from __future__ import annotations

import re
from typing import NamedTuple

from warehouse.base.startup import regex
from warehouse.formats.logs.event import LEVEL, STAMP, time_of

_MILLIS = r"(?:[.,]\d{3,6})?"
_PLACE = r"[\w.<>-]+:\d+"
_APP = rf"\[({STAMP}{_MILLIS})\] \[({LEVEL})\] \[([\w.<>]+:\d+:[\w.<>]+)\] ?"
_HUGGING_FACE = rf"\[({LEVEL})\|(?:({_PLACE})\] ({STAMP}{_MILLIS})|({STAMP}{_MILLIS})\] ({_PLACE})) >> ?"
APP = regex(_APP)
"""DeepSpeed's logger: `[2024-04-29 06:15:13,208] [INFO] [comm.py:637:init_distributed] cdb=None`."""
HUGGING_FACE = regex(_HUGGING_FACE)
"""Transformers' logger, older and newer form: `[INFO|trainer.py:1729] 2024-04-29 06:17:12,319 >> text`."""

HOST = r"(?:<[A-Za-z][\w -]{0,60}>|[^\s:\[\]()<>|]{1,253})"
_PROCESS = r":\d{1,10}:\d{1,10} \[\d{1,4}\] "
NCCL = regex(
    rf"[ \t]*(?:\[({STAMP}(?:\.\d+)?)\] )?({HOST}):(\d{{1,10}}):(\d{{1,10}}) \[(\d{{1,4}})\] "
    r"(?:NCCL (INFO|TRACE) |([^\n]{1,400}?:\d+) NCCL (WARN) )"
)
"""Groups: stamp, host, pid, tid, device, then either level, or place and level."""
_SPEAKS = regex(r"NCCL (?:INFO|WARN|TRACE) ")
_PROCESS_MARK = regex(rf"[^\s:]{_PROCESS}")

LINE_START = "(?:" + "|".join(
    (
        rf"(?:\[{STAMP}(?:\.\d+)?\] )?{HOST}{_PROCESS}",
        r"NCCL version \d",
        rf"\[{STAMP}{_MILLIS}\] \[(?:{LEVEL})\] ",
        rf"\[(?:{LEVEL})\|",
        rf"(?:\[{STAMP}[\d.,]*\] *)?iteration +\d+/",
        r"(?:[A-Z][\w ]{0,30}: *)?\d{1,3}%\|",
        r"\{['\"]\w+['\"]: ",
        r"Training epoch \d",
        r"\[[IWEF]\d{3,4} ",
    )
) + ")"  # fmt: skip
"""Patterns that begin a known line; text before one of them is a label."""


def speaks_nccl(text: str) -> bool:
    """Return True if a line contains `NCCL INFO`, `NCCL WARN` or `NCCL TRACE`.

    >>> speaks_nccl("de-1:1:2 [0] NCCL INFO x"), speaks_nccl("NCCL version 2.14.3")
    (True, False)
    """
    return _SPEAKS.search(text) is not None


def is_alone(text: str, prefix: re.Match[str]) -> bool:
    """Return True if only one process wrote into a line of NCCL.

    >>> line = "a:1:2 [0] NCCL INFO xb:3:4 [0] NCCL INFO y"
    >>> is_alone(line, NCCL.match(line))
    False
    """
    place = prefix[7]
    if place and _PROCESS_MARK.search(place):
        return False
    end = prefix.end()
    if text.find("NCCL ", end) >= 0 and _SPEAKS.search(text, end):
        return False
    return not (text.find(" [", end) >= 0 and _PROCESS_MARK.search(text, end))


class Prefixed(NamedTuple):
    """Parts of a line with a logger's prefix."""

    family: str
    level: str
    time_utc: str | None
    """None if the time in the prefix does not exist in the calendar."""
    place: str
    message: str
    end: int
    """Position of the message in the line."""


def prefixed(text: str) -> Prefixed | None:
    """Split a line with a logger's prefix into its parts; return None for other lines."""
    if found := APP.match(text):
        stamp, level, place = found.groups()
        family = "deepspeed"
    elif found := HUGGING_FACE.match(text):
        level, old_place, old_stamp, new_stamp, new_place = found.groups()
        stamp, place, family = old_stamp or new_stamp, old_place or new_place, "hf_trainer"
    else:
        return None
    return Prefixed(family, level, time_of(stamp), place, text[found.end() :], found.end())


def next_prefix(text: str, start: int) -> int:
    """Return the position of a second logger's prefix in the line; -1 if there is none."""
    if text.find("[", start) < 0:
        return -1
    found = [one.start() for pattern in (APP, HUGGING_FACE) if (one := pattern.search(text, start))]
    return min(found, default=-1)
