"""Output of a result: in a format for people or programs, on a terminal, in a pipe, or in a file.

`table` and `lines` are for people; csv, json, jsonl, markdown, text and agent for programs. Values arrive as exact
text; nothing is parsed or rounded again. Parquet is written by the engine, without loss for types that Parquet does not
support.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from json.encoder import encode_basestring, encode_basestring_ascii
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from warehouse.base import startup
from warehouse.base.errors import QueryError, WarehouseError
from warehouse.base.sql_text import identifier, literal
from warehouse.reader.guard import Statement
from warehouse.reader.result import COUNT, NOT_JSON, SHARE, Column, Result, Row, column_meanings, total, wrap
from warehouse.store.atomic import replacing

if TYPE_CHECKING:
    from warehouse.reader.named_queries import Query

FORMATS = ("table", "lines", "csv", "json", "jsonl", "markdown", "parquet", "text", "agent")
SUFFIXES = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".md": "markdown",
    ".parquet": "parquet",
    ".txt": "table",
}
JSON_FORMATS = frozenset({"json", "jsonl"})
# The engine also quotes #, which begins a comment in some readers.
_CSV_QUOTED = startup.regex(r'[",\r\n#]')
# Strings come first, so that a NaN inside of one is passed over.
_NOT_JSON_INSIDE = startup.regex(r'"(?:[^"\\]|\\.)*"|-?(?:Infinity|NaN)')
_MARKDOWN = str.maketrans(
    {"\\": "\\\\", "|": "\\|", "`": "\\`", "*": "\\*", "<": "&lt;", "&": "&amp;", "\r": None, "\n": "<br>"}
)


def choose_format(name: str | None, output: Path | None, stream: TextIO) -> str:
    """Return the format that is named, else the format of the file's suffix, else the stream's default."""
    chosen = name or ("table" if stream.isatty() else AGENT if is_agent() else "csv")
    if output is not None and name is None:
        chosen = SUFFIXES.get(output.suffix.lower(), "")
    if chosen not in FORMATS:
        what = f"no format {name}" if name or output is None else f"no format is known for {output.name}"
        raise QueryError(what, hint=f"--format {'|'.join(FORMATS)}")
    if chosen == "parquet" and output is None:
        raise QueryError("Parquet is written to a file", hint="-o FILE.parquet")
    return chosen


def write_result(
    result: Result,
    form: str,
    stream: TextIO,
    *,
    width: int | None = None,
    limit: int | None = None,
    query: Query | None = None,
) -> None:
    """Write a result to a text stream; its `count` is then the number of rows written.

    Parameters
    ----------
    result
        Result from `open_result`, opened with `nested_as_json` for json and jsonl.
    form
        `table`, `lines`, `csv`, `json`, `jsonl`, `markdown`, `text` or `agent`; Parquet is written by the engine.
    stream
        Text stream. A file must be opened with `newline=""`, so that lines end in LF everywhere. On a terminal and for
        an agent, characters that could control a terminal are escaped, as tables always do.
    width
        Characters per line of a table; the terminal's width if left out.
    limit
        Maximum number of rows.
    query
        Named query that was run, which chooses the columns of a table.
    """
    if form in ("table", "lines"):
        from warehouse.reader.text_table import write_lines, write_table

        if form == "lines" and not result.is_plan:
            write_lines(result, stream, width=width, limit=limit)
        else:
            write_table(result, stream, width=width, limit=limit, query=query)
        return
    lines = _agent_lines(result, limit) if form == AGENT else _lines(form, result.columns, result.take(limit))
    if stream.isatty() or form == AGENT:
        # A pipe gets exact bytes; a terminal would run control characters from raw files.
        lines = (_escaped(line, as_json=form in JSON_FORMATS) for line in lines)
    stream.writelines(lines)


def _escaped(line: str, *, as_json: bool) -> str:
    """Escape characters that could control a terminal, in JSON with JSON's escapes."""
    if line.removesuffix("\n").isprintable():
        return line
    from warehouse.reader.text_table import escape

    if not as_json:
        return escape(line, keep_lines=True)
    odd = (
        letter if letter.isprintable() or letter == "\n" else encode_basestring_ascii(letter)[1:-1] for letter in line
    )
    return "".join(odd)


