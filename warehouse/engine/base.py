"""What an engine is given and returns: sources of relations, parse results, errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from warehouse.base.errors import WarehouseError
from warehouse.project.contract import Column


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


class Empty(NamedTuple):
    """Relation with columns and no rows."""

    columns: tuple[Column, ...]


class Parts(NamedTuple):
    """Parquet files of one relation, in order."""

    columns: tuple[Column, ...]
    paths: tuple[Path | str, ...]
    hive: tuple[str, ...] = ()
    """Columns that name the folders of the files, in order. A query of one value opens the files of its folder."""


class JsonLines(NamedTuple):
    """File with one JSON object for each row of a list that the runner makes, such as `raw.files`."""

    columns: tuple[Column, ...]
    path: Path


class CsvFiles(NamedTuple):
    """CSV files with these columns, in this order. Rows are read in the order of the paths."""

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
    seen: Mapping[Path, Sequence[int]] = MappingProxyType({})
    """Signatures that the files had before they were hashed; of a repaired copy none."""
    required: frozenset[str] = frozenset()
    """Columns of `forms` that are never NULL; otherwise reading fails."""
    delimiter: str = ","
    encoding: str = "utf-8"
    has_header: bool = True


class Select(NamedTuple):
    """SELECT with the contract that its rows are cast to."""

    sql: str
    columns: tuple[Column, ...]


Source = Empty | Parts | JsonLines | CsvFiles | Select
