"""Kinds of log lines that a pattern describes: `data/log_lines.yaml`, and a file of the same form in a project.

How to write one: docs/formats/logs.md. Each kind has an example, which `warehouse test` runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from string import ascii_letters
from typing import NamedTuple

from warehouse.base import hashing
from warehouse.base.errors import ModelError, nearest_hint
from warehouse.base.settings import shipped_root
from warehouse.base.startup import regex
from warehouse.base.yaml_text import Form, Value, checked, one_of, read_yaml_file
from warehouse.formats.logs.event import (
    COLUMNS,
    DAMAGED,
    NUMBER,
    WHOLE,
    Damaged,
    Event,
    number_of,
    time_of,
    time_of_epoch,
)

Read = Callable[[str], object]
FILE = "data/log_lines.yaml"
LOOKED_AT = 8_192
"""Characters of a line in which patterns search. Every trainer's lines are shorter; it bounds what a pattern costs."""
GENERIC = "generic"
"""Family of the lines of unknown trainers."""
CLOCK = r"(?:(?:\d{1,6}:)?\d{1,2}:\d\d|\?)"
RATE = r"(?:s/it|it/s|s/iter|iter/s|s/step|steps?/s|s/batch|batch(?:es)?/s|s/ba|ba/s)"
BAR = (
    r"(?<![\d.])\d{1,3}% ?(?:\|[^|\[\]]{0,400}\|)? *(?P<step>\d{1,9})/(?P<steps>\d{1,9}) \["
    rf"(?P<value>{CLOCK})<{CLOCK}(?:, *(?P<rate>(?:{NUMBER}|\?) ?{RATE})"
    rf"|(?=, *[A-Za-z][\w/]*=)(?:(?=[^\[\]]{{0,2000}}, *train_step_timing in s=(?P<seconds>{NUMBER})[,\]])|))"
    r"(?:(?=[^|{}%]{0,2000}?[ ,](?:(?:reduced_)?train_loss(?:_step)?|step_loss|(?:train/)?loss)"
    rf"=(?P<loss>{NUMBER})[,\]])|)"
    rf"(?:(?=[^|{{}}%]{{0,2000}}?[ ,]lr=(?P<learning_rate>{NUMBER})[,\]])|)"
    r"(?:, ?[^\[\]]{0,2000}(?:\[[^\[\]]{0,200}\][^\[\]]{0,2000})?)?\]"
)
"""Progress bar of tqdm: any width, with or without cells, with the values behind its rate."""
# Possessive repeats: a long line that almost fits would otherwise be tried in exponentially many ways.
_ITEM = r"""['"][\w/(). -]{1,80}['"]: *+(?:'[^']{0,200}'|"[^"]{0,200}"|[^,{}'"]{1,200})"""
DICTIONARY = rf"\{{ *+(?:{_ITEM}, *+){{0,80}}+{_ITEM} *\}}"
"""Printed dictionary of Python with numbers or texts; no others inside."""
EPOCHS = "epochs"
"""Column of an event that is being read: epochs before this one, whose steps are counted, too."""
TIME = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|[+-]\d\d:?\d\d))?"


def seconds_of_rate(shown: str) -> float | None:
    """Return the seconds per iteration of a rate in either unit; None if the rate is unknown or zero.

    >>> seconds_of_rate("2.0it/s"), seconds_of_rate("?s/it"), seconds_of_rate("1.5 s/it")
    (0.5, None, 1.5)
    """
    written = shown.rstrip(ascii_letters + "/ ")
    number = number_of(written)
    if number is None:
        return None
    return float(number) if shown[len(written) :].lstrip().startswith("s/") else _inverse(number)


def _inverse(number: str) -> float | None:
    return 1 / float(number) if float(number) else None


def _thousandth(text: str) -> float:
    """Return a number divided by 1,000, as its digits say it: 1.23456 of `1234.56`."""
    try:
        return float(text + "e-3")
    except ValueError:  # it has an exponent, or is none
        return float(text) / 1e3


