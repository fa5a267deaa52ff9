"""Lines of NeMo's progress printer. `bars` parses Lightning's bars."""

from __future__ import annotations

from warehouse.base.startup import regex
from warehouse.formats.logs.event import WHOLE, Damaged, Event, number_of

FAMILY = "lightning"

_LINE = regex(rf"\bTraining epoch ({WHOLE}), iteration ({WHOLE})/({WHOLE})(?: *\|(.*))?$")
_COLUMNS = {
    "lr": "learning_rate",
    "train_step_timing in s": "seconds",
    "global_batch_size": "samples",
    "reduced_train_loss": "loss",
}
_PAIR = regex(r" *([\w/][\w/ .-]*?): *(\S+) *$")


def read(text: str) -> tuple[int, Event] | None:
    """Return start and event of `Training epoch 0, iteration 7/90 | lr: .. | ..`; None for other lines.

    The step is `global_step` if the line has one. Otherwise it follows from epoch and iteration, which count from 0.

    Raises
    ------
    Damaged
        If a value is not valid, or there is no step.
    """
    found = _LINE.search(text)
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
    event: Event = {"family": FAMILY, "kind": "iteration"}
    for name, column in _COLUMNS.items():
        if name in values:
            number = number_of(values[name])
            if number is None:
                raise Damaged(FAMILY, f"{values[name][:30]!r} in an iteration is no number")
            event[column] = int(float(number)) if column == "samples" else float(number)
    whole = values.get("global_step", step)
    if not whole.isdigit():
        raise Damaged(FAMILY, "an iteration without a step")
    is_counted = "global_step" in values
    event["step"] = int(whole) if is_counted else int(epoch) * (int(last) + 1) + int(step)
    return found.start(), event
