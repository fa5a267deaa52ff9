"""Completion candidates: commands, schemas, tables, columns by alias, functions, queries and parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.base.startup import regex

if TYPE_CHECKING:
    import duckdb

    from warehouse.reader.named_queries import Query

_WORD = regex(r'[\w."-]*$')
_SOURCE = regex(
    r"\b(?:FROM|JOIN|,)\s+(?P<table>\w+\.\w+)(?:\s+(?:AS\s+)?(?P<alias>(?!(?:ON|USING|WHERE|GROUP|ORDER|LEFT|JOIN|CROSS|"
    r"INNER|LIMIT|SELECT|HAVING|QUALIFY|UNION|WINDOW|ASOF|NATURAL|FULL|RIGHT|SEMI|ANTI|POSITIONAL)\b)\w+))?",
    re.IGNORECASE,
)
_CTE = regex(r"(?:\bWITH|,)\s+(\w+)\s+AS\s*\(", re.IGNORECASE)
_AFTER_SOURCE_WORD = regex(r"\b(?:FROM|JOIN|DESCRIBE|SUMMARIZE)\s+[\w.]*$", re.IGNORECASE)


@dataclass(frozen=True)
class Candidate:
    """Completion candidate."""

    text: str
    start: int
    """Number of characters before the cursor that the candidate replaces."""
    kind: str
    """One of `table`, `column`, `function` ..., shown beside the candidate."""
    about: str = ""


@dataclass(frozen=True)
class Catalog:
    """Names of a warehouse, for completion."""

    tables: Mapping[str, Mapping[str, str]]
    """Columns and their types, by full table name."""
    functions: Sequence[str]
    keywords: Sequence[str]
    queries: Mapping[str, Query]
    commands: Mapping[str, str]
    """Description of each `\\command`."""


def read_catalog(
    connection: duckdb.DuckDBPyConnection, queries: Mapping[str, Query], commands: Mapping[str, str]
) -> Catalog:
    """Read the names from the engine, once per session."""
    tables: dict[str, dict[str, str]] = {}
    for table, column, kind in connection.execute(
        "SELECT schema_name || '.' || table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE NOT internal ORDER BY 1, column_index"
    ).fetchall():
        tables.setdefault(table, {})[column] = kind
    functions = connection.execute(
        "SELECT DISTINCT function_name FROM duckdb_functions() "
        "WHERE regexp_full_match(function_name, '[a-z]\\w+') ORDER BY 1"
    ).fetchall()
    keywords = connection.execute(
        "SELECT upper(keyword_name) FROM duckdb_keywords() WHERE keyword_category <> 'unreserved' ORDER BY 1"
    ).fetchall()
    return Catalog(tables, [row[0] for row in functions], [row[0] for row in keywords], queries, commands)


def complete(text: str, catalog: Catalog) -> Iterator[Candidate]:
    """Yield candidates for the text before the cursor, the likeliest first."""
    line = text.lstrip()
    if line.startswith("\\"):
        yield from _of_command(line, catalog)
        return
    word = (_WORD.search(text) or [""])[0]
    owner, dot, begun = word.rpartition(".")
    sources = _sources(text)
    if dot:
        yield from _after_dot(owner, begun, sources, catalog)
        return
    if _AFTER_SOURCE_WORD.search(text):
        ctes = [match[1] for match in _CTE.finditer(text)]
        yield from _matching(word, ((name, "step", "") for name in ctes))
        schemas = sorted({name.partition(".")[0] for name in catalog.tables})
        yield from _matching(word, ((schema, "schema", "") for schema in schemas))
        yield from _matching(word, ((name, "table", "") for name in catalog.tables), anywhere=True)
        return
    if not word:
        return
    read = set(sources.values())
    columns = {name: kind for table in catalog.tables if table in read for name, kind in catalog.tables[table].items()}
    yield from _matching(word, ((name, "column", kind) for name, kind in columns.items()))
    yield from _matching(word, ((alias, "alias", table) for alias, table in sources.items() if alias != table))
    yield from _matching(word, ((name, "schema", "") for name in sorted({t.partition(".")[0] for t in catalog.tables})))
    yield from _matching(word, ((name, "function", "") for name in catalog.functions))
    yield from _matching(word.upper(), ((name, "keyword", "") for name in catalog.keywords))


def _of_command(line: str, catalog: Catalog) -> Iterator[Candidate]:
    command, space, rest = line.partition(" ")
    if not space:
        yield from _matching(line, ((name, "command", about) for name, about in catalog.commands.items()))
        return
    words = rest.split(" ")
    word = words[-1]
    if command in ("\\d", "\\lineage"):
        table, dot, column = word.rpartition(".")
        if dot and table in catalog.tables:
            yield from _matching(column, ((name, "column", kind) for name, kind in catalog.tables[table].items()))
        else:
            yield from _matching(word, ((name, "table", "") for name in catalog.tables), anywhere=True)
    elif command == "\\run" and len(words) == 1:
        yield from _matching(
            word, ((name, "query", query.about) for name, query in catalog.queries.items()), anywhere=True
        )
    elif command == "\\run" and word.startswith("-") and words[0] in catalog.queries:
        parameters = catalog.queries[words[0]].parameters.values()
        yield from _matching(word, ((f"--{p.name.replace('_', '-')}", p.type, p.about) for p in parameters))


def _after_dot(owner: str, begun: str, sources: Mapping[str, str], catalog: Catalog) -> Iterator[Candidate]:
    table = sources.get(owner, owner)
    if table in catalog.tables:
        yield from _matching(begun, ((name, "column", kind) for name, kind in catalog.tables[table].items()))
        return
    short = [name.partition(".")[2] for name in catalog.tables if name.startswith(f"{owner}.")]
    yield from _matching(begun, ((name, "table", "") for name in short))


def _sources(text: str) -> dict[str, str]:
    """Return the tables that the text names, by alias, short name and full name."""
    found: dict[str, str] = {}
    for match in _SOURCE.finditer(text):
        table = match["table"]
        found |= {table: table, table.partition(".")[2]: table}
        if match["alias"]:
            found[match["alias"]] = table
    return found


def _matching(begun: str, names: Iterator[tuple[str, str, str]], *, anywhere: bool = False) -> Iterator[Candidate]:
    wanted = begun.lower()
    for name, kind, about in names:
        lower = name.lower()
        if lower.startswith(wanted) or (anywhere and len(wanted) > 1 and wanted in lower):
            yield Candidate(name, len(begun), kind, about)
