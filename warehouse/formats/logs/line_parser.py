"""Parser of single lines: the parts of a line, from NCCL, a logger, progress bars and trainers, in this order."""

from __future__ import annotations

from collections.abc import Sequence

from warehouse.base.startup import regex
from warehouse.formats.logs import bars, hf_trainer, settings
from warehouse.formats.logs.event import LEVEL, STAMP, Damaged, Event, time_of
from warehouse.formats.logs.line_kinds import TIME, LineKind, Place
from warehouse.formats.logs.lines import Labels, Prefixed, plain, prefixed
from warehouse.formats.logs.megatron import Arguments
from warehouse.formats.logs.nccl import HOST, PROCESS, Nccl

Found = tuple["str | None", list[Event]]
"""Label and events of a line."""
_BEGINS = regex(r"(?:\[?[A-Za-z0-9][\w./-]{0,80}\]?:?(?: [|\u2502\u203a])? ){0,3}(?:" + "|".join(
    (
        rf"(?:\[{STAMP}(?:\.\d+)?\] )?{HOST}{PROCESS}",
        r"NCCL version \d",
        rf"\[{STAMP}(?:[.,]\d{{3,6}})?\] \[(?:{LEVEL})\] ",
        rf"\[(?:{LEVEL})\|",
        rf"(?:\[{STAMP}[\d.,]*\] *)?iteration +\d+/",
        r"(?:[A-Z][\w ]{0,30}: *)?\d{1,3}%\|",
        r"\{['\"]\w+['\"]: ",
        r"Training epoch \d",
        r"\[[IWEF]\d{3,4} ",
    )
) + ")")  # fmt: skip
"""Start of a known line, with up to three words of a label; a line that was wrapped by a terminal goes on in others."""
_ONE_DIGIT = regex(r"\d")
_SURE_LABEL = regex(
    r"\[[^\[\]\n]{1,120}\]<std(?:out|err|diag)>:|\[(?:rank|default)\d+\]:|\((?:[^()\n]{1,100}[ ,])?pid=\d"
    rf"|\[pod/|\[std(?:out|err)\]|(?:\| +)?{TIME} |\d{{1,3}}\.\d{{1,3}}\.\d{{1,3}}\.\d{{1,3}}: | {{0,6}}\d{{1,6}}: "
)


def begins_a_line(text: str) -> bool:
    """Return True if the text begins like a line of a known kind, with or without a label.

    >>> begins_a_line("node-1:1:2 [0] NCCL INFO x"), begins_a_line("0] -> 1[1] via P2P/IPC")
    (True, False)
    """
    bare = plain(text).lstrip(" \t")
    return _BEGINS.match(bare[Labels().strip(bare) :].lstrip(" \t")) is not None or _SURE_LABEL.match(bare) is not None


