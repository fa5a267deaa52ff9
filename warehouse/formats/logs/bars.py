"""Progress bars of tqdm: any width, with or without cells, several per line, with text on either side."""

from __future__ import annotations

import re
from typing import NamedTuple

from warehouse.base.startup import regex
from warehouse.formats.logs.event import NUMBER, Damaged, Event
from warehouse.formats.logs.line_kinds import CLOCK, RATE, seconds_of_rate

FAMILY = "hf_trainer"
MARKS = ("%|", "it]", "it/s]", "it/s,", "it,")
"""A line with a bar has one of these texts."""

_BAR = regex(
    rf"(?<![\d.])\d{{1,3}}% ?(?:\|[^|\[\]]{{0,400}}\|)? *(\d{{1,9}})/(\d{{1,9}}) "
    rf"\[({CLOCK})<({CLOCK})(?:, *((?:{NUMBER}|\?) ?{RATE})|(?=, *[A-Za-z][\w/]*=))"
    r"((?:, ?[^\[\]]{0,2000}(?:\[[^\[\]]{0,200}\][^\[\]]{0,2000})?)?)\]"
)
_OTHER_BAR = regex(r"\d{1,3}%\|[^|\[\]]{0,400}\| *[^\[\]|]{1,60} \[[^\[\]]{1,200}\]")
_LOOKS_CUT = regex(rf"\d{{1,3}}%\||\d/\d+ \[[\d:]+<|[\d.]{RATE}(?:\]|,)")
_TRAINS = regex(r"(?:train(?:ing)?|fit|epochs?|(?:global )?steps?|iter(?:ation)?s?|episodes?)\b", re.IGNORECASE)
_EVALUATES = regex(r"(?:valid\w*|eval\w*|test\w*|sanity|predict\w*)\b", re.IGNORECASE)
_EPOCH = regex(r"(?:train(?:ing)? )?(?:step of )?epoch[ =\[]*(\d{1,6})(/\d{1,6})?$", re.IGNORECASE)
_TORCHTUNE = regex(rf"(?:^|.*[\s:])(\d{{1,6}}\|\d{{1,9}}\|Loss: ({NUMBER}))$")
_POSTFIX = regex(rf"([A-Za-z][\w/]*)=({NUMBER})(?=,|$)")
_TIMING = regex(rf", *train_step_timing in s=({NUMBER})(?=,|$)")
_LOSSES = ("loss", "train_loss", "reduced_train_loss", "train_loss_step", "step_loss", "train/loss")
_HOST = regex(r"(?=[^\s\d]*\d)[\w.@/-]+(?<!\.bin)(?<!\.pt)(?<!\.json)(?<!\.model)(?<!\.safetensors)(?<!\.parquet)$")
"""Label of a host or pod, not the name of a file."""
_PROCESS = regex(r"\w\[\d+\]$")
"""End of a label of syslog: `python[123]`."""
_SEPARATORS = regex(r"[\]}|>]|  +")


class Bar(NamedTuple):
    """Progress bar in a line, with its start and end; the description is included."""

    event: Event | None
    """None for bars that are not about training: downloads, shards, maps of data sets."""
    start: int
    end: int


def bars(text: str) -> list[Bar]:
    """Return the bars of a line.

    Raises
    ------
    Damaged
        If a bar cannot be parsed in full.
    """
    found: list[Bar] = []
    rest: list[str] = []
    begin = 0
    for match in _BAR.finditer(text):
        before = text[begin : match.start()]
        words = _description(before)
        start = match.start() - (len(before) - before.rfind(words) if words else 0)
        rest.append(text[begin:start])
        begin = match.end()
        found.append(Bar(_event(match, words), start, begin))
    rest.append(text[begin:])
    beside = "".join(rest)
    if beside and _LOOKS_CUT.search(beside) and not _OTHER_BAR.search(beside):
        raise Damaged(FAMILY, "a progress bar does not parse to its end", [bar.event for bar in found if bar.event])
    return found


def _description(before: str) -> str:
    """Return the words before a bar, up to its colon; empty if there are none."""
    bare = before.rstrip()
    if not bare.endswith(":"):
        return ""
    bare = bare.rstrip(" :")
    if torchtune := _TORCHTUNE.match(bare):
        return torchtune[1]
    pieces = [piece for piece in _SEPARATORS.split(bare) if piece]
    words = "".join(pieces[-1:]).rsplit(": ", 1)[-1].strip("[ ")
    return "" if _HOST.match(words) or _PROCESS.search(bare) else words


def _event(match: re.Match[str], words: str) -> Event | None:
    step, steps, elapsed, _, rate, more = match.groups()
    event: Event = {"family": FAMILY, "kind": "progress", "step": int(step), "steps": int(steps), "value": elapsed}
    if words:
        if _EVALUATES.match(words):
            return event | {"kind": "evaluation", "name": "bar"}
        if torchtune := _TORCHTUNE.match(words):
            event |= {"family": "torchtune", "loss": float(torchtune[2])}
        elif not _TRAINS.match(words):
            return None
    if rate:
        seconds = seconds_of_rate(rate)
        event["seconds"] = float(seconds) if seconds else None
    if more:
        _add_postfix(more, event)
    if words and (epoch := _EPOCH.match(words)):
        done = int(epoch[1]) - (epoch[2] is not None)
        event |= {"family": "lightning", "step": int(step) + max(done, 0) * int(steps), "steps": None}
    return event


def _add_postfix(more: str, event: Event) -> None:
    """Add the values behind a bar's rate."""
    if "seconds" not in event and (timing := _TIMING.search(more)):  # NeMo's bars have no rate
        event["seconds"] = float(timing[1])
    values = dict(_POSTFIX.findall(more))
    loss = next((values[name] for name in _LOSSES if name in values), None)
    if loss:
        event["loss"] = float(loss)
    if "lr" in values:
        event["learning_rate"] = float(values["lr"])
