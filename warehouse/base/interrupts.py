"""Ctrl-C while processes start that shall not see it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_postponed() -> Iterator[None]:
    """Postpone Ctrl-C to the end of this block. Threads and processes that start in it never see one.

    A terminal sends Ctrl-C to all processes of a command. Those of Python answer with a traceback each.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
