"""Child process that runs a query with limits."""

from __future__ import annotations

import os
import pickle
import signal
import sys

from warehouse.base.errors import WarehouseError
from warehouse.base.streams import accept_every_character
from warehouse.reader.bounded_query import ANSWERED, BEGUN, INTERRUPTED, limit_memory, too_much
from warehouse.reader.user_query import run_here


def child(descriptor: int) -> None:
    """Run the query that stdin describes; write to the descriptor when it begins and has answered, or its error."""
    arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own parent
    signal.signal(signal.SIGINT, signal.default_int_handler)
    accept_every_character()

    def begins() -> None:
        if arguments["memory"]:
            limit_memory(arguments["memory"])
        os.write(descriptor, BEGUN)

    error: WarehouseError | None = None
    status = 1
    try:
        status = run_here(**arguments, begins=begins, answered=lambda: os.write(descriptor, ANSWERED))
        sys.stdout.flush()
    except WarehouseError as raised:
        error = raised
    except OSError as raised:  # stdout is on a full disk
        error = WarehouseError(raised.strerror or str(raised))
    except MemoryError:
        error = too_much(arguments["memory"])
    except KeyboardInterrupt:
        status = INTERRUPTED
    if error:
        os.write(descriptor, pickle.dumps((error.message, error.place, error.hint, error.details, error.source)))
    os._exit(status)  # skip cleanup: the engine's threads may hold locks that a normal exit waits for
