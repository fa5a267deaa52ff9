"""One log, read once: every line loses its labels, is offered to the dialects in turn, and becomes events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from warehouse.formats.logs import hf_trainer, megatron, nccl
from warehouse.formats.logs.dialects import Dialects
from warehouse.formats.logs.event import LONGEST_TEXT, Damaged, Event, typed
from warehouse.formats.logs.labels import begins_a_line, peeled
from warehouse.formats.logs.segments import BREAK, WRAP, blocks, plain, text_of, unwrapped, wrap_width

Reject = Callable[[int, str, str], None]
"""Told of (line, reason, text) of what cannot be read."""

LISTED = 1_000
"""Damaged lines of a file that are listed one by one; those beyond are counted. All are events."""
PIECES = 12
"""Lines that one iteration may be wrapped into."""


class LogReader:
    """Reads one file.

    A bar is held back until the next event: an iteration line of the same step says the same, and its time. So is a
    Megatron iteration that may go on in the next line.
    """

    def __init__(self, filename: str, reject: Reject, *, at_once: bool = True) -> None:
        self._filename = filename
        self._reject = reject
        self._at_once = at_once
        self._dialects = Dialects()
        self._labels: set[str] = set()
        self._ranks: set[str] = set()
        self._held: Event | None = None
        self._open: list[str] = []
        self._open_at = (0, 0)
        self._open_label: str | None = None
        self._damaged = 0
        self._width = -1
        self._line = self._segment = 1

    def read(self, path: Path) -> Iterator[Event]:
        """Yield the events of a file in the order of its segments, a held bar apart.

        `line` counts line feeds, `segment` bare carriage returns, too; both from 1. `item` counts the events of
        one segment from 0. `text` is the segment as it stands.
        """
        for block, damage in blocks(path):
            if damage:
                self._reject(self._line, damage, block)
                continue
            if self._width < 0:
                self._width = wrap_width(block, begins_a_line)
            yield from self._block(unwrapped(block, self._width, begins_a_line))
        found: list[Event] = []
        self._close(found)
        if self._held:
            found.append(self._held)
        yield from found
        if self._damaged > LISTED:
            self._reject(self._line, f"damaged: {self._damaged - LISTED:,} more lines", "")

    def _block(self, block: str) -> list[Event]:
        found: list[Event] = []
        has_returns = "\r" in block
        start, end = 0, len(block)
        while start < end:
            if self._at_once and not self._open:
                if (pair := hf_trainer.PAIR(block, start)) and (event := hf_trainer.of_pair(pair)):
                    self._pair(pair[1], event, found)
                    start = pair.end()
                    continue
                if line := nccl.CONNECTION(block, start):
                    self._whole(nccl.of_connection(line), found)
                    start = line.end()
                    continue
            if has_returns:
                line_end = BREAK.search(block, start)
                stop, after = line_end.span() if line_end else (end, end)
            else:
                stop = block.find("\n", start)
                after = stop + 1
            if stop > start:
                self._one(text_of(block[start:stop]), found)
            start = after
            self._segment += 1
            self._line += block[after - 1] == "\n"
        return found

    def _pair(self, bar: str | None, event: Event, found: list[Event]) -> None:
        """Add an iteration line and, where `bar` is what breaks the line before it, its bar: most of a long log."""
        line, segment = self._line, self._segment
        if bar is not None:
            line += 2 if bar == "\n" else 1
            segment += 1 + len(bar)
        if self._held:
            if bar is not None or self._held["step"] != event["step"]:
                found.append(self._held)
            self._held = None
        event["line"] = line
        event["segment"] = segment
        event["filename"] = self._filename
        self._line = line + 1
        self._segment = segment + 1
        found.append(event)

    def _whole(self, event: Event, found: list[Event]) -> None:
        """Add one of NCCL's connections: most of a log's beginning, with `NCCL_DEBUG=INFO` in every process."""
        if self._held:
            found.append(self._held)
            self._held = None
        event["line"] = self._line
        event["segment"] = self._segment
        event["filename"] = self._filename
        self._line += 1
        self._segment += 1
        found.append(event)

    def _one(self, written: str, found: list[Event]) -> None:
        """Add the events of a line of any form."""
        text = plain(written).rstrip()
        wraps = text.count(WRAP) if self._width else 0
        if wraps:
            text, written = text.replace(WRAP, ""), written.replace(WRAP, "")
        line = peeled(text, self._labels) if text else None
        if line is None or not line.text or line.text.isspace():
            self._line += wraps
            self._segment += wraps
            return
        if self._open:
            if len(self._open) < PIECES and line.label == self._open_label and megatron.is_more(line.text):
                self._open.append(line.text)
                return
            self._close(found)
        place = (self._line, self._segment)
        if "|" in line.text and "iteration" in line.text and megatron.may_go_on(line.text):
            self._open, self._open_at, self._open_label = [line.text], place, line.label
            return
        said = self._said(line.text, written)
        if line.time_utc:
            for event in said:
                event.setdefault("time_utc", line.time_utc)
        if line.rank and line.rank not in self._ranks:
            self._ranks.add(line.rank)
            said.append({"family": "torchrun", "kind": "rank", "name": "label", "rank": line.rank})
        self._add(said, place, line.label, written, found)
        self._line += wraps
        self._segment += wraps

    def _close(self, found: list[Event]) -> None:
        """Add the iteration that might have gone on."""
        if self._open:
            text = "".join(self._open)
            self._open = []
            here, (self._line, self._segment) = (self._line, self._segment), self._open_at
            self._add(self._said(text, text), self._open_at, self._open_label, text, found)
            self._line, self._segment = here

    def _said(self, text: str, written: str) -> list[Event]:
        """Return what the dialects say of a line; a damaged one is an event, too, and a rejected line."""
        try:
            return self._dialects.read(text)
        except Damaged as damage:
            self._damaged += 1
            if self._damaged <= LISTED:
                self._reject(self._line, f"damaged: {damage}", written)
            return [*damage.kept, {"family": damage.family, "kind": "damaged", "value": str(damage)}]

    def _add(
        self, said: Iterable[Event], place: tuple[int, int], label: str | None, written: str, found: list[Event]
    ) -> None:
        for item, event in enumerate(said):
            typed(event)
            event["line"], event["segment"] = place
            event["item"] = item
            event["label"] = label
            event["text"] = written[:LONGEST_TEXT]
            event["filename"] = self._filename
            if self._held:
                if event["kind"] != "iteration" or self._held["step"] != event.get("step"):
                    found.append(self._held)
                self._held = None
            if event["kind"] == "progress":
                self._held = event
            else:
                found.append(event)
