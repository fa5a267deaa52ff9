"""Translation of input known from psql, DuckDB's shell and other shells to commands of this shell."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError
from warehouse.reader.named_queries import find_query

if TYPE_CHECKING:
    from warehouse.reader.named_queries import Query

WORDS = {"help": "\\?", "exit": "\\q", "quit": "\\q"}
"""One-word lines, with or without a semicolon."""
COMMANDS = {
    "\\dt": "\\d",
    "\\h": "\\?",
    "\\help": "\\?",
    ".tables": "\\d",
    ".schema": "\\d",
    ".help": "\\?",
    ".exit": "\\q",
    ".quit": "\\q",
    ".timer": "\\timing",
    ".read": "\\i",
    ".output": "\\o",
    ".mode": "\\format",
}


def is_command(line: str) -> bool:
    """Return True if a line is a command, which needs no semicolon."""
    return line.startswith(("\\", ".", ":")) or line.rstrip("; ").lower() in WORDS


def as_command(line: str, queries: Mapping[str, Query]) -> str:
    """Return a line as the command that it means; SQL is unchanged.

    >>> as_command(".tables metrics", {}), as_command("quit;", {}), as_command("SELECT 1;", {})
    ('\\\\d metrics', '\\\\q', 'SELECT 1;')

    Raises
    ------
    QueryError
        For `:NAME VALUE ...`, if there is no such query, or it has fewer parameters.
    """
    if (word := line.rstrip("; ").lower()) in WORDS:
        return WORDS[word]
    if line.startswith(":"):
        return _named(line.removeprefix(":").rstrip("; "), queries)
    name, blank, rest = line.partition(" ")
    return COMMANDS.get(name.rstrip(";"), name) + blank + rest


def _named(text: str, queries: Mapping[str, Query]) -> str:
    """Return `nic GPU-35` as `\\run nic --server GPU-35`: values are assigned to parameters in order."""
    name, _, rest = text.partition(" ")
    query = find_query(name, queries)
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise QueryError(f"{error} in: {text}") from error
    free = [one.name for one in sorted(query.parameters.values(), key=lambda one: not one.required)]
    arguments: list[str] = []
    while words:
        word = words.pop(0)
        if word.startswith("--"):
            arguments += [word] if "=" in word else [word, *words[:1]]
            words = words if "=" in word else words[1:]
            continue
        if not free:
            raise QueryError(f"{name} takes {len(query.parameters)} values", hint=f"\\run {name} --NAME VALUE")
        arguments += [f"--{free.pop(0)}", word]
    return f"\\run {name} {shlex.join(arguments)}".rstrip()