_PLACEHOLDERS: dict[str, tuple[str, str, Read | None]] = {
    "ms": ("seconds", NUMBER, _thousandth),
    "us": ("seconds", NUMBER, lambda text: float(text) / 1e6),
    "minutes": ("seconds", NUMBER, lambda text: float(text) * 60),
    "per_second": ("seconds", NUMBER, _inverse),
    "rate": ("seconds", rf"(?:{NUMBER}|\?) ?{RATE}", seconds_of_rate),
    "time": ("time_utc", TIME, time_of),
    "epoch": ("time_utc", r"\d{10}(?:\.\d{1,9})?", time_of_epoch),
    "epoch_from_zero": (EPOCHS, r"\d{1,6}", int),
    "epoch_from_one": (EPOCHS, r"\d{1,6}", lambda text: max(int(text) - 1, 0)),
    "name": ("name", r"[\w.+/-]{1,100}", None),
    "value": ("value", r"\S{1,253}", None),
    "level": ("level", r"[A-Z]{1,8}", None),
}
"""Placeholder -> column, pattern, conversion."""
_BARE = {"number": NUMBER, "whole": WHOLE, "clock": CLOCK, "word": r"\S{1,253}", "any": r"[^\n]{0,200}?"}
_BARE |= {"bar": BAR, "dictionary": DICTIONARY}
"""Placeholder without a column -> pattern."""
_PLACEHOLDER = regex(r"\{([a-z_]+)\}")
_LEVELS = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL"}  # letters of glog
_NO_SIGNS = regex(r"\\.|\[\^?\]?[^\]]*\]")
"""Parts of a pattern whose signs are no repeats: escaped signs and classes."""
_ENDLESS = regex(
    r"\.(?:[*+]|\{\d*,\})(?!\+)"  # .*
    r"|\([^()]*(?<![*+?}])(?:[*+]|\{\d*,\})(?!\+)[^()]*\)(?:[*+]|\{\d*,\d*\})"  # (a+)+
)
"""Repeats that make a pattern run for hours on one line."""
_TEXTS = ("name", "value", "level")
_TEXT = Form(r".+", "a text")
_FORM = {
    "literal!": [_TEXT],
    "pattern!": None,
    "event!": _TEXT,
    "example!": _TEXT,
    **dict.fromkeys(("trainer", "source", "family", "damaged", "start", "also", *_TEXTS), Form(r".*", "a text")),
    "fields": None,
    "unless": None,
    "needs": [_TEXT],
    "in": one_of("nccl", "logger", "bar"),
    "gives": {one_of(*COLUMNS): Form(r".*", "a text")},
}
"""Keys of a kind of line, and the forms of their values."""


def _placeholder(name: str) -> tuple[str, str, Read | None] | None:
    if name in _PLACEHOLDERS:
        return _PLACEHOLDERS[name]
    kind = COLUMNS.get(name)
    if kind == "DOUBLE":
        return name, NUMBER, float
    if kind in ("BIGINT", "INTEGER"):
        return name, r"\d{1,18}" if kind == "BIGINT" else WHOLE, int
    return (name, r"\S{1,253}", None) if kind else None


class Picked(NamedTuple):
    """Pattern with the columns that its groups fill."""

    search: Callable[..., re.Match[str] | None]
    columns: tuple[tuple[int, str, Read | None], ...]
    """Number of each group, its column and its conversion."""
    label: int = 0
    """Number of the group that is text before the line."""

    def fill(self, found: re.Match[str], event: Event) -> None:
        """Set the columns of an event from a match."""
        for group, column, read in self.columns:
            if text := found[group]:
                event[column] = read(text) if read else text

    def start(self, found: re.Match[str]) -> int:
        """Return where the line of a match begins, behind its label."""
        return found.end(self.label) if self.label and found[self.label] else found.start()


class LineKind(NamedTuple):
    """One kind of line, compiled."""

    name: str
    literals: tuple[str, ...]
    """A line of this kind has one of these texts."""
    main: Picked
    constants: Event
    templates: tuple[tuple[str, str, tuple[str, ...]], ...]
    """Columns whose text holds groups of the pattern, the text with `%s`, and the groups: `checkpoint-%s`, `step`."""
    fields: tuple[Picked, ...]
    needs: tuple[str, ...]
    """Columns of which the line must fill one."""
    unless: re.Pattern[str] | None
    scope: str
    """Only for messages of NCCL (`nccl`) or of a logger with a known prefix (`logger`), for a `bar`; or empty."""
    is_start: bool
    """True if the pattern matches only where the text after a label begins."""
    is_also: bool
    """True if the line is read on after an event of this kind."""
    damage: str
    """Reason why the line is damaged, although its event is sure; or empty."""
    example: str
    gives: Mapping[str, str]
    """Columns of the example's event."""
    path: str
    line: int

    @property
    def is_generic(self) -> bool:
        """True if the kind is a last resort, for lines of unknown trainers."""
        return self.constants["family"] == GENERIC

    def read(self, text: str, begin: int = 0) -> tuple[int, Event] | None:
        """Return the start of the match and the event of a line that begins here; None if it is of another kind.

        Raises
        ------
        Damaged
            If the kind is one of cut lines, or the line names a time that does not exist.
        """
        text = text[begin:] if begin else text
        found = self.main.search(text)
        if not found or (self.unless and self.unless.search(text)):
            return None
        family = str(self.constants["family"])
        if self.constants["kind"] == DAMAGED:
            raise Damaged(family, str(self.constants["value"]))
        event = self.constants.copy()
        self.main.fill(found, event)
        if "time_utc" in event and event["time_utc"] is None:
            raise Damaged(family, "there is no such time")
        for field in self.fields:
            if more := field.search(text, 0 if self.is_generic else found.start()):
                field.fill(more, event)
        if self.needs and not any(column in event for column in self.needs):
            return None
        for column, template, groups in self.templates:
            texts = tuple(found[group] for group in groups)
            if None not in texts:
                event[column] = template % texts
        if EPOCHS in event:
            _count_epochs(event)
        if event.get("level") in _LEVELS:
            event["level"] = _LEVELS[str(event["level"])]
        if self.damage:
            raise Damaged(family, self.damage, [event])
        return begin + self.main.start(found), event


