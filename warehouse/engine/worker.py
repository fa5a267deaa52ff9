"""Worker process: `python -m warehouse.engine.worker` computes blocks of kernels for `warehouse.engine.workers`."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from pathlib import Path

from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.workers import WORKER_BYTES, Answer, Request, serve
from warehouse.kernels import block_rows


def main() -> None:
    """Answer requests on standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the build ends its workers
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may print among the answers
    engine = DuckDBEngine(threads=1, memory_bytes=WORKER_BYTES, spill=Path(os.devnull, "no-spill"))

    def compute(request: Request) -> Answer:
        with engine.scratch(request.sources) as scratch:
            return block_rows(request.kernel, request.block, scratch, request.follower)

    with closing(engine), requests, answers:
        serve(requests, answers, compute)


if __name__ == "__main__":
    main()
