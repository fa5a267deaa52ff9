"""Errors of DuckDB, parsed from text or JSON. No other module depends on DuckDB's wording."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from warehouse.base.errors import WarehouseError
from warehouse.base.startup import regex

_CSV_ERROR = regex(
    r"CSV Error on Line: (?P<line>\d+)\n(?:Original Line: .*\n)?(?P<what>.+)\n(?s:.*)^ *file = (?P<file>.+)$",
    re.MULTILINE,
)
_NO_COLUMN = regex(r'"(?P<table>[^"]+)" does not have a column named "(?P<name>[^"]+)"')
_NO_ACCESS = regex(r'Cannot access (?:file|directory) "(?P<path>.+?)"')
_NO_FILES = regex(r'No files found that match the pattern "(?P<path>.+?)"')
_EXCEPTION = regex(r"^(?:[A-Z]\w*(?: to)? )+Error: ")
_DISK_FULL = regex(r"No space left on device|Disk quota exceeded")
_KINDS = {"Function": "function", "Type": "type", "Table": "relation", "View": "relation"}
_POSITIONED = frozenset({"Parser", "Binder", "Catalog"})


class ErrorDetails(NamedTuple):
    """Parsed error message of DuckDB."""

    message: str
    """One sentence, without advice; for a CSV line `file:line: problem`."""
    advice: str | None = None
    """Other lines of the message, joined."""
    kind: str = "column"
    """Kind of the missing `name`: `column`, `function`, `type` or `relation`."""
    name: str | None = None
    """Name that does not exist, if that is the error."""
    table: str | None = None
    """Table or alias that lacks the column `name`, if DuckDB names it."""
    candidates: tuple[str, ...] = ()
    """Names that DuckDB suggests."""
    position: int | None = None
    """Byte offset of the error in the statement."""
    length: int = 0
    """Length of the word at that offset in bytes; 0 if unknown."""
    of_text: bool = False
    """True if `position` refers to the statement itself, not to a view that it reads."""
    no_access: str | None = None
    """File outside the allowed folders."""
    no_files: str | None = None
    """Path or pattern that matches no file."""


class EngineError(WarehouseError):
    """Error of the engine at a model or check; `parsed.position` is a byte offset in its SELECT."""

    def __init__(self, message: str, parsed: ErrorDetails | None = None) -> None:
        super().__init__(message)
        self.parsed = parsed or ErrorDetails(message)


def engine_error(error: Exception, sql: str, prefix: int) -> EngineError:
    """Return an EngineError for DuckDB's error, with its byte offset in `sql`, which was sent after `prefix` bytes."""
    parsed = read(error)
    offset = -1 if parsed.position is None else parsed.position - prefix
    position = offset if 0 <= offset <= len(sql.encode()) else None
    return EngineError(parsed.message, parsed._replace(position=position))


def read(error: Exception) -> ErrorDetails:
    """Parse an error of DuckDB, possibly wrapped by Arrow."""
    text = str(error)
    # Arrow and DuckDB put the class of the error in front of the JSON.
    start = text.find("{")
    try:
        fields = json.loads(text[start:]) if start >= 0 else {}
    except json.JSONDecodeError:
        fields = {}
    # As text, DuckDB repeats the statement below the message.
    message = str(fields.get("exception_message") or _EXCEPTION.sub("", text).partition("\n\nLINE ")[0])
    first, advice = _sentence(message)
    kind, name, table = _missing(fields, message)
    denied, no_files = _NO_ACCESS.search(message), _NO_FILES.search(message)
    position = str(fields.get("position", ""))
    length = str(fields.get("location", "")).strip("[]").rpartition(",")[2]
    return ErrorDetails(
        first,
        advice,
        kind,
        name,
        table,
        _candidates(fields, message),
        int(position) if position.isdigit() else None,
        int(length) if length.isdigit() else 0,
        fields.get("exception_type") in _POSITIONED,
        denied["path"] if denied else None,
        no_files["path"] if no_files else None,
    )


def sentence(error: Exception) -> str:
    """Return the message of an error of DuckDB, without advice."""
    return read(error).message


def is_full_disk(message: str) -> bool:
    """Return True if the message says that a disk is full.

    >>> is_full_disk('Could not write file "/mnt/x.parquet": No space left on device')
    True
    """
    return bool(_DISK_FULL.search(message))


def _sentence(text: str) -> tuple[str, str | None]:
    """Return the first line and the joined other lines; for a CSV error its place and problem.

    >>> _sentence("CSV Error on Line: 2\\nOriginal Line: x\\nExpected: 2 Found: 1\\n\\n  file = /a.csv\\n")
    ('/a.csv:2: Expected: 2 Found: 1', None)
    """
    if found := _CSV_ERROR.search(text):
        return f"{found['file']}:{found['line']}: {found['what']}", None
    first, *others = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    return first, " ".join(others) or None


def _missing(fields: Mapping[str, str], message: str) -> tuple[str, str | None, str | None]:
    """Return the kind of the missing name, the name, and the table that lacks it."""
    if found := _NO_COLUMN.search(message):  # the JSON has neither the column nor the alias
        return "column", found["name"], found["table"]
    kind = _KINDS.get(str(fields.get("type", "")).rpartition(" ")[2], "column")
    if "because schema" in message:  # such an error has no type and no name
        kind = "relation"
    missing = fields.get("error_subtype") == "COLUMN_NOT_FOUND" or kind != "column"
    return kind, (fields.get("name") or None) if missing else None, None


def _candidates(fields: Mapping[str, str], message: str) -> tuple[str, ...]:
    # DuckDB writes the schema before the name of a function.
    names = [name.strip(' "').removeprefix("main.") for name in str(fields.get("candidates", "")).split(",")]
    if not fields.get("candidates"):  # for a column of an alias, the names are only in the text
        names = re.findall(r'"(\w+)"', message.partition("Candidate bindings:")[2])
    return tuple(name for name in names if name)