def _count_epochs(event: Event) -> None:
    """Count the step of an event on over the epochs before; each epoch has `steps` steps."""
    epochs, step, steps = event.pop(EPOCHS), event.get("step"), event.get("steps")
    if isinstance(epochs, int) and isinstance(step, int) and isinstance(steps, int):
        event |= {"step": step + epochs * steps, "steps": None}


def line_kinds(files: Sequence[Path] = ()) -> tuple[LineKind, ...]:
    """Return the kinds of lines of these files, then the shipped ones.

    Raises
    ------
    ModelError
        With file and line, if a kind is not valid.
    """
    return tuple(kind for path in (*files, shipped_root() / FILE) for kind in _kinds(path, path.stat().st_mtime_ns))


def fingerprint(files: Sequence[Path] = ()) -> str:
    """Return the hash of the kinds of lines: of the content of their files."""
    return hashing.of([hashing.of_file(path) for path in (*files, shipped_root() / FILE)])


@lru_cache(maxsize=8)
def _kinds(path: Path, _mtime: int) -> tuple[LineKind, ...]:  # the time is only a key of the cache
    return tuple(read_kinds(path))


def read_kinds(path: Path) -> list[LineKind]:
    """Return the kinds of lines of a file.

    Raises
    ------
    ModelError
        With file and line, if a kind is not valid.
    """
    kinds = read_yaml_file(path, str(path), "the file of log lines")
    return [_kind(name, value, str(path)) for name, value in kinds.items()]


def _kind(name: str, value: Value, shown: str) -> LineKind:
    keys = checked(value, _FORM, name, shown)
    texts = {key: keys[key] for key in _TEXTS if key in keys}
    fields = keys["fields"].content if "fields" in keys else ()
    fields = fields if isinstance(fields, (list, tuple)) else [keys["fields"]]
    unless = keys.get("unless")
    return LineKind(
        name=name,
        literals=tuple(keys["literal"]),
        main=_picked(keys["pattern"], shown, is_start="start" in keys),
        constants={
            "family": keys.get("family", name.split()[0]),
            "kind": keys["event"],
            **{key: text for key, text in texts.items() if "{" not in text},
        },
        templates=tuple(
            (key, _PLACEHOLDER.sub("%s", text.replace("%", "%%")), tuple(_PLACEHOLDER.findall(text)))
            for key, text in texts.items()
            if "{" in text
        ),
        fields=tuple(_picked(one, shown) for one in fields),
        needs=tuple(keys.get("needs", ())),
        unless=_compiled(unless, shown) if unless else None,
        scope=keys.get("in", ""),
        is_start="start" in keys,
        is_also="also" in keys,
        damage=keys.get("damaged", ""),
        example=keys["example"],
        gives=keys.get("gives", {}),
        path=shown,
        line=value.line,
    )


def _picked(value: Value, shown: str, *, is_start: bool = False) -> Picked:
    compiled = _compiled(value, shown)
    columns = []
    for group, index in compiled.groupindex.items():
        if group.startswith("_"):
            continue
        found = _placeholder(group)
        if found is None:
            hint = nearest_hint(group, [*_PLACEHOLDERS, *COLUMNS]) or "docs/formats/logs.md lists the groups"
            raise ModelError(f"a group names no column: {group}", place=value.place(shown), hint=hint)
        columns.append((index, found[0], found[2]))
    return Picked(compiled.match if is_start else compiled.search, tuple(columns), compiled.groupindex.get("_label", 0))


def _compiled(value: Value, shown: str) -> re.Pattern[str]:
    def pattern_of(match: re.Match[str]) -> str:
        name = match[1]
        if name in _BARE:
            return f"(?:{_BARE[name]})"
        found = _placeholder(name)
        if found is None:
            hint = nearest_hint(name, [*_BARE, *_PLACEHOLDERS, *COLUMNS]) or "docs/formats/logs.md lists them"
            raise ModelError(f"no placeholder {match[0]}", place=value.place(shown), hint=hint)
        return f"(?P<{name}>{found[1]})"

    if not isinstance(value.content, str):
        raise ModelError("the pattern is not a text", place=value.place(shown))
    if _ENDLESS.search(_NO_SIGNS.sub("x", value.content)):
        what = "the pattern has .* or a repeat in a repeat, which can run very long on one line"
        raise ModelError(what, place=value.place(shown), hint="{any} is up to 200 characters; [0-9]{1,9} has an end")
    try:
        return re.compile(_PLACEHOLDER.sub(pattern_of, value.content), re.ASCII)
    except (re.error, OverflowError) as error:
        raise ModelError(f"the pattern is not valid: {error}", place=value.place(shown)) from error
