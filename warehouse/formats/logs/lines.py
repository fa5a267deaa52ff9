"""Lines of a log, and the text around the core of a line.

A file is read as blocks of whole lines, with bounded memory for files of any size. Around a core are JSON, colors,
launchers' labels, and the level, time and place that loggers write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from warehouse.base.startup import regex
from warehouse.formats.logs.event import LEVEL, STAMP, time_of, time_of_epoch
from warehouse.formats.logs.line_kinds import TIME
from warehouse.formats.streams import STREAM_ERRORS, TORN, open_bytes

_MILLIS = r"(?:[.,]\d{3,6})?"
_PLACE = r"[\w.<>-]{1,200}:\d{1,9}"
APP = regex(rf"\[({STAMP}{_MILLIS})\] \[({LEVEL})\] \[([\w.<>]{{1,200}}:\d{{1,9}}:[\w.<>]{{1,200}})\] ?")
"""DeepSpeed's logger: `[2024-04-29 06:15:13,208] [INFO] [comm.py:637:init_distributed] cdb=None`."""
HUGGING_FACE = regex(rf"\[({LEVEL})\|(?:({_PLACE})\] ({STAMP}{_MILLIS})|({STAMP}{_MILLIS})\] ({_PLACE})) >> ?")
"""Transformers' logger, older and newer form: `[INFO|trainer.py:1729] 2024-04-29 06:17:12,319 >> text`."""

_ESCAPE = regex(
    r"(?:\x1b|\u241b|(?-i:ESC)|\^\[|\\x1b|\\u001b|\\033|\\e|#033)\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[()][A-Z0-9]"
    r"|\[\d{1,3}(?:;\d{1,3})*m",
    re.IGNORECASE,
)
"""Escape sequence of terminals: as bytes, as letters, or without its first byte."""
_REPEATED = regex(r" ?\[repeated \d+x(?: across (?:the )?\w+)?\](?: \(.{0,200}\))?$")
"""Suffix of Ray: `[repeated 14x across cluster]`."""

