"""The two prefixes that trainers' loggers write: level, time and place in the source before a message."""

from __future__ import annotations

from typing import NamedTuple

from warehouse.formats.logs.event import LEVEL, STAMP, time_of
from warehouse.regex import regex

_MILLIS = r"(?:[.,]\d{3,6})?"
_PLACE = r"[\w.<>-]+:\d+"
APP = regex(rf"\[({STAMP}{_MILLIS})\] \[({LEVEL})\] \[([\w.<>]+:\d+:[\w.<>]+)\] ?")
"""DeepSpeed's logger: `[2024-04-29 06:15:13,208] [INFO] [comm.py:637:init_distributed] cdb=None`."""
HUGGING_FACE = regex(rf"\[({LEVEL})\|(?:({_PLACE})\] ({STAMP}{_MILLIS})|({STAMP}{_MILLIS})\] ({_PLACE})) >> ?")
"""Transformers' logger, older and newer form: `[INFO|trainer.py:1729] 2024-04-29 06:17:12,319 >> text`."""


class Prefixed(NamedTuple):
    """A line with a prefix, taken apart."""

    family: str
    level: str
    time_utc: str | None
    """None where the prefix has a time that there is not."""
    place: str
    message: str
    end: int
    """Where the message begins in the line."""


def prefixed(text: str) -> Prefixed | None:
    """Take a line apart; None where it has no prefix."""
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
    """Where a second line begins that was written behind this one; -1 where there is none."""
    if text.find("[", start) < 0:
        return -1
    found = [one.start() for pattern in (APP, HUGGING_FACE) if (one := pattern.search(text, start))]
    return min(found, default=-1)
