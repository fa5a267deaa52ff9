"""Parser of single lines: the parts of a line, from NCCL, a logger, progress bars and trainers, in this order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from warehouse.base.startup import regex
from warehouse.formats.logs.event import DAMAGED, Damaged, Event, config, number_of
from warehouse.formats.logs.line_kinds import BAR, LineKind
from warehouse.formats.logs.lines import Prefixed, after_label, prefixed
from warehouse.formats.logs.nccl import Nccl

Found = tuple["str | None", list[Event]]
"""Label and events of a line."""
_BAR = regex(BAR)
_MARKS = ("%|", "it]", "it/s]", "it/s,", "it,")
"""A line with a bar, whole or cut, has one of these texts."""


class Bar(NamedTuple):
    """Progress bar in a line, with its start and end; the description is included."""

    start: int
    end: int
    event: Event | None
    """None for a bar that is not about training."""


def _events_of(bars: Sequence[Bar]) -> list[Event]:
    return [bar.event for bar in bars if bar.event]


class LineParser:
    """Parser of the lines of one file."""

    def __init__(self, kinds: Sequence[LineKind]) -> None:
        self._nccl = Nccl(kinds)
        self.is_inside_arguments = False
        """True if the last line was inside Megatron's list of arguments."""
        others = [kind for kind in kinds if kind.scope not in ("nccl", "bar")]
        known = [kind for kind in others if not kind.is_generic]
        self._known = [(literal, kind) for kind in known for literal in kind.literals]
        self._generic = [(literal, kind) for kind in others if kind.is_generic for literal in kind.literals]
        of_bars = [kind for kind in kinds if kind.scope == "bar"]
        self._of_bars = [kind for kind in of_bars if kind.constants["kind"] != DAMAGED]
        self._of_cut_bars = [kind for kind in of_bars if kind.constants["kind"] == DAMAGED]

    def read(self, text: str) -> Found:
        """Return label and events of a line.

        Raises
        ------
        Damaged
            If a line of a known kind has begun and is cut, or if two lines are in one.
        """
        if "NCCL " in text and "%|" not in text and (spoken := self._nccl.read(text)):  # else `_beside_bar`
            return spoken
        bars = self._bars(text)
        if bars and not ((head := prefixed(text)) and head.start < bars[0].start):
            return self._around_bars(text, bars)
        return self._without_bars(text)

    def _without_bars(self, text: str) -> Found:
        if head := prefixed(text):
            return text[: head.start].strip() or None, self._logged(text, head)
        start, events = self._trainers(text)
        return (text[:start].strip() or None if events else None), events

    def _bars(self, text: str, *, is_logged: bool = False) -> list[Bar]:
        """Return the progress bars of a line."""
        found: list[Bar] = []
        if not any(mark in text for mark in _MARKS):
            return found
        begin = 0 if is_logged else after_label(text)
        beside = ""
        for match in _BAR.finditer(text, begin):
            bar = Bar(match.start(), match.end(), None)  # of a download, of shards, of a map of a data set
            for kind in self._of_bars:
                if one := kind.read(text[: bar.end], begin):  # a pattern of bars ends in `{bar}`
                    bar = Bar(one[0], bar.end, one[1])
                    break
            found.append(bar)
            beside += text[begin : bar.start]
            begin = bar.end
        beside += text[begin:]
        for kind in self._of_cut_bars:
            try:
                kind.read(beside)
            except Damaged as damage:
                raise Damaged(damage.family, str(damage), _events_of(found)) from damage
        return found

    def _around_bars(self, text: str, bars: list[Bar]) -> Found:
        """Return the events of the bars of a line, and of the text around them."""
        begin = 0
        label: str | None = None
        events: list[Event] = []
        before: Event | None = None
        for bar in [*bars, None]:
            between = text[begin : bar.start if bar else len(text)]
            if between.strip():
                its_label, its_events = self._beside_bar(between, bars)
                if before and before["kind"] == "progress" and its_events and its_events[0]["kind"] == "loss":
                    # tqdm leaves its line open, so a dictionary that is printed next follows on it.
                    before |= {name: its_events[0][name] for name in ("loss", "learning_rate") if name in its_events[0]}
                elif its_events:
                    events += its_events
                elif bar is bars[0] and bars[0].event:
                    its_label = between.strip()
                label = label or its_label
            if bar:
                begin, before = bar.end, bar.event
                events += [bar.event] if bar.event else []
        return (label if events else None), events

    def _beside_bar(self, text: str, bars: list[Bar]) -> Found:
        try:
            if "NCCL " in text and (spoken := self._nccl.read(text)):
                return spoken
            return self._without_bars(text)
        except Damaged as damage:
            raise Damaged(damage.family, str(damage), _events_of(bars)) from damage

    def _logged(self, text: str, head: Prefixed) -> list[Event]:
        """Return the events of a line with a logger's prefix."""
        if head.time_utc is None:
            raise Damaged(head.family, "there is no such time")
        if prefixed(text, head.end):
            raise Damaged(head.family, "two loggers wrote into one line")
        message = text[head.end :]
        base: Event = {"family": head.family, "level": head.level, "time_utc": head.time_utc}
        if head.place.startswith("config.py:"):
            events = list(_dotted("deepspeed", message, long_names=True))
            if events and events[0]["name"] == "global_rank" and str(events[0]["value"]).isdigit():
                rank = int(str(events[0]["value"])[:9])  # an INTEGER holds nine digits of any value
                events.append({"family": "deepspeed", "kind": "rank", "name": "global_rank", "rank": rank})
        elif bars := self._bars(message, is_logged=True):
            events = _events_of(bars)
        else:
            events = self._trainers(message, is_logged=True)[1]
        return [{**base, **event} for event in events] or [{**base, "kind": "message"}]

    def _trainers(self, text: str, *, is_logged: bool = False) -> tuple[int, list[Event]]:
        """Return where a trainer's line begins in the text, and its events."""
        begin, events = self._of_kinds(text, is_logged=is_logged)
        if events:
            return begin, events
        begin = 0 if is_logged else after_label(text)
        bare = text[begin:]
        listed = self._arguments(bare)
        events = listed or _scalars("hf_trainer" if is_logged else "python", bare) if bare else []
        if not events and listed is None:
            begin, events = self._of_kinds(text, is_logged=is_logged, is_generic=True)
        return begin, events

    def _arguments(self, text: str) -> list[Event] | None:
        """Return the events of a line of Megatron's list of arguments; None for other lines."""
        if "-- " in text and (border := _ARGUMENTS.search(text)):
            self.is_inside_arguments = border[1] == "arguments"
            return []
        if self.is_inside_arguments or " .." in text:
            return list(_dotted("megatron", text, long_names=self.is_inside_arguments)) or None
        if "using world size:" in text:
            return [
                config(
                    "megatron", f"{name.strip().replace('-', '_').replace(' ', '_').removeprefix('using_')}_size", value
                )
                for name, value in _SIZES.findall(text)
            ] or None
        return None

    def _of_kinds(self, text: str, *, is_logged: bool, is_generic: bool = False) -> tuple[int, list[Event]]:
        """Return where the line begins, and the events of the first kind that it matches, and of those before."""
        events: list[Event] = []
        first = len(text)
        bare = 0 if is_logged else after_label(text)
        pairs = self._generic if is_generic else self._known
        before = None
        for kind in [kind for literal, kind in pairs if literal in text]:
            if kind is before or (kind.scope and not is_logged):  # the line has several literals of one kind
                continue
            before = kind
            if found := kind.read(text, bare if kind.is_start else 0):
                events.append(found[1])
                first = min(first, found[0])
                if not kind.is_also:
                    break
        return first, events


