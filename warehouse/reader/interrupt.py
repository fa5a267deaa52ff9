"""Let Ctrl-C end a query at once."""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

Given = TypeVar("Given")
_AGAIN_SECONDS, _WATCH_SECONDS = 0.02, 0.2


def interruptible(
    connection: duckdb.DuckDBPyConnection,
    work: Callable[[], Given],
    watch: Callable[[], None] | None = None,
    timeout: float | None = None,
) -> Given:
    """Do the work in a thread, so that the main one hears of Ctrl-C while the engine is busy.

    Parameters
    ----------
    connection
        Whose query Ctrl-C ends.
    work
        What is done.
    watch
        Called five times a second until it is done.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, once the work has ended; the connection stays usable.
    TimeoutError
        After `timeout` seconds, likewise.
    """
    thread = _Work(work)
    try:
        thread.start()
        _await(thread, watch, math.inf if timeout is None else time.monotonic() + timeout)
        return thread.given()
    except (KeyboardInterrupt, TimeoutError):
        thread.is_wanted = False
        while thread.began.is_set() and not thread.ended.wait(_AGAIN_SECONDS):
            connection.interrupt()  # again and again: the work may stand between two queries
        raise


def _await(thread: _Work[Given], watch: Callable[[], None] | None, ends: float) -> None:
    while not thread.ended.wait(min(_WATCH_SECONDS, max(ends - time.monotonic(), 0))):
        if time.monotonic() >= ends:
            raise TimeoutError
        if watch:
            watch()


class _Work(threading.Thread, Generic[Given]):
    """What is done, and what came of it.

    It is not joined: Python 3.11 takes a thread whose join a Ctrl-C broke for one that has ended.
    """

    def __init__(self, work: Callable[[], Given]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._given: list[Given] = []
        self._error: BaseException | None = None
        self.began, self.ended = threading.Event(), threading.Event()
        self.is_wanted = True
        """Ctrl-C may come before the thread has begun: then it does nothing."""

    def run(self) -> None:
        self.began.set()
        try:
            if self.is_wanted:
                self._given.append(self._work())
        except BaseException as error:
            self._error = error
        finally:
            self.ended.set()

    def given(self) -> Given:
        if self._error is not None:
            raise self._error
        return self._given[0]
