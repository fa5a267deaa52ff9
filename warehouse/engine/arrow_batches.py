"""Stream of Arrow batches from a kernel's arrays, so that a part is written while its rows are computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow

    from warehouse.kernels import Arrays

ROWS = 122_880
"""Rows per batch, equal to DuckDB's row group size, so that the file does not depend on the size of chunks."""


class Stream:
    """Concatenation of chunks, cut into equal batches; one batch is in memory at a time."""

    def __init__(self, chunks: Iterable[Arrays], names: Iterable[str]) -> None:
        self._names = tuple(names)
        self._types: dict[str, pyarrow.DataType] = {}
        self._batches = self._cut(chunks)
        self._first = next(self._batches, None)
        self.failure: BaseException | None = None
        """Exception while computing a chunk: Arrow passes on only its text."""

    def reader(self) -> pyarrow.RecordBatchReader | None:
        """Return a reader of the batches, for one pass; None without rows."""
        import pyarrow

        if self._first is None:
            return None
        return pyarrow.RecordBatchReader.from_batches(self._first.schema, self._all_batches())

    def _all_batches(self) -> Iterator[pyarrow.RecordBatch]:
        first, self._first = self._first, None
        yield first
        try:
            yield from self._batches
        except (Exception, KeyboardInterrupt) as error:
            self.failure = error
            raise

    def _cut(self, chunks: Iterable[Arrays]) -> Iterator[pyarrow.RecordBatch]:
        pending: list[Arrays] = []
        rows = 0
        for chunk in chunks:
            pending.append(chunk)
            rows += len(chunk[self._names[0]])
            while rows >= ROWS:
                whole = self._concatenated(pending)
                yield self._batch({name: values[:ROWS] for name, values in whole.items()})
                pending = [{name: values[ROWS:] for name, values in whole.items()}]
                rows -= ROWS
        if rows:
            yield self._batch(self._concatenated(pending))

    def _concatenated(self, chunks: list[Arrays]) -> Arrays:
        import numpy

        return {name: numpy.concatenate([chunk[name] for chunk in chunks]) for name in self._names}

    def _batch(self, arrays: Arrays) -> pyarrow.RecordBatch:
        import pyarrow

        columns = [pyarrow.array(arrays[name], type=self._types.get(name)) for name in self._names]
        batch = pyarrow.RecordBatch.from_arrays(columns, self._names)
        self._types = dict(zip(self._names, batch.schema.types, strict=True))  # all batches get the first one's types
        return batch
