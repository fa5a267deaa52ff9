"""Megatron-LM and its forks: iteration lines, arguments, checkpoints, validation."""

from __future__ import annotations

import re

from warehouse.formats.logs import settings
from warehouse.formats.logs.event import (
    STAMP,
    WHOLE,
    Damaged,
    Event,
    config,
    number_of,
    scaled,
    time_of,
    time_of_epoch,
)
from warehouse.regex import regex

FAMILY = "megatron"

_HEAD = regex(rf"(?:^|.*[\s\]:])iteration[ :]+({WHOLE}) */ *({WHOLE}) *$")
_CLEAN = regex(r"\s*(?:\[[^\]]*\]\s*)*iteration[ :]")
_OWN = regex(r"(?!.*(?:consumed|elapsed|learning rate|loss|grad norm|number of|batch size)\b.*\biteration[ :]+\d)")
"""Before the head of an iteration: stamps alone behind other values; anything that is no half of an iteration, else."""
_BEGINS = regex(r"\biteration[ :]+\d+ */")
_STAMP = regex(rf"\[({STAMP}(?:[.,]\d+)?)\]|\[(\d{{10}}(?:\.\d+)?)\]")
_PAIR = regex(r" *([^|:=]*(?:\([^|()]*\)[^|:=]*)?[^|:=\s])\s*[:=] *([^|]*\S) *$")
_MORE = regex(r"(?: *[A-Za-z][\w ()/.-]{0,80}: *[^|:\s][^|]{0,40}\|)+ *$")
_SIGNS = (
    "consumed samples",
    "elapsed time per iteration",
    "learning rate",
    "global batch size",
    "loss scale",
    "grad norm",
    "number of skipped iterations",
    "number of nan iterations",
    "lm loss",
    "iteration ",
)
LAST_KEY = "number of nan iterations"
_TIME_KEY = regex(r"(?:\w+ )?time per iter\w*|iter(?:ation)?[ _]time|step[ _]time|time per step|time/iter\w*")
_UNIT = regex(r"\((ms|s|sec|seconds)\)|\[(ms|s)\]")
_RATE_KEY = regex(r"l\w*rn\w*[ _]rate|lr")
_LOSSES = ("lm loss", "lm_loss", "loss", "train loss", "train_loss", "total loss", "reduced_train_loss", "lm-loss")
_CLOCK_KEYS = ("timestamp", "current time", "unix time", "time")
_SIZES = regex(r"([a-z][a-z -]{0,80}?)[ -]size: (\d{1,9})")
_PARAMETERS = regex(
    rf" ?> number of parameters on \(tensor, pipeline\) model parallel rank \(({WHOLE}), ({WHOLE})\): (\d{{1,18}})"
)
_CHECKPOINT = regex(rf"\s*(saving|successfully saved) checkpoint (?:at|from) iteration +({WHOLE})\b")
_VALIDATION = regex(rf".{{0,40}}\bvalidation (?:loss|results) at (?:iteration +({WHOLE})|[^|]{{1,80}})[^|]*\|")
_VALUE = regex(r"(?:lm )?loss value: *([^|\s]+) *\|")
_START = regex(rf"\[(before the start of training step|after training is done)\] datetime: ({STAMP})")
_ARGUMENTS = regex(r"-{8,} (arguments|end of arguments) -{8,}")
_NOT_TRAINING = regex(r"\b(?:valid\w*|eval\w*|test\w*)\b", re.IGNORECASE)


class Megatron:
    """Reads the lines of one file; knows whether they are inside the list of arguments."""

    def __init__(self) -> None:
        self._inside_arguments = False

    def read(self, text: str) -> list[Event] | None:
        """Return the events of a line; None where it is none of Megatron's.

        Raises
        ------
        Damaged
            Where an iteration does not parse to its end.
        """
        if "|" in text and ("iteration" in text or text.count("|") > 2):
            found = iteration(text)
            if found is not None:
                return found
        if "-- " in text and (border := _ARGUMENTS.search(text)):
            self._inside_arguments = border[1] == "arguments"
            return []
        other = _other(text)
        if other is None and (self._inside_arguments or " ..." in text):
            other = list(settings.dotted(FAMILY, text, long_names=self._inside_arguments)) or None
        return other


