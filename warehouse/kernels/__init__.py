"""Kernels: the rows of a model in numpy, for the few models where that costs a fraction of the SELECT.

The SELECT stays the definition. A model names its kernel in the front matter; a test proves that both give
the same rows, to the bit, and `warehouse build --plain-sql` builds without any. A kernel reads through the
engine, chunk by chunk, and hands over arrays in the order of the model's grain, which the check of the grain
proves.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy
    import pyarrow

Arrays = dict[str, "numpy.ndarray"]


class Reader(Protocol):
    """What a kernel reads through: SELECTs of its own over what the model's SELECT and checks see."""

    def arrays(self, sql: str) -> Arrays:
        """The columns as arrays."""
        ...

    def batches(self, sql: str, rows: int) -> Iterator[pyarrow.RecordBatch]:
        """The rows, so many at a time; all of them before the first chunk is handed over.

        Chunks are written as they come, and DuckDB may wait for ever for a result that streams while it writes.
        """
        ...


class Kernel(Protocol):
    """What a module of this package offers."""

    def rows(self, reader: Reader) -> Iterator[Arrays]:
        """The model's columns, chunk by chunk, ascending by its grain.

        Raises DeclinedError, at any chunk, where it does not know these data: then the SELECT makes the rows.
        """
        ...


class DeclinedError(Exception):
    """A kernel leaves these data to the SELECT."""


VERSIONS = {"port_readings": 1, "port_seconds": 3, "utilization_minutes": 1}
"""Raised when a kernel's rows change: part of the fingerprint, and told without numpy, which few builds need."""

SELECTS = {
    "port_readings": "960da4b538810b7670ab3c7eaac60118",
    "port_seconds": "c2ed3749f37a7814c9bd4d48f8168199",
    "utilization_minutes": "631313389cf6c898596a674201ccc23b",
}
"""The hash of the SELECT that each stands for, with those of the views that it reads: of any other it knows nothing."""


def kernel(name: str) -> Kernel:
    """The kernel of that name; KeyError where there is none."""
    if name not in VERSIONS:
        raise KeyError(name)
    return import_module(f"warehouse.kernels.{name}")
