"""Lines of Megatron-LM and its forks: iterations, arguments, checkpoints, validation."""

from __future__ import annotations

import re

from warehouse.base.startup import regex
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

FAMILY = "megatron"

_HEAD = regex(rf"(?:^|.*[\s\]:])iteration[ :]+({WHOLE}) */ *({WHOLE}) *$")
_CLEAN = regex(r"\s*(?:\[[^\]]*\]\s*)*iteration[ :]")
_OWN = regex(r"(?!.*(?:consumed|elapsed|learning rate|loss|grad norm|number of|batch size)\b.*\biteration[ :]+\d)")
"""Text before the head of an iteration, `iteration 7/90`.

After other values, only stamps may precede the head (`_CLEAN`). Otherwise any text may, except part of another
iteration (`_OWN`).
"""
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


_PLAIN = r"\d{1,12}+\.\d{1,12}+"
_SMALL = rf"{_PLAIN}(?:E[-+]\d\d|)"
LINE = regex(
    rf"( ?(?:\[({STAMP})\] |)iteration {{1,12}}+({WHOLE}+)/ {{0,12}}+({WHOLE}+) \| "
    rf"consumed samples: {{1,14}}+\d{{1,15}}+ \| elapsed time per iteration \(ms\): ({_PLAIN}) \|"
    rf"(?: throughput per GPU \(TFLOP/s/GPU\): {_PLAIN} \||) "
    rf"learning rate: ({_SMALL}) \| global batch size: {{1,8}}+({WHOLE}+) \|(?: lm loss: (-?{_SMALL}) \||)"
    rf"(?: loss scale: {_PLAIN} \||)(?: grad norm: {_PLAIN} \||)(?: num zeros: {_PLAIN} \||)"
    rf"(?: params norm: {_PLAIN} \||) "
    r"number of skipped iterations: {1,5}+\d{1,9}+ \| number of nan iterations: {1,5}+\d{1,9}+ \|)\n",
    re.ASCII,
).match
"""Matcher of the most common iteration line in its most common form, with the line feed.

A fast path: `iteration` yields the same event.
"""


def of_line(found: re.Match[str], line: int, segment: int, filename: str) -> Event | None:
    """Return the event of a `LINE` match; None if its time does not exist."""
    text, stamp, step, steps, elapsed, rate, samples, loss = found.groups()
    time = time_of(stamp) if stamp else None
    if stamp and not time:
        return None
    return {
        "line": line,
        "segment": segment,
        "item": 0,
        "family": FAMILY,
        "kind": "iteration",
        "time_utc": time,
        "step": int(step),
        "steps": int(steps),
        "seconds": float(elapsed) / 1000,
        "loss": float(loss) if loss else None,
        "learning_rate": float(rate),
        "samples": int(samples),
        "text": text,
        "filename": filename,
    }


class Megatron:
    """Parser of the lines of one file; tracks whether they are inside the list of arguments."""

    def __init__(self) -> None:
        self.is_inside_arguments = False

    def read(self, text: str) -> list[Event] | None:
        """Return the events of a line; None if it is not a line of Megatron.

        Raises
        ------
        Damaged
            If an iteration cannot be parsed in full.
        """
        if "|" in text and ("iteration" in text or text.count("|") > 2):
            found = iteration(text)
            if found is not None:
                return found
        if "-- " in text and (border := _ARGUMENTS.search(text)):
            self.is_inside_arguments = border[1] == "arguments"
            return []
        other = _other(text)
        if other is None and (self.is_inside_arguments or " ..." in text):
            other = list(settings.dotted(FAMILY, text, long_names=self.is_inside_arguments)) or None
        return other


def is_more(text: str) -> bool:
    """Return True if a line may continue an iteration that was wrapped between two values.

    >>> is_more(" lm loss: 2.5E+00 | loss scale: 1.0 |"), is_more(" iteration 7/ 90 | lm loss: 2.5 |")
    (True, False)
    """
    return _MORE.match(text) is not None and not _BEGINS.search(text)


def may_go_on(text: str) -> bool:
    """Return True if an iteration line may continue in the next line."""
    return text.rstrip().endswith("|") and LAST_KEY not in text


def iteration(text: str) -> list[Event] | None:
    """Return the event of an iteration line; None for other lines.

    Raises
    ------
    Damaged
        If the line cannot be parsed in full; `kept` holds the values before the damage.
    """
    *fields, end = text.split("|")
    signed = sum(sign in text for sign in _SIGNS)
    is_cut = bool(end.strip()) and signed > 2
    event: Event = {}
    values: dict[str, str] = {}
    for field in [*fields, end] if end.strip() and not is_cut else fields:
        head = _HEAD.match(field) if "iteration" in field else None
        if head and _NOT_TRAINING.search(field):
            return [{"family": FAMILY, "kind": "evaluation", "step": head[1], "steps": head[2], "name": "progress"}]
        if head:
            if event or not (_CLEAN if values else _OWN).match(field):
                raise _damaged("two lines in one", event, values)
            event = {"family": FAMILY, "kind": "iteration", "step": head[1], "steps": head[2]}
            if stamp := _STAMP.search(field):
                event["time_utc"] = time_of(stamp[1]) if stamp[1] else time_of_epoch(stamp[2])
        elif pair := _PAIR.match(field):
            name = pair[1].strip().lower()
            if name in values:
                raise _damaged("an iteration with one value twice", event, values)
            values[name] = pair[2]
        elif field.strip() and event:
            raise _damaged("an iteration does not parse to its end", event, values)
    if is_cut or (not event and signed > 2):
        if _VALIDATION.match(text):
            return None
        raise _damaged("an iteration does not parse to its end", event, values)
    if event:
        try:
            _fill(event, values)
        except ValueError as wrong:
            raise _damaged(f"{wrong} in an iteration is no number", event, values) from wrong
    return [event] if event else None


def _damaged(reason: str, event: Event, values: dict[str, str]) -> Damaged:
    """Return the exception for a line, with the valid values of its iteration before the damage."""
    for name, value in values.items() if event else ():
        try:
            _fill(event, {name: value})
        except ValueError:
            break
    return Damaged(FAMILY, reason, [event] if event else [])


def _fill(event: Event, values: dict[str, str]) -> None:
    """Set the columns of an event from the values of an iteration; ignore other keys."""
    for name, value in values.items():
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
    loss = next((values[name] for name in _LOSSES if name in values), None)
    if loss is not None:
        event["loss"] = _needed(loss)


def _needed(value: str) -> str:
    number = scaled(value)
    if number is None:
        raise ValueError(repr(value[:30]))
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
