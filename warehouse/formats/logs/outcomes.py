"""Lines of a log by outcome, and lines without an event that help to see why: a row of `staging.log_files`."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Mapping

from warehouse.base.startup import regex
from warehouse.formats.logs.event import Event, time_of

LOG_FILE = "log_file"
"""Kind of the event that sums up a log."""
DAMAGED, TEXT, LABEL, BLANK = "damaged", "text", "label", "blank"
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
        self._counts: Counter[str] = Counter()
        self._first_time: str | None = None
        self._last: deque[str] = deque(maxlen=LAST)
        self._progress: tuple[int, str] | None = None
        self._is_sure = False
        self._messages = 0

    def count(self, outcome: str, lines: int = 1) -> None:
        """Count lines without an event."""
        self._counts[outcome] += lines

    def see_text(self, line: int, text: str) -> None:
        """Look at a line that no pattern knows."""
        self.see_text_again(text)
        if not self._is_sure and STEP.search(text, 0, LOOKED_AT):
            self._is_sure = PROGRESS.search(text, 0, LOOKED_AT) is not None
            if self._is_sure or self._progress is None:
                self._progress = line, text[:SHOWN]

    def see_text_again(self, text: str) -> None:
        """Look at a line that differs from an earlier one in its digits alone."""
        self._last.append(text)
        if self._first_time is None:
            self._first_time = _time_in(text)

    def see_message_again(self, text: str) -> None:
        """Look at a logger's line that differs from an earlier one in its digits alone."""
        self._messages += 1
        self.see_text_again(text)

    def see_message(self, line: int, text: str) -> None:
        """Look at a line of which only the logger's prefix is known."""
        self._messages += 1
        self.see_text(line, text)

    def event(self, lines: int, filename: str) -> Event:
        """Return the event that sums up a log with this number of lines."""
        counts = {name: self._counts[name] for name in (DAMAGED, TEXT, LABEL, BLANK)}
        last_time = next((time for text in reversed(self._last) if (time := _time_in(text))), None)
        value = {"lines": lines, "event": lines - sum(counts.values()), **counts}
        times = {"first_time": self._first_time, "last_time": last_time}
        event: Event = {
            "kind": LOG_FILE,
            "value": json.dumps({**value, "message": self._messages, **times}),
            "filename": filename,
        }
        if self._progress:
            event["line"], event["text"] = self._progress
        return event


def has_text(summary: Mapping[str, object]) -> bool:
    """Return True if the log of a summary has a line of which no pattern knows more than the prefix."""
    counts = json.loads(str(summary["value"]))
    return bool(counts[TEXT] or counts["message"])


def _time_in(text: str) -> str | None:
    found = STAMP_ANYWHERE.search(text, 0, LOOKED_AT)
    return time_of(f"{found[1]} {found[2]}") if found else None
