"""Text around the core of a line: JSON, colors, launchers' labels, and the level, time and place that loggers write."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from warehouse.base.startup import regex
from warehouse.formats.logs.event import LEVEL, STAMP, time_of, time_of_epoch
from warehouse.formats.logs.line_kinds import TIME

_MILLIS = r"(?:[.,]\d{3,6})?"
_PLACE = r"[\w.<>-]{1,200}:\d{1,9}"
APP = regex(rf"\[({STAMP}{_MILLIS})\] \[({LEVEL})\] \[([\w.<>]{{1,200}}:\d{{1,9}}:[\w.<>]{{1,200}})\] ?")
"""DeepSpeed's logger: `[2024-04-29 06:15:13,208] [INFO] [comm.py:637:init_distributed] cdb=None`."""
HUGGING_FACE = regex(rf"\[({LEVEL})\|(?:({_PLACE})\] ({STAMP}{_MILLIS})|({STAMP}{_MILLIS})\] ({_PLACE})) >> ?")
"""Transformers' logger, older and newer form: `[INFO|trainer.py:1729] 2024-04-29 06:17:12,319 >> text`."""

_ESCAPE = regex(
    r"(?:\x1b|\u241b|ESC|\^\[|\\x1b|\\u001b|\\033|\\e|#033)\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[()][A-Z0-9]"
    r"|\[\d{1,3}(?:;\d{1,3})*m",
    re.IGNORECASE,
)
"""Escape sequence of terminals: as bytes, as letters, or without its first byte."""
_ESCAPE_MARKS = ("\u241b", "ESC[", "^[[", "\\x1b[", "\\x1B[", "\\u001b[", "\\033[", "\\e[", "#033[")
_COLOR = regex(r"\[\d{1,3}(?:;\d{1,3})*m")
_REPEATED = regex(r" ?\[repeated \d+x(?: across (?:the )?\w+)?\](?: \(.{0,200}\))?$")

