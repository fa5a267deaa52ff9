"""Lines of the Hugging Face Trainer, 4 and 5: iterations, printed dictionaries, checkpoints, evaluation."""

from __future__ import annotations

import re
from collections.abc import Sequence

from warehouse.base.startup import regex
from warehouse.formats.logs import settings
from warehouse.formats.logs.bars import CLOCK, RATE, TIME, seconds_of_rate
from warehouse.formats.logs.event import NUMBER, STAMP, WHOLE, Damaged, Event, is_day, number_of

FAMILY = "hf_trainer"

_ITERATION = regex(
    rf"(?:[\w/ .-]{{1,40}}: '? *{NUMBER} *'?, )*"
    rf"iter: ({WHOLE})/({WHOLE}), +({CLOCK}) < {CLOCK}, +({NUMBER}|\?)({RATE})$"
)
_VALUE = regex(rf"([\w/.-]+): '? *({NUMBER}) *'?, ")
_SAYS_ITERATION = regex(rf"loss: '? *{NUMBER}|.{{0,400}}\biter: \d+/")
_RUNTIME = regex(
    rf"(?:.*[{{ ])?['\"]?train_runtime['\"]?: ['\"]? *({NUMBER}) *['\"]?,.*['\"]?train_loss['\"]?: ['\"]? *({NUMBER})"
)
_DICTIONARY = regex(r"\{ *['\"][^{}]*\}")
_ITEM = regex(r"""['"]([\w/(). -]+)['"]: *(?:'([^']*)'|"([^"]*)"|([^,{}'"]+))(?:, *|$)""")
_BEGUN = regex(r"\{ *['\"](?:loss|train_loss)['\"]: |['\"]learning_rate['\"]: ")
_STEP_OUTSIDE = regex(
    r"(?:^|.*[^\w])(?:global[ _])?(?:step|iter(?:ation)?)[ :=#]{1,3}(\d{1,9})(?:/(\d{1,9}))?[ \]:,|>-]*$", re.IGNORECASE
)
_STEP_KEYS = ("step", "global_step", "steps", "iteration", "iter", "current_steps", "global_step/max_steps")
_CHECKPOINT = regex(rf"(?:Saving model checkpoint to \S*checkpoint-|Saving \S*checkpoint to \S*-)({WHOLE})(?:[/\s]|$)")

_PLAIN = r"\d{1,18}+\.\d{1,18}+"
_SMALL = r"\d{1,18}+(?:\.\d{1,18}+|)(?:e-\d{1,3}+|)"
PAIR = regex(
    rf"(?:([\r\n]?) *+\d{{1,3}}+%\|[^|\r\n]*+\| *+({WHOLE}+)/{WHOLE}+ "
    rf"\[{TIME}<{TIME}, *+{_PLAIN}s/it\] *+\{{'[^{{}}\r\n]*+\}}\n|)"
    rf"(\[({STAMP}),(\d\d\d)\] \[(INFO)\] \[[\w.]++:\d++:\w++\] loss: (-?{_PLAIN}), learning_rate: ({_SMALL}), "
    rf"epoch: {_PLAIN}, iter: ((?(2)\2|{WHOLE}+))/({WHOLE}+), ++({TIME}) < {TIME}, ++({_PLAIN})s/it)\n",
    re.ASCII,
).match
"""Matcher of the most common lines: a bar with its dictionary, and the iteration line of the same step.

A fast path: the patterns above parse other lines, and would yield the same events for these.

No part of the pattern can match in two ways. So its repeats are possessive, and its choices are few (`(?:..|)`, not
`(?:..)?`). This takes a third of the time of a plain pattern.
"""


def message(text: str) -> list[Event]:
    """Return the events of a message of the Trainer's logger, or of a callback that logs iterations.

    Raises
    ------
    Damaged
        If an iteration cannot be parsed in full.
    """
    if "train_runtime" in text:
        runtime = _RUNTIME.match(text)
        return [{"family": FAMILY, "kind": "train_end", "seconds": runtime[1], "loss": runtime[2]}] if runtime else []
    if iteration := _ITERATION.match(text):
        step, steps, elapsed, shown, unit = iteration.groups()
        values = dict(_VALUE.findall(text))
        if "loss" not in values and any(name.startswith("eval") for name in values):
            return [{"family": FAMILY, "kind": "evaluation", "step": step, "loss": values.get("eval_loss")}]
        event: Event = {"family": FAMILY, "kind": "iteration", "step": step, "steps": steps}
        event |= {"loss": values.get("loss"), "learning_rate": values.get("learning_rate")}
        return [{**event, "seconds": seconds_of_rate(shown, unit), "value": elapsed}]
    if ("iter: " in text or text.startswith("loss: ")) and _SAYS_ITERATION.match(text):
        raise Damaged(FAMILY, "an iteration does not parse to its end")
    if text.startswith("***** Running "):
        kind = "train_start" if text.startswith("***** Running training *****") else "evaluation"
        return [{"family": FAMILY, "kind": kind, "name": None if kind == "train_start" else "start"}]
    if text.startswith("Saving ") and (saving := _CHECKPOINT.match(text)):
        return [{"family": FAMILY, "kind": "checkpoint_start", "step": saving[1], "name": f"checkpoint-{saving[1]}"}]
    if text.lstrip().startswith("{") and (printed := dictionary(text)):
        return [printed]
    return settings.scalars(FAMILY, text)


