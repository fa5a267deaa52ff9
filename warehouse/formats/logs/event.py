"""Events of log lines: the columns of `raw.log_events`, parsers of numbers and times, and the summary of a log."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from warehouse.base.startup import regex

Event = dict[str, object]
"""Columns of one event; missing columns are NULL. A number may be given as its text."""

COLUMNS = {
    "line": "INTEGER",
    "segment": "INTEGER",
    "item": "INTEGER",
    "family": "VARCHAR",
    "kind": "VARCHAR",
    "level": "VARCHAR",
    "label": "VARCHAR",
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
    "proxy_rank": "INTEGER",
    "options": "VARCHAR",
    "text": "VARCHAR",
}

LONGEST_TEXT = 4000
"""Maximum length of the `text` of an event, in characters."""


class Damaged(Exception):  # noqa: N818
    """Line that belongs to a family but cannot be parsed in full.

    Parameters
    ----------
    family
        The family of the line.
    reason
        A clause for `staging.rejected_rows`.
    kept
        Events of the line that the damage cannot have changed.
    """

    def __init__(self, family: str, reason: str, kept: Iterable[Event] = ()) -> None:
        super().__init__(reason)
        self.family = family
        self.kept = list(kept)


LEVEL = "DEBUG|INFO|WARNING|ERROR|CRITICAL"
STAMP = r"\d{4}+-\d\d-\d\d \d\d:\d\d:\d\d"
NUMBER = (
    r"(?:[-+]?(?:\d{1,18}+(?:\.\d{0,25}+)?+|\.\d{1,25}+)(?:[eE][-+]?\d{1,3}+)?+"
    r"|[-+]?(?:nan|inf|NaN|Infinity))"
)
"""A number in any form that trainers print; never a part of its digits."""
WHOLE = r"\d{1,9}"
_NUMBER = regex(NUMBER)
# More than six digits are dropped: a TIMESTAMP has microseconds.
_TIME = regex(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,6})\d*)?(?: ?([+-]\d\d:?\d\d)$)?", re.ASCII)


def is_iteration(event: Mapping[str, object]) -> bool:
    """Return True if an event shows an iteration, by the trainer's line, a progress bar or the optimizer's step."""
    kind, step = event["kind"], event.get("step")
    return kind == "iteration" or (kind in ("optimizer_step", "progress") and isinstance(step, int) and step >= 1)


def time_of(stamp: str) -> str | None:
    """Return a log's time in the form of a TIMESTAMP, in UTC if it has an offset; None if there is no such time.

    >>> time_of("2024-04-29 06:15:07,505"), time_of("2024-02-30 06:15:07"), time_of("2024-04-29T06:15:07+08:00")
    ('2024-04-29 06:15:07.505', None, '2024-04-28 22:15:07')
    """
    found = _TIME.match(stamp)
    if not found:
        return None
    day, clock, fraction, zone = found.groups()
    try:
        time = datetime.fromisoformat(f"{day} {clock}{zone or ''}")
        seconds = str(time.astimezone(UTC).replace(tzinfo=None) if zone else time)
    except (ValueError, OverflowError):  # the latter for an offset in the year 1 or 9999
        return None
    return f"{seconds}.{fraction}" if fraction else seconds


def number_of(text: str) -> str | None:
    """Return the text of a number without quotes and thousands separators; None if it is not a number.

    >>> number_of("'1.0E-4'"), number_of("6,738,415,616"), number_of("N/A")
    ('1.0E-4', '6738415616', None)
    """
    bare = text.strip().strip("'\"").strip().replace(",", "")
    return bare if _NUMBER.fullmatch(bare) else None


def time_of_epoch(text: str) -> str | None:
    """Return seconds since 1970 in the form of a TIMESTAMP; None outside 2001 to 2286.

    >>> time_of_epoch("1716480000.5"), time_of_epoch("12")
    ('2024-05-23 16:00:00.500000', None)
    """
    seconds = float(text)
    if not 1e9 <= seconds < 1e10:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def config(family: str, name: str, value: str, **more: object) -> Event:
    """Return the event of a setting: its name as in the log, its value as text."""
    return {"family": family, "kind": "config", "name": name, "value": value, **more}


# lines without an event ------------------------------------------------------------------------

LOG_FILE = "log_file"
"""Kind of the event that sums up a log."""
DAMAGED, TEXT, LABEL, BLANK, MESSAGE = "damaged", "text", "label", "blank", "message"
STEP = regex(r"(?i)\b(?:global_?|train(?:ing)?_?)?(?:step|iter(?:ation)?|epoch|batch|update)s?\b\W{0,20}\d")
"""Text that looks like the number of a step."""
PROGRESS = regex(
    r"(?i)loss\W{1,12}\d|\d ?m?s(?:ec|econds)?\b|\bseconds\W|\btime\b|\d ?(?:it|step|batch|tok)\w*/s|\ds/it"
)
"""Text that looks like a loss, a time or a rate: a line with this and a step shows progress."""
STAMP_ANYWHERE = regex(r"(?<!\d)(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)(?!\d)")
LAST = 50
"""Lines at the end of a log in which its last time is looked for."""
LOOKED_AT = 2_000
"""Characters at the start of a line in which a time or a step is looked for."""
SHOWN = 200
"""Maximum length of a line that is shown."""


class Outcomes:
    """Counts of the lines of one log without an event."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """Lines by outcome; those of which only a logger's prefix is known have an event, and count as `MESSAGE`."""
        self._first_time: str | None = None
        self._last: deque[str] = deque(maxlen=LAST)
        self._progress: tuple[int, str] | None = None
        self._is_sure = False

    def see(self, text: str, line: int) -> None:
        """Look at a line of which no more than a logger's prefix is known."""
        self._last.append(text)
        if self._first_time is None:
            self._first_time = _time_in(text)
        if not self._is_sure and STEP.search(text, 0, LOOKED_AT):
            self._is_sure = PROGRESS.search(text, 0, LOOKED_AT) is not None
            if self._is_sure or self._progress is None:
                self._progress = line, text[:SHOWN]

    def event(self, lines: int, filename: str) -> Event:
        """Return the event that sums up a log with this number of lines."""
        counts = {name: self.counts[name] for name in (DAMAGED, TEXT, LABEL, BLANK)}
        last_time = next((time for text in reversed(self._last) if (time := _time_in(text))), None)
        value = {"lines": lines, "event": lines - sum(counts.values()), **counts}
        times = {"first_time": self._first_time, "last_time": last_time}
        event: Event = {
            "kind": LOG_FILE,
            "value": json.dumps({**value, MESSAGE: self.counts[MESSAGE], **times}),
            "filename": filename,
        }
        if self._progress:
            event["line"], event["text"] = self._progress
        return event


def has_text(summary: Mapping[str, object]) -> bool:
    """Return True if the log of a summary has a line of which no pattern knows more than the prefix."""
    counts = json.loads(str(summary["value"]))
    return bool(counts[TEXT] or counts[MESSAGE])


def _time_in(text: str) -> str | None:
    found = STAMP_ANYWHERE.search(text, 0, LOOKED_AT)
    return time_of(f"{found[1]} {found[2]}") if found else None
