"""Worker process: answers the requests of `warehouse.engine.workers`, which starts it."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from importlib import import_module
from pathlib import Path

from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.workers import WORKER_BYTES, Call, Request, serve
from warehouse.kernels import block_rows


def main() -> None:
    """Answer requests on standard input until it ends."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may print among the answers
    try:
        with requests, answers, ExitStack() as opened:
            serve(requests, answers, _Answers(opened).to)
    except BrokenPipeError:  # the build has ended
        os._exit(0)


class _Answers:
    """Answers to requests. The engine is opened at the first kernel."""

    def __init__(self, opened: ExitStack) -> None:
        self._opened = opened
        self._engine: DuckDBEngine | None = None

    def to(self, request: Request | Call) -> object:
        """Return the answer to a request."""
        if isinstance(request, Call):
            module, _, name = request.function.partition(":")
            return getattr(import_module(module), name)(*request.arguments)
        if self._engine is None:
            self._engine = self._opened.enter_context(closing(_engine()))
        with self._engine.scratch(request.sources) as scratch:
            return block_rows(request.kernel, request.block, scratch, request.follower)


def _engine() -> DuckDBEngine:
    return DuckDBEngine(threads=1, memory_bytes=WORKER_BYTES, spill=Path(os.devnull, "no-spill"))
