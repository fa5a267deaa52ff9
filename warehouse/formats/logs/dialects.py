"""Dialects of log lines, in the order in which a line is offered to them.

A dialect is a module with a function that returns the events of a line, or None if the line is not of this dialect. The
function raises `Damaged` if the line is of the dialect but cannot be parsed in full. To add a trainer, write such a
module and add its function to `Dialects._trainers`.
"""

from __future__ import annotations

from collections.abc import Callable

from warehouse.base.startup import regex
from warehouse.formats.logs import bars, deepspeed, hf_trainer, lightning, nccl, settings, torchrun
from warehouse.formats.logs.event import Damaged, Event
from warehouse.formats.logs.lines import Prefixed, next_prefix, prefixed, speaks_nccl
from warehouse.formats.logs.megatron import Megatron

Read = Callable[[str], "list[Event] | None"]

_LOOKS_LIKE_AN_ITERATION = regex(
    r"\biter(?:ation)?:? +\d+ ?/ ?\d+|['\"](?:loss|learning_rate)['\"]: |elapsed time per iteration|"
    r"consumed samples: |number of (?:skipped|nan) iterations"
)


class Dialects:
    """Parser of the lines of one file; labels are already stripped."""

    def __init__(self) -> None:
        self._megatron = Megatron()
        self._trainers: tuple[Read, ...] = (lightning.read, self._megatron.read, _dictionary, _own_step)

    @property
    def is_inside_arguments(self) -> bool:
        """True if the last line was inside Megatron's list of arguments."""
        return self._megatron.is_inside_arguments

    def read(self, text: str) -> list[Event]:
        """Return the events of a line.

        Raises
        ------
        Damaged
            If the line is of a dialect but cannot be parsed in full.
        """
        if text[0] == "[" and (head := prefixed(text)):
            return self._logged(text, head)
        if "NCCL " in text and (nccl_events := self._nccl(text)) is not None:
            return nccl_events
        if "%|" in text or "it]" in text or "it/s" in text or "it," in text:
            return self._with_bars(text)
        events = self._of_trainer(text)
        if events is None:
            events = torchrun.read(text)
        if events is None:
            if (
                "iter" in text or "loss" in text or "learning_rate" in text or "consumed samples" in text
            ) and _LOOKS_LIKE_AN_ITERATION.search(text):
                raise Damaged("python", "it looks like an iteration and does not parse")
            events = settings.scalars("python", text)
        return events

    def _of_trainer(self, text: str) -> list[Event] | None:
        for read in self._trainers:
            if (events := read(text)) is not None:
                return events
        return None

    def _nccl(self, text: str) -> list[Event] | None:
        """Return the events of a line of NCCL, with those of bars before or after it; None for other lines."""
        if "%|" not in text:
            return nccl.read(text)
        return None if not speaks_nccl(text) else self._with_bars(text)

    def _with_bars(self, text: str) -> list[Event]:
        """Return the events of the bars of a line, and of the text around them."""
        found = bars.bars(text)
        events: list[Event] = []
        begin = 0
        before: Event | None = None
        for bar in [*found, None]:
            between = text[begin : bar.start if bar else len(text)].strip()
            if between:
                events += self._around_bar(between, before)
            if bar:
                begin, before = bar.end, bar.event
                if bar.event:
                    events.append(bar.event)
        return events

    def _around_bar(self, text: str, bar: Event | None) -> list[Event]:
        """Return the events of text beside a bar. Values of a dictionary go into the event of the bar before it."""
        if text[0] == "{" and bar and bar["kind"] == "progress" and (printed := hf_trainer.dictionary(text)):
            if printed["kind"] == "loss":
                bar.update(
                    {name: value for name, value in printed.items() if name in ("loss", "learning_rate") and value}
                )
                return []
            return [printed]
        try:
            if text[0] == "[" and (head := prefixed(text)):
                return self._logged(text, head)
            return (nccl.read(text) if "NCCL " in text else None) or self._of_trainer(text) or []
        except Damaged as damage:
            raise Damaged(damage.family, str(damage), [bar] if bar else []) from damage

    def _logged(self, text: str, head: Prefixed) -> list[Event]:
        """Return the events of a line with a logger's prefix."""
        if head.time_utc is None:
            raise Damaged(head.family, "there is no such time")
        if next_prefix(text, head.end) >= 0:
            raise Damaged(head.family, "two loggers wrote into one line", self._whole_iterations(text, head))
        return self._of_message(head, head.message)

    def _whole_iterations(self, text: str, first: Prefixed) -> list[Event]:
        """Return the complete iterations in a line that several loggers wrote.

        An iteration ends in a unit, so that a truncated one is recognized. Other messages can be cut anywhere.
        """
        kept: list[Event] = []
        head: Prefixed | None = first
        while head and head.time_utc:
            second = next_prefix(text, head.end)
            message = head.message if second < 0 else text[head.end : second]
            try:
                events = self._of_message(head, message)
            except Damaged:
                events = []
            kept += [event for event in events if event["kind"] == "iteration"]
            if second < 0:
                break
            text = text[second:]
            head = prefixed(text)
        return kept

    def _of_message(self, head: Prefixed, message: str) -> list[Event]:
        base: Event = {"family": head.family, "level": head.level, "time_utc": head.time_utc}
        found = [*hf_trainer.message(message)] or [*deepspeed.message(head.place, message)]
        if not found and "iteration" in message:
            found = self._of_trainer(message) or []
        if not found and "%|" in message:
            found = [bar.event for bar in bars.bars(message) if bar.event]
        return [{**base, **event} for event in found] or [{**base, "kind": "message"}]


def _dictionary(text: str) -> list[Event] | None:
    if "{" not in text or ("loss" not in text and "train_runtime" not in text):
        return None
    event = hf_trainer.dictionary(text)
    return [event] if event else None


def _own_step(text: str) -> list[Event] | None:
    at = max(text.find("step="), text.find("steps: "))
    if at < 0:
        return None
    step = deepspeed.own_step(text[at:])
    return [step] if step else None
