"""Reader of one log, in one pass: it finds the core of each line, wherever the line begins, and returns its events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from pathlib import Path

from warehouse.base.startup import regex
from warehouse.formats.logs.event import (
    BLANK,
    DAMAGED,
    LABEL,
    LONGEST_TEXT,
    MESSAGE,
    TEXT,
    Damaged,
    Event,
    Outcomes,
    time_of,
)
from warehouse.formats.logs.line_kinds import LOOKED_AT, LineKind, line_kinds
from warehouse.formats.logs.line_parser import LineParser
from warehouse.formats.logs.lines import (
    Line,
    about_label,
    after_label,
    blocks,
    unwrapped,
    wrap_width,
)

Reject = Callable[[int, str, str], None]
"""Callback for an unreadable line: (line number, reason, text)."""

LISTED = 1_000
"""Maximum number of damaged lines per file that are rejected one by one; further ones are only counted.

Every damaged line is an event, too.
"""
_LAST_WORD = regex(r"[\w.,+-]*$")
_SEGMENT = regex("([^\r\n]*)(\r\n|\n|\r)")


class LogReader:
    """Reader of one file.

    A bar is held back until the next event: the iteration line of the same step has the same values and a time, and
    replaces the bar.
    """

    def __init__(self, filename: str, reject: Reject, kinds: Sequence[LineKind] | None = None) -> None:
        kinds = line_kinds() if kinds is None else kinds
        self._filename = filename
        self._reject = reject
        self._parser = LineParser(kinds)
        self._ranks: set[int] = set()
        self._bar: Event | None = None
        self._damaged = 0
        self._outcomes = Outcomes()
        self._line = self._segment = 1
        self._unended = 0
        self._width = -1

    def summary(self) -> Event:
        """Return the event that sums up the log, after `read`."""
        return self._outcomes.event(self._segment - 1 + self._unended, self._filename)

    def read(self, path: Path) -> Iterator[Event]:
        """Yield the events of a file in the order of its segments; a held bar may come later.

        `line` counts line feeds; `segment` counts bare carriage returns, too. Both begin at 1. `item` counts the events
        of one segment from 0. `text` is the text of the segment, unchanged.
        """
        for block, damage in blocks(path):
            if damage:
                self._reject(self._line, damage, block)
                self._unended += 1
                self._outcomes.counts[DAMAGED] += 1
                continue
            if self._unended:  # the block begins with the end of the line that was too long
                self._unended = 0
                self._outcomes.counts[BLANK] -= 1
            if self._width < 0:
                self._width = wrap_width(block)
            yield from self._block(block)
        if self._bar:
            yield self._bar
        if self._damaged > LISTED:
            self._reject(self._line, f"damaged: {self._damaged - LISTED:,} more lines", "")

    def _block(self, block: str) -> list[Event]:
        found: list[Event] = []
        blank = 0
        segments = _SEGMENT.findall(block) if "\r" in block else zip(block[:-1].split("\n"), repeat("\n"))
        for written, ending in segments:
            if not written:
                blank += 1
            elif len(written) == self._width:  # its last number may go on in the next line
                self._any_line(_LAST_WORD.sub("", written), found)
            else:
                self._any_line(written, found)
            self._segment += 1
            if ending != "\r":
                self._line += 1
        self._outcomes.counts[BLANK] += blank
        return found

    def _any_line(self, written: str, found: list[Event]) -> None:
        """Add the events of a line."""
        label, events = self._parse(unwrapped(written), written)
        for item, event in enumerate(events):
            event |= {"line": self._line, "segment": self._segment, "item": item, "label": label}
            event |= {"text": written[:LONGEST_TEXT], "filename": self._filename}
            self._put(event, found)

    def _parse(self, line: Line, written: str) -> tuple[str | None, list[Event]]:
        """Return label and events of a line. A damaged line is an event, too, and is also rejected."""
        label = None
        try:
            label, events = self._parser.read(line.text[:LOOKED_AT])
            if not events and line.outer:
                label, events = self._parser.read(line.outer[:LOOKED_AT])
        except Damaged as damage:
            self._damaged += 1
            if self._damaged <= LISTED:
                self._reject(self._line, f"damaged: {damage}", written)
            events = [*damage.kept, {"family": damage.family, "kind": DAMAGED, "value": str(damage)}]
            label = line.text[: after_label(line.text)].strip() or None
            self._outcomes.counts[DAMAGED] += 1
        else:
            if not events:
                bare = not line.text[after_label(line.text) :].strip()
                outcome = TEXT if not bare else LABEL if line.text.strip() else BLANK
                self._outcomes.counts[outcome] += 1
                label = line.text[: after_label(line.text)].strip() or None
                if outcome == TEXT:
                    self._outcomes.see(written, self._line)
            elif all(event["kind"] == MESSAGE and event["family"] != "nccl" for event in events):
                self._outcomes.counts[MESSAGE] += 1
                self._outcomes.see(written, self._line)
        self._add_about(line, label, events)
        return label, events

    def _add_about(self, line: Line, label: str | None, events: list[Event]) -> None:
        """Add to the events what the label and a log driver say: time and rank."""
        rank, host, stamp = about_label(label or "")
        time = (stamp and time_of(stamp)) or line.time_utc
        host = host or line.host
        for event in events if time or host else ():
            if event.get("time_utc") is None:
                event["time_utc"] = time
            if event["kind"] != DAMAGED and event.get("host") is None:
                event["host"] = host
        if rank and int(rank) not in self._ranks:
            self._ranks.add(int(rank))
            events.append({"family": "torchrun", "kind": "rank", "name": "label", "rank": int(rank)})

    def _put(self, event: Event, found: list[Event]) -> None:
        """Add an event, or hold it back if it is a bar. A bar goes if the event is the iteration of the same step."""
        if self._bar and (event["kind"] != "iteration" or self._bar["step"] != event.get("step")):
            found.append(self._bar)
        self._bar = None
        if event["kind"] == "progress":
            self._bar = event
        else:
            found.append(event)
