"""Reader of one log, in one pass: it strips the labels of every line and offers the line to the dialects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from warehouse.formats.logs import bars, hf_trainer, megatron, nccl
from warehouse.formats.logs.dialects import Dialects
from warehouse.formats.logs.event import LONGEST_TEXT, Damaged, Event, typed
from warehouse.formats.logs.labels import begins_a_line, strip_labels
from warehouse.formats.logs.outcomes import BLANK, DAMAGED, LABEL, TEXT, Outcomes
from warehouse.formats.logs.segments import BLANKS, BREAK, WRAP, blocks, plain, text_of, unwrapped, wrap_width

Reject = Callable[[int, str, str], None]
"""Callback for an unreadable line: (line number, reason, text)."""

LISTED = 1_000
"""Maximum number of damaged lines per file that are rejected one by one; further ones are only counted.

Every damaged line is an event, too.
"""
REMEMBERED = 4_096
"""Maximum number of cached lines without events, which are not parsed again."""
PIECES = 12
"""Maximum number of lines that one iteration may be wrapped into."""


class LogReader:
    """Reader of one file.

    A bar is held back until the next event: the iteration line of the same step has the same values and a time, and
    replaces the bar. A Megatron iteration that may continue in the next line is held back, too.

    With `at_once`, lines of the most common forms take a fast path, which yields the same events.
    """

    def __init__(self, filename: str, reject: Reject, *, at_once: bool = True) -> None:
        self._filename = filename
        self._reject = reject
        self._at_once = at_once
        self._dialects = Dialects()
        self._labels: set[str] = set()
        self._nccl = nccl.Connections(filename, self._labels)
        self._ranks: set[str] = set()
        self._held_bar: Event | None = None
        self._open_parts: list[str] = []
        self._open_at = (0, 0)
        self._open_label: str | None = None
        self._damaged = 0
        self._outcomes = Outcomes()
        self._silent: set[str] = set()
        self._width = -1
        self._line = self._segment = 1
        self._unended = 0

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
                self._outcomes.count(DAMAGED)
                continue
            if self._unended:  # the block begins with the end of the line that was too long
                self._unended = 0
                self._outcomes.count(BLANK, -1)
            if self._width < 0:
                self._width = wrap_width(block, _begins)
            yield from self._block(unwrapped(block, self._width, _begins))
        found: list[Event] = []
        self._close(found)
        if self._held_bar:
            found.append(self._held_bar)
        yield from found
        if self._damaged > LISTED:
            self._reject(self._line, f"damaged: {self._damaged - LISTED:,} more lines", "")

    def _block(self, block: str) -> list[Event]:
        found: list[Event] = []
        has_returns = "\r" in block
        start, end = 0, len(block)
        while start < end:
            if block[start] == "\n" and (blank := BLANKS(block, start)):
                self._segment += blank.end() - start
                self._line += blank.end() - start
                self._outcomes.count(BLANK, blank.end() - start)
                start = blank.end()
            if self._at_once and not self._open_parts and (after := self._common_lines(block, start, found)) > start:
                start = after
                continue
            if has_returns:
                line_end = BREAK.search(block, start)
                stop, after = line_end.span() if line_end else (end, end)
            else:
                stop = block.find("\n", start)
                after = stop + 1
            if stop > start:
                self._any_line(text_of(block[start:stop]), found)
            else:
                self._outcomes.count(BLANK)
            start = after
            self._segment += 1
            self._line += block[after - 1] == "\n"
        return found

    def _common_lines(self, block: str, start: int, found: list[Event]) -> int:
        """Add the events of consecutive lines of the most common forms; return where these lines end."""
        first = block[start]
        if first in " \r\n[" and (after := self._pairs(block, start, found)) > start:
            return after
        if first in " i[" and (after := self._iterations(block, start, found)) > start:
            return after
        if first in " 0123456789" and (after := self._bars(block, start, found)) > start:
            return after
        return self._connections(block, start, found)

    def _pairs(self, block: str, start: int, found: list[Event]) -> int:
        """Add iteration lines, each with the bar of the same step before it: the bulk of a long log."""
        while pair := hf_trainer.PAIR(block, start):
            groups = pair.groups()
            line, segment, bar = self._line, self._segment, groups[0]
            if bar is not None:  # the line break before the bar
                line += 2 if bar == "\n" else 1
                segment += 1 + len(bar)
            event = hf_trainer.of_pair(groups, line, segment, self._filename)
            if event is None:
                break
            self._outcomes.count(BLANK, len(bar or ""))
            if self._held_bar:
                if bar is not None or self._held_bar["step"] != event["step"]:
                    found.append(self._held_bar)
                self._held_bar = None
            found.append(event)
            self._line = line + 1
            self._segment = segment + 1
            start = pair.end()
        return start

    def _iterations(self, block: str, start: int, found: list[Event]) -> int:
        """Add iteration lines of Megatron-LM."""
        while line := megatron.LINE(block, start):
            event = megatron.of_line(line, self._line, self._segment, self._filename)
            if event is None:
                break
            self._add_line_event(event, found)
            start = line.end()
        return start

    def _connections(self, block: str, start: int, found: list[Event]) -> int:
        """Add connections of NCCL."""
        while line := self._nccl.read(block, start, self._line, self._segment):
            event, start = line
            self._add_line_event(event, found)
        return start

    def _add_line_event(self, event: Event, found: list[Event]) -> None:
        """Add the event of a line that is not a bar."""
        self._release_bar(event, found)
        found.append(event)
        self._line += 1
        self._segment += 1

    def _bars(self, block: str, start: int, found: list[Event]) -> int:
        """Hold each bar back until the next one."""
        while bar := bars.LINE(block, start):
            after = bar.end()
            if block[after - 1 : after + 1] == "\r\n":
                break
            if self._held_bar:
                found.append(self._held_bar)
            self._held_bar = bars.of_line(bar, self._line, self._segment, self._filename)
            self._line += block[after - 1] == "\n"
            self._segment += 1
            start = after
        return start

    def _any_line(self, written: str, found: list[Event]) -> None:
        """Add the events of a line of any form."""
        if written in self._silent and not self._open_parts:
            self._outcomes.count(TEXT)
            return
        text = plain(written).rstrip()
        wraps = text.count(WRAP) if self._width else 0
        if wraps:
            text, written = text.replace(WRAP, ""), written.replace(WRAP, "")
        known = len(self._labels)
        line = strip_labels(text, self._labels) if text else None
        if line is None or not line.text or line.text.isspace():
            self._line += wraps
            self._segment += wraps
            self._outcomes.count(LABEL if line and line.label else BLANK, 1 + wraps)
            return
        if self._open_parts:
            if len(self._open_parts) < PIECES and line.label == self._open_label and megatron.is_more(line.text):
                self._open_parts.append(line.text)
                return
            self._close(found)
        place = (self._line, self._segment)
        if "|" in line.text and "iteration" in line.text and megatron.may_go_on(line.text):
            self._open_parts, self._open_at, self._open_label = [line.text], place, line.label
            return
        inside = self._dialects.is_inside_arguments
        events = self._parse(line.text, written)
        self._count(events, written, 1 + wraps)
        if len(self._labels) > known or self._dialects.is_inside_arguments is not inside:
            self._silent.clear()  # a new label or state can give cached lines events
        elif not events and not wraps:
            self._cache_silent(written)
        if line.time_utc:
            for event in events:
                event.setdefault("time_utc", line.time_utc)
        if line.rank and line.rank not in self._ranks:
            self._ranks.add(line.rank)
            events.append({"family": "torchrun", "kind": "rank", "name": "label", "rank": line.rank})
        self._add(events, place, line.label, written, found)
        self._line += wraps
        self._segment += wraps

    def _cache_silent(self, written: str) -> None:
        """Cache a line without events: many logs repeat such lines."""
        if len(self._silent) >= REMEMBERED:
            self._silent.clear()
        if len(written) < LONGEST_TEXT:
            self._silent.add(written)

    def _close(self, found: list[Event]) -> None:
        """Add the held iteration, if there is one."""
        if self._open_parts:
            text, pieces = "".join(self._open_parts), len(self._open_parts)
            self._open_parts = []
            here, (self._line, self._segment) = (self._line, self._segment), self._open_at
            events = self._parse(text, text)
            self._count(events, text, pieces)
            self._add(events, self._open_at, self._open_label, text, found)
            self._line, self._segment = here

    def _count(self, events: list[Event], written: str, pieces: int) -> None:
        """Count a line of one or more pieces by its outcome."""
        if not events:
            self._outcomes.count(TEXT, pieces)
            self._outcomes.see_text(self._line, written)
        elif events[-1]["kind"] == "damaged":
            self._outcomes.count(DAMAGED, pieces)

    def _parse(self, text: str, written: str) -> list[Event]:
        """Return the events of a line. A damaged line is an event, too, and is also rejected."""
        try:
            return self._dialects.read(text)
        except Damaged as damage:
            self._damaged += 1
            if self._damaged <= LISTED:
                self._reject(self._line, f"damaged: {damage}", written)
            return [*damage.kept, {"family": damage.family, "kind": "damaged", "value": str(damage)}]

    def _add(
        self, events: Iterable[Event], place: tuple[int, int], label: str | None, written: str, found: list[Event]
    ) -> None:
        for item, event in enumerate(events):
            typed(event)
            event["line"], event["segment"] = place
            event["item"] = item
            event["label"] = label
            event["text"] = written[:LONGEST_TEXT]
            event["filename"] = self._filename
            self._release_bar(event, found)
            if event["kind"] == "progress":
                self._held_bar = event
            else:
                found.append(event)

    def _release_bar(self, event: Event, found: list[Event]) -> None:
        """Add the held bar, unless the event is the iteration of the same step."""
        if self._held_bar and (event["kind"] != "iteration" or self._held_bar["step"] != event.get("step")):
            found.append(self._held_bar)
        self._held_bar = None


def _begins(text: str) -> bool:
    return begins_a_line(plain(text))
