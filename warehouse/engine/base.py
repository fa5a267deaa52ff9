"""Interface of an engine: parts are parsed, bound, written and checked through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from warehouse.base.errors import WarehouseError
from warehouse.project.contract import Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import duckdb
    import pyarrow

    from warehouse.kernels import Arrays


class EngineError(WarehouseError):
    """Error of the engine, with a message and the byte offset in the model's SELECT."""

    def __init__(
        self,
        message: str,
        *,
        offset: int | None = None,
        name: str | None = None,
        candidates: Sequence[str] = (),
        kind: str = "column",
        table: str | None = None,
    ) -> None:
        super().__init__(message)
        self.offset = offset
        self.name = name
        self.candidates = tuple(candidates)
        self.kind = kind
        """Kind of the missing `name`: `column`, `function`, `type` or `relation`."""
        self.table = table
        """Table, CTE or alias that lacks the column `name`, if the engine names it."""


class Parsed(NamedTuple):
    """Result of parsing a SELECT with the engine's parser."""

    reads: tuple[str, ...]
    """`schema.name` of every relation, sorted."""
    canonical: str
    """Canonical text: equal for SELECTs that differ only in comments and formatting."""
    canonical_hash: str
    """Hash of the canonical text."""
    volatile: tuple[tuple[str, int | None], ...] = ()
    """Non-deterministic expressions such as `random()`, each with its byte offset."""
    needs: frozenset[frozenset[str]] = frozenset()
    """Groups of relations: if all relations of one group are empty, the result is empty."""

    def to_json(self) -> list[object]:
        """Return the fields as JSON-able values."""
        return [self.reads, self.canonical, self.canonical_hash, self.volatile, sorted(map(sorted, self.needs))]

    @staticmethod
    def from_json(values: Sequence[Any]) -> Parsed:
        """Return the object from the values of `to_json`."""
        reads, canonical, canonical_hash, volatile, needs = values
        places = tuple((what, at) for what, at in volatile)
        return Parsed(tuple(reads), canonical, canonical_hash, places, frozenset(map(frozenset, needs)))


class Empty(NamedTuple):
    """Relation with columns and no rows."""

    columns: tuple[Column, ...]


class Parts(NamedTuple):
    """Parquet files of one relation, in order."""

    columns: tuple[Column, ...]
    paths: tuple[Path | str, ...]
    folder_hour: str = ""
    """Column that is, in all rows of each file, the hour in the name of its folder. A query of one hour opens the files
    of this hour alone. Empty if there is no such column."""


class CsvFiles(NamedTuple):
    """CSV files with a header line and these columns, in this order. Rows are read in the order of the paths."""

    columns: Mapping[str, str]
    paths: tuple[Path, ...]
    quote: str = ""
    filename: bool = True
    """True to add the column `filename`, the path of the file of each row."""
    headers: Mapping[Path, tuple[str, ...]] = MappingProxyType({})
    """Columns of the files that have different columns or a different order; these are matched by name."""
    forms: Mapping[str, str] = MappingProxyType({})
    """Column -> regular expression that each whole field must match; otherwise reading fails. NULL is valid."""
    whole_lines: bool = False
    """True to read each line, the header included, as one value of the only column."""
    globs: tuple[str, ...] = ()
    """Patterns of further files, which have these columns in this order. Only for views: their rows have no order."""
    seen: Mapping[Path, Sequence[int]] = MappingProxyType({})
    """Signatures that the files had before they were hashed; of a repaired copy none."""


class Select(NamedTuple):
    """SELECT with the contract that its rows are cast to."""

    sql: str
    columns: tuple[Column, ...]


Source = Empty | Parts | CsvFiles | Select


class Scratch(Protocol):
    """Namespace that binds relations to sources and runs SELECTs."""

    def describe(self, sql: str) -> list[tuple[str, str]]:
        """Return (name, type) of each column of a SELECT. Raises EngineError."""
        ...

    def write(self, select: Select, path: Path, order: Sequence[str]) -> int:
        """Write the rows, cast to their contract and sorted by `order`; return their number.

        Without an order the rows are not sorted, which requires a scratch on one thread.

        The file is deterministic: its bytes depend only on the rows, not on threads or the query plan.
        """
        ...

    def hold(self, path: str) -> None:
        """Register the final path of the part written last, so that it can be read from memory."""
        ...

    def arrays(self, sql: str) -> Arrays:
        """Return the columns of a kernel's SELECT as NumPy arrays."""
        ...

    def batches(self, sql: str, rows: int) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows of a kernel's SELECT in batches of `rows`."""
        ...

    def write_arrays(self, chunks: Iterable[Arrays], columns: Sequence[Column], path: Path) -> int:
        """Write the chunks of a kernel as they arrive; return the number of rows."""
        ...

    def table(self, relation: str, order: Sequence[str]) -> pyarrow.Table:
        """Return all rows of a relation for a Python model, sorted by `order`, or by all columns if it is empty."""
        ...

    def write_arrow(self, rows: pyarrow.Table, columns: Sequence[Column], path: Path, order: Sequence[str]) -> int:
        """Write the rows of a Python model, in the same way as `write`."""
        ...

    def add(self, relation: str, source: Source) -> None:
        """Bind one more relation."""
        ...

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """Return the rows of a SELECT of the runner, such as a check."""
        ...


class Engine(Protocol):
    """Engine that is open for one build."""

    name: str
    version: str
    parallel_parts: int
    """Number of parts to build in parallel."""

    def parse(self, sql: str) -> Parsed:
        """Parse a SELECT. Raises EngineError."""
        ...

    def parse_all(self, selects: Sequence[str]) -> list[Parsed | EngineError]:
        """Parse SELECTs; an invalid one gives its error."""
        ...

    def attached(self, path: Path, name: str) -> duckdb.DuckDBPyConnection:
        """Attach a DuckDB file under a name, and return a connection that can write to it. Raises duckdb.Error."""
        ...

    def hold(self, source: Parts, table: str) -> None:
        """Let all scratches read the rows of these files from a table of `connection`."""
        ...

    @property
    def held(self) -> Mapping[str, str]:
        """Parts that are cached, with the table of `connection` that holds their rows."""
        ...

    def release(self, path: str) -> None:
        """Drop a part from memory, once no unfinished part reads it from there."""
        ...

    def scratch(
        self, sources: Mapping[str, Source], *, one_thread: bool = False, in_memory: bool = False
    ) -> AbstractContextManager[Scratch]:
        """Open a namespace with these relations (`schema.name` -> source).

        With `one_thread`, rows keep their order. With `in_memory`, written rows may also be kept in memory for
        downstream parts.
        """
        ...

    def write_rows(self, columns: Mapping[str, str], json_lines: Path, path: Path) -> int:
        """Write a part from a file with one JSON object per row; return the number of rows."""
        ...

    def connection(self) -> duckdb.DuckDBPyConnection:
        """Return a DuckDB connection to write a catalog with. The caller closes it."""
        ...

    def interrupt(self) -> None:
        """Interrupt the running statements of all threads; each fails with EngineError."""
        ...

    def close(self) -> None:
        """Release memory and files."""
        ...
