"""Write the parts of models with a kernel.

A kernel may have a follower (`kernels.FOLLOWERS`): the kernel of another model, computed from the same blocks. Its rows
go to a spool file at the same time. The file becomes the follower's part once its fingerprint is known, which needs the
digest of the first part. So raw files are read once for both.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from warehouse.engine.base import Scratch, Source
from warehouse.engine.workers import Answer, Request
from warehouse.graph.dag import Node
from warehouse.graph.plan import Key
from warehouse.kernels import FOLLOWERS, Arrays, kernel
from warehouse.runner.build_state import BuildState
from warehouse.store.atomic import temporary_path

_BLOCKS_AHEAD = 4
"""Maximum number of blocks whose rows wait for the follower's writer."""
_LOOK_SECONDS = 0.1
"""Seconds between two looks at a writer that takes no more rows."""


class _Spool(NamedTuple):
    """Finished rows of a follower."""

    path: Path
    rows: int


class KernelParts:
    """Writer of the parts of kernels of one build, for use by several threads."""

    def __init__(self, state: BuildState) -> None:
        self._state = state
        self._workers = state.prepared.workers
        self._spools: dict[Key, _Spool] = {}

    def write(self, key: Key, scratch: Scratch, sources: Mapping[str, Source], path: Path) -> int:
        """Write the rows of a kernel's part; return their number. Raises UnsupportedError."""
        spool = self._spools.pop(key, None)
        if spool is not None:
            spool.path.replace(path)
            return spool.rows
        follower = self._follower(key)
        if follower is not None:
            self.drop(Key(follower.name, key.partition))
        model = self._state.graph.nodes[key.model].model
        name = str(model.kernel)
        blocks = list(kernel(name).blocks(scratch))
        if not self._workers.are_worth(len(blocks)):
            chunks = (chunk for block in blocks for chunk in kernel(name).rows(block, scratch))
            return scratch.write_arrays(chunks, model.columns, path)
        needed = {read: sources[read] for read in kernel(name).PARTS}
        of_follower = None if follower is None else str(follower.model.kernel)
        answers = self._workers.rows(Request(name, block, needed, of_follower) for block in blocks)
        if follower is None:
            return scratch.write_arrays((chunk for chunks, _ in answers for chunk in chunks), model.columns, path)
        return self._write_both(key, follower, answers, scratch, path)

    def _follower(self, key: Key) -> Node | None:
        """Return the model that is made next from the same blocks; None if there is none or it runs its SELECT."""
        state, name = self._state, FOLLOWERS.get(str(self._state.graph.nodes[key.model].model.kernel))
        for node in state.graph.nodes.values():
            following = Key(node.name, key.partition)
            if name and node.model.kernel == name and following in state.plan.keys:
                return node if state.inputs.kernel_of(node) and not state.is_kept(following) else None
        return None

    def _write_both(self, key: Key, follower: Node, answers: Iterator[Answer], scratch: Scratch, path: Path) -> int:
        """Write a part, and the rows of its follower to a spool file at the same time."""
        following = Key(follower.name, key.partition)
        spool = temporary_path(self._state.prepared.store.path(*following, "spool"))
        spool.parent.mkdir(parents=True, exist_ok=True)
        columns = self._state.graph.nodes[key.model].model.columns
        with ThreadPoolExecutor(1) as beside:
            rows = _Rows()
            second = beside.submit(self._write_spool, follower, rows, spool)
            try:
                first = scratch.write_arrays(rows.divided(answers, second), columns, path)
                rows.end(second)
                self._spools[following] = _Spool(spool, second.result())
            except BaseException:
                rows.end(second)
                wait([second])
                spool.unlink(missing_ok=True)
                raise
        return first

    def _write_spool(self, follower: Node, rows: _Rows, spool: Path) -> int:
        with self._state.prepared.engine.scratch({}, one_thread=True) as scratch:
            return scratch.write_arrays(rows.of_follower(), follower.model.columns, spool)

    def drop(self, key: Key) -> None:
        """Remove the spool of a part, if there is one."""
        spool = self._spools.pop(key, None)
        if spool is not None:
            spool.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the spools that became no part."""
        for key in list(self._spools):
            self.drop(key)


class _Rows:
    """Division of a kernel's chunks between the writers of two parts, each in its own thread."""

    def __init__(self) -> None:
        self._waiting: queue.Queue[list[Arrays] | None] = queue.Queue(_BLOCKS_AHEAD)

    def divided(self, answers: Iterator[Answer], follower: Future[int]) -> Iterator[Arrays]:
        """Yield the chunks of the first part; hand the follower's to its writer."""
        for chunks, following in answers:
            if follower.done():
                follower.result()  # its error, before more rows are written
            self._put(following, follower)
            yield from chunks

    def end(self, follower: Future[int]) -> None:
        """Tell the follower's writer that no row follows."""
        self._put(None, follower)

    def _put(self, chunks: list[Arrays] | None, follower: Future[int]) -> None:
        while not follower.done():  # a writer that failed takes nothing
            with suppress(queue.Full):
                self._waiting.put(chunks, timeout=_LOOK_SECONDS)
                return

    def of_follower(self) -> Iterator[Arrays]:
        """Yield the follower's chunks until their end."""
        while (chunks := self._waiting.get()) is not None:
            yield from chunks
