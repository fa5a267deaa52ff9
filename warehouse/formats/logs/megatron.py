"""Lines of Megatron-LM and its forks that no pattern describes: iterations as `key: value |`, lists of arguments."""

from __future__ import annotations

import re

from warehouse.base.startup import regex
from warehouse.formats.logs import settings
from warehouse.formats.logs.event import WHOLE, Damaged, Event, config, number_of, scaled, time_of, time_of_epoch
from warehouse.formats.logs.line_kinds import TIME

FAMILY = "megatron"

_HEAD = regex(
    rf"(?:^|(?<=[\s\]:]))(?:\[({TIME})\]|\[(\d{{10}}(?:\.\d+)?)\])?\s*iteration[ :]+({WHOLE}) */ *({WHOLE}) *$"
)
_STAMP = regex(rf"\[({TIME})\]|\[(\d{{10}}(?:\.\d+)?)\]")
_CLEAN = regex(r"\s*(?:\[[^\]]*\]\s*)*iteration[ :]")
_OTHER_VALUES = regex(r"\b(?:consumed|elapsed|learning rate|loss|grad norm|number of|batch size)\b.*\biteration[ :]+\d")
"""Text before the head of an iteration, `iteration 7/90`.

After other values, only stamps may precede the head (`_CLEAN`). Otherwise any text may, except part of another
iteration (`_OTHER_VALUES`).
"""
_BEGINS = regex(r"\biteration[ :]+\d+ */")
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
_ARGUMENTS = regex(r"-{8,} (arguments|end of arguments) -{8,}")
_NOT_TRAINING = regex(r"\b(?:valid\w*|eval\w*|test\w*)\b", re.IGNORECASE)


class Arguments:
    """Megatron's list of arguments in the lines of one file."""

    def __init__(self) -> None:
        self.is_inside = False

    def read(self, text: str) -> list[Event] | None:
        """Return the events of a line of arguments; None for other lines."""
        if "-- " in text and (border := _ARGUMENTS.search(text)):
            self.is_inside = border[1] == "arguments"
            return []
        if self.is_inside or " .." in text:
            return list(settings.dotted(FAMILY, text, long_names=self.is_inside)) or None
        if "using world size:" in text:
            return [
                config(FAMILY, f"{name.strip().replace('-', '_').replace(' ', '_').removeprefix('using_')}_size", value)
                for name, value in _SIZES.findall(text)
            ] or None
        return None


def is_more(text: str) -> bool:
    """Return True if a line may continue an iteration that was wrapped between two values.

    >>> is_more(" lm loss: 2.5E+00 | loss scale: 1.0 |"), is_more(" iteration 7/ 90 | lm loss: 2.5 |")
    (True, False)
    """
    return _MORE.match(text) is not None and not _BEGINS.search(text)


def may_go_on(text: str) -> bool:
    """Return True if an iteration line may continue in the next line."""
    return text.rstrip().endswith("|") and LAST_KEY not in text


def iteration(text: str) -> tuple[int, Event] | None:
    """Return start and event of an iteration line; None for other lines.

    Raises
    ------
    Damaged
        If the line cannot be parsed in full; `kept` holds the values before the damage.
    """
    *fields, end = text.split("|")
    has_head = "iteration" in text
    signed = sum(sign in text for sign in _SIGNS) if end.strip() or not has_head else 0
    is_cut = bool(end.strip()) and signed > 2
    start = 0
    event: Event = {}
    values: dict[str, str] = {}
    for field in [*fields, end] if end.strip() and not is_cut else fields:
        head = _HEAD.search(field) if has_head and "iteration" in field else None
        if head:
            stamp, epoch, step, steps = head.groups()
            if _NOT_TRAINING.search(field):
                return 0, {
                    "family": FAMILY,
                    "kind": "evaluation",
                    "step": int(step),
                    "steps": int(steps),
                    "name": "progress",
                }
            if event or (not _CLEAN.match(field) if values else _OTHER_VALUES.search(field)):
                raise _damaged("two lines in one", event, values)
            event = {"family": FAMILY, "kind": "iteration", "step": int(step), "steps": int(steps)}
            begin = head.start()
            if not (stamp or epoch) and (before := _STAMP.search(field)):
                begin, (stamp, epoch) = before.start(), before.groups()
            if stamp or epoch:
                event["time_utc"] = time_of(stamp) if stamp else time_of_epoch(epoch)
            start = start if values else begin
            continue
        name, colon, value = field.partition(":")
        if not colon:
            name, colon, value = field.partition("=")
        name, value = name.strip().lower(), value.strip()
        if colon and name and value:
            if name in values:
                raise _damaged("an iteration with one value twice", event, values)
            values[name] = value
        elif field.strip() and event:
            raise _damaged("an iteration does not parse to its end", event, values)
    if not event and not signed:
        signed = sum(sign in text for sign in _SIGNS)
    if is_cut or (not event and signed > 2):
        raise _damaged("an iteration does not parse to its end", event, values)
    if event:
        try:
            _fill(event, values)
        except ValueError as wrong:
            raise _damaged(f"{wrong} in an iteration is no number", event, values) from wrong
    return (start, event) if event else None


def _damaged(reason: str, event: Event, values: dict[str, str]) -> Damaged:
    """Return the exception for a line, with the valid values of its iteration before the damage."""
    for name, value in values.items() if event else ():
        try:
            _fill(event, {name: value})
        except ValueError:
            break
    return Damaged(FAMILY, reason, [event] if event else [])


_ROLES: dict[str, tuple[str, float]] = {}
"""Key of a value -> column and factor, as far as they are known."""


def _role(name: str) -> tuple[str, float]:
    """Return the column and the factor of a value, by its key."""
    if name not in _ROLES:
        if len(_ROLES) > 1_000:
            _ROLES.clear()
        role = ("", 1.0)
        if _TIME_KEY.match(name):
            unit = _UNIT.search(name)
            role = ("seconds", 1e-3 if unit and "ms" in unit.groups() else 1.0 if unit else 0.0)
        elif _RATE_KEY.fullmatch(name):
            role = ("learning_rate", 1.0)
        elif name in ("global batch size", "global_batch_size"):
            role = ("samples", 1.0)
        elif name in _CLOCK_KEYS:
            role = ("time_utc", 1.0)
        _ROLES[name] = role
    return _ROLES[name]


def _fill(event: Event, values: dict[str, str]) -> None:
    """Set the columns of an event from the values of an iteration; ignore other keys."""
    for name, value in values.items():
        column, factor = _role(name)
        if column == "seconds":
            is_ms = factor == 1e-3 or (factor == 0 and value.endswith("ms"))
            shown = _needed(value.removesuffix("ms").removesuffix("s"))
            event["seconds"] = shown / 1000 if is_ms else shown
        elif column == "learning_rate":
            event[column] = _needed(value)
        elif column == "samples":
            event[column] = int(value) if value.isdigit() and len(value) < 19 else None
        elif column and number_of(value) and (time := time_of_epoch(value)):
            event[column] = time
    loss = next((values[name] for name in _LOSSES if name in values), None)
    if loss is not None:
        event["loss"] = _needed(loss)


def _needed(value: str) -> float:
    number = scaled(value)
    if number is None:
        raise ValueError(repr(value[:30]))
    return float(number)
