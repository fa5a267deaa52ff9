"""Labels that launchers write before each line of their processes, and behind repeated lines.

To add a launcher, add its label to `_ALWAYS` if no line of a log begins that way by itself, else to `_BEFORE_A_LINE`.
"""

from __future__ import annotations

from typing import NamedTuple

from warehouse.base.startup import regex
from warehouse.formats.logs.event import time_of
from warehouse.formats.logs.lines import LINE_START

_NAME = r"[A-Za-z0-9][\w-]{0,100}(?:\.[\w-]{1,63}){0,8}"
_POD = r"(?=[a-z0-9.]{0,63}[-\d])[a-z0-9][a-z0-9.-]{0,100}"
_IPV4 = r"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}"
_CONTAINER_TIME = r"\d{4}-\d\d-\d\dT[\d:]{8}(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"
_DATE = r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4} ?"
_ALWAYS = "|".join(
    (
        r"\((?:[^()\s][^()]{0,80} )?pid=\d+(?:, ip=[^()]{1,45})?\) ?",  # Ray
        rf"(?:{_DATE})?\[(?:[\w.-]+@)?\d+(?:,\d+)?\]<std(?:out|err|diag)>: ?",  # mpirun, Horovod
        r"\[[A-Za-z][A-Za-z_]*\d+\]: ?",  # torchrun: [default7]:, [rank12]:
        rf"\[pod/{_NAME}(?:/{_NAME})*\] ?",  # kubectl logs --prefix
        rf"(?:[ \t]*\|)?[ \t]*{_CONTAINER_TIME}(?: \|)?(?: std(?:out|err) [FP])? ",  # a container's time
        r"\[std(?:out|err)\]:? ?",
        r" {0,6}\d{1,6}: ",  # srun -l
        rf"{_IPV4}: ",  # pdsh
    )
)
_BEFORE_A_LINE = "|".join(
    (
        r"\[ {0,6}\d{1,6}\] ?",  # mpirun: a rank alone
        rf"(?!(?i:valid|eval|test|train|epoch|step|loss|iter)\w*:)\[?{_NAME}\]?:(?: |(?!\d))",  # pdsh: a host
        rf"\[(?=[\d.]*[A-Za-z]){_NAME}(?:/{_NAME}){{0,4}}\] ?",  # kubectl
        r"\[?std(?:out|err)\]?(?::| \|)? ",
        rf"{_POD}(?:/{_POD})?(?:(?: | *[|│›>] *)[a-z0-9][a-z0-9-]{{0,62}})? *[|│›>]? ",  # Kubernetes, stern, docker
    )
)
_LABEL = regex(rf"[ \t]*(?:{_ALWAYS})|[ \t]*(?:{_BEFORE_A_LINE}){{1,2}}?(?=[ \t]*{LINE_START})")
_KNOWN = regex(rf"[ \t]*(?:{_ALWAYS}|{_BEFORE_A_LINE})")
_REPEATED = regex(r" \[repeated \d+x(?: across cluster)?\](?: \(.*\))?$")
_TIME = regex(r"(?:[ \t]*\|)?[ \t]*(\d{4}-\d\d-\d\d)T([\d:]{8}(?:\.\d{1,6})?)\d*Z")
_RANK = regex(r"\[rank(\d{1,6})\]:")
_START = regex(LINE_START)

DEEPEST = 4
"""Labels before one line."""


class Peeled(NamedTuple):
    """A line without its labels."""

    text: str
    label: str | None
    """The labels as written, without blanks around them."""
    rank: str | None
    """The global rank that PyTorch's label says."""
    time_utc: str | None
    """The time of a container's label in UTC."""


def peeled(text: str, known: set[str]) -> Peeled:
    """Take the labels off a line.

    `known` holds the labels that stood before a recognized line of the file: with them, any line has a label.

    >>> peeled("(RayTrainWorker pid=12, ip=10.0.0.1) step 1 [repeated 14x across cluster]", set()).text
    'step 1'
    >>> peeled("worker-0: worker-0:17:20 [0] NCCL INFO x", set())[:2]
    ('worker-0:17:20 [0] NCCL INFO x', 'worker-0:')
    >>> peeled("3: [rank12]: NCCL version 2.10.3", set())
    Peeled(text='NCCL version 2.10.3', label='3: [rank12]:', rank='12', time_utc=None)
    >>> peeled("worker-0: hello", set()).label, peeled("worker-0: hello", {"worker-0:"}).label
    (None, 'worker-0:')
    """
    labels: list[str] = []
    rank = time = None
    for _ in range(DEEPEST):
        if _START.match(text):
            break
        found = None if text.lstrip()[:1].isalpha() and not _may_begin_behind(text) else _LABEL.match(text)
        if found is None and known and (one := _KNOWN.match(text)) and one[0].strip() in known:
            found = one
        if found is None:
            break
        mark = found[0].strip()
        known.add(mark)
        if one := _RANK.match(mark):
            rank = rank or one[1]
        elif one := _TIME.match(found[0]):
            time = time or time_of(f"{one[1]} {one[2]}")
            known.discard(mark)
        labels.append(mark)
        text = text[found.end() :]
    if text.endswith((")", "]")) and "[repeated " in text:
        text = _REPEATED.sub("", text)
    return Peeled(text, " ".join(labels) or None, rank, time)


def _may_begin_behind(text: str) -> bool:
    """Return False where nothing in a line begins as `LINE_START` does: most lines of prose."""
    return (
        "NCCL " in text
        or "%|" in text
        or "] [" in text
        or "iteration " in text
        or "{'" in text
        or '{"' in text
        or "Training epoch " in text
        or " [" in text
        or ":[" in text
    )


def begins_a_line(text: str) -> bool:
    """Return True if a line begins as a line of a known kind does, behind its labels.

    >>> begins_a_line("node-1:1:2 [0] NCCL INFO x"), begins_a_line("0] -> 1[1] via P2P/IPC")
    (True, False)
    """
    return _START.match(text.lstrip(" \t")) is not None or _LABEL.match(text) is not None
