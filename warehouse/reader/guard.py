"""Read-only guard for SQL statements.

A read-only connection is not enough: `COPY ... TO` overwrites any file below the readable folders. `COPY` also works
inside `EXPLAIN ANALYZE` and inside `WITH name AS (COPY ...)`, whose statement is a SELECT. So the engine parses each
statement, and its syntax tree is checked before anything runs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from warehouse.base import startup
from warehouse.base.errors import QueryError
from warehouse.reader.query_errors import from_engine, located
from warehouse.store.manifest import MACROS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

QUERY_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
"""Node types of a query tree that only read; the others are COPY, INSERT, UPDATE, DELETE."""

TABLE_FUNCTIONS = startup.regex(
    r"read_\w+|parquet_\w+|pragma_\w+|duckdb_(?!secrets$|logs)\w+|json_each|json_tree|range|generate_series|unnest"
    r"|repeat|repeat_row|glob|sniff_csv|summary|histogram|histogram_values|icu_calendar_names|pg_timezone_names"
)
"""Table functions that only read. The others may write a log, run hidden SQL or take a memory address."""

REFUSED_FUNCTIONS = frozenset({"nextval", "setval", "currval", "write_log", "getenv"})
"""Scalar functions with side effects or with access outside the warehouse."""

PRAGMAS = frozenset(
    {"table_info", "show_tables", "show_tables_expanded", "show_databases", "database_list", "database_size",
     "storage_info", "version", "platform", "collations"}
)  # fmt: skip

# Bytes, as the engine counts positions in bytes.
_WORD = startup.regex(rb"\w+|.")
_LONGEST_EXPLAIN = 20
_WITHOUT_FILES = "only the target and the data folders (-d) can be read"
_HINTS = {
    "COPY": "warehouse sql -o FILE writes the rows of a query to a file",
    "EXPORT": "`warehouse export DIR` writes tables to files",
    "CREATE": "WITH name AS (SELECT ...) names a step of a query; a file in models/ makes a table",
    "SET": "settings are fixed for a query; warehouse sql has --memory and --threads",
    "USE": "write schema.table",
    "CALL": "write SELECT * FROM function(...)",
    "PRAGMA": f"known pragmas: {', '.join(sorted(PRAGMAS))}; else write SELECT * FROM duckdb_settings()",
    "PREPARE": "write $name in the query and give --param name=value",
    "EXECUTE": "write the query itself, with $name, and give --param name=value",
    "PIVOT": "list the values: PIVOT table ON column IN ('a', 'b') USING sum(x)",
    "ATTACH": _WITHOUT_FILES,
    "DETACH": _WITHOUT_FILES,
    "INSTALL": "the engine has all that it needs",
    "LOAD": "the engine has all that it needs",
}
_READ = "write a SELECT"
_ALL_TABLES = (
    "SELECT schema || '.' || name AS name FROM (SHOW ALL TABLES) WHERE database = current_database() ORDER BY ALL"
)
"""Replacement for `SHOW TABLES`, which would find nothing: all tables of the warehouse are in schemas."""
_PIVOTS = frozenset({"PIVOT", "PIVOT_WIDER", "FROM", "SELECT", "WITH", "EXPLAIN", "MULTI"})


class Statement(NamedTuple):
    """Statement that only reads."""

    text: str
    """Statement without the semicolon and the text after it."""
    start: int
    """Start of `text` in the whole script, in bytes, as the engine counts positions."""
    kind: str
    """`SELECT`, `EXPLAIN` or `PRAGMA`."""
    parameters: frozenset[str]
    """Names of its `$name` parameters."""
    tables: frozenset[str] = frozenset()
    """Tables that it names, as `schema.table`. CTEs have no schema: `.step`."""


def check_read_only(connection: duckdb.DuckDBPyConnection, sql: str, *, path: Path | None = None) -> list[Statement]:
    """Return the statements of a script if each of them only reads; nothing is run.

    Parameters
    ----------
    connection
        Any connection; its engine is the parser.
    sql
        One or more statements.
    path
        File of the script, for error messages.

    Raises
    ------
    QueryError
        If a statement or function does more than read. The message has its position and what to use instead.
    """
    check_text(sql, "the query")
    try:
        found = connection.extract_statements(sql)
    except startup.duckdb.Error as error:
        raise from_engine(error, sql, connection, path=path) from error
    checker = _Checker(connection, sql, path)
    statements = []
    at = 0
    for statement in found:
        # not found if the engine replaced other spaces by plain ones: start at the end of the last one
        at = max(at, sql.find(statement.query, at))
        start = len(sql[:at].encode())
        names = frozenset(map(str, statement.named_parameters))
        # `start` counts bytes and `at` counts letters: the engine has the one, `str.find` the other.
        checked = Statement(_listing(_body(statement.query)), start, _type(statement), names)
        statements.append(checked._replace(tables=frozenset(checker.check(checked))))
        at += len(statement.query)
    return statements


def check_text(text: str, what: str) -> None:
    """Refuse text from a terminal or shell that is not valid UTF-8.

    Raises
    ------
    QueryError
        If the text contains bytes that are not UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise QueryError(f"{what} is not UTF-8 text") from error


