"""What DuckDB says of an error, as one sentence with its place."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from warehouse.base.startup import regex
from warehouse.engine.base import EngineError

if TYPE_CHECKING:
    import duckdb

_CSV_ERROR = regex(
    r"CSV Error on Line: (?P<line>\d+)\n(?:Original Line: .*\n)?(?P<what>.+)\n(?s:.*)^ *file = (?P<file>.+)$",
    re.MULTILINE,
)
_KINDS = {"Function": "function", "Type": "type", "Table": "relation"}


def sentence(error: duckdb.Error) -> str:
    """What an error of DuckDB says, without its advice."""
    return engine_error(error, "", 0).message


def _sentence(text: str) -> str:
    """What an error of DuckDB says, without its advice; of a line of a CSV file, which.

    >>> _sentence("CSV Error on Line: 2\\nOriginal Line: x\\nExpected: 2 Found: 1\\n\\n  file = /a.csv\\n")
    '/a.csv:2: Expected: 2 Found: 1'
    """
    found = _CSV_ERROR.search(text)
    return f"{found['file']}:{found['line']}: {found['what']}" if found else text.strip().partition("\n")[0]


def engine_error(error: Exception, sql: str, prefix: int) -> EngineError:
    """DuckDB's error, which Arrow may have handed on, as ours; its JSON form holds the place as a byte of the SQL."""
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