class LineParser:
    """Parser of the lines of one file."""

    def __init__(self, kinds: Sequence[LineKind], nccl: Nccl) -> None:
        self.labels = Labels()
        self._nccl = nccl
        self._arguments = Arguments()
        others = [kind for kind in kinds if kind.scope != "nccl"]
        known = [kind for kind in others if not kind.is_generic and kind.where != "line"]
        self._known = [(literal, kind) for kind in known for literal in kind.literals]
        self._generic = [(literal, kind) for kind in others if kind.is_generic for literal in kind.literals]
        self._tells_digits = [not kind.is_digit_blind for _, kind in self._known]
        whole = [kind for kind in others if kind.where == "line" and not kind.is_digit_blind]
        self._of_whole = [_ONE_DIGIT.sub("0", literal) for kind in whole for literal in kind.literals]
        self.places: list[Place] | None = None
        """Where the columns of the last line's event are, if one pattern gave all of them."""
        self.matched: int | None = None
        """Number of kinds that were tried for the last line; None if none matched."""

    @property
    def is_inside_arguments(self) -> bool:
        """True if the last line was inside Megatron's list of arguments."""
        return self._arguments.is_inside

    def is_digit_blind(self, form: str) -> bool:
        """Return True if lines that differ from the last one in their digits alone, all zero here, are read alike."""
        before = zip(self._known[: self.matched], self._tells_digits, strict=False)
        literals = [_ONE_DIGIT.sub("0", literal) for (literal, _), tells in before if tells]
        return not any(literal in form for literal in (*self._of_whole, *literals))

    def read(self, text: str) -> Found:
        """Return label and events of a line.

        Raises
        ------
        Damaged
            If a line of a known kind has begun and is cut, or if two lines are in one.
        """
        self.places = self.matched = None
        if "NCCL " in text and "%|" not in text and (spoken := self._nccl.read(text)):
            return spoken
        if any(mark in text for mark in bars.MARKS):
            return self._with_bars(text)
        return self._without_bars(text)

    def _without_bars(self, text: str) -> Found:
        if head := prefixed(text):
            events = self._logged(text, head)
            inside = self.places or []
            self.places = None
            if len(events) == 1 and (inside or events[0]["kind"] == "message"):
                self.places = [(column, read, head.end + start, head.end + end) for column, read, start, end in inside]
                self.places.append(("time_utc", time_of, head.time.start, head.time.stop))
            return text[: head.start].strip() or None, events
        start, events = self._trainers(text)
        return (text[:start].strip() or None if events else None), events

    def _with_bars(self, text: str) -> Found:
        """Return the events of the bars of a line, and of the text around them."""
        head = prefixed(text)
        begin = self.labels.strip(text)
        found = [bar._replace(start=bar.start + begin, end=bar.end + begin) for bar in bars.bars(text[begin:])]
        if not found or (head and head.start < found[0].start):
            return self._without_bars(text)
        label = text[:begin].strip() or None
        events: list[Event] = []
        before: Event | None = None
        for bar in [*found, None]:
            between = text[begin : bar.start if bar else len(text)].strip()
            if between:
                its_label, its_events = self._around_bar(between, before)
                label = (
                    " ".join(filter(None, (label, its_label or (None if its_events or before else between)))) or None
                )
                events += its_events
            if bar:
                begin, before = bar.end, bar.event
                events += [bar.event] if bar.event else []
        self.places = None
        return (label if events else None), events

    def _around_bar(self, text: str, bar: Event | None) -> Found:
        """Return the events of text beside a bar. Values of a dictionary go into the event of the bar before it."""
        try:
            if text[0] == "{" and bar and bar["kind"] == "progress" and (printed := hf_trainer.dictionary(text)):
                event = printed[1]
                if event["kind"] != "loss":
                    return None, [event]
                bar |= {name: event[name] for name in ("loss", "learning_rate") if event.get(name) is not None}
                return None, []
            if "NCCL " in text and (spoken := self._nccl.read(text)):
                return spoken
            return self._without_bars(text)
        except Damaged as damage:
            raise Damaged(damage.family, str(damage), [bar] if bar else []) from damage

    def _logged(self, text: str, head: Prefixed) -> list[Event]:
        """Return the events of a line with a logger's prefix."""
        if head.time_utc is None:
            raise Damaged(head.family, "there is no such time")
        second = prefixed(text, head.end)
        if second:
            raise Damaged(head.family, "two loggers wrote into one line", self._whole_iterations(text, head))
        return self._of_message(head, text[head.end :])

    def _whole_iterations(self, text: str, first: Prefixed) -> list[Event]:
        """Return the complete iterations in a line that several loggers wrote.

        An iteration ends in a unit, so that a truncated one is recognized. Other messages can be cut anywhere.
        """
        kept: list[Event] = []
        head: Prefixed | None = first
        while head and head.time_utc:
            second = prefixed(text, head.end)
            try:
                events = self._of_message(head, text[head.end : second.start if second else None])
            except Damaged:
                events = []
            kept += [event for event in events if event["kind"] == "iteration"]
            head = second
        return kept

    def _of_message(self, head: Prefixed, message: str) -> list[Event]:
        base: Event = {"family": head.family, "level": head.level, "time_utc": head.time_utc}
        if head.place.startswith("config.py:"):
            events = list(settings.dotted("deepspeed", message, long_names=True))
            if events and events[0]["name"] == "global_rank" and str(events[0]["value"]).isdigit():
                rank = int(str(events[0]["value"])[:9])
                events.append({"family": "deepspeed", "kind": "rank", "name": "global_rank", "rank": rank})
        elif any(mark in message for mark in bars.MARKS) and (found := bars.bars(message)):
            events = [bar.event for bar in found if bar.event]
        else:
            events = self._trainers(message, is_logged=True)[1]
        return [{**base, **event} for event in events] or [{**base, "kind": "message"}]

    def _trainers(self, text: str, *, is_logged: bool = False) -> tuple[int, list[Event]]:
        """Return where a trainer's line begins in the text, and its events."""
        if "{" in text and any(mark in text for mark in hf_trainer.MARKS) and (printed := hf_trainer.dictionary(text)):
            return printed[0], [printed[1]]
        begin, events = self._of_kinds(text, is_logged=is_logged)
        if events:
            return begin, events
        begin = 0 if is_logged else self.labels.strip(text)
        bare = text[begin:]
        listed = self._arguments.read(bare)
        events = listed or settings.scalars("hf_trainer" if is_logged else "python", bare) if bare else []
        if not events and listed is None:
            begin, events = self._of_kinds(text, is_logged=is_logged, is_generic=True)
        return begin, events

    def _of_kinds(self, text: str, *, is_logged: bool, is_generic: bool = False) -> tuple[int, list[Event]]:
        """Return where the line begins, and the events of the first kind that it matches, and of those before."""
        events: list[Event] = []
        first = len(text)
        after_label = 0 if is_logged else -1
        pairs = self._generic if is_generic else self._known
        before = None
        for place, kind in [(place, kind) for place, (literal, kind) in enumerate(pairs) if literal in text]:
            if kind is before or (kind.scope and not is_logged):
                continue
            before = kind
            begin = 0
            if kind.where:
                after_label = self.labels.strip(text) if after_label < 0 else after_label
                begin = after_label
            if found := kind.read(text[begin:] if begin else text):
                self.places = None if kind.templates else kind.places(text, begin)
                self.matched = None if is_generic or not kind.is_digit_blind else place
                events.append(found[1])
                first = min(first, begin + found[0])
                if not kind.is_also:
                    break
        return first, events
