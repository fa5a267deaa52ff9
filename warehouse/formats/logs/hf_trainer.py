"""The Hugging Face Trainer: its iteration lines, progress bars, the dictionaries that it prints, checkpoints."""

from __future__ import annotations

import re

from warehouse.formats.logs import settings
from warehouse.formats.logs.event import NUMBER, STAMP, WHOLE, Event, is_day, number_of
from warehouse.regex import regex

FAMILY = "hf_trainer"

_CLOCK = r"(?:\d{1,6}:)?\d{1,2}:\d\d|\?"
_ITERATION = regex(
    rf"loss: '?({NUMBER})'?,(?: grad_norm: '?{NUMBER}'?,)? learning_rate: '?({NUMBER})'?, epoch: '?({NUMBER})'?, "
    rf"iter: ({WHOLE})/({WHOLE}), +({_CLOCK}) < ({_CLOCK}), +({NUMBER}|\?)(s/it|it/s)$"
)
_RUNTIME = regex(rf"(?:.*[{{ ])?'?train_runtime'?: '?({NUMBER})'?,.*'?train_loss'?: '?({NUMBER})'?")
_BAR = regex(
    rf" *(?:[\w :/-]{{1,40}}: *)?\d{{1,3}}%\|[^|]*\| *({WHOLE})/({WHOLE}) "
    rf"\[({_CLOCK})<({_CLOCK}), *({NUMBER}|\?)(s/it|it/s)(?:, [^\]{{}}]*)?\]"
)
_DICTIONARY = regex(r" *(\{'[^{}]*\})")
_LOSS = regex(rf"'loss': '?({NUMBER})'?[,}}]")
_LEARNING_RATE = regex(rf"'learning_rate': '?({NUMBER})'?[,}}]")
_CHECKPOINT = regex(rf"(?:Saving model checkpoint to \S*checkpoint-|Saving \S*checkpoint to \S*-)({WHOLE})(?:[/\s]|$)")

Match = re.Match[str]
_PLAIN = r"-?\d{1,18}(?:\.\d{1,18})?(?:e-?\d{1,3})?"
_TIME = r"(?:\d{1,6}:)?\d{1,2}:\d\d"
PAIR = regex(
    rf"(?:([\r\n]?) *\d{{1,3}}%\|[^|\r\n]*\| *({WHOLE})/{WHOLE} "
    rf"\[{_TIME}<{_TIME}, *{_PLAIN}s/it\] *\{{'[^{{}}\r\n]*\}}\n)?"
    rf"(\[({STAMP}),(\d{{3}})\] \[(INFO)\] \[[\w.]+:\d+:\w+\] loss: ({_PLAIN}), learning_rate: ({_PLAIN}), "
    rf"epoch: {_PLAIN}, iter: ((?(2)\2|{WHOLE}))/({WHOLE}), +({_TIME}) < {_TIME}, +({_PLAIN})s/it)\n",
    re.ASCII,
).match
"""The commonest lines in their commonest form: a bar with its dictionary, a line feed, and the iteration line of the
same step. What this leaves alone, or does not see, the patterns above read line by line, and say the same."""


def message(text: str) -> list[Event]:
    """Events of a message of the Trainer's logger, or of a callback that logs iterations."""
    if iteration := _ITERATION.match(text):
        loss, rate, _, step, steps, elapsed, _, shown, unit = iteration.groups()
        event: Event = {"family": FAMILY, "kind": "iteration", "step": step, "steps": steps}
        seconds = _seconds(shown, unit)
        return [{**event, "loss": loss, "learning_rate": rate, "seconds": seconds, "value": elapsed}]
    if "train_runtime" in text and (runtime := _RUNTIME.match(text)):
        return [{"family": FAMILY, "kind": "train_end", "seconds": runtime[1], "loss": runtime[2]}]
    if text.startswith("***** Running training *****"):
        return [{"family": FAMILY, "kind": "train_start"}]
    if text.startswith("Saving ") and (saving := _CHECKPOINT.match(text)):
        return [{"family": FAMILY, "kind": "checkpoint_start", "step": saving[1], "name": f"checkpoint-{saving[1]}"}]
    return settings.scalars(FAMILY, text)


def of_pair(pair: Match) -> Event | None:
    """The event of an iteration line that `PAIR` found; None where its time is none."""
    _, _, text, stamp, millis, level, loss, rate, step, steps, elapsed, seconds = pair.groups()
    if stamp[11:13] > "23" or not is_day(stamp[:10]):
        return None
    return {
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
    }


def bar(text: str) -> tuple[Event, int] | None:
    """A progress bar at the start of a line, with the dictionary behind it, and where both end."""
    found = _BAR.match(text)
    if not found:
        return None
    step, steps, elapsed, _, shown, unit = found.groups()
    event: Event = {"family": FAMILY, "kind": "progress", "step": step, "steps": steps, "value": elapsed}
    event["seconds"] = _seconds(shown, unit)
    end = found.end()
    if said := _DICTIONARY.match(text, end):
        event |= _said(said[1])
        end = said.end()
    return event, end


def dictionary(text: str) -> Event | None:
    """A dictionary on a line of its own: the losses of a step that it does not name, or the end."""
    if not text.startswith("{'"):
        return None
    if runtime := _RUNTIME.match(text):
        return {"family": FAMILY, "kind": "train_end", "seconds": runtime[1], "loss": runtime[2]}
    said = _DICTIONARY.match(text)
    found = _said(said[1]) if said else {}
    return {"family": FAMILY, "kind": "loss", **found} if "loss" in found else None


def _said(text: str) -> Event:
    loss, rate = _LOSS.search(text), _LEARNING_RATE.search(text)
    return {**({"loss": loss[1]} if loss else {}), **({"learning_rate": rate[1]} if rate else {})}


def _seconds(shown: str, unit: str) -> str | None:
    """Seconds an iteration of a rate that is printed either way round."""
    if unit == "s/it" or number_of(shown) is None:
        return number_of(shown)
    rate = float(shown)
    return repr(1 / rate) if rate else None
