"""Output formats for results: `table` and `lines` for people; csv, json, jsonl, markdown, text and agent for programs.

Values arrive as exact text; nothing is parsed or rounded again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import TYPE_CHECKING, TextIO

from warehouse.base.errors import QueryError, nearest_hint
from warehouse.base.startup import regex
from warehouse.reader.result import Result, Row
from warehouse.reader.value_text import NOT_JSON

if TYPE_CHECKING:
    from warehouse.reader.value_text import Column

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
_CSV_QUOTED = regex(r'[",\r\n#]')
_NOT_JSON_INSIDE = regex(r'"(?:[^"\\]|\\.)*"|-?(?:Infinity|NaN)')
_MARKDOWN = str.maketrans(
    {"\\": "\\\\", "|": "\\|", "`": "\\`", "*": "\\*", "<": "&lt;", "&": "&amp;", "\r": None, "\n": "<br>"}
)


def check_format(name: str) -> str:
    """Return the name if it is an output format.

    Raises
    ------
    QueryError
        If there is no such format; the message has the nearest name.
    """
    if name in FORMATS:
        return name
    raise QueryError(f"no format {name}", hint=nearest_hint(name, FORMATS) or f"known formats: {', '.join(FORMATS)}")


def write_result(
    result: Result,
    format: str,  # noqa: A002
    stream: TextIO,
    *,
    width: int | None = None,
    limit: int | None = None,
    escaped: bool | None = None,
) -> int:
    """Write a result to a text stream and return the number of rows written.

    Parameters
    ----------
    result
        Result from `open_result`, opened with `nested_as_json` for json and jsonl.
    format
        `table`, `lines`, `csv`, `json`, `jsonl`, `markdown`, `text` or `agent`; Parquet is written by the engine.
    stream
        Text stream. A file must be opened with `newline=""`, so that lines end in LF everywhere.
    width
        Characters per line of a table; the terminal's width if left out.
    limit
        Maximum number of rows; a table prints the total below.
    escaped
        Escape control characters, as tables always do. If left out, only for a terminal.
    """
    rows = result.rows if limit is None else islice(result.rows, limit)
    if format in ("table", "lines"):
        from warehouse.reader.answer_table import write_lines, write_table

        write = write_lines if format == "lines" and not result.is_plan else write_table
        return write(result, stream, width=width, limit=limit)
    writers: dict[str, Callable[[tuple[Column, ...], Iterator[Row]], Iterator[str]]] = {
        "csv": csv_lines,
        "json": json_lines,
        "jsonl": jsonl_lines,
        "markdown": markdown_lines,
        "text": text_lines,
    }
    counted = _Counted(rows)
    if format == "agent":
        from warehouse.reader.agent import agent_lines

        lines = agent_lines(result, counted, limit, _markdown_line)
    else:
        lines = writers[check_format(format)](result.columns, counted)
    if stream.isatty() if escaped is None else escaped:
        lines = (_escaped(line, as_json=format in JSON_FORMATS) for line in lines)
    stream.writelines(lines)
    return counted.rows


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


class _Counted(Iterator[Row]):
    def __init__(self, rows: Iterator[Row]) -> None:
        self._source = rows
        self.rows = 0

    def __next__(self) -> Row:
        row = next(self._source)
        self.rows += 1
        return row


def csv_lines(columns: tuple[Column, ...], rows: Iterator[Row]) -> Iterator[str]:
    """Yield lines of RFC 4180 with LF: NULL is empty, an empty string is two quotes."""
    yield ",".join(csv_field(column.name) for column in columns) + "\n"
    for row in rows:
        yield ",".join(map(csv_field, row)) + "\n"


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


def json_lines(columns: tuple[Column, ...], rows: Iterator[Row]) -> Iterator[str]:
    """Yield the lines of a JSON array of objects, one object per line."""
    before = "[\n"
    for line in _objects(columns, rows):
        yield before + line
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def jsonl_lines(columns: tuple[Column, ...], rows: Iterator[Row]) -> Iterator[str]:
    """Yield one JSON object per line."""
    for line in _objects(columns, rows):
        yield line + "\n"


def _objects(columns: tuple[Column, ...], rows: Iterator[Row]) -> Iterator[str]:
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


def markdown_lines(columns: tuple[Column, ...], rows: Iterator[Row]) -> Iterator[str]:
    """Yield the lines of a table in GitHub Markdown, with numbers aligned right."""
    yield _markdown_line(column.name for column in columns)
    yield "|" + "|".join(" ---: " if column.kind == "number" else " --- " for column in columns) + "|\n"
    for row in rows:
        yield _markdown_line(row)


def text_lines(columns: tuple[Column, ...], rows: Iterator[Row]) -> Iterator[str]:
    """Yield the values of a single column as lines; NULL is an empty line.

    Raises
    ------
    QueryError
        If the answer has several columns.
    """
    if len(columns) > 1:
        raise QueryError(f"text is the lines of one column, and the answer has {len(columns)}", hint="--format csv")
    for (value,) in rows:
        yield f"{value or ''}\n"


def _markdown_line(values: Iterator[str] | Row) -> str:
    return "| " + " | ".join((value or "").translate(_MARKDOWN) for value in values) + " |\n"