# settings: `name ..... value`, `"name": value`, `name = value`, `a: 1, b: 2`

_ARGUMENTS = regex(r"-{8,} (arguments|end of arguments) -{8,}")
# Megatron-LM wrote `data-parallel-size` before 2024, and `data-parallel size` since.
_SIZES = regex(r"([a-z][a-z -]{0,80}?)[ -]size: (\d{1,9})")
_DOTTED = regex(r"  ([A-Za-z]\w*) (?:(\.+) | )(\S.*)$")
_JSON = regex(r'\s*"([\w.-]+)": ("[^"]*"|-?[\d.eE+-]+|true|false|null|NaN|Infinity),?\s*$')
_EQUAL = regex(r"\s*([A-Za-z][\w .,()&/-]*?) = (-?[\d,.]+(?:[eE][-+]?\d+)?|True|False|None)$")
_COLON = regex(r"\s+([A-Za-z][\w -]*?):\s+(-?[\d,.]+)\s*$")
_PAIRS = regex(r"(?!loss)[A-Za-z]\w*: \d{1,18}(?:, [A-Za-z]\w*: \d{1,18})+$")
_PAIR = regex(r"([A-Za-z]\w*): (\d+)")
_WORDS = regex(r"(\w+)=('[^']*'|[^\s=]+)")


def _dotted(family: str, text: str, *, long_names: bool) -> Iterator[Event]:
    """Yield the settings of `  name ......... value`.

    A name of full width has no dots; it is only accepted if `long_names`.
    """
    found = _DOTTED.match(text)
    if found and (long_names or len(found[2] or "") > 1):
        name, _, value = found.groups()
        yield config(family, name, value.strip())
        if len(pairs := _WORDS.findall(value)) > 1:
            for below, one in pairs:
                yield config(family, f"{name}.{below}", one.strip("',"))


def _scalars(family: str, text: str) -> list[Event]:
    """Return the settings of a line of printed JSON, or of names with numbers."""
    if '": ' in text and (found := _JSON.match(text)):
        return [config(family, found[1], found[2].strip('"'))]
    if " = " in text and (found := _EQUAL.match(text)):
        return [config(family, found[1], number_of(found[2]) or found[2])]
    if ": " in text:
        if text[0] == " " and (found := _COLON.match(text)):
            return [config(family, found[1], number_of(found[2]) or found[2])]
        if _PAIRS.match(text):
            return [config(family, name, value) for name, value in _PAIR.findall(text)]
    return []
