"""Named queries: `sql/queries/*.sql`, each with a sentence, typed parameters and one SELECT.

The header has the form of a model's front matter. A parameter is `name: TYPE [= default] meaning`; it is required if it
has no default. Values are bound, never pasted into the text.

Four more keys are for people at a terminal:

- `question`: heading of the query in `--list`.
- `aliases`: other names.
- `answer: [columns]`: columns of a table, in this order.
- `ranked: column desc`: sort order of the rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from warehouse.base.errors import ModelError, Place
from warehouse.base.sql_text import literal, qualified
from warehouse.base.startup import regex
from warehouse.base.yaml_text import NAME, TEXT, Form, checked, keys_of, one_line
from warehouse.store.manifest import MACROS

TYPES = ("VARCHAR", "INTEGER", "BIGINT", "DOUBLE", "TIMESTAMP", "BOOLEAN")
# Texts and comments come first, so that a `$` in them is no parameter.
_TOKEN = regex(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|\$(?P<name>\w+)|\w+""", re.DOTALL)
_PARAMETER = regex(rf"(?P<type>{'|'.join(TYPES)})(?:\s*=\s*(?P<default>'[^']*'|\S+))?\s+(?P<about>\S.*)", re.DOTALL)
_FORMS = {
    "about!": TEXT,
    "question": TEXT,
    "aliases": [TEXT],
    "params": {NAME: Form(str(_PARAMETER.pattern), f"`TYPE = default meaning`; types: {', '.join(TYPES)}")},
    "answer": [TEXT],
    "ranked": Form(r".+ (desc|asc)", "`column desc` or `column asc`"),
}


class Parameter(NamedTuple):
    """Parameter of a named query."""

    name: str
    type: str
    about: str
    required: bool = False
    default: object = None
    """Default value; None is SQL's NULL."""


class Query(NamedTuple):
    """Named query, as defined by its file."""

    name: str
    about: str
    parameters: Mapping[str, Parameter]
    sql: str
    """SELECT, after one newline per header line, so that line numbers match the file."""
    path: Path
    question: str = ""
    """Heading of the query in `sql --list`."""
    aliases: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()
    """Columns of a table, never cut; all columns if empty."""
    ranked: str = ""
    """Sort column and `desc` or `asc`."""


def load_queries(folders: Iterable[Path], names: str = "*") -> dict[str, Query]:
    """Read the queries of these folders, by name; a query of a later folder replaces one of an earlier folder.

    `names` is a glob, to read fewer of them.

    Raises
    ------
    ModelError
        If a header is wrong; the message has file and line.
    """
    found = {path.stem: path for folder in folders for path in sorted(folder.glob(f"{names}.sql"))}
    return {name: read_query(path) for name, path in sorted(found.items())}


def read_query(path: Path) -> Query:
    """Read one query file; the module's docstring describes its form."""
    from warehouse.project.model import read_header, read_source, split_header  # not at the start of every command

    shown = path.name
    header, sql = split_header(read_source(path, shown), shown)
    values = read_header(header, shown)
    keys = checked(values, _FORMS, "the front matter", shown)
    places = keys_of(keys_of(values).get("params"))
    parameters = {
        name: _parameter(name, text, places[name].place(shown)) for name, text in keys.get("params", {}).items()
    }
    return Query(
        path.stem,
        one_line(keys["about"]),
        parameters,
        sql,
        path,
        question=one_line(keys.get("question", "")),
        aliases=tuple(keys.get("aliases", ())),
        answer=tuple(keys.get("answer", ())),
        ranked=keys.get("ranked", ""),
    )


def _parameter(name: str, text: str, place: Place) -> Parameter:
    match = _PARAMETER.fullmatch(text)
    assert match is not None
    kind, default, about = match["type"], match["default"], one_line(match["about"])
    if default is None or default.lower() == "null":
        return Parameter(name, kind, about, required=default is None)
    try:
        return Parameter(name, kind, about, default=parse_value(default.strip("'"), kind))
    except ValueError as error:
        raise ModelError(f"the default of `{name}` is {error}", place=place) from error


def parse_value(text: str, kind: str) -> object:
    """Convert text to a value of a SQL type.

    Raises
    ------
    ValueError
        If the text is not of that type: `not a number: 1O`.

    >>> parse_value("2024-05-23 16:00", "TIMESTAMP")
    datetime.datetime(2024, 5, 23, 16, 0)
    """
    read, what = _READERS[kind]
    try:
        return read(text)
    except (ValueError, KeyError):
        raise ValueError(f"not {what}: {text}") from None


def _timestamp(text: str) -> datetime:
    """Parse a timestamp and convert it to UTC: the tables hold UTC without a zone."""
    time = datetime.fromisoformat(text.strip())
    return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time


_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_READERS: Mapping[str, tuple[Callable[[str], object], str]] = {
    "VARCHAR": (str, "a text"),
    **dict.fromkeys(("INTEGER", "BIGINT"), (int, "a whole number")),
    "DOUBLE": (float, "a number"),
    "TIMESTAMP": (_timestamp, "a time like 2024-05-23 16:00 (UTC)"),
    "BOOLEAN": (lambda text: _BOOLEANS[text.lower()], "true or false"),
}
"""Type of a parameter -> its reader, and what the text must be."""


def table_macro(query: Query) -> str:
    """Return the statements that create the table macro of a query, `query.nic(server, hour_ := NULL)`.

    In a macro, each column with the name of a parameter would be taken for the parameter. So parameters end in `_`.

    Raises
    ------
    ModelError
        If the query has a name that a parameter has in the macro.
    """
    names = {f"{name}_" for name in query.parameters}

    def written(match: re.Match[str]) -> str:
        if match[0].lower() in names:
            raise ModelError(f"{match[0]} is the name of a parameter in the macro", place=Place(query.path.name))
        parameter = query.parameters.get(match["name"] or "")
        return f"CAST({parameter.name}_ AS {parameter.type})" if parameter else match[0]

    body = _TOKEN.sub(written, query.sql.strip().rstrip(";"))
    # DuckDB refuses a parameter without a default behind one that has it.
    ordered = sorted(query.parameters.values(), key=lambda one: not one.required)
    given = ", ".join(f"{one.name}_" if one.required else f"{one.name}_ := {literal(one.default)}" for one in ordered)
    name = qualified(f"{MACROS}.{query.name.replace('-', '_')}")
    # A line break, since the query may end in a comment.
    return f"CREATE MACRO {name}({given}) AS TABLE {body}\n;COMMENT ON MACRO TABLE {name} IS {literal(query.about)}"
