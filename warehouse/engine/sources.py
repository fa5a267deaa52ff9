"""Sources of relations, and their SQL for DuckDB: the SELECT of a source, casts, column lists."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from warehouse.base.errors import DataError
from warehouse.base.hashing import NOT_REGULAR
from warehouse.base.sql_text import identifier, literal
from warehouse.project.contract import Column


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

# DuckDB's globs have no escape character, only sets.
_ESCAPED = str.maketrans({char: f"[{char}]" for char in "[*?"})


def escape_glob(path: str) -> str:
    """Return a glob that matches only this path.

    >>> escape_glob("/a [1]/*.csv")
    '/a [[]1]/[*].csv'
    """
    return path.translate(_ESCAPED)


_PIECE_BYTES = 4_000_000
"""Buffer size for files of whole lines; also the maximum length of a line."""


def source_sql(source: Source) -> str:
    """Return the SELECT of a source's rows, cast to its columns."""
    if isinstance(source, Select):
        return f"SELECT {casts(source.columns)} FROM ({source.sql}\n)"
    if isinstance(source, JsonLines):
        return _json_select(source)
    if isinstance(source, CsvFiles) and source.paths:
        refuse_irregular(source.paths)
        if source.whole_lines:
            return _lines_select(source)
        # Consecutive files with the same header, in the order of the paths.
        groups = itertools.groupby(source.paths, source.headers.get)
        return " UNION ALL ".join(
            _csv_select(source, header, [escape_glob(str(path)) for path in paths]) for header, paths in groups
        )
    if isinstance(source, Parts) and source.paths:
        return _parquet_select(source)
    types = (
        {**source.columns, **({"filename": "VARCHAR"} if source.filename else {})}
        if isinstance(source, CsvFiles)
        else {column.name: column.type for column in source.columns}
    )
    empty = ", ".join(f"CAST(NULL AS {kind}) AS {identifier(name)}" for name, kind in types.items())
    return f"SELECT {empty} WHERE false"


def refuse_irregular(paths: Iterable[Path]) -> None:
    """Raise DataError if a pipe or device has taken the place of a raw file: the engine would wait for it forever."""
    for path in paths:
        with suppress(OSError):  # the engine reports a missing file
            if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - faster for thousands of paths
                raise DataError(f"{path}: {NOT_REGULAR}", hint="put the file back, or move this out of the data folder")


def _json_select(source: JsonLines) -> str:
    types = ", ".join(f"{literal(column.name)}: {literal(column.type)}" for column in source.columns)
    path = literal(escape_glob(str(source.path)))
    return (
        f"SELECT * FROM read_json({path}, format='newline_delimited', columns={{{types}}}, "
        "maximum_object_size=67108864, hive_partitioning=false)"
    )


def _parquet_select(source: Parts) -> str:
    """Return the SELECT of Parquet files. DuckDB leaves out the files whose folder excludes the value of a query."""
    names = ", ".join(identifier(column.name) for column in source.columns)
    hive = "hive_partitioning=false"
    if source.hive and _named_by_folders(str(source.paths[0])) == source.hive:
        kinds = {column.name: column.type for column in source.columns}
        types = ", ".join(f"{identifier(name)}: {kinds[name]}" for name in source.hive)
        hive = f"hive_partitioning=true, hive_types={{{types}}}"
    return f"SELECT {names} FROM read_parquet({literal(list(map(str, source.paths)))}, {hive})"


def _named_by_folders(path: str) -> tuple[str, ...]:
    """Return the columns that DuckDB finds in the names of a file's folders.

    A folder `port=7` above the target would otherwise give its value to each row.
    """
    return tuple(name.partition("=")[0] for name in path.split("/")[:-1] if "=" in name)


def _csv_select(source: CsvFiles, header: tuple[str, ...] | None, files: Sequence[str]) -> str:
    """Return the SELECT of the declared columns of files; columns of a different header are matched by name.

    The engine sees numbers of fields, no name of a header: it would refuse some names.
    """
    if header is None and not source.forms:
        return f"SELECT * FROM {_csv_scan(source.columns, files, source)}"
    names = header or tuple(source.columns)
    fields = {name: f"field_{place}" for place, name in enumerate(names, 1)}
    types = ("VARCHAR" if name in source.forms else source.columns.get(name, "VARCHAR") for name in names)
    picked = [
        f"{_strict(name, fields[name], kind, source) if name in fields else f'CAST(NULL AS {kind})'}"
        f" AS {identifier(name)}"
        for name, kind in source.columns.items()
    ]
    picked += ["filename"] if source.filename else []
    scan = _csv_scan({f"field_{place}": kind for place, kind in enumerate(types, 1)}, files, source)
    return f"SELECT {', '.join(picked)} FROM {scan}"


def _strict(name: str, column: str, kind: str, source: CsvFiles) -> str:
    """Return a column; with a form, a cast that fails if the text does not match: a plain cast turns 12.6 into 13."""
    form = source.forms.get(name)
    if form is None:
        return column
    fits = f"regexp_full_match({column}, {literal(form)})"
    failure = f"error(concat({literal(f'{name} has another form than it should: ')}, {column}))"
    otherwise = f"ELSE {failure}" if name in source.required else f"WHEN {column} IS NOT NULL THEN {failure}"
    return f"CAST(CASE WHEN {fits} THEN {column} {otherwise} END AS {kind})"


def _csv_scan(columns: Mapping[str, str], files: Sequence[str], source: CsvFiles) -> str:
    """Return a read_csv call with declared columns, without sniffing. A bad row is an error."""
    struct = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in columns.items())
    encoding = "" if source.encoding == "utf-8" else f"encoding={literal(source.encoding)}, "
    return (
        f"read_csv({literal(list(files))}, auto_detect=false, skip=0, header={literal(source.has_header)}, "
        f"{encoding}delim={literal(source.delimiter)}, quote={literal(source.quote)}, escape={literal(source.quote)}, "
        # Else a folder named `a=1` would add a column.
        f"columns={{{struct}}}, filename={literal(source.filename)}, hive_partitioning=false)"
    )


def _lines_select(source: CsvFiles) -> str:
    """Return the SELECT of all lines of files, read in pieces.

    DuckDB estimates 42 rows for a file that it has not sampled. A join would then use the lines as the smaller side and
    keep all of them in memory. So one line of the largest file is sampled. Not of all files: a sample takes 30 MB.
    """
    ((column, kind),) = source.columns.items()
    largest = max(source.paths, key=lambda path: path.stat().st_size)
    return " UNION ALL ".join(
        f"SELECT * FROM read_csv({literal(escape_glob(str(path)))}, "
        f"auto_detect={'true, sample_size=1' if path == largest else 'false'}, skip=0, header=false, "
        f"delim='\x01', quote='', escape='', columns={{{literal(column)}: {literal(kind)}}}, "  # no line has \x01
        f"filename={literal(source.filename)}, hive_partitioning=false, buffer_size={_PIECE_BYTES})"
        for path in source.paths
    )


def casts(columns: Sequence[Column]) -> str:
    """Return the outermost projection: every column cast to its contract."""
    return ", ".join(
        f"CAST({identifier(column.name)} AS {column.type}) AS {identifier(column.name)}" for column in columns
    )