_NAME = r"[A-Za-z0-9][\w.@-]{0,100}+"
_CONTAINER_TIME = rf"{TIME}(?: \|)?(?: std(?:out|err) [FP])?"
_SAFE = regex(
    r"[ \t]*(?:>+ ?|\|[ \t]"  # quoted mail, docker-compose
    r"|\((?:[^()\n]{1,100}[ ,])?pid=\d+[^()\n]{0,100}\) ?"  # Ray
    r"|(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4} ?)?\[[^\[\]\n]{1,120}\]<std(?:out|err|diag)>: ?"  # mpirun
    r"|\[[^\[\]\n]{0,80}:\d{1,6}\]: ?|\[(?!(?i:epoch|step|iter|train|val|eval))[A-Za-z][\w./| -]{0,99}\]: ?"  # torchrun
    rf"|\[pod/{_NAME}(?:/{_NAME}){{0,4}}\] ?|\[std(?:out|err)\]:? ?|\[ {{0,6}}\d{{1,6}}\] "
    rf"|{_CONTAINER_TIME}[ \t]"
    r"|<?\d{0,3}>?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,100} [\w./@-]{1,100}(?:\[\d{1,9}\])?: "  # syslog
    r"|(?:DEBUG|INFO):[\w.]{1,60}:"  # Python
    r"| {0,6}+\d{1,6}+: |\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}: "  # srun -l, pdsh
    rf"|{_NAME}(?: {{0,30}}+[|\u2502\u203a] ))"  # docker-compose, stern
)
"""Label of a launcher that no text of a program looks like. Others are labels once they came before a known line."""
_RANK = regex(r"\[rank(\d{1,6})\]:|\[RANK:(\d{1,6})\]", re.IGNORECASE)
_STAMP = regex(rf"({TIME})(?!\d)")
_DIGIT = regex(r"\d")
_NO_LABEL = regex(rf"{TIME}|(?i:epoch|step|iter|train|loss|valid)|\d%")
"""Text that makes a label one of a single line: a time, or words of a trainer that another writer cut."""
_SYSLOG_HOST = regex(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ([\w.-]{1,100}) [\w./@-]{1,100}(?:\[\d{1,9}\])?:(?: |$)")
_ROLE_HOST = regex(r"\[([A-Za-z][\w.-]{1,100}):\d{1,4}\]:")
_MESSAGES = ("log", "message", "MESSAGE", "msg", "line", "text", "body", "textPayload", "content", "event")
_TIMES = ("time", "timestamp", "@timestamp", "ts", "asctime", "__REALTIME_TIMESTAMP", "_SOURCE_REALTIME_TIMESTAMP")
_HOSTS = ("_HOSTNAME", "hostname", "host", "node")
_DEEPEST = 6
"""Maximum number of labels, or of JSON objects, around a line."""
_MOST_LABELS = 500


class Line(NamedTuple):
    """Text of a line without its wrapping, and what the wrapping says."""

    text: str
    time_utc: str | None = None
    host: str | None = None
    outer: str | None = None
    """The JSON object, if the line was in one: its own keys may hold a step and a loss."""


class About(NamedTuple):
    """Places of the facts that a label states."""

    rank: slice | None
    host: slice | None
    time: slice | None


def has_colors(text: str) -> bool:
    """Return True if a text has escape sequences as bytes, or colors without their first byte."""
    return "\x1b" in text or _COLOR.search(text) is not None


def has_escapes(text: str) -> bool:
    """Return True if a text may hold escape sequences of terminals."""
    return "[" in text and (has_colors(text) or any(mark in text for mark in _ESCAPE_MARKS))


def plain(text: str) -> str:
    """Return the text without the escape sequences of terminals: as bytes, as letters, or without their first byte.

    >>> plain("\\x1b[36ma\\x1b[0m ^[[1;31mb #033[0mc ESC[32md [36me[0m")
    'a b c d e'
    """
    return _ESCAPE.sub("", text) if has_escapes(text) else text


def without_repeat(text: str) -> str:
    """Return the text without Ray's `[repeated 14x across cluster]`."""
    return _REPEATED.sub("", text) if "[repeated " in text else text


def unwrapped(text: str) -> Line:
    r"""Return the line inside a JSON object of a log driver, or the line itself.

    >>> unwrapped('{"log": "step 1\\n", "stream": "stderr", "time": "2024-05-23T16:00:00.5Z"}')[:2]
    ('step 1', '2024-05-23 16:00:00.5')
    """
    line = Line(text)
    for _ in range(_DEEPEST):
        if line.text[-1:] != "}" or '{"' not in line.text:
            break
        try:
            values = json.loads(line.text[line.text.find("{") :])
        except (ValueError, RecursionError):
            break
        time = next((at for name in _TIMES if (at := _time(values.get(name)))), line.time_utc)
        host = next((one for name in _HOSTS if isinstance(one := values.get(name), str)), line.host)
        inner = next((one for name in _MESSAGES if isinstance(one := values.get(name), str)), None)
        if inner is None:
            return line._replace(time_utc=time, host=host)
        line = Line(plain(inner).rstrip(), time, host, line.text)
    return line


def _time(value: object) -> str | None:
    if isinstance(value, str) and not value.isdigit():
        return time_of(value)
    digits = str(value)
    if isinstance(value, bool) or not digits.replace(".", "", 1).isdigit():
        return None
    seconds = float(digits)
    return time_of_epoch(str(seconds / (1e6 if seconds > 1e14 else 1e3 if seconds > 1e11 else 1)))


def about_label(label: str) -> About:
    """Return where a label states rank, host and time."""
    rank = _RANK.search(label) if "ank" in label or "ANK" in label else None
    host = _SYSLOG_HOST.search(label) or _ROLE_HOST.search(label)
    stamp = _STAMP.search(label)
    return About(*(found and slice(*found.span(found.lastindex or 1)) for found in (rank, host, stamp)))


def is_name(label: str) -> bool:
    """Return True if a label may come before other lines, too."""
    return not _NO_LABEL.search(label)


class Labels:
    """Labels that came before two known lines of one file: they are labels before other lines, too.

    Once is not enough: any text that another writer left in a line comes before the line.
    """

    def __init__(self) -> None:
        self._once: set[str] = set()
        self._known: set[str] = set()
        self._lengths: list[int] = []
        self._last = ("", 0)

    def __len__(self) -> int:
        return len(self._known)

    def is_settled(self, label: str) -> bool:
        """Return True if a label is known, or there are too many to know another."""
        return label in self._known or len(self._known) >= _MOST_LABELS

    def add(self, label: str) -> None:
        """Remember a label, if it may come before other lines."""
        if self.is_settled(label) or not is_name(label):
            return
        if label not in self._once:
            if len(self._once) >= _MOST_LABELS:
                self._once.clear()
            self._once.add(label)
        else:
            self._known.add(label)
            self._lengths = sorted({*self._lengths, len(label)}, reverse=True)
            self._last = ("", 0)

    def is_unsure(self, text: str) -> bool:
        """Return True if a text with other digits could begin with another label, or with one that states a rank."""
        at = self.strip(text)
        alike = {_DIGIT.sub("0", label) for label in self._known}
        return about_label(text[:at]).rank is not None or self._begin(_DIGIT.sub("0", text), alike) != at

    def strip(self, text: str) -> int:
        """Return where the text begins, behind known labels and such as no program writes."""
        if text is not self._last[0]:
            self._last = (text, self._begin(text, self._known))
        return self._last[1]

    def _begin(self, text: str, known: set[str]) -> int:
        at = 0
        for _ in range(_DEEPEST):
            blanks = len(text) - len(text[at:].lstrip(" \t"))
            end = next((blanks + n for n in self._lengths if text[blanks : blanks + n] in known), 0)
            end += text[end : end + 1] == " " if end else 0
            if not end:
                safe = _SAFE.match(text, at)
                end = safe.end() if safe else 0
            if not end:
                break
            at = end
        return at


class Prefixed(NamedTuple):
    """Parts of a line with a logger's prefix."""

    family: str
    level: str
    time_utc: str | None
    """None if the time in the prefix does not exist in the calendar."""
    place: str
    start: int
    end: int
    """Positions of the prefix in the line."""
    time: slice
    """Place of its time in the line."""


def prefixed(text: str, at: int = 0) -> Prefixed | None:
    """Return the first prefix of a logger in a line; None without one."""
    app = APP.search(text, at) if "] [" in text else None
    face = HUGGING_FACE.search(text, at) if " >> " in text or text.endswith(" >>") else None
    if app and not (face and face.start() < app.start()):
        stamp, level, place = app.groups()
        return Prefixed("deepspeed", level, time_of(stamp), place, app.start(), app.end(), slice(*app.span(1)))
    if face:
        level, old_place, old_stamp, new_stamp, new_place = face.groups()
        time = time_of(old_stamp or new_stamp)
        stamp = slice(*face.span(3 if old_stamp else 4))
        return Prefixed("hf_trainer", level, time, old_place or new_place, face.start(), face.end(), stamp)
    return None