def is_more(text: str) -> bool:
    """Return True if a line may be the rest of an iteration that was wrapped between two values.

    >>> is_more(" lm loss: 2.5E+00 | loss scale: 1.0 |"), is_more(" iteration 7/ 90 | lm loss: 2.5 |")
    (True, False)
    """
    return _MORE.match(text) is not None and not _BEGINS.search(text)


def may_go_on(text: str) -> bool:
    """Return True if a line that is an iteration may go on in the next line."""
    return text.rstrip().endswith("|") and LAST_KEY not in text


def iteration(text: str) -> list[Event] | None:
    """Return the event of an iteration line; None where it is none."""
    *fields, end = text.split("|")
    if end.strip():
        fields.append(end)
    event: Event = {}
    said: dict[str, str] = {}
    for field in fields:
        if "iteration" in field and (head := _HEAD.match(field)):
            if _NOT_TRAINING.search(field):
                return [{"family": FAMILY, "kind": "evaluation", "step": head[1], "steps": head[2], "name": "progress"}]
            if event:
                raise Damaged(FAMILY, "two iterations in one line")
            if not (_CLEAN if said else _OWN).match(field):
                raise Damaged(FAMILY, "an iteration behind a half of another line")
            event = {"family": FAMILY, "kind": "iteration", "step": head[1], "steps": head[2]}
        elif pair := _PAIR.match(field):
            name = pair[1].strip().lower()
            if name in said:
                raise Damaged(FAMILY, "an iteration with one value twice")
            said[name] = pair[2]
        elif field.strip() and event:
            raise Damaged(FAMILY, "an iteration does not parse to its end")
    signed = sum(sign in text for sign in _SIGNS)
    if not event or (signed > 2 and end.strip()):
        if signed > 2 and not _VALIDATION.match(text):
            raise Damaged(FAMILY, "an iteration does not parse to its end")
        return None
    _fill(event, said)
    if "time_utc" not in event and (stamp := _STAMP.search(text)):
        event["time_utc"] = time_of(stamp[1]) if stamp[1] else time_of_epoch(stamp[2])
    return [event]


def _fill(event: Event, said: dict[str, str]) -> None:
    """Put the values of an iteration into its columns. Other keys do no harm."""
    for name, value in said.items():
        if _TIME_KEY.match(name):
            unit = _UNIT.search(name)
            shown = _needed(value.removesuffix("ms").removesuffix("s"))
            is_ms = unit[1] == "ms" or unit[2] == "ms" if unit else value.endswith("ms")
            event["seconds"] = repr(float(shown) / 1000) if is_ms else shown
        elif _RATE_KEY.fullmatch(name):
            event["learning_rate"] = _needed(value)
        elif name in ("global batch size", "global_batch_size"):
            event["samples"] = _needed(value) if value.isdigit() else None
        elif name in _CLOCK_KEYS and number_of(value) and (time := time_of_epoch(value)):
            event["time_utc"] = time
    loss = next((said[name] for name in _LOSSES if name in said), None)
    if loss is not None:
        event["loss"] = _needed(loss)


def _needed(value: str) -> str:
    number = scaled(value)
    if number is None:
        raise Damaged(FAMILY, f"{value[:30]!r} in an iteration is no number")
    return number


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
    if "validation " in text and (validation := _VALIDATION.match(text)):
        value = _VALUE.search(text)
        loss = number_of(value[1]) if value else None
        return [{"family": FAMILY, "kind": "evaluation", "step": validation[1], "loss": loss, "name": "validation"}]
    if "datetime:" in text and (start := _START.match(text)):
        time = time_of(start[2])
        kind = "train_start" if start[1].startswith("before") else "train_end"
        return [{"family": FAMILY, "kind": kind, "time_utc": time}] if time else None
    return None
