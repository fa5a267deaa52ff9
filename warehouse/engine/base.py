"""What an engine must do. The runner speaks to this, and to nothing below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from warehouse.project.contract import Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import duckdb
    import pyarrow

    from warehouse.kernels import Arrays


class EngineError(Exception):
    """The engine refused or failed: its sentence, and the byte in the author's SELECT where it points."""

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
        self.message = message
        self.offset = offset
        self.name = name
        self.candidates = tuple(candidates)
        self.kind = kind
        """What `name` is meant to be: `column`, `function`, `type` or `relation`."""
        self.table = table
        """The table, CTE or alias that lacks the column `name`, where the engine says so."""


class Parsed(NamedTuple):
    """What the engine's own parser says of a SELECT."""

    reads: tuple[str, ...]
    """`schema.name` of every relation, sorted."""
    canonical: str
    """The same for two texts that differ only in comments and formatting."""
    mark: str
    """The hash of the canonical text, which is long."""
    volatile: tuple[tuple[str, int | None], ...] = ()
    """What gives other rows from the same inputs (`random()`), and the byte where it stands."""
    needs: frozenset[frozenset[str]] = frozenset()
    """Groups of relations: while all of one group are empty, no row comes out."""

    def said(self) -> list[object]:
        """The same as JSON-able values."""
        return [self.reads, self.canonical, self.mark, self.volatile, sorted(map(sorted, self.needs))]

    @staticmethod
    def of(said: Sequence[Any]) -> Parsed:
        """What `said` says."""
        reads, canonical, mark, volatile, needs = said
        places = tuple((what, at) for what, at in volatile)
        return Parsed(tuple(reads), canonical, mark, places, frozenset(map(frozenset, needs)))


class Empty(NamedTuple):
    """A relation with columns and no rows."""

    columns: tuple[Column, ...]


class Parts(NamedTuple):
    """Parquet files of one relation, in order."""

    columns: tuple[Column, ...]
    paths: tuple[Path, ...]


class CsvFiles(NamedTuple):
    """CSV files with a header line and these columns, in this order; rows come in the order of the paths."""

    columns: Mapping[str, str]
    paths: tuple[Path, ...]
    quote: str = ""
    filename: bool = True
    """Whether the relation gains `filename`, the path that a row was read from."""
    headers: Mapping[Path, tuple[str, ...]] = MappingProxyType({})
    """The columns of those files that have others, or in another order: they are found by name."""
    forms: Mapping[str, str] = MappingProxyType({})
    """Column -> regular expression that a field must match as a whole, or reading it is an error; NULL passes."""
    whole_lines: bool = False
    """Whether a row is a line as it stands, the header among them, in the one column."""


class Select(NamedTuple):
    """A SELECT and the contract that its rows are cast to."""

    sql: str
    columns: tuple[Column, ...]


Source = Empty | Parts | CsvFiles | Select


class Scratch(Protocol):
    """A namespace in which relations are bound to sources and a SELECT can run."""

    def describe(self, sql: str) -> list[tuple[str, str]]:
        """(name, type) of each column that the SELECT gives. Raises EngineError."""
        ...

    def write(self, select: Select, path: Path, order: Sequence[str]) -> int:
        """Write the rows, cast to their contract, in this order; their number.

        Without an order they are written as they come, which takes a scratch on one thread.

        The bytes depend on the rows alone: not on threads, and not on how the rows came about.
        """
        ...

    def hold(self, path: Path) -> None:
        """The part that was written last has come to its place."""
        ...

    def arrays(self, sql: str) -> Arrays:
        """The columns of a SELECT of a kernel's own, as numpy arrays."""
        ...

    def batches(self, sql: str, rows: int) -> Iterator[pyarrow.RecordBatch]:
        """The rows of a SELECT of a kernel's own, so many at a time, however many there are."""
        ...

    def write_arrays(self, chunks: Iterable[Arrays], columns: Sequence[Column], path: Path) -> int:
        """Write what a kernel hands over, as it comes; the number of rows."""
        ...

    def table(self, relation: str, order: Sequence[str]) -> pyarrow.Table:
        """All rows of a relation in this order, or in that of all columns, for a Python model."""
        ...

    def write_arrow(self, rows: pyarrow.Table, columns: Sequence[Column], path: Path, order: Sequence[str]) -> int:
        """Write the rows of a Python model as `write` does those of a SELECT."""
        ...

    def add(self, relation: str, source: Source) -> None:
        """Bind one more relation."""
        ...

    def rows(self, sql: str, limit: int | None = None) -> list[tuple[object, ...]]:
        """The rows of a SELECT of the runner's own (checks)."""
        ...


class Engine(Protocol):
    """One engine, open for one build."""

    name: str
    version: str
    side_by_side: int
    """How many parts are best made at a time."""

    def parse(self, sql: str) -> Parsed:
        """Read a SELECT without running it. Raises EngineError."""
        ...

    def parse_all(self, selects: Sequence[str]) -> list[Parsed | EngineError]:
        """Read SELECTs without running them; of one that is wrong, what is wrong with it."""
        ...

    @property
    def held(self) -> Mapping[Path, str]:
        """Parts whose rows stand in memory as well, and the table of `connection` that holds them."""
        ...

    def let_go(self, path: Path) -> None:
        """Nobody will read this part from memory any more. Sources of several parts are read from their files."""
        ...

    def scratch(
        self, sources: Mapping[str, Source], *, one_thread: bool = False, few: bool = False
    ) -> AbstractContextManager[Scratch]:
        """A namespace with these relations (`schema.name` -> source).

        On one thread, rows keep their order. With few rows to read, what is written may be held in memory for
        those who read it after that.
        """
        ...

    def write_rows(self, columns: Mapping[str, str], json_lines: Path, path: Path) -> int:
        """Turn a file of JSON objects, a row each, into a part; the number of rows."""
        ...

    def connection(self) -> duckdb.DuckDBPyConnection:
        """A connection of DuckDB that can read the parts, to write a catalog with; whoever asks closes it."""
        ...

    def interrupt(self) -> None:
        """End the statements that run in any thread; each fails with EngineError."""
        ...

    def close(self) -> None:
        """Let go of memory and files."""
        ...