def _lines(form: str, columns: Sequence[Column], rows: Iterator[Row]) -> Iterator[str]:
    """Yield the lines of a format for programs.

    Raises
    ------
    QueryError
        If `text`, the values of a single column as lines, is asked of several.
    """
    names = tuple(column.name for column in columns)
    match form:
        case "csv":  # RFC 4180 with LF: NULL is empty, an empty string is two quotes
            yield _csv_line(names)
            yield from map(_csv_line, rows)
        case "json":
            before = "[\n"
            for one in _objects(columns, rows):
                yield before + one
                before = ",\n"
            yield "[]\n" if before == "[\n" else "\n]\n"
        case "jsonl":
            yield from (f"{one}\n" for one in _objects(columns, rows))
        case "markdown":  # of GitHub, with numbers aligned right
            yield _markdown_line(names)
            yield "|" + "|".join(" ---: " if column.kind == "number" else " --- " for column in columns) + "|\n"
            yield from map(_markdown_line, rows)
        case _:
            if len(columns) > 1:
                problem = f"text is the lines of one column, and the answer has {len(columns)}"
                raise QueryError(problem, hint="--format csv")
            yield from (f"{value or ''}\n" for (value,) in rows)


def _csv_line(row: Row) -> str:
    return ",".join(map(csv_field, row)) + "\n"


def csv_field(value: str | None) -> str:
    """Quote a field, byte-identical to the engine's `COPY ... TO (FORMAT csv)`.

    >>> csv_field("a,b"), csv_field(""), csv_field(None)
    ('"a,b"', '""', '')
    """
    if value is None:
        return ""
    if not value or _CSV_QUOTED.search(value):
        return '"' + value.replace('"', '""') + '"'
    return value


def _objects(columns: Sequence[Column], rows: Iterator[Row]) -> Iterator[str]:
    keys = [encode_basestring(column.name) + ": " for column in columns]
    encode = [_ENCODERS[column.kind] for column in columns]
    for row in rows:
        fields = (
            key + ("null" if value is None else code(value)) for key, code, value in zip(keys, encode, row, strict=True)
        )
        yield "{" + ", ".join(fields) + "}"


def _number(text: str) -> str:
    return "null" if text in NOT_JSON else text


def _json(text: str) -> str:
    """Replace NaN and Infinity, which JSON does not support, by null, and join lines."""
    return _NOT_JSON_INSIDE.sub(lambda match: match[0] if match[0][0] == '"' else "null", text).replace("\n", " ")


_ENCODERS: dict[str, Callable[[str], str]] = {
    "number": _number,
    "boolean": str,
    "json": _json,
    "text": encode_basestring,
}


def _markdown_line(row: Row) -> str:
    return "| " + " | ".join((value or "").translate(_MARKDOWN) for value in row) + " |\n"


def check_output(output: Path, target: Path) -> None:
    """Refuse an output file that cannot be written or is inside the target."""
    if output.is_dir():
        raise QueryError(f"{output} is a folder", hint="-o FILE")
    if not output.absolute().parent.is_dir():
        raise QueryError(f"{output} cannot be written: its folder does not exist")
    refuse_in_target(output, target)


def refuse_in_target(place: Path, target: Path) -> None:
    """Raise QueryError if a path lies in the target."""
    # Resolved, as a link may lead into the target.
    if place.resolve().is_relative_to(target.resolve()):
        raise QueryError(
            f"{place} lies in the target, which only `warehouse build` writes", hint="choose another place"
        )


@contextmanager
def open_sink(output: Path | None, stream: TextIO) -> Iterator[TextIO]:
    """Open the output for text; a file is replaced at the end."""
    if output is None:
        yield stream
        return
    with output_errors(output), replacing(output) as path, path.open("w", encoding="utf-8", newline="") as file:
        yield file


@contextmanager
def output_errors(output: Path) -> Iterator[None]:
    """Raise QueryError if the output cannot be written."""
    try:
        yield
    except BrokenPipeError:  # the reader of a pipe has seen enough
        raise
    except OSError as error:
        raise QueryError(f"{output} cannot be written: {error.strerror}") from error


AGENT = "agent"
"""Name of the format."""
VARIABLES = ("AI_AGENT", "AGENT", "CLAUDECODE", "CODEX_CI", "CURSOR_AGENT", "GEMINI_CLI", "COPILOT_AGENT")
"""Variables that coding agents set for the commands that they run. An empty one does not count."""
SWITCH = "DUCKDB_AGENT_MODE"
"""Variable that switches the mode: 1 on, 0 off; any other value leaves it to the others."""
# With its notes, an answer through `warehouse mcp` then has at most 20,000 characters
# (warehouse/cli/agent_commands.py).
MOST_ROWS, MOST_CHARACTERS, MOST_IN_CELL = 200, 18_000, 500


def is_agent() -> bool:
    """Return True if the environment is that of a coding agent, or asks for agent mode."""
    switch = os.environ.get(SWITCH)
    return switch == "1" if switch in ("0", "1") else any(os.environ.get(name) for name in VARIABLES)


