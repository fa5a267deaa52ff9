"""Marks that launchers put before the lines of their processes, and behind repeated ones."""

from __future__ import annotations

from warehouse.formats.logs.event import time_of
from warehouse.regex import regex

_ADDRESS = r"[\w-]+(?:\.[\w-]+)*"
_LABELS = regex(
    "|".join(
        (
            r"[ \t]+(?=\[\d|[^\s:]+:\d+:\d+ \[)",  # indented as a whole
            r"\(\w[\w.]* pid=\d+(?:, ip=[\d.]+)?\) ?",  # Ray: (RayTrainWorker pid=1234, ip=10.0.0.1)
            r"\[\d+(?:,\d+)?\]<std(?:out|err)>: ?",  # mpirun, Horovod: [1,0]<stdout>:
            r"\[(?:default|rank)\d+\]: ?",  # torchrun: [default7]:, [rank12]:
            r"\[\d{1,6}\] (?=[^\s:]+:\d+:\d+ \[)",  # a rank alone: [155] host:pid:tid [3]
            rf"\[\d+\] {_ADDRESS}: ?",  # mpirun: [0] host:
            rf"\[(?:pod/)?{_ADDRESS}(?:/{_ADDRESS})*\] (?=\S)",  # kubectl logs --prefix
            r"\[?std(?:out|err)\]?(?::| \||(?=\s)) ?",
            r"(?: *\| )?\d{4}-\d\d-\d\dT[\d:]{8}(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)(?: \|)? ",  # a container's time
            r"\d{1,6}: ",  # srun: 3:
            rf"{_ADDRESS}: ",  # pdsh: 10.0.0.1: or host:
        )
    )
)
_REPEATED = regex(r" \[repeated \d+x(?: across cluster)?\](?: \(.*\))?$")
_TIME = regex(r"(?: *\| )?(\d{4}-\d\d-\d\d)T([\d:]{8}(?:\.\d{1,6})?)\d*Z")
_RANK = regex(r"\[rank(\d{1,6})\]:")

DEEPEST = 3
"""Marks before one line."""


def without_label(text: str) -> str | None:
    """The line behind its first mark; None where there is none.

    >>> without_label("(RayTrainWorker pid=12, ip=10.0.0.1) step 1 [repeated 14x across cluster]")
    'step 1'
    >>> without_label("worker-0: worker-0:17:20 [0] NCCL INFO x")
    'worker-0:17:20 [0] NCCL INFO x'
    """
    found = _LABELS.match(text)
    return _REPEATED.sub("", text[found.end() :]) if found else None


def rank_of(text: str) -> str | None:
    """The rank that a mark names: torchrun's newer ones give the global rank.

    >>> rank_of("[rank12]:[W socket.cpp:1] x"), rank_of("[default7]: x")
    ('12', None)
    """
    found = _RANK.match(text)
    return found[1] if found else None


def time_of_label(text: str) -> str | None:
    """The time that a container's mark has, where it is UTC.

    >>> time_of_label("2024-05-23T16:00:00.123456789Z x"), time_of_label("2024-05-23T16:00:00+08:00 x")
    ('2024-05-23 16:00:00.123456', None)
    """
    found = _TIME.match(text)
    return time_of(f"{found[1]} {found[2]}") if found else None
