"""What DuckDB says of an error, read from its text or its JSON: the only place that knows DuckDB's wording."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from warehouse.base.startup import regex

if TYPE_CHECKING:
    from collections.abc import Mapping

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


class Said(NamedTuple):
    """What one error of DuckDB says."""

    message: str
    """One sentence, without advice; of a line of a CSV file: `file:line: what`."""
    advice: str | None = None
    """The lines below the first, on one line."""
    kind: str = "column"
    """What `name` is meant to be: `column`, `function`, `type` or `relation`."""
    name: str | None = None
    """The name that does not exist; nothing if the error is another one."""
    table: str | None = None
    """The table or alias that lacks the column `name`, where DuckDB says so."""
    candidates: tuple[str, ...] = ()
    """Names that DuckDB offers instead."""
    position: int | None = None
    """Byte of the statement where the error stands."""
    length: int = 0
    """Bytes of the word there; 0 where unknown."""
    of_text: bool = False
    """True if `position` is one of the statement that was sent, never one of a view that it reads."""
    no_access: str | None = None
    """The file outside the allowed folders."""
    no_files: str | None = None
    """The path or pattern that matches no file."""
    unset: tuple[str, ...] = ()
    """Parameters without a value."""


def read(error: Exception) -> Said:
    """Read an error of DuckDB, which Arrow may have handed on."""
    text = str(error)
    start = text.find("{")
    try:
        said = json.loads(text[start:]) if start >= 0 else {}
    except json.JSONDecodeError:
        said = {}
    message = str(said.get("exception_message") or _without_statement(text))
    first, advice = _sentence(message)
    kind, name, table = _missing(said, message)
    denied, no_files = _NO_ACCESS.search(message), _NO_FILES.search(message)
    position = str(said.get("position", ""))
    length = str(said.get("location", "")).strip("[]").rpartition(",")[2]
    return Said(
        first,
        advice,
        kind,
        name,
        table,
        _candidates(said, message),
        int(position) if position.isdigit() else None,
        int(length) if length.isdigit() else 0,
        said.get("exception_type") in _POSITIONED,
        denied["path"] if denied else None,
        no_files["path"] if no_files else None,
        _unset(message),
    )


def sentence(error: Exception) -> str:
    """Return what an error of DuckDB says, without its advice."""
    return read(error).message


def is_full_disk(message: str) -> bool:
    """Return True if the message says that a disk is full.

    >>> is_full_disk('Could not write file "/mnt/x.parquet": No space left on device')
    True
    """
    return bool(_DISK_FULL.search(message))


def _without_statement(text: str) -> str:
    """Cut off the kind of exception, and the statement that DuckDB repeats below its message."""
    return _EXCEPTION.sub("", text).partition("\n\nLINE ")[0]


def _sentence(text: str) -> tuple[str, str | None]:
    """Return the first line and the other lines; of a line of a CSV file, where and what.

    >>> _sentence("CSV Error on Line: 2\\nOriginal Line: x\\nExpected: 2 Found: 1\\n\\n  file = /a.csv\\n")
    ('/a.csv:2: Expected: 2 Found: 1', None)
    """
    if found := _CSV_ERROR.search(text):
        return f"{found['file']}:{found['line']}: {found['what']}", None
    first, *others = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    return first, " ".join(others) or None


def _missing(said: Mapping[str, str], message: str) -> tuple[str, str | None, str | None]:
    """Return what kind of name is missing, the name, and the table that lacks it."""
    if found := _NO_COLUMN.search(message):
        return "column", found["name"], found["table"]
    kind = _KINDS.get(str(said.get("type", "")).rpartition(" ")[2], "column")
    if "because schema" in message:
        kind = "relation"
    missing = said.get("error_subtype") == "COLUMN_NOT_FOUND" or kind != "column"
    return kind, (said.get("name") or None) if missing else None, None


def _candidates(said: Mapping[str, str], message: str) -> tuple[str, ...]:
    names = [name.strip(' "').removeprefix("main.") for name in str(said.get("candidates", "")).split(",")]
    if not said.get("candidates"):  # of a column of an alias the names stand in the text
        names = re.findall(r'"(\w+)"', message.partition("Candidate bindings:")[2])
    return tuple(name for name in names if name)


def _unset(message: str) -> tuple[str, ...]:
    if "Values were not provided" not in message:
        return ()
    return tuple(name.strip() for name in message.rpartition(":")[2].split(","))
