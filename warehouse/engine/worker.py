"""Worker process: answers the requests of `warehouse.engine.workers`, which starts it.

DuckDB is loaded at the first kernel that reads relations: without it, a worker starts sooner and is smaller.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from warehouse.engine.workers import WORKER_BYTES, Call, Request, serve
from warehouse.kernels import block_rows

if TYPE_CHECKING:
    from warehouse.engine.duckdb import DuckDBEngine
    from warehouse.kernels import Reader


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
    """Answers to requests."""

    def __init__(self, opened: ExitStack) -> None:
        self._opened = opened
        self._engine: DuckDBEngine | None = None

    def to(self, request: Request | Call) -> object:
        """Return the answer to a request."""
        if isinstance(request, Call):
            module, _, name = request.function.partition(":")
            return getattr(import_module(module), name)(*request.arguments)
        if not request.sources:
            return block_rows(request.kernel, request.block, cast("Reader", None), request.follower)
        with self._own_engine().scratch(request.sources) as scratch:
            return block_rows(request.kernel, request.block, scratch, request.follower)

    def _own_engine(self) -> DuckDBEngine:
        if self._engine is None:
            from warehouse.engine.duckdb import DuckDBEngine

            engine = DuckDBEngine(threads=1, memory_bytes=WORKER_BYTES, spill=Path(os.devnull, "no-spill"))
            self._engine = self._opened.enter_context(closing(engine))
        return self._engine
