"""Ctrl-C handling that ends a query at once."""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

Given = TypeVar("Given")
_AGAIN_SECONDS, _WAIT_SECONDS = 0.02, 0.2


def interruptible(
    connection: duckdb.DuckDBPyConnection,
    work: Callable[[], Given],
    timeout: float | None = None,
) -> Given:
    """Run `work` in a thread, so that the main thread receives Ctrl-C while the engine is busy.

    Parameters
    ----------
    connection
        Connection whose query Ctrl-C ends.
    work
        Function to run.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, once the work has ended; the connection stays usable.
    TimeoutError
        After `timeout` seconds, once the work has ended; the connection stays usable.
    """
    thread = _Work(work)
    try:
        thread.start()
        _await(thread, math.inf if timeout is None else time.monotonic() + timeout)
        return thread.given()
    except (KeyboardInterrupt, TimeoutError):
        # First, as Ctrl-C may come between the start of the thread and its first line.
        thread.is_wanted = False
        while thread.began.is_set() and not thread.ended.wait(_AGAIN_SECONDS):
            connection.interrupt()  # repeat: the work may be between two queries
        raise


def _await(thread: _Work[Given], ends: float) -> None:
    """Wait in short steps: a longer wait does not see Ctrl-C."""
    while not thread.ended.wait(min(_WAIT_SECONDS, max(ends - time.monotonic(), 0))):
        if time.monotonic() >= ends:
            raise TimeoutError


class _Work(threading.Thread, Generic[Given]):
    """Function to run in a thread, and its result or error.

    The thread is not joined: if Ctrl-C breaks a join, Python 3.11 reports the thread as ended.
    """

    def __init__(self, work: Callable[[], Given]) -> None:
        # A query that does not end must not keep Python from its exit.
        super().__init__(daemon=True)
        self._work = work
        self._given: list[Given] = []
        self._error: BaseException | None = None
        self.began, self.ended = threading.Event(), threading.Event()
        self.is_wanted = True
        """False if Ctrl-C came before the thread began; the thread then does nothing."""

    def run(self) -> None:
        self.began.set()
        try:
            if self.is_wanted:
                self._given.append(self._work())
        except BaseException as error:  # raised again in the main thread
            self._error = error
        finally:
            self.ended.set()

    def given(self) -> Given:
        if self._error is not None:
            raise self._error
        return self._given[0]
