"""Worker process: computes blocks of kernels for `warehouse.engine.workers`, which starts it."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.workers import WORKER_BYTES, Answer, Request, serve
from warehouse.kernels import block_rows


def main() -> None:
    """Answer requests on standard input until it ends."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may print among the answers
    engine = DuckDBEngine(threads=1, memory_bytes=WORKER_BYTES, spill=Path(os.devnull, "no-spill"))

    def compute(request: Request) -> Answer:
        with engine.scratch(request.sources) as scratch:
            return block_rows(request.kernel, request.block, scratch, request.follower)

    try:
        with closing(engine), requests, answers:
            serve(requests, answers, compute)
    except BrokenPipeError:  # the build has ended
        os._exit(0)
