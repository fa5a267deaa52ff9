"""Labels that launchers write before each line of their processes, and suffixes of repeated lines.

To add a launcher, add its label to `_ALWAYS` if no log line begins with the same text, otherwise to `_BEFORE_A_LINE`.
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
        rf"(?:[ \t]*\|)?[ \t]*{_CONTAINER_TIME}(?: \|)?(?: std(?:out|err) [FP])? ",  # container runtime: time
        r"\[std(?:out|err)\]:? ?",
        r" {0,6}\d{1,6}: ",  # srun -l
        rf"{_IPV4}: ",  # pdsh
    )
)
_BEFORE_A_LINE = "|".join(
    (
        r"\[ {0,6}\d{1,6}\] ?",  # mpirun: only a rank
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
"""Maximum number of labels before one line."""


class StrippedLine(NamedTuple):
    """Line without its labels."""

    text: str
    label: str | None
    """Labels as written, without blanks around them; None if there are none."""
    rank: str | None
    """Global rank from PyTorch's label."""
    time_utc: str | None
    """UTC time from a container's label."""


def strip_labels(text: str, known: set[str]) -> StrippedLine:
    """Strip the labels from a line.

    `known` holds labels that preceded a recognized line of the file. Such a label is stripped from any line. New labels
    are added to `known`.

    >>> strip_labels("(RayTrainWorker pid=12, ip=10.0.0.1) step 1 [repeated 14x across cluster]", set()).text
    'step 1'
    >>> strip_labels("worker-0: worker-0:17:20 [0] NCCL INFO x", set())[:2]
    ('worker-0:17:20 [0] NCCL INFO x', 'worker-0:')
    >>> strip_labels("3: [rank12]: NCCL version 2.10.3", set())
    StrippedLine(text='NCCL version 2.10.3', label='3: [rank12]:', rank='12', time_utc=None)
    >>> strip_labels("worker-0: hello", set()).label, strip_labels("worker-0: hello", {"worker-0:"}).label
    (None, 'worker-0:')
    """
    labels: list[str] = []
    rank = time = None
    for _ in range(DEEPEST):
        if _START.match(text):
            break
        found = None if text.lstrip()[:1].isalpha() and not _may_hold_line_start(text) else _LABEL.match(text)
        if found is None and known and (one := _KNOWN.match(text)) and one[0].strip() in known:
            found = one
        if found is None:
            break
        label = found[0].strip()
        known.add(label)
        if one := _RANK.match(label):
            rank = rank or one[1]
        elif one := _TIME.match(found[0]):
            time = time or time_of(f"{one[1]} {one[2]}")
            known.discard(label)
        labels.append(label)
        text = text[found.end() :]
    if text.endswith((")", "]")) and "[repeated " in text:
        text = _REPEATED.sub("", text)
    return StrippedLine(text, " ".join(labels) or None, rank, time)


def _may_hold_line_start(text: str) -> bool:
    """Return False if no position in a line can match `LINE_START`: a cheap test that most prose fails."""
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
    """Return True if the text begins like a line of a known kind, with or without labels.

    >>> begins_a_line("node-1:1:2 [0] NCCL INFO x"), begins_a_line("0] -> 1[1] via P2P/IPC")
    (True, False)
    """
    return _START.match(text.lstrip(" \t")) is not None or _LABEL.match(text) is not None
