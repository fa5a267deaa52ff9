"""Printed dictionaries, as of the Hugging Face Trainer 4 and 5: `{'loss': 2.5, 'learning_rate': 1e-05, ..}`."""

from __future__ import annotations

import re

from warehouse.base.startup import regex
from warehouse.formats.logs.event import NUMBER, Damaged, Event, number_of

FAMILY = "hf_trainer"
MARKS = ("loss", "learning_rate", "train_runtime", "eval_")
"""A line with such a dictionary has a brace and one of these texts."""

_RUNTIME = regex(
    rf"['\"]train_runtime['\"]: ['\"]? *({NUMBER}) *['\"]?,.{{0,2000}}['\"]?train_loss['\"]?: ['\"]? *({NUMBER})"
)
_DICTIONARY = regex(r"\{ *['\"][^{}]*\}")
_ITEM = regex(r"""['"]([\w/(). -]+)['"]: *(?:'([^']*)'|"([^"]*)"|([^,{}'"]+))(?:, *|$)""")
_BEGUN = regex(r"\{ *['\"](?:loss|train_loss)['\"]: |['\"]learning_rate['\"]: ")
_STEP_OUTSIDE = regex(
    r"(?:^|[^\w])(?:global[ _])?(?:step|iter(?:ation)?)[ :=#]{1,3}(\d{1,9})(?:/(\d{1,9}))?[ \]:,|>-]*$", re.IGNORECASE
)
_STEP_KEYS = (
    "step",
    "global_step",
    "steps",
    "iteration",
    "iter",
    "current_steps",
    "global_step/max_steps",
    "num_updates",
)
_LOSSES = ("loss", "train_loss", "train/loss")
_EVALUATED = ("eval_loss", "eval/loss", "valid_loss", "val_loss")


def dictionary(text: str) -> tuple[int, Event] | None:
    """Return start and event of a printed dictionary; None if it holds neither a loss nor an evaluation.

    The event is an iteration if the dictionary, or the text before it, names a step.

    Raises
    ------
    Damaged
        If a dictionary with a loss cannot be parsed in full.
    """
    found = _DICTIONARY.search(text)
    values = _items(found[0]) if found else None
    if found is None or values is None or _BEGUN.search(text, found.end()):
        if _BEGUN.search(text):
            raise Damaged(FAMILY, "a dictionary with a loss does not parse to its end")
        return None
    if runtime := _RUNTIME.search(found[0]):
        end: Event = {"family": FAMILY, "kind": "train_end", "seconds": float(runtime[1]), "loss": float(runtime[2])}
        return found.start(), end
    event = _of_dictionary(values, _STEP_OUTSIDE.search(text[max(0, found.start() - 60) : found.start()]))
    return (found.start(), event) if event else None


def _of_dictionary(values: dict[str, str], outside: re.Match[str] | None) -> Event | None:
    loss, evaluated = _number(values, _LOSSES), _number(values, _EVALUATED)
    if loss is None and evaluated is None and not any(name.startswith("eval_") for name in values):
        return None
    event: Event = {"family": FAMILY, "kind": "evaluation" if loss is None else "loss"}
    event["loss"] = evaluated if loss is None else loss
    if loss is not None:
        event["learning_rate"] = _number(values, ("learning_rate", "lr"))
    step = next((values[name].strip() for name in _STEP_KEYS if name in values), None)
    parts = step.split("/") if step is not None else [one for one in outside.groups() if one] if outside else []
    numbers = [_float(part) for part in parts]
    if numbers and all(one is not None and one.is_integer() and 0 <= one < 1e9 for one in numbers):
        event["step"] = int(numbers[0] or 0)
        steps = numbers[1] if len(numbers) > 1 else _number(values, ("total_steps",))
        event["steps"] = int(steps) if steps is not None and steps.is_integer() else None
        event["kind"] = "evaluation" if loss is None else "iteration"
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
        if not one or one.end() == at or one[1] in values:
            return None
        values[one[1]] = one[one.lastindex or 1]
        at = one.end()
    return values


def _number(values: dict[str, str], names: tuple[str, ...]) -> float | None:
    return next((number for name in names if name in values and (number := _float(values[name])) is not None), None)


def _float(text: str) -> float | None:
    number = number_of(text)
    return float(number) if number is not None else None
