"""Child process that runs a query with limits."""

from __future__ import annotations

import os
import pickle
import signal
import sys

from warehouse.base.errors import WarehouseError
from warehouse.base.streams import accept_every_character
from warehouse.reader.bounded_query import INTERRUPTED, too_much
from warehouse.reader.user_query import run_here


def child(descriptor: int) -> None:
    """Run the query that stdin describes; write its error to the descriptor, or None once the answer is written."""
    arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own parent
    signal.signal(signal.SIGINT, signal.default_int_handler)
    accept_every_character()

    def tell(fields: tuple[object, ...] | None) -> None:
        os.write(descriptor, pickle.dumps(fields))
        os.close(descriptor)

    error: WarehouseError | None = None
    status = 1
    try:
        status = run_here(**arguments, answered=lambda: tell(None))
        sys.stdout.flush()
    except WarehouseError as raised:
        error = raised
    except MemoryError:
        error = too_much(arguments["memory"])
    except KeyboardInterrupt:
        status = INTERRUPTED
    if error:
        tell((error.message, error.place, error.hint, error.details, error.source))
    os._exit(status)  # skip cleanup: the engine's threads may hold locks that a normal exit waits for
