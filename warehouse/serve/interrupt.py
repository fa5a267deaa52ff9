"""Let Ctrl-C end a query at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

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
    from concurrent.futures import ThreadPoolExecutor, wait

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        try:
            while watch and not wait([future], _WATCH_SECONDS).done:
                watch()
            return future.result(timeout)
        except (KeyboardInterrupt, TimeoutError):
            while not future.done():  # again and again: the work may stand between two queries
                connection.interrupt()
                time.sleep(_AGAIN_SECONDS)
            raise
