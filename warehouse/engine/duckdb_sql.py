"""DuckDB's SQL as text: values, names, and the SELECT that a source is."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.base.sql_text import identifier, literal
from warehouse.engine.base import CsvFiles, Parts, Select, Source
from warehouse.engine.globs import escape_glob, patterns

if TYPE_CHECKING:
    import duckdb

    from warehouse.project.contract import Column

_PIECE_BYTES = 4_000_000
"""What is read at a time of a file of whole lines; one line has to fit in."""


def source_sql(source: Source, held: Mapping[Path, str] | None = None, *, globs: bool = False) -> str:
    """The SELECT that gives a source's rows, cast to its columns; with `globs`, short but in no set order.

    A part that is `held` in a table is read from there.
    """
    if held and isinstance(source, Parts) and len(source.paths) == 1 and source.paths[0] in held:
        return f"FROM {held[source.paths[0]]}"
    if isinstance(source, Select):
        return f"SELECT {casts(source.columns)} FROM ({source.sql}\n)"
    if isinstance(source, CsvFiles) and source.paths and source.whole_lines:
        return _lines_select(source, together=globs)
    if isinstance(source, CsvFiles) and source.paths:
        return " UNION ALL ".join(_csv_select(source, header, paths, globs) for header, paths in _by_header(source))
    if isinstance(source, Parts) and source.paths:
        names = ", ".join(identifier(column.name) for column in source.columns)
        paths = literal([str(path) for path in source.paths])
        return f"SELECT {names} FROM read_parquet({paths}, hive_partitioning=false)"
    types = (
        {**source.columns, **({"filename": "VARCHAR"} if source.filename else {})}
        if isinstance(source, CsvFiles)
        else {column.name: column.type for column in source.columns}
    )
    empty = ", ".join(f"CAST(NULL AS {kind}) AS {identifier(name)}" for name, kind in types.items())
    return f"SELECT {empty} WHERE false"


def _by_header(source: CsvFiles) -> Iterator[tuple[tuple[str, ...] | None, list[Path]]]:
    """Neighbouring files whose columns stand alike, in the order of the paths."""
    for header, paths in itertools.groupby(source.paths, source.headers.get):
        yield header, list(paths)


def _csv_select(source: CsvFiles, header: tuple[str, ...] | None, paths: Sequence[Path], globs: bool) -> str:
    """The declared columns of these files; of a header of its own they are found by name."""
    if header is None and not source.forms:
        return f"SELECT * FROM {_csv_scan(source.columns, paths, source, globs=globs)}"
    stand = {
        name: "VARCHAR" if name in source.forms else source.columns.get(name, "VARCHAR")
        for name in header or source.columns
    }
    picked = [
        _strict(name, kind, source.forms.get(name)) if name in stand else f"CAST(NULL AS {kind}) AS {identifier(name)}"
        for name, kind in source.columns.items()
    ]
    picked += ["filename"] if source.filename else []
    return f"SELECT {', '.join(picked)} FROM {_csv_scan(stand, paths, source, globs=globs)}"


def _strict(name: str, kind: str, form: str | None) -> str:
    """The column itself; with a form, its text cast to the type, or an error: a cast alone reads 12.6 as 13."""
    column = identifier(name)
    if form is None:
        return column
    fits = f"regexp_full_match({column}, {literal(form)})"
    said = f"error(concat({literal(f'{name} has another form than it should: ')}, {column}))"
    return f"CAST(CASE WHEN {fits} THEN {column} WHEN {column} IS NOT NULL THEN {said} END AS {kind}) AS {column}"


def _csv_scan(columns: Mapping[str, str], paths: Sequence[Path], source: CsvFiles, *, globs: bool = False) -> str:
    """A read_csv call with declared columns; nothing is sniffed, and a bad row is an error."""
    listed = patterns(paths) if globs else [escape_glob(str(path)) for path in paths]
    struct = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in columns.items())
    return (
        f"read_csv({literal(listed)}, auto_detect=false, skip=0, header=true, delim=',', "
        f"quote={literal(source.quote)}, escape={literal(source.quote)}, columns={{{struct}}}, "
        f"filename={literal(source.filename)}, hive_partitioning=false)"
    )


def _lines_select(source: CsvFiles, *, together: bool) -> str:
    """The lines of files as they stand, read in pieces; with `together` in no set order.

    DuckDB takes a file that it has not looked into for 42 rows, so that a join would gather all lines as the smaller
    side: it is made to look into one line of the largest, which tells it the size. Not of all: a look costs 30 MB.
    A file that is read alone leaves memory piece by piece, but all files so named are read at the same time. That suits
    a part, which has few. `together` the others are one list, of which one file at a time is held.
    """
    ((column, kind),) = source.columns.items()
    largest = max(source.paths, key=lambda path: path.stat().st_size)
    others = [path for path in source.paths if path != largest]
    calls = [[largest], others] if together and others else [[path] for path in source.paths]
    return " UNION ALL ".join(
        f"SELECT * FROM read_csv({literal([escape_glob(str(path)) for path in paths])}, "
        f"auto_detect={'true, sample_size=1' if paths == [largest] else 'false'}, skip=0, header=false, "
        f"delim='\x01', quote='', escape='', columns={{{literal(column)}: {literal(kind)}}}, "  # no line has \x01
        f"filename={literal(source.filename)}, hive_partitioning=false, buffer_size={_PIECE_BYTES})"
        for paths in calls
    )


def casts(columns: Sequence[Column]) -> str:
    """The outermost projection: every column cast to its contract."""
    return ", ".join(
        f"CAST({identifier(column.name)} AS {column.type}) AS {identifier(column.name)}" for column in columns
    )


def declared(columns: Iterable[Column]) -> str:
    """The columns of a CREATE TABLE."""
    return ", ".join(f"{identifier(column.name)} {column.type}" for column in columns)


def insert_json(
    connection: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, str], rows: Sequence[Mapping[str, object]]
) -> None:
    """Insert rows as JSON, which DuckDB reads ten times as fast as the same rows in a VALUES clause."""
    shape = [{name: [kind[:-2]] if kind.endswith("[]") else kind for name, kind in columns.items()}]
    connection.execute(
        f"INSERT INTO {table} SELECT unnest(from_json(?::VARCHAR::JSON, {literal(json.dumps(shape))}), max_depth := 2)",
        [json.dumps(rows, default=str)],
    )
