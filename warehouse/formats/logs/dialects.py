"""The dialects of a log's lines, in the order in which a line is offered to them.

A dialect is a module with a function that returns the events of a line, or None where the line is none of its own,
and raises `Damaged` where the line is its own but does not parse to its end. To add a trainer, write that module and
add its function to `Dialects._trainers`.
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
    """Reads the lines of one file, without their labels."""

    def __init__(self) -> None:
        self._megatron = Megatron()
        self._trainers: tuple[Read, ...] = (lightning.read, self._megatron.read, _dictionary, _own_step)

    @property
    def is_inside_arguments(self) -> bool:
        """Whether the last line was between Megatron's borders of its arguments."""
        return self._megatron.is_inside_arguments

    def read(self, text: str) -> list[Event]:
        """Return the events of a line.

        Raises
        ------
        Damaged
            Where the line is of a dialect and does not parse to its end.
        """
        if text[0] == "[" and (head := prefixed(text)):
            return self._logged(text, head)
        if "NCCL " in text and (spoken := self._nccl(text)) is not None:
            return spoken
        if "%|" in text or "it]" in text or "it/s" in text or "it," in text:
            return self._with_bars(text)
        said = self._trained(text)
        if said is None:
            said = torchrun.read(text)
        if said is None:
            if (
                "iter" in text or "loss" in text or "learning_rate" in text or "consumed samples" in text
            ) and _LOOKS_LIKE_AN_ITERATION.search(text):
                raise Damaged("python", "it looks like an iteration and does not parse")
            said = settings.scalars("python", text)
        return said

    def _trained(self, text: str) -> list[Event] | None:
        for read in self._trainers:
            if (said := read(text)) is not None:
                return said
        return None

    def _nccl(self, text: str) -> list[Event] | None:
        """Return what NCCL says; a bar may stand before or behind it."""
        if "%|" not in text:
            return nccl.read(text)
        return None if not speaks_nccl(text) else self._with_bars(text)

    def _with_bars(self, text: str) -> list[Event]:
        """Return the bars of a line, and what the text before, between and behind them says."""
        found = bars.bars(text)
        said: list[Event] = []
        begin = 0
        before: Event | None = None
        for one in [*found, None]:
            between = text[begin : one.start if one else len(text)].strip()
            if between:
                said += self._beside(between, before)
            if one:
                begin, before = one.end, one.event
                if one.event:
                    said.append(one.event)
        return said

    def _beside(self, text: str, bar: Event | None) -> list[Event]:
        """Return what the text beside a bar says: of a dictionary, into the bar before it."""
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
            return (nccl.read(text) if "NCCL " in text else None) or self._trained(text) or []
        except Damaged as damage:
            raise Damaged(damage.family, str(damage), [bar] if bar else []) from damage

    def _logged(self, text: str, head: Prefixed) -> list[Event]:
        """Return the events of a line of a logger."""
        if head.time_utc is None:
            raise Damaged(head.family, "there is no such time")
        if next_prefix(text, head.end) >= 0:
            raise Damaged(head.family, "two loggers wrote into one line", self._apart(text, head))
        return self._of_message(head, head.message)

    def _apart(self, text: str, first: Prefixed) -> list[Event]:
        """Return the whole iterations of a line of several loggers: they end in a unit, other values anywhere."""
        kept: list[Event] = []
        head: Prefixed | None = first
        while head and head.time_utc:
            second = next_prefix(text, head.end)
            message = head.message if second < 0 else text[head.end : second]
            try:
                said = self._of_message(head, message)
            except Damaged:
                said = []
            kept += [one for one in said if one["kind"] == "iteration"]
            if second < 0:
                break
            text = text[second:]
            head = prefixed(text)
        return kept

    def _of_message(self, head: Prefixed, message: str) -> list[Event]:
        base: Event = {"family": head.family, "level": head.level, "time_utc": head.time_utc}
        found = [*hf_trainer.message(message)] or [*deepspeed.message(head.place, message)]
        if not found and "iteration" in message:
            found = self._trained(message) or []
        if not found and "%|" in message:
            found = [one.event for one in bars.bars(message) if one.event]
        return [{**base, **one} for one in found] or [{**base, "kind": "message"}]


def _dictionary(text: str) -> list[Event] | None:
    if "{" not in text or ("loss" not in text and "train_runtime" not in text):
        return None
    said = hf_trainer.dictionary(text)
    return [said] if said else None


def _own_step(text: str) -> list[Event] | None:
    at = max(text.find("step="), text.find("steps: "))
    if at < 0:
        return None
    step = deepspeed.own_step(text[at:])
    return [step] if step else None