def of_pair(groups: Sequence[str], line: int, segment: int, filename: str) -> Event | None:
    """Return the event of a `PAIR` match; None if its time does not exist."""
    _, _, text, stamp, millis, level, loss, rate, step, steps, elapsed, seconds = groups
    if stamp[11:13] > "23" or not is_day(stamp[:10]):
        return None
    return {
        "line": line,
        "segment": segment,
        "item": 0,
        "family": FAMILY,
        "kind": "iteration",
        "level": level,
        "time_utc": f"{stamp}.{millis}",
        "step": int(step),
        "steps": int(steps),
        "loss": float(loss),
        "learning_rate": float(rate),
        "seconds": float(seconds),
        "value": elapsed,
        "text": text,
        "filename": filename,
    }


def dictionary(text: str) -> Event | None:
    """Return the event of a printed dictionary; None if it holds neither a loss nor an evaluation.

    The event is an iteration if the dictionary, or the text before it, names a step.

    Raises
    ------
    Damaged
        If a dictionary with a loss cannot be parsed in full.
    """
    found = _DICTIONARY.search(text)
    if not found:
        if _BEGUN.search(text):
            raise Damaged(FAMILY, "a dictionary with a loss does not parse to its end")
        return None
    if runtime := _RUNTIME.match(text):
        return {"family": FAMILY, "kind": "train_end", "seconds": runtime[1], "loss": runtime[2]}
    values = _items(found[0])
    if values is None or _BEGUN.search(text, found.end()):
        if _BEGUN.search(text):
            raise Damaged(FAMILY, "a dictionary with a loss does not parse to its end")
        return None
    before = text[: found.start()]
    return _of_dictionary(values, _STEP_OUTSIDE.match(before) if before else None)


def _of_dictionary(values: dict[str, str], outside: re.Match[str] | None) -> Event | None:
    loss = _number(values, "loss", "train_loss", "train/loss")
    evaluated = _number(values, "eval_loss", "eval/loss", "valid_loss", "val_loss")
    if loss is None and evaluated is None and not any(name.startswith("eval_") for name in values):
        return None
    event: Event = {"family": FAMILY, "kind": "loss" if loss is not None else "evaluation"}
    if loss is None:
        event["loss"] = evaluated
    else:
        event |= {"loss": loss, "learning_rate": _number(values, "learning_rate", "lr")}
    step = next((values[name].strip() for name in _STEP_KEYS if name in values), None)
    parts = step.split("/") if step is not None else [one for one in outside.groups() if one] if outside else []
    numbers = [number_of(part) for part in parts]
    if numbers and all(one and float(one).is_integer() and 0 <= float(one) < 1e9 for one in numbers):
        event["step"] = str(int(float(numbers[0] or 0)))
        if len(numbers) > 1:
            event["steps"] = str(int(float(numbers[1] or 0)))
        elif "total_steps" in values:
            event["steps"] = _number(values, "total_steps")
        event["kind"] = "iteration" if loss is not None else "evaluation"
    return event


def _items(text: str) -> dict[str, str] | None:
    """Return the keys and values of a flat dictionary; None if it cannot be parsed in full.

    >>> _items("{'loss': ' 2.5 ', 'epoch': 1}")
    {'loss': ' 2.5 ', 'epoch': '1'}
    >>> _items("{'loss': 2.5, 'learning_rat}") is None
    True
    """
    inside = text[1:-1].strip()
    values: dict[str, str] = {}
    at = 0
    while at < len(inside):
        one = _ITEM.match(inside, at)
        if not one or one.end() == at:
            return None
        if one[1] in values:
            return None
        values[one[1]] = next(value for value in one.groups()[1:] if value is not None)
        at = one.end()
    return values


def _number(values: dict[str, str], *names: str) -> str | None:
    return next((number for name in names if name in values and (number := number_of(values[name])) is not None), None)
