"""Kernels: NumPy implementations of the few models that take much longer in SQL.

The SELECT is the definition. A model names its kernel in the front matter, and a test proves that both return
bit-identical rows. `warehouse build --plain-sql` uses no kernels. A kernel reads through the engine, chunk by chunk,
and yields arrays sorted by the model's grain. The grain check verifies that order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    import numpy
    import pyarrow

Arrays = dict[str, "numpy.ndarray"]


class Reader(Protocol):
    """Input of a kernel: runs SELECTs on the relations that the model's SELECT and checks read."""

    def arrays(self, sql: str) -> Arrays:
        """Return the columns as arrays."""
        ...

    def batches(self, sql: str, rows: int) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows in batches of `rows`. A kernel must read all batches before it yields its first chunk.

        Each chunk is written at once, and DuckDB can block forever if a result streams while it writes.
        """
        ...


class Kernel(Protocol):
    """Interface of a kernel module.

    Both functions raise UnsupportedError, at any chunk, for unsupported data: the build then falls back to the SELECT.
    """

    PARTS: tuple[str, ...]
    """Upstream models that `rows` reads; `blocks` may read others."""

    def blocks(self, reader: Reader) -> Iterator[Any]:
        """Yield the work in blocks that can be pickled, in the order of their rows; at least one if there are rows."""
        ...

    def rows(self, block: Any, reader: Reader) -> Iterator[Arrays]:
        """Yield the model's columns of a block in chunks, sorted by grain."""
        ...


class Follower(Protocol):
    """Interface of a kernel that can compute its rows from the chunks of another kernel's block."""

    def following(self, block: Any, chunks: Sequence[Arrays]) -> Iterator[Arrays]:
        """Yield the follower's rows for a block of the other kernel and its chunks."""
        ...


class UnsupportedError(Exception):
    """Error of a kernel for unsupported data; the build falls back to the SELECT."""


VERSIONS = {"port_readings": 1, "port_seconds": 3, "utilization_minutes": 1}
"""Version of each kernel, part of the fingerprint. Increase it when the kernel's rows change. Kept here, so that
fingerprints do not need NumPy."""

SELECTS = {
    "port_readings": "960da4b538810b7670ab3c7eaac60118",
    "port_seconds": "c2ed3749f37a7814c9bd4d48f8168199",
    "utilization_minutes": "631313389cf6c898596a674201ccc23b",
}
"""Hash of the SELECT (and its views) that each kernel implements. A model with another SELECT runs without kernel."""


FOLLOWERS = {"port_readings": "port_seconds"}
"""Kernel -> kernel that computes its rows from the same blocks, so that nothing is read twice."""


def kernel(name: str) -> Kernel:
    """Return the kernel with this name. Raises KeyError."""
    if name not in VERSIONS:
        raise KeyError(name)
    return cast("Kernel", import_module(f"warehouse.kernels.{name}"))


def kernel_rows(name: str, reader: Reader) -> Iterator[Arrays]:
    """Yield the rows of a kernel's model, block by block."""
    module = kernel(name)
    for block in module.blocks(reader):
        yield from module.rows(block, reader)


def block_rows(name: str, block: Any, reader: Reader, follower: str | None) -> tuple[list[Arrays], list[Arrays]]:
    """Return the chunks of a block, and those of its follower (none without a follower)."""
    chunks = list(kernel(name).rows(block, reader))
    if follower is None:
        return chunks, []
    return chunks, list(cast("Follower", kernel(follower)).following(block, chunks))
