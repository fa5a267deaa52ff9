"""Volatile (non-deterministic) expressions of a SELECT: clock, random numbers, direct file access, unordered LIMIT.

Every build rebuilds a model with a volatile expression. The expressions are found in DuckDB's serialized tree. A few
searches of its text first exclude most SELECTs.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warehouse.base.startup import regex

_FUNCTIONS = """
    age ago current_connection_id current_localtime current_localtimestamp current_query current_query_id
    current_setting current_transaction_id currval gen_random_uuid get_current_time get_current_timestamp
    getvariable nextval now pg_conf_load_time pg_postmaster_start_time random setseed setval sleep_ms today
    transaction_timestamp txid_current uuid uuidv4 uuidv7 write_log
"""
FUNCTIONS = frozenset(_FUNCTIONS.split())
"""Functions that DuckDB calls volatile or constant within a query, and some that it does not; a test compares."""
KEYWORDS = frozenset({"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"})
"""Functions without parentheses, which are columns in the tree."""
TABLES = regex(r"^(read_\w+|\w+_scan|glob|sniff_csv|parquet_\w+|duckdb_\w+|pragma_\w+|query|query_table)$")
"""Table functions that read data outside the fingerprint."""
_CALLED = regex(r'"function_name":"(\w+)"')
_NAMED = regex(r'"column_names":\["(\w+)"\]')
_FILE = regex(r'"schema_name":"","table_name":"\w*[^\w"]')
_LIMITS = ("LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER")


def volatile(serialized: str, tree: Any) -> tuple[tuple[str, int | None], ...]:
    """Return the volatile expressions of a SELECT as written in SQL, each with its byte offset."""
    return tuple(dict.fromkeys(_found(tree, None))) if _is_suspect(serialized) else ()


def _is_suspect(serialized: str) -> bool:
    """Return True if the text of a tree may have a volatile expression. Takes a tenth of the time of a tree walk."""
    called = {name.lower() for name in _CALLED.findall(serialized)}
    named = {name.lower() for name in _NAMED.findall(serialized)}
    return bool(
        not FUNCTIONS.isdisjoint(called)
        or not KEYWORDS.isdisjoint(named)
        or any(map(TABLES.match, called))
        or '"sample":{' in serialized
        or '"type":"LIMIT' in serialized
        or _FILE.search(serialized)
    )


def _found(node: Any, at: int | None) -> Iterator[tuple[str, int | None]]:
    if isinstance(node, list):
        for item in node:
            yield from _found(item, at)
    if not isinstance(node, dict):
        return
    at = node["query_location"] if node.get("query_location", 2**64) < 2**63 else at
    name = str(node.get("function_name") or "").lower()
    if name in FUNCTIONS or (name and TABLES.match(name)):
        yield f"{name}()", at
    columns = [str(column).lower() for column in node.get("column_names") or ()]
    if len(columns) == 1 and columns[0] in KEYWORDS:
        yield columns[0], at
    if node.get("sample"):
        yield "sample", at
    if re.search(r"\W", node.get("table_name") or "") and not node.get("schema_name"):
        yield f"'{node['table_name']}'", at
    kinds = [one.get("type") for one in node.get("modifiers") or []]
    if any(kind in kinds for kind in _LIMITS) and "ORDER_MODIFIER" not in kinds:
        limit = next(one for one in node["modifiers"] if one.get("type") in _LIMITS).get("limit") or {}
        yield "LIMIT without ORDER BY", limit.get("query_location", at)
    for below in node.values():
        yield from _found(below, at)


def files_named(tree: Any, *, inside: bool = False) -> Iterator[str]:
    """Yield the files that a SELECT reads by name, from its serialized tree; patterns match files as in DuckDB.

    `inside` is True for the arguments of a function that reads files.
    """
    if isinstance(tree, list):
        for item in tree:
            yield from files_named(item, inside=inside)
    elif isinstance(tree, dict):
        inside = inside or bool(TABLES.match(str(tree.get("function_name") or "").lower()))
        name = tree.get("text") if inside and tree.get("kind") == "STRING" else None
        if not tree.get("schema_name"):
            name = name or tree.get("table_name")
        found = glob.glob(str(Path(name or "").expanduser()), recursive=True)  # noqa: PTH207 - of absolute patterns, too
        yield from filter(os.path.isfile, found)
        for below in tree.values():
            yield from files_named(below, inside=inside)


_WORD = regex(rf"\b(?:(?:{'|'.join(sorted(FUNCTIONS))})\(|(?:{'|'.join(sorted(KEYWORDS))})\b)", re.IGNORECASE)


def looks_volatile(condition: str) -> bool:
    """Return True if the text of a check contains a volatile function.

    >>> looks_volatile("published < now()"), looks_volatile("bytes > 0")
    (True, False)
    """
    return _WORD.search(condition) is not None
