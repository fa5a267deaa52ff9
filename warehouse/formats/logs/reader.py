"""One log, read once: every segment is offered to the families in turn, and becomes the events that they see in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from warehouse.formats.logs import deepspeed, hf_trainer, settings, torchrun
from warehouse.formats.logs.event import LONGEST_TEXT, Event, typed
from warehouse.formats.logs.labels import DEEPEST, rank_of, time_of_label, without_label
from warehouse.formats.logs.megatron import Megatron
from warehouse.formats.logs.nccl import CONNECTION, Nccl
from warehouse.formats.logs.prefixes import Prefixed, next_prefix, prefixed
from warehouse.formats.logs.segments import BREAK, blocks, plain, text_of

WRITERS = 100
"""Lines of loggers in one line that are told apart."""

Reject = Callable[[int, str, str], None]
"""Told of (line, reason, text) of what cannot be read."""


class LogReader:
    """Reads one file.

    A bar is held back until the next event: an iteration line of the same step says the same, and its time. So is a
    Megatron iteration that may go on in the next line.
    """

    def __init__(self, filename: str, reject: Reject, *, at_once: bool = True) -> None:
        self._filename = filename
        self._reject = reject
        self._at_once = at_once
        self._nccl = Nccl()
        self._megatron = Megatron()
        self._held: Event | None = None
        self._begun: Event | None = None
        self._line = self._segment = 1

    def read(self, path: Path) -> Iterator[Event]:
        """Events of a file in the order of its segments, a held bar apart.

        `line` counts line feeds, `segment` bare carriage returns, too; both from 1. `item` counts the events of
        one segment from 0. `text` is the segment as it stands.
        """
        for block, damage in blocks(path):
            if damage:
                self._reject(self._line, damage, block)
            else:
                yield from self._block(block)
        if self._begun:
            yield typed(self._begun)
        if self._held:
            yield self._held

    def _block(self, block: str) -> list[Event]:
        found: list[Event] = []
        has_returns = "\r" in block
        start, end = 0, len(block)
        while start < end:
            if self._at_once and (pair := hf_trainer.PAIR(block, start)) and (event := hf_trainer.of_pair(pair)):
                self._pair(pair[1], event, found)
                start = pair.end()
                continue
            if self._at_once and (line := CONNECTION(block, start)):
                self._connection(self._nccl.of_connection(line), found)
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
        """An iteration line and, where `bar` is what breaks the line before it, its bar: most of a long log."""
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

    def _connection(self, event: Event, found: list[Event]) -> None:
        """One of NCCL's connections: most of a log's beginning, with `NCCL_DEBUG=INFO` in every process."""
        if self._held:
            found.append(self._held)
            self._held = None
        event["line"] = self._line
        event["segment"] = self._segment
        event["filename"] = self._filename
        self._line += 1
        self._segment += 1
        found.append(event)

    def _one(self, text: str, found: list[Event]) -> None:
        """A line of any form."""
        said = self._events(plain(text)) if not text.isspace() else None
        if self._begun and self._megatron.begun is not self._begun:
            found.append(typed(self._begun))
            self._begun = None
        for item, event in enumerate(said or ()):
            typed(event)
            event["line"] = self._line
            event["segment"] = self._segment
            event["item"] = item
            event["text"] = text[:LONGEST_TEXT]
            event["filename"] = self._filename
            if self._held:
                if event["kind"] != "iteration" or self._held["step"] != event["step"]:
                    found.append(self._held)
                self._held = None
            if event["kind"] == "progress":
                self._held = event
            elif event is self._megatron.begun:
                self._begun = event
            else:
                found.append(event)

    def _events(self, text: str) -> list[Event]:
        """Events of a line, with up to three launchers' marks before it."""
        found = self._unlabelled(text)
        behind = text
        rank = time = None
        for _ in range(DEEPEST):
            if found is not None:
                break
            rank, time = rank or rank_of(behind), time or time_of_label(behind)
            behind = without_label(behind) or ""
            if not behind:
                break
            found = self._unlabelled(behind)
        if found is None and "NCCL " in text:
            found = self._nccl.last_of(text, lambda reason: self._reject(self._line, reason, text))
        for event in found or ():
            if time:
                event.setdefault("time_utc", time)
        said: Event = {"family": "torchrun", "kind": "rank", "name": "label", "rank": rank}
        return [*(found or ()), said] if rank else found or []

    def _unlabelled(self, text: str) -> list[Event] | None:
        """Events of a line without a launcher's mark; None where no family knows it."""
        if text[0] == "[" and (head := prefixed(text)):
            return self._logged(text, head)
        if "NCCL " in text and (spoken := self._nccl.read(text)):
            return spoken
        if "%|" in text and (bars := self._bars(text)):
            return bars
        if text[0] == "{" and (said := hf_trainer.dictionary(text)):
            return [said]
        other = self._megatron.read(text)
        if other is None:
            other = torchrun.read(text)
        return other if other is not None else settings.scalars("python", text) or None

    def _logged(self, text: str, first: Prefixed) -> list[Event]:
        """Events of a line of a logger, and of the lines that others wrote behind it."""
        events: list[Event] = []
        head: Prefixed | None = first
        for _ in range(WRITERS):
            if head is None or head.time_utc is None:
                self._reject(self._line, "there is no such time", text)
                return events
            second = next_prefix(text, head.end)
            message = head.message if second < 0 else text[head.end : second]
            base: Event = {"family": head.family, "level": head.level, "time_utc": head.time_utc}
            found = [*hf_trainer.message(message)] or [*deepspeed.message(head.place, message)]
            events += [{**base, **one} for one in found] or [{**base, "kind": "message"}]
            if second < 0:
                return events
            text = text[second:]
            head = prefixed(text)
        self._reject(self._line, f"more than {WRITERS} lines in one", text)
        return events

    def _bars(self, text: str) -> list[Event]:
        """Bars that share a line, and a log line glued behind the last."""
        events = []
        while text and (found := hf_trainer.bar(text)):
            event, end = found
            events.append(event)
            text = text[end:].lstrip(" ")
        if events and text:
            events += self._unlabelled(text) or []
        return events
