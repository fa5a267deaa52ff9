"""Megatron-LM and its descendants: iteration lines, arguments, checkpoints. Printed by rank 0 or the last rank."""

from __future__ import annotations

import re

from warehouse.formats.logs import settings
from warehouse.formats.logs.event import NUMBER, STAMP, WHOLE, Event, config, number_of, time_of
from warehouse.regex import regex

FAMILY = "megatron"

_HEAD = regex(rf"(?:^|(?<=[\s|\]])) *iteration +({WHOLE})/ *({WHOLE}) \|")
_STAMP = regex(rf"\[({STAMP}(?:\.\d+)?)\]")
_KEY = r"[A-Za-z][\w ()/.-]{0,80}?"
_PAIR = regex(rf" {{0,80}}({_KEY}) ?: *({NUMBER}) \|")
_TAIL = regex(rf"\s*{_KEY}: *{NUMBER} \|")
_SIZES = regex(r"([a-z][a-z -]{0,80}?)[ -]size: (\d{1,9})")
_PARAMETERS = regex(
    rf" ?> number of parameters on \(tensor, pipeline\) model parallel rank \(({WHOLE}), ({WHOLE})\): (\d{{1,18}})"
)
_CHECKPOINT = regex(rf"\s*(saving|successfully saved) checkpoint (?:at|from) iteration +({WHOLE})\b")
_START = regex(rf"\[(before the start of training step|after training is done)\] datetime: ({STAMP})")
_ARGUMENTS = regex(r"-{8,} (arguments|end of arguments) -{8,}")


class Megatron:
    """Reads the lines of one file; knows whether they are inside the list of arguments."""

    def __init__(self) -> None:
        self._inside_arguments = False
        self.begun: Event | None = None
        """An iteration line that may go on in the next line, where the log was wrapped."""

    def read(self, text: str) -> list[Event] | None:
        """Events of a line; None where it is none of Megatron's, and none for a line that goes on."""
        if "iteration" in text and "|" in text and (head := _HEAD.search(text)):
            return [self._iteration(head, text)]
        if self.begun is not None and _TAIL.match(text):
            _fill(self.begun, text)
            return []
        self.begun = None
        if "-- " in text and (border := _ARGUMENTS.search(text)):
            self._inside_arguments = border[1] == "arguments"
            return []
        found = _other(text)
        if found is None and (self._inside_arguments or " ..." in text):
            found = list(settings.dotted(FAMILY, text, long_names=self._inside_arguments)) or None
        return found

    def _iteration(self, head: re.Match[str], text: str) -> Event:
        event: Event = {"family": FAMILY, "kind": "iteration", "step": head[1], "steps": head[2]}
        stamp = _STAMP.search(text, 0, head.start() + 1)
        if stamp and (time := time_of(stamp[1])):
            event["time_utc"] = time
        _fill(event, text[: head.start()])
        _fill(event, text[head.end() :])
        self.begun = None if "number of nan iterations" in text else event
        return event


def _fill(event: Event, text: str) -> None:
    """Put the values of `key: value |` pairs into the event. Other keys do no harm."""
    for found in _PAIR.finditer(text):
        name, value = found[1].strip().lower(), number_of(found[2])
        if name in ("elapsed time per iteration (ms)", "elapsed time per iteration(ms)"):
            event["seconds"] = repr(float(value or "nan") / 1000)
        elif name in ("step time", "step time (s)"):
            event["seconds"] = value
        elif name == "learning rate":
            event["learning_rate"] = value
        elif name == "global batch size" and value and value.isdigit():
            event["samples"] = value
        elif name in ("lm loss", "loss", "reduced_train_loss"):
            event["loss"] = value


def _other(text: str) -> list[Event] | None:
    if "using world size:" in text:
        sizes = [
            config(FAMILY, f"{name.strip().replace('-', '_').replace(' ', '_').removeprefix('using_')}_size", value)
            for name, value in _SIZES.findall(text)
        ]
        return sizes or None
    if "number of parameters" in text and (parameters := _PARAMETERS.match(text)):
        tensor, pipeline, count = parameters.groups()
        return [config(FAMILY, f"parameters_on_rank_{tensor}_{pipeline}", count)]
    if "checkpoint" in text and (saved := _CHECKPOINT.match(text)):
        kind = "checkpoint_start" if saved[1] == "saving" else "checkpoint_end"
        return [{"family": FAMILY, "kind": kind, "step": saved[2], "name": f"iteration {saved[2]}"}]
    if "datetime:" in text and (start := _START.match(text)):
        time = time_of(start[2])
        kind = "train_start" if start[1].startswith("before") else "train_end"
        return [{"family": FAMILY, "kind": kind, "time_utc": time}] if time else None
    return None
