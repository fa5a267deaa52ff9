"""Model file: front matter and one SELECT or, rarely, a Python function; and the language of its checks.

The front matter is YAML between `/* ---` and `--- */` at the top of the file; all values are text. It is replaced by
the same number of newlines, so that the SELECT keeps its line numbers.

A check is one line, a condition on the rows of the model:

    unique(a, b)                              no two rows share these columns
    not null(a, b)                            no NULL in these columns
    references(a, b) -> model(c, d)           every (a, b) without NULL exists in the other relation
    referenced(a, b) by model(c, d)           every (c, d) without NULL of the other relation exists here
    total(x) = total(model.y)                 the two sums are equal (NULL counts as 0)
    total(x) = total(model.y) by a, b         likewise for each (a, b) of either table
    total(x) = total(model.y where condition) likewise, over the rows of the other table that meet a condition
    latest(t) within 2 hours of latest(model.u)   the latest times are no further apart; also `of now()`
    rows >= 1, rows = 24, rows between a and b   the number of rows
    none: SELECT ...                          free SQL that must give no row; `this` is the model's own relation
    x between 0 and 1 or x is null            anything else: a condition that must be true for every row

`warn: ` before a line reports it without stopping the build. The grain is always checked: unique, no NULL.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from warehouse.base.errors import ModelError, Place, nearest_hint
from warehouse.base.sql_text import identifier
from warehouse.base.startup import regex
from warehouse.base.text import fields
from warehouse.base.yaml_text import NAME, TEXT, Form, Value, checked, keys_of, one_line, one_of, read_yaml
from warehouse.project.contract import NOTHING_SAID, SEMANTIC_FORMS, TYPES, Check, Column, Semantics, read_semantics
from warehouse.store.signatures import read_text

_OPEN, _CLOSE = "/* ---", "--- */"


def split_header(content: str, shown: str) -> tuple[str, str]:
    """Return the YAML text, and the SELECT with leading newlines that keep its line numbers.

    >>> split_header("/* ---\\nabout: x\\n--- */\\nSELECT 1\\n", "m.sql")
    ('\\nabout: x\\n', '\\n\\n\\nSELECT 1\\n')
    """
    if not content.startswith(_OPEN):
        raise ModelError(f"the file does not start with `{_OPEN}`", place=Place(shown, 1, 1))
    end = content.find(_CLOSE)
    if end < 0:
        raise ModelError(f"the front matter has no end: `{_CLOSE}` is missing", place=Place(shown, 1, 1))
    header = content[len(_OPEN) : end]
    for mark in ("/*", "*/"):  # for SQL, the front matter is a comment
        if mark in header:
            line = header[: header.index(mark)].count("\n") + 1
            raise ModelError(f"`{mark}` cannot stand inside the front matter", place=Place(shown, line))
    body = content[end + len(_CLOSE) :]
    if not body.strip():
        raise ModelError("no SELECT follows the front matter", place=Place(shown, header.count("\n") + 1))
    return header, "\n" * header.count("\n") + body


def read_header(header: str, shown: str) -> Value:
    """Return a front matter. Raises ModelError for invalid YAML and duplicate keys."""
    return Value(read_yaml(header, shown, "the front matter"), 1, 1)


_MARK = "---"


def split_docstring(content: str, shown: str) -> tuple[str, str]:
    """Return the YAML text, and the source with newlines in place of the docstring. Both keep the line numbers.

    Raises
    ------
    ModelError
        When the file does not parse, or its docstring is not a front matter.
    """
    tree = parse_source(content, shown)
    text = ast.get_docstring(tree, clean=False) or ""
    if not text.startswith(_MARK):
        raise ModelError('a Python model starts with its front matter: `"""---`', place=Place(shown, 1, 1))
    docstring = tree.body[0]
    if not text.rstrip().endswith(f"\n{_MARK}"):
        raise ModelError('the front matter has no end: `---"""` is missing', place=Place(shown, docstring.end_lineno))
    header = "\n" * (docstring.lineno - 1) + text.rstrip()[len(_MARK) : -len(_MARK)]
    lines = content.split("\n")
    end = docstring.end_lineno or 1
    return header, "\n".join([""] * end + lines[end:])


def parse_source(content: str, shown: str) -> ast.Module:
    """Parse the source of a Python model. Raises ModelError with the invalid line."""
    try:
        return ast.parse(content)
    except (SyntaxError, ValueError) as error:
        line, column = getattr(error, "lineno", None), getattr(error, "offset", None)
        message = getattr(error, "msg", None) or str(error)
        raise ModelError(f"it does not parse: {message}", place=Place(shown, line, column)) from error


LAYERS = ("staging", "topology", "reference", "metrics")
PARTITIONS = ("format", "cluster", "hour_utc", "switch", "device", "port", "file_group")
"""Columns of `raw.files` that can partition a model."""
_COLUMN = regex(
    rf"(?P<type>{'|'.join(map(re.escape, TYPES))}|DECIMAL\(\d+, ?\d+\))(\s+\[(?P<unit>[^\]]+)\])?(\s+(?P<about>.+))?",
    re.DOTALL,
)
COLUMNS = {NAME: Form(str(_COLUMN.pattern), f"`TYPE [unit] meaning`; types: {', '.join(TYPES)}, DECIMAL(p, s)")}
"""Form of the columns of a contract; `column_list` reads them."""
_FORMS = {
    **dict.fromkeys(("about!", "sources"), TEXT),
    "partition": [one_of(*PARTITIONS)],
    "grain!": [TEXT],
    "columns!": COLUMNS,
    "checks": [None],
    **SEMANTIC_FORMS,
}
SQL_FORMS = _FORMS | {"materialize": one_of("table", "view"), "presorted": one_of("true")}
PYTHON_FORMS = _FORMS | {"reads!": [TEXT], "stream": TEXT}
_CHECK = dict.fromkeys(("warn", "check", "none", "says"), TEXT)
_OWN_ROWS = regex(r"^(?:unique|not null|references|referenced|total|latest|rows|none)\b", re.IGNORECASE)
"""Checks whose failing rows have other columns than the model."""


class Model(NamedTuple):
    """Model with the keys of its front matter."""

    name: str
    """Full name, such as `metrics.port_hour`."""
    path: Path
    about: str
    columns: tuple[Column, ...]
    grain: tuple[str, ...]
    sql: str
    """SELECT before macros, or source of a Python model, with the line numbers of the file."""
    partition: tuple[str, ...] = ()
    """Columns of `raw.files` for whose values the model has a part each."""
    materialize: str = "table"
    """`table` (parts) or `view`."""
    reads: Mapping[str, Place] = MappingProxyType({})
    """Inputs of a Python model with their places; empty for a SELECT."""
    stream: str = ""
    """Input that a Python model gets as batches of rows, since it may be larger than memory; empty if there is none."""
    presorted: bool = False
    """True if the SELECT returns its rows sorted by grain, so that the runner sorts only if the grain check fails."""
    checks: tuple[Check, ...] = ()
    sources: str = ""
    semantics: Semantics = NOTHING_SAID
    """Measures and dimensions: how to aggregate the columns."""
    shown_path: str = ""
    """Path relative to the project, for messages."""

    @property
    def layer(self) -> str:
        """`staging`, `topology`, `reference` or `metrics`."""
        return self.name.split(".")[0]

    @property
    def is_python(self) -> bool:
        """True for a Python model."""
        return self.path.suffix == ".py"

    @property
    def is_view(self) -> bool:
        """True for a model that is published as a view, without parts."""
        return self.materialize == "view"

    def place(self, line: int | None = None, column: int | None = None) -> Place:
        """Return a place in this file."""
        return Place(self.shown_path or self.path, line, column)


def read_model(path: Path, project: Path) -> Model:
    """Read one model file.

    Parameters
    ----------
    path
        `models/<layer>/<name>.sql` or `.py` below `project`.
    project
        The folder that error messages are relative to.

    Raises
    ------
    ModelError
        With file, line and column, when the front matter or the name is invalid.
    """
    shown = path.relative_to(project).as_posix() if path.is_relative_to(project) else str(path)
    layer, name = path.parent.name, path.stem
    if layer not in LAYERS:
        raise ModelError(f"models stand in models/{'/, models/'.join(LAYERS)}/, not in {layer}/", place=Place(shown))
    if not re.fullmatch(NAME.pattern, name):
        raise ModelError(f"a model's name is {NAME.what}", place=Place(shown))
    content = read_source(path, shown)
    is_python = path.suffix == ".py"
    header, sql = (split_docstring if is_python else split_header)(content, shown)
    values = read_header(header, shown)
    keys, given = checked(values, PYTHON_FORMS if is_python else SQL_FORMS, "the front matter", shown), keys_of(values)
    model = Model(
        name=f"{layer}.{name}",
        path=path,
        about=one_line(keys["about"]),
        columns=column_list(keys["columns"]),
        grain=tuple(keys["grain"]),
        sql=sql,
        partition=tuple(keys.get("partition", ())),
        materialize=keys.get("materialize", "table"),
        reads={name: one.place(shown) for name, one in zip(keys.get("reads", ()), _items(given, "reads"), strict=True)},
        stream=keys.get("stream", ""),
        presorted="presorted" in keys,
        checks=tuple(_check(one, shown) for one in keys.get("checks", ())),
        sources=one_line(keys.get("sources", "")),
        shown_path=shown,
    )
    _refuse_unknown(model, given)
    return model._replace(semantics=read_semantics(keys, given, model.columns, model.grain, shown))


def read_source(path: Path, shown: str) -> str:
    """Return the text of a file of a project. Raises ModelError if it is no UTF-8 text or cannot be read."""
    try:
        return read_text(path, "utf-8-sig")  # some editors write a byte order mark
    except UnicodeDecodeError as error:
        raise ModelError("the file is not UTF-8 text", place=Place(shown)) from error
    except OSError as error:
        raise ModelError(f"the file cannot be read: {error.strerror}", place=Place(shown)) from error


def column_list(given: Mapping[str, str]) -> tuple[Column, ...]:
    """Return the columns of a contract, each written as `TYPE [unit] meaning`."""
    found = ((name, _COLUMN.fullmatch(text)) for name, text in given.items())
    return tuple(Column(name, of["type"], of["unit"], one_line(of["about"] or "")) for name, of in found if of)


def _items(given: Mapping[str, Value], key: str) -> Sequence[Value]:
    """Return the items of a list with their places; one text is a list of one."""
    value = given.get(key)
    return () if value is None else [value] if isinstance(value.content, str) else list(value.content)  # type: ignore[arg-type]


def _check(value: Value, shown: str) -> Check:
    """Return a check; in YAML, `- warn: condition` and `- none: SELECT ...` are mappings of one key."""
    place = value.place(shown)
    is_text = isinstance(value.content, str)
    keys = {"check": str(value.content)} if is_text else checked(value, _CHECK, "a check", shown)
    says = one_line(keys.pop("says", ""))
    try:
        fields(says)
    except ValueError as error:
        raise ModelError(f"`says` cannot be filled: {error}", place=place) from error
    if len(keys) != 1:
        raise ModelError("a check is one line: a condition, `warn: condition` or `none: SELECT`", place=place)
    ((kind, text),) = keys.items()
    text = one_line(f"none: {text}" if kind == "none" else text)
    return Check(text.removeprefix("warn: "), place, kind == "warn" or text.startswith("warn: "), says)


def _refuse_unknown(model: Model, given: Mapping[str, Value]) -> None:
    """Raise ModelError if a key names a column or relation that the model does not have."""
    columns = [column.name for column in model.columns]
    named = [
        *(("says", name, check.place) for check in model.checks if not _OWN_ROWS.match(check.text)
          for name in fields(check.says)),
        *((key, str(one.content), one.place(model.shown_path))
          for key in ("grain", "partition") for one in _items(given, key)),
    ]  # fmt: skip
    for key, name, place in named:
        if name not in columns:
            raise ModelError(
                f"`{key}` names {name}, which is no column of the model", place=place, hint=nearest_hint(name, columns)
            )
    if model.stream and model.stream not in model.reads:
        place = given["stream"].place(model.shown_path)
        raise ModelError(f"`stream` is one of `reads`, not {model.stream}", place=place)


# checks -------------------------------------------------------------------------------------------

MEANING = 1
"""Version of the language: another one where a line comes to mean something else, so that builds check again."""
_UNIQUE = regex(r"^unique\((?P<columns>[^)]+)\)$", re.IGNORECASE)
NOT_NULL = regex(r"^not null\((?P<columns>[^)]+)\)$", re.IGNORECASE)
REFERENCES = regex(
    r"^references\((?P<columns>[^)]+)\)\s*->\s*(?P<relation>\w+\.\w+)\((?P<others>[^)]+)\)$", re.IGNORECASE
)
REFERENCED = regex(
    r"^referenced\((?P<columns>[^)]+)\)\s+by\s+(?P<relation>\w+\.\w+)\((?P<others>[^)]+)\)$", re.IGNORECASE
)
_TOTAL = regex(
    r"^total\((?P<mine>.+?)\)\s*=\s*"
    r"total\((?P<relation>\w+\.\w+)\.(?P<other>\w+)(?:\s+where\s+(?P<only>.+?))?\)(?:\s+by\s+(?P<columns>[\w, ]+))?$",
    re.IGNORECASE,
)
_LATEST = regex(
    r"^latest\((?P<mine>\w+)\)\s+within\s+(?P<number>\d+)\s+(?P<unit>second|minute|hour|day)s?\s+of\s+"
    r"(?:latest\((?P<relation>\w+\.\w+)\.(?P<other>\w+)\)|now\(\))$",
    re.IGNORECASE,
)
_ROWS = regex(r"^rows\s+(?P<bound>(?:[<>]=?|=)\s*\d+|between\s+\d+\s+and\s+\d+)$", re.IGNORECASE)
_NONE = regex(r"^none:\s*(?P<select>(?:select|with|from)\b.+)$", re.IGNORECASE)
_RELATION = regex(rf"\b((?:raw|{'|'.join(LAYERS)})\.[a-z_][a-z0-9_]*)\b")


class Compiled(NamedTuple):
    """Check compiled to SQL."""

    failing: str
    """SELECT of the failing rows."""
    predicate: str | None = None
    """Condition of a check on single rows, so that several checks can share one scan."""


@cache  # called for every part
def relations_of(text: str) -> tuple[str, ...]:
    """Return the other relations that the text of a check names."""
    for pattern in (REFERENCES, REFERENCED, _TOTAL, _LATEST):
        match = pattern.match(text)
        if match:
            return (match["relation"],) if match["relation"] else ()
    match = _NONE.match(text)
    return tuple(sorted(set(_RELATION.findall(match["select"])))) if match else ()


def all_checks(model: Model) -> list[Check]:
    """Return the grain check, except of a view, then the checks that the model lists."""
    return [*([] if model.is_view else [grain_check(model)]), *model.checks]


def grain_check(model: Model) -> Check:
    """Return the check that every table has: the columns of its grain are unique and not NULL."""
    return Check(f"grain({', '.join(model.grain)})", model.place(1))


def compile_check(check: Check, model: Model) -> Compiled:
    """Return the SQL of one check.

    Raises
    ------
    ModelError
        With the line of the check, when it names a column that the model does not have.
    """
    this = model.name
    names = {column.name for column in model.columns}
    text = check.text
    if check == grain_check(model):
        grain = [identifier(name) for name in model.grain]
        is_null = " OR ".join(f"{name} IS NULL" for name in grain)
        return Compiled(
            f"SELECT {', '.join(grain)}, count(*) AS rows FROM {this} GROUP BY ALL HAVING count(*) > 1 OR {is_null}"
        )
    if match := _UNIQUE.match(text):
        columns = ", ".join(_known(match["columns"], names, check))
        return Compiled(f"SELECT {columns}, count(*) AS rows FROM {this} GROUP BY {columns} HAVING count(*) > 1")
    if match := NOT_NULL.match(text):
        condition = " AND ".join(f"{name} IS NOT NULL" for name in _known(match["columns"], names, check))
        return _of_rows(condition, model)
    if match := REFERENCES.match(text):
        return Compiled(_lost(this, match["relation"], *_pairs(match, names, check)))
    if match := REFERENCED.match(text):
        here, there = _pairs(match, names, check)
        return Compiled(_lost(match["relation"], this, there, here))
    if match := _TOTAL.match(text):
        keys = _known(match["columns"], names, check) if match["columns"] else []
        return Compiled(_other_totals(match, "".join(f"{key}, " for key in keys), this))
    if match := _LATEST.match(text):
        [mine] = _known(match["mine"], names, check)
        return Compiled(_latest(match, mine, this))
    if match := _ROWS.match(text):
        return Compiled(f"SELECT * FROM (SELECT count(*) AS rows FROM {this}) WHERE NOT (rows {match['bound']})")
    if match := _NONE.match(text):
        return Compiled(re.sub(r"\bthis\b", this, match["select"]))
    return _of_rows(text, model)


def ascent(model: Model) -> tuple[str, str]:
    """Return the grain check of a part, whose rows are sorted by grain.

    Each row must be greater than the one before, else rows are duplicate or out of order. This takes one pass without
    a hash table, shared with the conditions on single rows. The first text is a FROM item: the relation with the grain
    of the previous row added to each row. The second is a condition that is true if a row is not greater than the
    previous one or its grain contains NULL.
    """
    names = [identifier(name) for name in model.grain]  # a column name may be a keyword of SQL
    lags = ", ".join(f"lag({name}) OVER () AS previous_{position}" for position, name in enumerate(names))
    nulls = " OR ".join(f"{name} IS NULL" for name in names)
    # IS TRUE: the first row has no previous one, so the comparison gives NULL.
    return f"(SELECT *, {lags} FROM {model.name})", f"({_not_ascending(names)} OR {nulls}) IS TRUE"


def _not_ascending(names: Sequence[str]) -> str:
    condition = f"{names[-1]} <= previous_{len(names) - 1}"
    for position, name in reversed(list(enumerate(names[:-1]))):
        condition = f"{name} < previous_{position} OR ({name} = previous_{position} AND ({condition}))"
    return f"({condition})"


def _pairs(match: re.Match[str], names: set[str], check: Check) -> tuple[list[str], list[str]]:
    """Return the columns of the model and those of the other relation that they are compared with."""
    here = _known(match["columns"], names, check)
    there = [identifier(name.strip()) for name in match["others"].split(",")]
    if len(here) != len(there):
        raise ModelError(f"the check refers {len(here)} columns to {len(there)}", place=check.place)
    return here, there


def _lost(table: str, other: str, columns: Sequence[str], others: Sequence[str]) -> str:
    """Return the SELECT of the rows of a table whose columns, none of them NULL, are not in the other table."""
    present = " AND ".join(f"a.{name} IS NOT NULL" for name in columns)
    same = " AND ".join(f"a.{name} = b.{there}" for name, there in zip(columns, others, strict=True))
    return f"SELECT a.* FROM {table} AS a ANTI JOIN {other} AS b ON {same} WHERE {present}"


def _other_totals(match: re.Match[str], keys: str, this: str) -> str:
    """Return the SELECT of the keys with different sums, one row without keys; a missing key counts as 0."""
    only = f" FILTER (WHERE {match['only']})" if match["only"] else ""
    return (
        f"SELECT {keys}coalesce(sum(total), 0) AS total, coalesce(sum(expected), 0) AS expected FROM ("
        f"SELECT {keys}sum({match['mine']}) AS total, NULL AS expected FROM {this} GROUP BY ALL UNION ALL "
        f"SELECT {keys}NULL AS total, sum({identifier(match['other'])}){only} AS expected FROM {match['relation']} "
        "GROUP BY ALL) GROUP BY ALL HAVING coalesce(sum(total), 0) <> coalesce(sum(expected), 0)"
    )


def _latest(match: re.Match[str], mine: str, this: str) -> str:
    """Return the SELECT of both times, with a row if they are too far apart or if only the other table has a time."""
    here = f"SELECT max({mine}) AS latest FROM {this}"
    there = (
        f"SELECT max({identifier(match['other'])}) AS other FROM {match['relation']}"
        if match["relation"]
        else "SELECT make_timestamp(epoch_us(now())) AS other"
    )
    apart = f"INTERVAL '{match['number']} {match['unit'].lower()}'"
    return (
        f"SELECT * FROM ({here}), ({there}) "
        f"WHERE other IS NOT NULL AND (latest IS NULL OR NOT latest BETWEEN other - {apart} AND other + {apart})"
    )


def _of_rows(condition: str, model: Model) -> Compiled:
    return Compiled(f"SELECT * FROM {model.name} WHERE ({condition}) IS NOT TRUE", condition)


def _known(listed: str, names: set[str], check: Check) -> list[str]:
    columns = [name.strip() for name in listed.split(",")]
    for name in columns:
        if name not in names:
            raise ModelError(
                f"the check names {name}, which is no column of the model",
                place=check.place,
                hint=nearest_hint(name, names),
            )
    return [identifier(name) for name in columns]
