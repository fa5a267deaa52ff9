"""Progress bars of tqdm: any width, with or without cells, several per line, with text on either side."""

from __future__ import annotations

import re
from typing import NamedTuple

from warehouse.base.startup import regex
from warehouse.formats.logs.event import NUMBER, WHOLE, Damaged, Event, number_of
from warehouse.formats.logs.segments import text_of

FAMILY = "hf_trainer"
CLOCK = r"(?:(?:\d{1,6}:)?\d{1,2}:\d\d|\?)"
RATE = r"(?:s/it|it/s|s/step|step/s|s/batch|batch/s)"

_BAR = regex(
    rf"(?<![\d.])\d{{1,3}}% ?(?:\|[^|\[\]]*\|)? *({WHOLE})/({WHOLE}) "
    rf"\[({CLOCK})<({CLOCK})(?:, *({NUMBER}|\?) ?({RATE})|(?=, *[A-Za-z][\w/]*=))"
    r"((?:, ?[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)?)?)\]"
)
_OTHER_BAR = regex(r"\d{1,3}%\|[^|\[\]]*\| *[^\[\]|]{1,60} \[[^\[\]]{1,200}\]")
_LOOKS_CUT = regex(rf"\d{{1,3}}%\||\d/\d+ \[[\d:]+<|[\d.]{RATE}(?:\]|,)")
_TRAINS = regex(r"(?:train(?:ing)?|fit|epochs?|(?:global )?steps?|iter(?:ation)?s?)\b", re.IGNORECASE)
_EVALUATES = regex(r"(?:valid\w*|eval\w*|test\w*|sanity|predict\w*)\b", re.IGNORECASE)
_EPOCH = regex(r"epoch[ =]*(\d{1,6})(/\d{1,6})?$", re.IGNORECASE)
_POSTFIX = regex(rf"([A-Za-z][\w/]*)=({NUMBER})(?=,|$)")
_TIMING = regex(rf", *train_step_timing in s=({NUMBER})(?=,|$)")
_LOSSES = ("loss", "train_loss", "reduced_train_loss", "train_loss_step", "step_loss", "train/loss")


TIME = r"(?:\d{1,6}+:\d\d:\d\d|\d\d:\d\d)"
_SMALL = r"\d{1,9}+(?:\.\d{1,18}+|)(?:e-?\d{1,3}+|)"
LINE = regex(
    rf"( {{0,6}}+\d{{1,3}}+%\|[^|\[\]\r\n]{{0,200}}+\| ({WHOLE}+)/({WHOLE}+) "
    rf"\[({TIME})<{TIME},  ?(\d{{1,9}}+\.\d{{1,9}}+)(s/it|it/s)\]"
    r"( {0,3}+\{'loss': '?(\d{1,9}+\.\d{1,9}+)'?, (?:'grad_norm': '?[\d.e+-]{1,25}+'?, |)"
    rf"'learning_rate': '?({_SMALL})'?, 'epoch': '?[\d.]{{1,25}}+'?\}}|))[\r\n]",
    re.ASCII,
).match
"""Matcher of a bar without a description, with or without a dictionary, up to the end of its segment.

A fast path: `bars` yields the same events.
"""


def of_line(found: re.Match[str], line: int, segment: int, filename: str) -> Event:
    """Return the event of a `LINE` match."""
    text, step, steps, elapsed, shown, unit, dictionary, loss, rate = found.groups()
    seconds = seconds_of_rate(shown, unit)
    event: Event = {
        "line": line,
        "segment": segment,
        "item": 0,
        "family": FAMILY,
        "kind": "progress",
        "step": int(step),
        "steps": int(steps),
        "seconds": float(seconds) if seconds else None,
        "value": elapsed,
        "text": text_of(text),
        "filename": filename,
    }
    if dictionary:
        event["loss"] = float(loss)
        event["learning_rate"] = float(rate)
    return event


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
    begin = 0
    for match in _BAR.finditer(text):
        before = text[begin : match.start()]
        described = before.rstrip().endswith(":")
        words = _description(before) if described else ""
        start = match.start() - (len(before) - before.rfind(words) if words else 0)
        found.append(Bar(_event(match, words), start, match.end()))
        begin = match.end()
    rest = "".join(text[a:b] for a, b in _between(found, len(text)))
    if _LOOKS_CUT.search(rest) and not _OTHER_BAR.search(rest):
        raise Damaged(FAMILY, "a progress bar does not parse to its end", [bar.event for bar in found if bar.event])
    return found


def _between(found: list[Bar], length: int) -> list[tuple[int, int]]:
    edges = [0, *(edge for bar in found for edge in (bar.start, bar.end)), length]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _description(before: str) -> str:
    """Return the words before a bar, up to its colon."""
    return re.split(r"[\]}|>]|  +", before.rstrip(" :"))[-1].strip()


def _event(match: re.Match[str], words: str) -> Event | None:
    step, steps, elapsed, _, shown, unit, more = match.groups()
    if _EVALUATES.match(words):
        return {"family": FAMILY, "kind": "evaluation", "step": step, "steps": steps, "name": "bar", "value": elapsed}
    if words and not _TRAINS.match(words):
        return None
    event: Event = {"family": FAMILY, "kind": "progress", "step": step, "steps": steps, "value": elapsed}
    if unit:
        event["seconds"] = seconds_of_rate(shown, unit)
    elif timing := _TIMING.search(more):  # NeMo's bars have no rate
        event["seconds"] = timing[1]
    values = dict(_POSTFIX.findall(more)) if more else {}
    for name in _LOSSES:
        if name in values:
            event["loss"] = values[name]
            break
    if "lr" in values:
        event["learning_rate"] = values["lr"]
    if epoch := _EPOCH.match(words):
        done = int(epoch[1]) - (epoch[2] is not None)
        event |= {"family": "lightning", "step": str(int(step) + max(done, 0) * int(steps)), "steps": None}
    return event


def seconds_of_rate(shown: str, unit: str) -> str | None:
    """Return the seconds per iteration of a rate in either unit; None if the rate is unknown or zero.

    >>> seconds_of_rate("2.0", "it/s"), seconds_of_rate("?", "s/it")
    ('0.5', None)
    """
    if unit.startswith("s/") or number_of(shown) is None:
        return number_of(shown)
    rate = float(shown)
    return repr(1 / rate) if rate else None