class _Checker(NamedTuple):
    connection: duckdb.DuckDBPyConnection
    sql: str
    path: Path | None

    def check(self, statement: Statement) -> set[str]:
        """Refuse a statement that does more than read; return the tables that it names."""
        match statement.kind:
            case "SELECT":
                return self.check_tree(statement)
            case "EXPLAIN":
                return self.check(self.explained(statement))
            case "PRAGMA" if _is_known_pragma(statement.text):
                return set()
            case _:
                raise self.refused(statement)

    def check_tree(self, statement: Statement) -> set[str]:
        tables = set()
        row = self.connection.execute("SELECT json_serialize_sql($1)", [statement.text]).fetchall()[0]
        try:
            tree = json.loads(row[0])
        except RecursionError as error:
            raise QueryError("the query is nested too deeply to be checked") from error
        if tree["error"]:  # a SELECT that the engine cannot describe: refuse, as it was not checked
            raise QueryError(f"this query cannot be checked: {tree.get('error_message')}", hint=_READ)
        for node in _nodes(tree["statements"]):
            kind = str(node.get("type"))
            if ("cte_map" in node or kind.endswith("_NODE")) and kind not in QUERY_NODES:
                word = kind.partition("_")[0]
                raise QueryError(
                    f"{word} inside WITH is refused: a warehouse is only read", hint=_HINTS.get(word, _READ)
                )
            if _lower(node.get("function_name")) in REFUSED_FUNCTIONS:
                raise self.refused_function(node, node, statement)
            if kind == "BASE_TABLE":
                tables.add(f"{node.get('schema_name', '')}.{node.get('table_name', '')}")
            function = node.get("function")
            if kind != "TABLE_FUNCTION" or not isinstance(function, dict):
                continue
            if _lower(function.get("schema")) == MACROS:
                tables |= self.check_macro(_lower(function.get("function_name")))
            elif not TABLE_FUNCTIONS.fullmatch(_lower(function.get("function_name"))):
                raise self.refused_function(function, node, statement)
        return tables

    def check_macro(self, name: str) -> set[str]:
        """Refuse the macro of a named query if its SELECT does more than read; return the tables that it names."""
        found = self.connection.execute(
            "SELECT macro_definition FROM duckdb_functions() WHERE schema_name = $1 AND function_name = $2",
            [MACROS, name],
        ).fetchall()
        tables = set()
        for (text,) in found:
            # A project's own named query may hold any SQL, so its macro is no exception.
            tables |= _Checker(self.connection, text, None).check_tree(Statement(text, 0, "SELECT", frozenset()))
        return tables

    def explained(self, statement: Statement) -> Statement:
        """Return the statement after EXPLAIN: the longest suffix that is a statement of its own.

        Options before the statement (`ANALYZE`, `(FORMAT json)`) never parse together with it.
        """
        text = statement.text.encode()
        # Options of EXPLAIN are a few words, and each try parses the whole rest.
        for offset in _words(statement.text)[1:_LONGEST_EXPLAIN]:
            rest = text[offset:].decode()
            try:
                found = self.connection.extract_statements(rest)
            except startup.duckdb.Error:
                continue
            inner = Statement(rest, statement.start + offset, _type(found[0]), statement.parameters)
            if len(found) == 1 and inner.kind == "SELECT":
                return inner
            raise self.refused(inner, within="EXPLAIN ")
        raise self.refused(statement)

    def refused(self, statement: Statement, within: str = "") -> QueryError:
        offset = next(iter(_words(statement.text)), 0)
        first = _WORD.match(statement.text.encode(), offset)
        # A match of `.` may be one byte of a longer letter.
        name = first.group().decode(errors="replace").upper() if first else statement.kind
        if statement.kind == "MULTI" and name in _PIVOTS:
            message, hint = (
                "PIVOT without a list of values is refused: it makes a type first",
                _HINTS["PIVOT"],
            )
        else:
            message = f"{within}{name} is refused: a warehouse is only read"
            hint = _HINTS.get(name) or _HINTS.get(statement.kind) or _READ
        length = len(first.group()) if first else 1
        return located(message, self.sql, statement.start + offset, length=length, path=self.path, hint=hint)

    def refused_function(
        self, function: dict[str, object], node: dict[str, object], statement: Statement
    ) -> QueryError:
        name = _lower(function.get("function_name"))
        message = f"the function {name} is refused: it does more than read"
        hint = "write its query or table into the query itself" if name.startswith("query") else None
        offset = node.get("query_location")
        # A node without a place has 2^64 - 1 there.
        if not isinstance(offset, int) or offset >= len(statement.text.encode()):
            return QueryError(message, hint=hint)
        return located(message, self.sql, statement.start + offset, path=self.path, hint=hint)


def _listing(text: str) -> str:
    """Return the statement; replace `SHOW TABLES` by a query that lists the tables of all schemas."""
    return _ALL_TABLES if text.lower().split(maxsplit=2) == ["show", "tables"] else text


def _nodes(tree: object) -> Iterator[dict[str, object]]:
    # Not recursive: a long chain of AND is a tree deeper than Python's stack.
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _is_known_pragma(text: str) -> bool:
    source = text.encode()
    words = [_WORD.match(source, offset) for offset in _words(text)]
    names = [word.group().decode().lower() for word in words if word]
    # A second bracket would begin an expression that nobody has checked.
    return names[0] == "pragma" and names[1] in PRAGMAS and names.count("(") <= 1


def _words(text: str) -> list[int]:
    """Return the start of each token in bytes, without comments."""
    return [offset for offset, kind in startup.duckdb.tokenize(text) if kind != startup.duckdb.token_type.comment]


def _body(query: str) -> str:
    """Remove the semicolon and the comments after it: inside brackets they would end the query."""
    text = query.encode()
    for offset in _words(query):
        if text[offset : offset + 1] == b";":
            return text[:offset].decode()
    return query


def _type(statement: duckdb.Statement) -> str:
    try:
        return statement.type.name
    except ValueError:  # a statement type that the Python module does not name
        return "OTHER"


def _lower(name: object) -> str:
    return str(name or "").lower()