_NAME = r"[A-Za-z0-9][\w.@-]{0,100}+"
_CONTAINER_TIME = rf"{TIME}(?: \|)?(?: std(?:out|err) [FP])?"
_SAFE = regex(
    r"[ \t]*(?:>+ ?|\|[ \t]"  # quoted mail, docker-compose
    r"|\((?:[^()\n]{1,100}[ ,])?pid=\d+[^()\n]{0,100}\) ?"  # Ray
    r"|(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4} ?)?\[[^\[\]\n]{1,120}\]<std(?:out|err|diag)>: ?"  # mpirun
    # `[epoch 3]: ` is text of a trainer, no label.
    r"|\[[^\[\]\n]{0,80}:\d{1,6}\]: ?|\[(?!(?i:epoch|step|iter|train|val|eval))[A-Za-z][\w./| -]{0,99}\]: ?"  # torchrun
    rf"|\[pod/{_NAME}(?:/{_NAME}){{0,4}}\] ?|\[std(?:out|err)\]:? ?|\[ {{0,6}}\d{{1,6}}\] "
    rf"|{_CONTAINER_TIME}[ \t]"
    r"|<?\d{0,3}>?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,100} [\w./@-]{1,100}(?:\[\d{1,9}\])?: "  # syslog
    r"|(?:DEBUG|INFO):[\w.]{1,60}:"  # Python
    r"| {0,6}+\d{1,6}+: |\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}: "  # srun -l, pdsh
    rf"|{_NAME}(?: {{0,30}}+[|\u2502\u203a] ))"  # docker-compose, stern
)
"""Label of a launcher that no text of a program looks like."""
_RANK = regex(r"\[rank(\d{1,6})\]:|\[RANK:(\d{1,6})\]", re.IGNORECASE)
_STAMP = regex(rf"({TIME})(?!\d)")
_SYSLOG_HOST = regex(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ([\w.-]{1,100}) [\w./@-]{1,100}(?:\[\d{1,9}\])?:(?: |$)")
_ROLE_HOST = regex(r"\[([A-Za-z][\w.-]{1,100}):\d{1,4}\]:")
_MESSAGES = ("log", "message", "MESSAGE", "msg", "line", "text", "body", "textPayload", "content", "event")
_TIMES = ("time", "timestamp", "@timestamp", "ts", "asctime", "__REALTIME_TIMESTAMP", "_SOURCE_REALTIME_TIMESTAMP")
_HOSTS = ("_HOSTNAME", "hostname", "host", "node")
_DEEPEST = 6
"""Maximum number of labels, or of JSON objects, around a line."""


class Line(NamedTuple):
    """Text of a line without its wrapping, and what the wrapping says."""

    text: str
    time_utc: str | None = None
    host: str | None = None
    outer: str | None = None
    """The JSON object, if the line was in one: its own keys may hold a step and a loss."""


def plain(text: str) -> str:
    """Return the text without the escape sequences of terminals: as bytes, as letters, or without their first byte.

    >>> plain("\\x1b[36ma\\x1b[0m ^[[1;31mb #033[0mc ESC[32md [36me[0m")
    'a b c d e'
    """
    return _ESCAPE.sub("", text) if "[" in text else text


def unwrapped(text: str) -> Line:
    r"""Return the line inside a JSON object of a log driver, or the line itself, without colors and marks of repeats.

    >>> unwrapped('{"log": "step 1\\n", "stream": "stderr", "time": "2024-05-23T16:00:00.5Z"}')[:2]
    ('step 1', '2024-05-23 16:00:00.5')
    """
    line = Line(_REPEATED.sub("", plain(text).rstrip()))
    for _ in range(_DEEPEST):
        if line.text[-1:] != "}" or '{"' not in line.text:
            break
        try:
            values = json.loads(line.text[line.text.find("{") :])  # a label may come before it
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
    # journald counts microseconds, some log drivers milliseconds.
    return time_of_epoch(str(seconds / (1e6 if seconds > 1e14 else 1e3 if seconds > 1e11 else 1)))


def about_label(label: str) -> tuple[str | None, str | None, str | None]:
    """Return the rank, host and time that a label states."""
    rank = _RANK.search(label) if "ank" in label or "ANK" in label else None
    host = _SYSLOG_HOST.search(label) or _ROLE_HOST.search(label)
    stamp = _STAMP.search(label)
    return rank and (rank[1] or rank[2]), host and host[1], stamp and stamp[1]


def after_label(text: str) -> int:
    """Return where the text begins, behind labels that no program writes."""
    at = 0
    for _ in range(_DEEPEST):
        found = _SAFE.match(text, at)
        if not found:
            break
        at = found.end()
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


def prefixed(text: str, at: int = 0) -> Prefixed | None:
    """Return the first prefix of a logger in a line; None without one."""
    app = APP.search(text, at) if "] [" in text else None
    face = HUGGING_FACE.search(text, at) if " >> " in text or text.endswith(" >>") else None
    if app and not (face and face.start() < app.start()):
        stamp, level, place = app.groups()
        return Prefixed("deepspeed", level, time_of(stamp), place, app.start(), app.end())
    if face:
        level, old_place, old_stamp, new_stamp, new_place = face.groups()
        time = time_of(old_stamp or new_stamp)
        return Prefixed("hf_trainer", level, time, old_place or new_place, face.start(), face.end())
    return None


# A segment ends at a line feed or at a bare carriage return; progress bars write the latter.

CHUNK = 1 << 16
"""Bytes read at once. At 256 KiB, a chunk and its events exceed a core's cache, and reads take 10% longer."""
LONGEST = 1 << 18
"""Maximum bytes of a segment; anything longer is not a line of a log."""
NARROWEST, WIDEST = 40, 320
"""Range of terminal widths, in characters."""
TOO_LONG = f"longer than {LONGEST:,} bytes"


def blocks(path: Path) -> Iterator[tuple[str, str | None]]:
    """Yield (text, damage or None): whole segments with their line breaks, in order, 64 KiB or one segment at a time.

    Damaged text comes alone, with a reason. It is one of these:

    - the last segment of a torn file;
    - the first 500 bytes of a segment that is too long;
    - the text before the place where a compressed stream breaks.
    """
    rest = b""
    too_long = False
    with open_bytes(path) as stream:
        while True:
            try:
                chunk = stream.read(CHUNK)
            except STREAM_ERRORS as error:
                yield readable(rest[:LONGEST]), f"the compressed stream is damaged here: {error}"
                return
            if not chunk:
                break
            data = rest + chunk
            if too_long:
                places = [place for place in (data.find(b"\n"), data.find(b"\r")) if place >= 0]
                if not places:
                    continue
                too_long, data = False, data[min(places) :]
            cut = _last_break(data)
            if cut < 0 and len(data) > LONGEST:
                yield readable(data[:500]), TOO_LONG
                too_long, rest = True, b""
                continue
            if cut >= 0:
                yield readable(data[: cut + 1]), None
            rest = data[cut + 1 :]
    if rest:
        whole, _, last = rest.rpartition(b"\r")
        if whole:
            yield readable(whole + b"\r"), None
        if last:
            yield readable(last), TORN


def _last_break(data: bytes) -> int:
    """Return the end of the last segment that is surely complete; -1 if there is none.

    It ends at a line feed, or at a carriage return that is not the last byte (a line feed may follow).
    """
    feed = data.rfind(b"\n")
    bare = data.rfind(b"\r", feed + 1, len(data) - 1)
    return max(feed, bare)


def wrap_width(block: str) -> int:
    """Return the width at which a terminal wrapped the lines of a log; 0 if the log is not wrapped.

    A terminal wraps anywhere: lines that fill the width end in any character, and the lines behind them begin with any.
    """
    lines = [line for line in block.replace("\r", "\n").split("\n") if line]
    width = max(map(len, lines), default=0)
    pairs = [(line[-1], behind[0]) for line, behind in pairwise(lines) if len(line) == width]
    if not NARROWEST <= width <= WIDEST or len(pairs) < len(lines) / 20:
        return 0
    kinds = [{"0" if one.isdigit() else one for one in side} for side in zip(*pairs, strict=True)]
    return width if all(len(kind) >= 3 for kind in kinds) else 0


def readable(data: bytes) -> str:
    """Decode UTF-8. Invalid bytes and NUL become `\\xff` escapes, so that nothing is lost.

    >>> readable(b"loss: 1\\xff \\x00")
    'loss: 1\\\\xff \\\\x00'
    """
    text = data.decode("utf-8", "backslashreplace")
    return text.replace("\0", "\\x00") if "\0" in text else text
