"""Lines of NeMo's progress printer. `bars` parses Lightning's bars."""

from __future__ import annotations

import re

from warehouse.base.startup import regex
from warehouse.formats.logs.event import WHOLE, Damaged, Event, number_of

FAMILY = "lightning"

_LINE = regex(rf".*?\bTraining epoch ({WHOLE}), iteration ({WHOLE})/({WHOLE})(?: *\|(.*))?$")
_COLUMNS = {
    "lr": "learning_rate",
    "train_step_timing in s": "seconds",
    "global_batch_size": "samples",
    "reduced_train_loss": "loss",
}
_PAIR = regex(r" *([\w/][\w/ .-]*?): *(\S+) *$")
_EVALUATION = regex(
    rf"\W*(?:valid|evaluat|test)\w*:?[^|]{{0,40}}? iter(?:ation)?:? *({WHOLE})/({WHOLE})\b", re.IGNORECASE
)


def read(text: str) -> list[Event] | None:
    """Return the event of `Training epoch 0, iteration 7/90 | lr: .. | reduced_train_loss: ..`; None for other lines.

    The step is `global_step` if the line has one. Otherwise it follows from epoch and iteration, which count from 0.

    Raises
    ------
    Damaged
        If a value is not valid, or there is no step.
    """
    if " iter" in text and (evaluation := _EVALUATION.match(text)):
        return [
            {"family": FAMILY, "kind": "evaluation", "step": evaluation[1], "steps": evaluation[2], "name": "progress"}
        ]
    found = _LINE.match(text) if "Training epoch " in text else None
    if not found:
        return None
    epoch, step, last, more = found.groups()
    values: dict[str, str] = {}
    for field in (more or "").split("|"):
        pair = _PAIR.match(field)
        if pair and pair[1] not in values:
            values[pair[1]] = pair[2]
        elif field.strip():
            raise Damaged(FAMILY, "an iteration does not parse to its end")
    event: Event = {"family": FAMILY, "kind": "iteration", "step": values.get("global_step", step)}
    for name, column in _COLUMNS.items():
        if name in values:
            event[column] = number_of(values[name])
            if event[column] is None:
                raise Damaged(FAMILY, f"{values[name][:30]!r} in an iteration is no number")
    if not str(event["step"]).isdigit():
        raise Damaged(FAMILY, "an iteration without a step")
    if "global_step" not in values:
        event["step"] = str(int(epoch) * (int(last) + 1) + int(step))
    return [event]
