"""DuckDB, embedded: the default engine.

The author's own text runs, wrapped on its first line only, so that DuckDB's positions are the author's. Each
scratch is an attached in-memory catalogue of its own: independent parts run side by side on cursors of one
instance, which holds one limit of threads and memory for all of them.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import duckdb
import msgspec

from warehouse.engines.base import CsvFiles, Empty, EngineError, Parsed, Parts, Select, Source
from warehouse.engines.globs import escape_glob, patterns
from warehouse.engines.needs import needs
from warehouse.engines.volatile import volatile
from warehouse.model import Column

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow

    from warehouse.engines.observed import Statement
    from warehouse.kernels import Arrays

_POSITION = re.compile(r',"query_location(?:_length)?":\d+')
"""Where in the text a node stood: the one thing in a serialized tree that formatting changes."""
_CSV_ERROR = re.compile(
    r"CSV Error on Line: (?P<line>\d+)\n(?:Original Line: .*\n)?(?P<what>.+)\n(?s:.*)^ *file = (?P<file>.+)$",
    re.MULTILINE,
)
_HELD_ROWS = 1_000_000
"""Parts of more rows are read from their files."""
_PIECE_BYTES = 4_000_000
"""What is read at a time of a file of whole lines; one line has to fit in."""
_PART_MEMORY = 10**9
"""Parts are made side by side only while each can have about this much memory."""
_NUMBERS = itertools.count(1)
_WRITES = re.compile(r'"type":"(?!SELECT|SET_OPERATION|RECURSIVE_CTE|CTE)(\w+)_NODE"')
"""A query node that does more than read: DuckDB has COPY, INSERT, UPDATE and DELETE inside WITH."""
_KINDS = {"Function": "function", "Type": "type", "Table": "relation"}
_BASE_TABLE = re.compile(r'"schema_name":"(\w+)","table_name":"(\w+)"')


def literal(value: object) -> str:
    """A value as a SQL literal.

    >>> literal("it's"), literal([1, None])
    ("'it''s'", '[1, NULL]')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(literal(item) for item in value)}]"
    return "'" + str(value).replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A name as a quoted SQL identifier.

    >>> identifier('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def qualified(relation: str) -> str:
    """`schema.name` with both quoted."""
    schema, _, name = relation.partition(".")
    return f"{identifier(schema)}.{identifier(name)}"


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


def _by_header(source: CsvFiles) -> Iterator[tuple[tuple[str, ...] | None, list[Path]]]:
    """Neighbouring files whose columns stand alike, in the order of the paths."""
    for header, paths in itertools.groupby(source.paths, source.headers.get):
        yield header, list(paths)


def _csv_select(source: CsvFiles, header: tuple[str, ...] | None, paths: Sequence[Path], globs: bool) -> str:
    """The declared columns of these files; of a header of its own they are found by name."""
    if header is None:
        return f"SELECT * FROM {csv_scan(source.columns, paths, source, globs=globs)}"
    stand = {name: source.columns.get(name, "VARCHAR") for name in header}
    picked = [
        identifier(name) if name in stand else f"CAST(NULL AS {kind}) AS {identifier(name)}"
        for name, kind in source.columns.items()
    ]
    picked += ["filename"] if source.filename else []
    return f"SELECT {', '.join(picked)} FROM {csv_scan(stand, paths, source, globs=globs)}"


def csv_scan(columns: Mapping[str, str], paths: Sequence[Path], source: CsvFiles, *, globs: bool = False) -> str:
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


class DuckDBEngine:
    """One in-process DuckDB instance."""

    name = "duckdb"
    version = duckdb.__version__
    keeps_order = True
    runs_kernels = True

    def __init__(
        self, *, threads: int, memory_bytes: int, spill: Path, observe: Callable[[Statement], None] | None = None
    ) -> None:
        self._config: dict[str, str | bool | int | float | list[str]] = {
            "threads": threads,
            "memory_limit": f"{memory_bytes // 2**20}MiB",
            "temp_directory": str(spill),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "errors_as_json": True,
        }
        self.side_by_side = max(1, min(threads, memory_bytes // _PART_MEMORY))
        self._instance = duckdb.connect(config=self._config)
        self._observe = observe
        self._on_one_thread: duckdb.DuckDBPyConnection | None = None
        self._open = threading.Lock()
        self._idle: dict[tuple[bool, bool], list[DuckDBScratch]] = {}
        self._lent: set[DuckDBScratch] = set()
        self.held: dict[Path, str] = {}
        self._gone: set[Path] = set()

    def parse(self, sql: str) -> Parsed:
        """Read a SELECT with DuckDB's parser: its relations and its tree without positions."""
        (parsed,) = self.parse_all([sql])
        if isinstance(parsed, EngineError):
            raise parsed
        return parsed

    def parse_all(self, selects: Sequence[str]) -> list[Parsed | EngineError]:
        """Read SELECTs with DuckDB's parser, all in one query, which costs more than what it parses."""
        query = "SELECT json_serialize_sql(written) FROM (SELECT unnest(?::VARCHAR[]) AS written)"
        try:
            rows = self._instance.execute(query, [list(selects)]).fetchall()
        except duckdb.Error as error:
            if len(selects) == 1:
                return [_engine_error(error, selects[0], 0)]
            return [parsed for sql in selects for parsed in self.parse_all([sql])]
        return [_parsed(str(row[0])) for row in rows]

    @contextmanager
    def scratch(
        self, sources: Mapping[str, Source], *, one_thread: bool = False, few: bool = False
    ) -> Iterator[DuckDBScratch]:
        """A catalogue in memory with a view a relation; one that is idle is lent, with what is bound in it."""
        with self._open:  # DuckDB refuses two catalogue changes at once
            idle = self._idle.setdefault((one_thread, few), [])
            scratch = idle.pop() if idle else self._new_scratch(one_thread, few)
        self._lent.add(scratch)
        try:
            scratch.bind(_views_last(sources))
            yield scratch
        finally:
            self._lent.discard(scratch)
            if self._observe is not None:
                scratch.tell_last()
            if scratch.is_whole:
                idle.append(scratch)

    def _new_scratch(self, one_thread: bool, few: bool) -> DuckDBScratch:
        catalogue = f"scratch_{next(_NUMBERS)}"
        instance = self._single() if one_thread else self._instance
        instance.cursor().execute(f"ATTACH ':memory:' AS {catalogue}")

        def opened() -> duckdb.DuckDBPyConnection:
            cursor = instance.cursor()
            cursor.execute(f"USE {catalogue}")
            if self._observe is None:
                return cursor
            from warehouse.engines.observed import Observed

            return cast("duckdb.DuckDBPyConnection", Observed(cursor, self._observe))

        return DuckDBScratch(opened, self.held if few else None, self._gone)

    def _single(self) -> duckdb.DuckDBPyConnection:
        """A second instance, since DuckDB sets threads for an instance and not for a statement."""
        if self._on_one_thread is None:
            self._on_one_thread = duckdb.connect(config={**self._config, "threads": 1})
        return self._on_one_thread

    def write_rows(self, columns: Mapping[str, str], json_lines: Path, path: Path) -> int:
        """Read JSON lines with declared columns and write them as a part, in their order."""
        types = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in columns.items())
        scan = (
            f"read_json({literal(escape_glob(str(json_lines)))}, format='newline_delimited', columns={{{types}}},"
            " maximum_object_size=67108864)"
        )
        return _copy(self._instance.cursor(), f"SELECT * FROM {scan}", path, 0, "", columns.values())

    def connection(self) -> duckdb.DuckDBPyConnection:
        """One more connection to the instance."""
        return self._instance.cursor()

    def let_go(self, path: Path) -> None:
        """Drop the table that holds a part; views of it that idle scratches have are bound anew when asked for."""
        table = self.held.pop(path, None)
        if table is not None:
            self._gone.add(path)
            self._instance.cursor().execute(f"DROP TABLE {table}")

    def interrupt(self) -> None:
        """End what runs in scratches that are lent."""
        for scratch in list(self._lent):
            scratch.interrupt()

    def close(self) -> None:
        """Close the instances."""
        self._instance.close()
        if self._on_one_thread is not None:
            self._on_one_thread.close()


class DuckDBScratch:
    """A cursor inside one scratch catalogue, and one more for what a kernel reads while its rows are written."""

    def __init__(
        self, opened: Callable[[], duckdb.DuckDBPyConnection], held: dict[Path, str] | None, gone: set[Path]
    ) -> None:
        self._cursor = opened()
        self._opened = opened
        self._held = held
        self._gone = gone
        self._written = ""
        self._bound: dict[str, Source] = {}
        self._schemas: set[str] = set()
        self.is_whole = True
        """Whether it is known what is bound in it."""

    def add(self, relation: str, source: Source) -> None:
        """Bind one more relation."""
        self.bind([(relation, source)])

    def bind(self, sources: Iterable[tuple[str, Source]]) -> None:
        """Bind relations: as empty tables, or as views; one that is bound to the same source stays."""
        changed = {
            relation: source
            for relation, source in sources
            if self._bound.get(relation) != source
            or (isinstance(source, Parts) and not self._gone.isdisjoint(source.paths))
        }
        schemas = {relation.partition(".")[0] for relation in changed} - self._schemas
        statements = [f"CREATE SCHEMA IF NOT EXISTS {identifier(schema)}" for schema in sorted(schemas)]
        for relation, source in changed.items():
            statements += self._statements(relation, source)
        try:
            self._cursor.execute(";".join(statements))
        except duckdb.Error as error:
            self.is_whole = False
            raise _engine_error(error, "", 0) from error
        self._bound |= changed
        self._schemas |= schemas

    def _statements(self, relation: str, source: Source) -> Iterator[str]:
        name, bound = qualified(relation), self._bound.pop(relation, None)
        if bound is not None:
            yield f"DROP {'TABLE' if isinstance(bound, Empty) else 'VIEW'} {name}"
        if isinstance(source, Empty):
            yield f"CREATE TABLE {name} ({declared(source.columns)})"
        else:
            yield f"CREATE VIEW {name} AS {source_sql(source, self._held)}"

    @cached_property
    def _beside(self) -> duckdb.DuckDBPyConnection:
        return self._opened()

    def _cursors(self) -> Iterator[duckdb.DuckDBPyConnection]:
        yield self._cursor
        if "_beside" in vars(self):
            yield self._beside

    def tell_last(self) -> None:
        """Have observed cursors tell of their last statement."""
        for cursor in self._cursors():
            cursor.tell_last()  # type: ignore[attr-defined]

    def interrupt(self) -> None:
        """End what runs, from another thread."""
        for cursor in self._cursors():
            cursor.interrupt()

    def describe(self, sql: str) -> list[tuple[str, str]]:
        """Bind the SELECT and name its columns, without running it."""
        prefix = "SELECT * FROM ("
        try:
            self._cursor.execute(f"{prefix}{sql}\n) LIMIT 0")
        except duckdb.Error as error:
            found = _engine_error(error, sql, len(prefix))
            if found.kind == "function":  # DuckDB offers one name, seldom the nearest
                found.candidates = tuple(
                    str(row[0]) for row in self.rows("SELECT DISTINCT function_name FROM duckdb_functions() ORDER BY 1")
                )
            raise found from error
        return [(str(column[0]), str(column[1])) for column in self._cursor.description or []]

    def write(self, select: Select, path: Path, order: Sequence[str]) -> int:
        """COPY the SELECT to Parquet: zstd, rows in the given order.

        The sort also cuts the rows into equal chunks, which the bytes depend on: that makes them the same at any
        number of threads. Rows that are not sorted need one thread for that.
        """
        prefix = f"SELECT {casts(select.columns)} FROM ("
        by = f" ORDER BY {', '.join(identifier(name) for name in order)}" if order else ""
        if self._held is not None:
            table = f"memory.main.held_{next(_NUMBERS)}"
            create = f"CREATE TABLE {table} AS "
            try:
                self._cursor.execute(f"{create}{prefix}{select.sql}\n){by}")
            except duckdb.Error as error:
                raise _engine_error(error, select.sql, len(create) + len(prefix)) from error
            rows = _copy(self._cursor, f"FROM {table}", path, 0, "", _types(select.columns))
            if rows <= _HELD_ROWS:
                self._written = table
            else:
                self._cursor.execute(f"DROP TABLE {table}")
            return rows
        return _copy(
            self._cursor, f"{prefix}{select.sql}\n){by}", path, len(prefix), select.sql, _types(select.columns)
        )

    def write_nothing(self, columns: Sequence[Column], path: Path) -> int:
        """Write a part without rows."""
        return _copy(self._cursor, source_sql(Empty(tuple(columns))), path, 0, "", _types(columns))

    def hold(self, path: Path) -> None:
        """Say where the rows that were written last have their file."""
        if self._held is not None and self._written:
            self._held[path], self._written = self._written, ""

    def arrays(self, sql: str) -> Arrays:
        """Fetch the columns as numpy arrays."""
        try:
            return self._beside.execute(sql).fetchnumpy()
        except duckdb.Error as error:
            raise _engine_error(error, sql, 0) from error

    def batches(self, sql: str, rows: int) -> Iterator[pyarrow.RecordBatch]:
        """Stream the rows as Arrow."""
        try:
            yield from self._beside.sql(sql).to_arrow_reader(rows)
        except duckdb.Error as error:
            raise _engine_error(error, "", 0) from error

    def write_arrays(self, chunks: Iterable[Arrays], columns: Sequence[Column], path: Path) -> int:
        """COPY the chunks as they come: nested in it run the SELECTs that they are made of."""
        from warehouse.engines.batches import Stream

        stream = Stream(chunks, [column.name for column in columns])
        reader = stream.reader()
        if reader is None:
            return self.write_nothing(columns, path)
        self._cursor.register("kernel_rows", reader)
        try:
            return _copy(self._cursor, f"SELECT {casts(columns)} FROM kernel_rows", path, 0, "", _types(columns))
        except EngineError:
            if stream.failure is not None:
                raise stream.failure from None
            raise
        finally:
            self._cursor.unregister("kernel_rows")

    def table(self, relation: str, order: Sequence[str]) -> pyarrow.Table:
        """All rows of a relation in this order, which one part of a model lies in already."""
        bound = self._bound.get(relation)
        lies_so = isinstance(bound, Parts) and len(bound.paths) == 1 and order
        by = "" if lies_so else f" ORDER BY {', '.join(map(identifier, order)) or 'ALL'}"
        try:
            return self._cursor.sql(f"SELECT * FROM {qualified(relation)}{by}").to_arrow_table()
        except duckdb.Error as error:
            raise _engine_error(error, "", 0) from error

    def write_arrow(self, rows: pyarrow.Table, columns: Sequence[Column], path: Path, order: Sequence[str]) -> int:
        """COPY the rows, cast and sorted as those of a SELECT are."""
        by = ", ".join(identifier(name) for name in order)
        self._cursor.register("python_rows", rows)
        try:
            select = f"SELECT {casts(columns)} FROM python_rows ORDER BY {by}"
            return _copy(self._cursor, select, path, 0, "", _types(columns))
        finally:
            self._cursor.unregister("python_rows")

    def rows(self, sql: str, limit: int | None = None) -> list[tuple[object, ...]]:
        """Run a SELECT and fetch."""
        try:
            self._cursor.execute(sql)
            return self._cursor.fetchall() if limit is None else self._cursor.fetchmany(limit)
        except duckdb.Error as error:
            raise _engine_error(error, sql, 0) from error


def _parsed(serialized: str) -> Parsed | EngineError:
    """A serialized statement: its relations, and its tree without positions."""
    tree = msgspec.json.decode(serialized)
    if tree["error"]:
        position = tree.get("position")
        return EngineError(str(tree["error_message"]), offset=int(position) if position else None)
    if len(tree["statements"]) != 1:
        return EngineError("a model is one SELECT, not several statements")
    said = _POSITION.sub("", serialized)
    if writes := _WRITES.search(said):
        return EngineError(f"{writes[1]} inside WITH is refused: a model only reads")
    return Parsed(tuple(sorted(set(_relations(said)))), said, volatile(said, tree), needs(tree))


def _types(columns: Iterable[Column]) -> list[str]:
    return [column.type for column in columns]


def copy_rows(cursor: duckdb.DuckDBPyConnection, select: str, path: Path, types: Iterable[str]) -> int:
    """Write the rows of a SELECT as a part; their number. Raises duckdb.Error."""
    cursor.execute(f"COPY ({select}) TO {literal(str(path))} ({_parquet(types)})")
    row = cursor.fetchone()
    assert row is not None
    return int(row[0])


def _copy(
    cursor: duckdb.DuckDBPyConnection, select: str, path: Path, prefix: int, sql: str, types: Iterable[str]
) -> int:
    """The same, with errors at their place in the author's SELECT, which starts after a prefix."""
    try:
        return copy_rows(cursor, select, path, types)
    except duckdb.Error as error:
        raise _engine_error(error, sql, len("COPY (") + prefix) from error


def _parquet(types: Iterable[str]) -> str:
    """How parts are written; without dictionaries where no column is text: of numbers they save nothing.

    zstd at level 1 takes a third less time than at 3, DuckDB's own, for files of the same size.
    """
    has_text = any(kind.startswith("VARCHAR") for kind in types)
    dictionaries = "" if has_text else ", DICTIONARY_SIZE_LIMIT 1"
    return f"FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1{dictionaries}"


def _views_last(sources: Mapping[str, Source]) -> list[tuple[str, Source]]:
    """Sources in the given order, those that read other sources after them."""
    return sorted(sources.items(), key=lambda item: isinstance(item[1], Select))


def _relations(tree: str) -> Iterator[str]:
    """Every relation of the serialized tree that stands in a schema; names without one are CTEs."""
    for match in _BASE_TABLE.finditer(tree):
        yield f"{match[1]}.{match[2]}"


def sentence(error: duckdb.Error) -> str:
    """What an error of DuckDB says, without its advice."""
    return _engine_error(error, "", 0).message


def _sentence(text: str) -> str:
    """What an error of DuckDB says, without its advice; of a line of a CSV file, which.

    >>> _sentence("CSV Error on Line: 2\\nOriginal Line: x\\nExpected: 2 Found: 1\\n\\n  file = /a.csv\\n")
    '/a.csv:2: Expected: 2 Found: 1'
    """
    found = _CSV_ERROR.search(text)
    return f"{found['file']}:{found['line']}: {found['what']}" if found else text.strip().partition("\n")[0]


def _engine_error(error: duckdb.Error, sql: str, prefix: int) -> EngineError:
    """DuckDB's error as ours; its JSON form holds the position as a byte of the statement."""
    text = str(error)
    start = text.find("{")
    try:
        said = json.loads(text[start:]) if start >= 0 else {}
    except json.JSONDecodeError:
        said = {}
    message = _sentence(str(said.get("exception_message", text)))
    offset = int(said["position"]) - prefix if said.get("position", "").isdigit() else None
    if offset is not None and not 0 <= offset <= len(sql.encode()):
        offset = None
    kind = _KINDS.get(str(said.get("type", "")).rpartition(" ")[2], "column")
    missing = said.get("error_subtype") == "COLUMN_NOT_FOUND" or kind != "column"
    candidates = [name.strip(' "').removeprefix("main.") for name in str(said.get("candidates", "")).split(",")]
    if not missing:  # a column of an alias: its names stand in the text
        candidates = re.findall(r'"(\w+)"', str(said.get("exception_message", "")).partition("Candidate bindings:")[2])
    return EngineError(
        message,
        offset=offset,
        name=(said.get("name") or None) if missing else None,
        candidates=[name for name in candidates if name],
        kind=kind,
    )
