"""What a log line can say: the columns of `raw.log_events`, and how its numbers and times are written."""

from __future__ import annotations

from datetime import date
from functools import lru_cache

from warehouse.regex import regex

Event = dict[str, object]
"""Columns that a line fills; all others are NULL. Numbers may be given as the text of a number."""

COLUMNS = {
    "line": "INTEGER",
    "segment": "INTEGER",
    "item": "INTEGER",
    "family": "VARCHAR",
    "kind": "VARCHAR",
    "level": "VARCHAR",
    "time_utc": "TIMESTAMP",
    "name": "VARCHAR",
    "value": "VARCHAR",
    "step": "BIGINT",
    "steps": "BIGINT",
    "seconds": "DOUBLE",
    "samples": "BIGINT",
    "loss": "DOUBLE",
    "learning_rate": "DOUBLE",
    "rank": "INTEGER",
    "ranks": "INTEGER",
    "local_rank": "INTEGER",
    "host": "VARCHAR",
    "pid": "BIGINT",
    "tid": "BIGINT",
    "communicator": "VARCHAR",
    "channel": "INTEGER",
    "channels": "INTEGER",
    "src_rank": "INTEGER",
    "dst_rank": "INTEGER",
    "direction": "VARCHAR",
    "transport": "VARCHAR",
    "nic_index": "INTEGER",
    "text": "VARCHAR",
}

LONGEST_TEXT = 4000
"""Characters of a line that are kept."""

LEVEL = "DEBUG|INFO|WARNING|ERROR|CRITICAL"
STAMP = r"\d{4}-\d\d-\d\d [0-2]\d:[0-5]\d:[0-5]\d"
NUMBER = r"(?:[-+]?(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})(?:[eE][-+]?\d{1,3})?|[-+]?(?:nan|inf|NaN|Infinity))"
"""A number of any form that trainers print."""
WHOLE = r"\d{1,9}"
_NUMBER = regex(NUMBER)
_STAMP = regex(rf"({STAMP})(?:[.,](\d{{1,6}})\d*)?")


def time_of(stamp: str) -> str | None:
    """A log's time as a TIMESTAMP reads it; None where there is no such time.

    >>> time_of("2024-04-29 06:15:07,505"), time_of("2024-02-30 06:15:07")
    ('2024-04-29 06:15:07.505', None)
    """
    if len(stamp) >= 19 and stamp[11:13] < "24" and max(stamp[14:16], stamp[17:19]) < "60" and is_day(stamp[:10]):
        return f"{stamp[:19]}.{stamp[20:26]}" if len(stamp) > 20 else stamp[:19]
    return None


@lru_cache(maxsize=1024)
def is_day(text: str) -> bool:
    """Whether there is such a day, `YYYY-MM-DD`."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def number_of(text: str) -> str | None:
    """A number as it is written, quotes and thousands' commas apart; None where it is none.

    >>> number_of("'1.0E-4'"), number_of("6,738,415,616"), number_of("N/A")
    ('1.0E-4', '6738415616', None)
    """
    bare = text.strip().strip("'\"").replace(",", "")
    return bare if _NUMBER.fullmatch(bare) else None


_READ_AS = {
    name: float if kind == "DOUBLE" else int for name, kind in COLUMNS.items() if kind not in ("VARCHAR", "TIMESTAMP")
}


def typed(event: Event) -> Event:
    """The event with numbers for the texts of numbers.

    >>> typed({"channel": "08", "seconds": "45.8", "value": "1"})
    {'channel': 8, 'seconds': 45.8, 'value': '1'}
    """
    for name, value in event.items():
        if isinstance(value, str) and name in _READ_AS:
            event[name] = _READ_AS[name](value)
    return event


def config(family: str, name: str, value: str, **more: object) -> Event:
    """The event of a setting: its name as the log writes it, its value as text."""
    return {"family": family, "kind": "config", "name": name, "value": value, **more}