def _agent_lines(result: Result, limit: int | None) -> Iterator[str]:
    """Yield the lines of an answer: the header, the rows, and the number of rows.

    Parameters
    ----------
    result
        The answer.
    limit
        Number of rows; by default as many as fit into 200 rows and 18,000 characters. Up to 100,000 others are counted.
    """
    names = [column.name for column in result.columns]
    described = column_meanings(result.connection.cursor(), result.statement.tables, names)
    header = [f"{one.name}:{one.type}{_unit(unit)}" for one, (unit, _) in zip(result.columns, described, strict=True)]
    first = _markdown_line(tuple(header))
    yield first
    yield "|" + "---|" * len(names) + "\n"
    shown = 0
    characters = len(first)
    for row in result.take(limit or MOST_ROWS):
        text = _markdown_line(tuple(map(_cell, row)))
        characters += len(text)
        if limit is None and characters > MOST_CHARACTERS:
            break
        shown += 1
        yield text
    # The rows that did not fit are counted from the same stream: the query runs once. Those beyond a limit are not.
    of = total(result.count, result.rows if limit is None else iter(()))
    yield f"first {shown:,} of {of} rows\n" if of != f"{shown:,}" else f"{shown:,} row{'' if shown == 1 else 's'}\n"


def error_line(error: WarehouseError) -> str:
    r"""Return an error as one line of JSON, with the keys of DuckDB, and with its place and hint if it has them.

    >>> from warehouse.base.errors import QueryError
    >>> error_line(QueryError("no table x", hint="nearest: y"))
    '{"exception_type": "Query", "exception_message": "no table x", "hint": "nearest: y"}\n'
    """
    found = {
        "exception_type": type(error).__name__.removesuffix("Error"),
        "exception_message": " ".join([error.message, *error.details]),
        "position": str(error.source[1]) if error.source else "",
        "place": str(error.place or ""),
        "hint": error.hint or "",
    }
    return json.dumps({key: text for key, text in found.items() if text}, ensure_ascii=False) + "\n"


def _unit(unit: str | None) -> str:
    return "" if unit in (None, COUNT) else " [share of 1]" if unit == SHARE else f" [{unit}]"


def _cell(value: str | None) -> str:
    if value is None:
        return "NULL"
    over = len(value) - MOST_IN_CELL
    return f"{value[:MOST_IN_CELL]}…(+{over:,} characters)" if over > 0 else value


# No file of the engine's own: `replacing` has one already, and only its path is allowed.
OPTIONS = "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880, USE_TMP_FILE false"
_EXACT = {
    "hugeint": "DECIMAL(38, 0)",
    "uhugeint": "DECIMAL(38, 0)",
    "interval": "VARCHAR",
    "time with time zone": "VARCHAR",
    "bignum": "VARCHAR",
    "bit": "VARCHAR",
    "union": "VARCHAR",
}
"""Casts for types that the Parquet writer would silently round or change. Numbers too long for DECIMAL fail."""


def copy_to_parquet(
    connection: startup.duckdb.DuckDBPyConnection,
    statement: Statement,
    parameters: Mapping[str, object],
    path: Path,
    *,
    limit: int | None = None,
) -> int:
    """Write the rows of a checked SELECT to a new file and return their number."""
    if statement.kind != "SELECT":
        raise QueryError(f"what {statement.kind} says is no table for Parquet", hint="--format csv")
    used = {name: value for name, value in parameters.items() if name in statement.parameters}
    cursor = connection.execute(wrap(statement, "LIMIT 0"), used)
    columns = ", ".join(
        # By position, as an answer may have a name twice.
        f"{exact(f'#{position}', kind)} AS {identifier(name)}"
        for position, (name, kind, *_) in enumerate(cursor.description, start=1)
    )
    source = wrap(statement, f"SELECT {columns}" + (f" LIMIT {limit:d}" if limit is not None else ""))
    cursor = connection.execute(f"COPY ({source}) TO {literal(str(path))} ({OPTIONS})", used)
    return int(cursor.fetchall()[0][0])


def exact(reference: str, declared: startup.duckdb.sqltypes.DuckDBPyType) -> str:
    """Return SQL that casts a column to a type that Parquet supports without loss."""
    target = _exact_type(declared)
    return f"CAST({reference} AS {target})" if target != str(declared) else reference


def _exact_type(declared: startup.duckdb.sqltypes.DuckDBPyType) -> str:
    if declared.id in _EXACT:
        return _EXACT[declared.id]
    if declared.id == "list":
        return f"{_exact_type(declared.children[0][1])}[]"  # type: ignore[arg-type]
    return str(declared)
