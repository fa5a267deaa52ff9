"""Let Ctrl-C end a query at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

Given = TypeVar("Given")
_AGAIN_SECONDS = 0.02


def interruptible(connection: duckdb.DuckDBPyConnection, work: Callable[[], Given]) -> Given:
    """Do the work in a thread, so that the main one hears of Ctrl-C while the engine is busy.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, once the work has ended; the connection stays usable.
    """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            while not future.done():  # again and again: the work may stand between two queries
                connection.interrupt()
                time.sleep(_AGAIN_SECONDS)
            raise
