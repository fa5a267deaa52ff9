"""A model file: front matter and one SELECT; or, as an exception, a function in Python.

The front matter is YAML between `/* ---` and `--- */` at the top of the file, read as plain text. It is cut
off and replaced by as many newlines, so that every line of the SELECT keeps the number it has in the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import yaml

from warehouse import kernels, semantics
from warehouse.errors import ModelError, Place, nearest_hint
from warehouse.semantics import NOTHING_SAID, Semantics

LAYERS = ("staging", "topology", "metrics")
SQL_KEYS = ("about", "partition", "grain", "columns", "checks", "sources", "materialize", "kernel", "presorted")
KEYS = (*SQL_KEYS, *semantics.KEYS)
PYTHON_KEYS = ("about", "partition", "reads", "grain", "columns", "checks", "sources", *semantics.KEYS)
PARTITIONS = ("format", "cluster", "hour_utc", "switch", "device", "port", "file_group")
"""Columns of `raw.files` that a model can be split by."""
TYPES = frozenset(
    {
        "BIGINT",
        "INTEGER",
        "SMALLINT",
        "DOUBLE",
        "VARCHAR",
        "BOOLEAN",
        "TIMESTAMP",
        "DATE",
        "VARCHAR[]",
        "INTEGER[]",
    }
)
_COLUMN = re.compile(r"^(?P<type>[A-Z]+(?:\(\d+, ?\d+\))?(?:\[\])?)(?:\s+\[(?P<unit>[^\]]+)\])?(?:\s+(?P<about>.+))?$")
_DECIMAL = re.compile(r"^DECIMAL\(\d+, ?\d+\)$")
_NAME = re.compile(r"^[a-z][a-z0-9_]*$")
_PLAIN_LINE = re.compile(r"^(\s*(?:- +)?[a-z][a-z0-9_]*: +)([^\s'\"\[{|>&*!%@`#-].*?: .*?)(\s+#.*)?$")
LONGEST_YAML = 100_000
_OPEN, _CLOSE = "/* ---", "--- */"


class Column(NamedTuple):
    """A column of the contract: what it holds, in which unit."""

    name: str
    type: str
    unit: str | None = None
    about: str = ""

    @property
    def comment(self) -> str:
        """The column's comment in the catalogue: `[B] bytes that entered ...`."""
        return f"[{self.unit}] {self.about}" if self.unit else self.about


class Check(NamedTuple):
    """A line of `checks`, as written, and where it stands."""

    text: str
    place: Place
    warn: bool = False


class Model(NamedTuple):
    """One model, as its file says."""

    name: str
    """`metrics.port_hour`"""
    path: Path
    about: str
    columns: tuple[Column, ...]
    grain: tuple[str, ...]
    sql: str
    """The SELECT, before macros, or the source of a Python model; with the lines that it has in the file."""
    partition: str | None = None
    materialize: str = "table"
    """`table` (parts) or `view`."""
    kernel: str | None = None
    """A kernel of `warehouse.kernels` that gives the same rows as the SELECT."""
    reads: Mapping[str, Place] = MappingProxyType({})
    """What a Python model is given, and where it says so; a SELECT says it itself."""
    presorted: bool = False
    """Whether rows come in the order of the grain, so that they are sorted only if they did not after all."""
    checks: tuple[Check, ...] = ()
    sources: str = ""
    semantics: Semantics = NOTHING_SAID
    """How to sum its columns, and by what to group."""
    shown_path: str = ""
    """The path as people write it: relative to the project."""

    @property
    def layer(self) -> str:
        """`staging`, `topology` or `metrics`."""
        return self.name.split(".")[0]

    @property
    def is_python(self) -> bool:
        """Whether its rows come from a function, not from a SELECT."""
        return self.path.suffix == ".py"

    def place(self, line: int | None = None, column: int | None = None) -> Place:
        """A place in this file."""
        return Place(self.shown_path or self.path, line, column)

    def column(self, name: str) -> Column:
        """The column of that name; KeyError where there is none."""
        return next(column for column in self.columns if column.name == name)


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
        With file, line and column, when the front matter or the name is wrong.
    """
    shown = path.relative_to(project).as_posix() if path.is_relative_to(project) else str(path)
    layer, name = path.parent.name, path.stem
    if layer not in LAYERS:
        raise ModelError(f"models stand in models/{'/, models/'.join(LAYERS)}/, not in {layer}/", place=Place(shown))
    if not _NAME.match(name):
        raise ModelError("a model's name is lower case letters, digits and _", place=Place(shown))
    try:
        content = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError("the file is not UTF-8 text", place=Place(shown)) from error
    except OSError as error:
        raise ModelError(f"the file cannot be read: {error.strerror}", place=Place(shown)) from error
    if path.suffix == ".py":
        from warehouse import python_model

        header, sql = python_model.split(content, shown)
        values = read_header(header, shown, PYTHON_KEYS)
    else:
        header, sql = split_header(content, shown)
        values = read_header(header, shown, KEYS)
    model = Model(
        name=f"{layer}.{name}",
        path=path,
        about=_text(values, "about", shown, required=True),
        columns=_columns(values.get("columns"), shown),
        grain=tuple(_list(values.get("grain"), shown)),
        sql=sql,
        partition=_text(values, "partition", shown) or None,
        materialize=_text(values, "materialize", shown) or "table",
        kernel=_text(values, "kernel", shown) or None,
        reads=_reads(values.get("reads"), shown),
        presorted=_text(values, "presorted", shown) == "true",
        checks=tuple(_check(item, shown) for item in _items(values.get("checks"), shown)),
        sources=_text(values, "sources", shown),
        shown_path=shown,
    )
    _validate(model, values)
    return model._replace(semantics=semantics.read_semantics(values, model.columns, model.grain, shown))


class Value(NamedTuple):
    """A YAML node as plain text, with the place where it stands."""

    content: str | Sequence[Value] | Mapping[str, Value]
    line: int
    column: int

    def place(self, shown: str) -> Place:
        """Its place in the file."""
        return Place(shown, self.line, self.column)


def split_header(content: str, shown: str) -> tuple[str, str]:
    """(YAML text, SELECT with as many leading newlines as were cut off).

    >>> split_header("/* ---\\nabout: x\\n--- */\\nSELECT 1\\n", "m.sql")
    ('\\nabout: x\\n', '\\n\\n\\nSELECT 1\\n')
    """
    if not content.startswith(_OPEN):
        raise ModelError(f"the file does not start with `{_OPEN}`", place=Place(shown, 1, 1))
    end = content.find(_CLOSE)
    if end < 0:
        raise ModelError(f"the front matter has no end: `{_CLOSE}` is missing", place=Place(shown, 1, 1))
    header = content[len(_OPEN) : end]
    for mark in ("/*", "*/"):
        if mark in header:
            line = header[: header.index(mark)].count("\n") + 1
            raise ModelError(f"`{mark}` cannot stand inside the front matter", place=Place(shown, line))
    body = content[end + len(_CLOSE) :]
    if not body.strip():
        raise ModelError("no SELECT follows the front matter", place=Place(shown, header.count("\n") + 1))
    return header, "\n" * header.count("\n") + body


def read_header(header: str, shown: str, keys: Sequence[str]) -> dict[str, Value]:
    """The top-level keys of a front matter; unknown and doubled keys are errors with their place."""
    found = read_yaml(header, shown, "the front matter")
    for key, below in found.items():
        if key not in keys:
            raise ModelError(
                f"unknown key `{key}` in the front matter",
                place=below.place(shown),
                hint=nearest_hint(key, keys) or f"known keys: {', '.join(keys)}",
            )
    return found


def read_yaml(text: str, shown: str, what: str) -> dict[str, Value]:
    """The top-level keys of a YAML text, everything in it read as plain text.

    Raises
    ------
    ModelError
        With its place, where it is not valid or a key stands twice; `what` names the text.
    """
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        node = yaml.compose("\n".join(map(_quote_plain, text.split("\n"))), Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        place = Place(shown, mark.line + 1, mark.column + 1) if mark else Place(shown, 1)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ModelError(f"{what} is not valid YAML: {problem}", place=place) from error
    if not isinstance(node, yaml.MappingNode):
        raise ModelError(f"{what} is not a list of `key: value` lines", place=Place(shown, 1))
    try:
        if _size(node, {}) > LONGEST_YAML:
            raise ModelError(f"{what} unfolds to more than {LONGEST_YAML:,} values", place=Place(shown, 1))
        value = _value(node, shown, what)
    except RecursionError as error:  # an alias to what it stands in
        raise ModelError(f"{what} contains itself", place=Place(shown, 1)) from error
    assert isinstance(value.content, Mapping)
    return dict(value.content)


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a YAML text means, aliases unfolded: ten lines can mean a billion."""
    if id(node) not in known:
        below: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            below = node.value
        elif isinstance(node, yaml.MappingNode):
            below = [value for _, value in node.value]
        known[id(node)] = 1 + sum(_size(one, known) for one in below)
    return known[id(node)]


def _quote_plain(line: str) -> str:
    """A line whose text holds a colon, quoted, since to YAML a bare one would begin a mapping.

    >>> _quote_plain("about: The sheet: all of it")
    "about: 'The sheet: all of it'"
    """
    match = _PLAIN_LINE.match(line)
    if match is None:
        return line
    text = match[2].replace("'", "''")
    return f"{match[1]}'{text}'{match[3] or ''}"


def _value(node: yaml.Node, shown: str, what: str, at: yaml.Mark | None = None) -> Value:
    mark = at or node.start_mark
    line, column = mark.line + 1, mark.column + 1
    if isinstance(node, yaml.ScalarNode):
        return Value(node.value, line, column)
    if isinstance(node, yaml.SequenceNode):
        return Value([_value(item, shown, what) for item in node.value], line, column)
    assert isinstance(node, yaml.MappingNode)
    content: dict[str, Value] = {}
    for key, below in node.value:
        name = str(key.value)
        if name in content:
            raise ModelError(
                f"`{name}` stands twice in {what}",
                place=Place(shown, key.start_mark.line + 1, key.start_mark.column + 1),
            )
        content[name] = _value(below, shown, what, key.start_mark)
    return Value(content, line, column)


def _text(values: Mapping[str, Value], key: str, shown: str, *, required: bool = False) -> str:
    value = values.get(key)
    if value is None or value.content == "":
        if required:
            raise ModelError(f"the front matter has no `{key}`", place=Place(shown, 1))
        return ""
    if not isinstance(value.content, str):
        raise ModelError(f"`{key}` is one line of text", place=value.place(shown))
    return " ".join(value.content.split())


def _items(value: Value | None, shown: str) -> Sequence[Value]:
    if value is None or value.content == "":
        return []
    if isinstance(value.content, (str, Mapping)):
        raise ModelError("a list is expected here: lines that start with `- `", place=value.place(shown))
    return value.content


def _list(value: Value | None, shown: str) -> list[str]:
    names = []
    for item in _items(value, shown):
        if not isinstance(item.content, str):
            raise ModelError("a list of names is expected here", place=item.place(shown))
        names.append(item.content)
    return names


def _reads(value: Value | None, shown: str) -> dict[str, Place]:
    return dict(zip(_list(value, shown), (item.place(shown) for item in _items(value, shown)), strict=True))


def _columns(value: Value | None, shown: str) -> tuple[Column, ...]:
    if value is None or not isinstance(value.content, Mapping) or not value.content:
        place = value.place(shown) if value else Place(shown, 1)
        raise ModelError("`columns` lists each column as `name: TYPE [unit] meaning`", place=place)
    columns = []
    for name, item in value.content.items():
        if not _NAME.match(name):
            raise ModelError(f"column `{name}` is not lower case letters, digits and _", place=item.place(shown))
        match = _COLUMN.match(" ".join(item.content.split())) if isinstance(item.content, str) else None
        if match is None:
            raise ModelError(f"column `{name}` is not `TYPE [unit] meaning`", place=item.place(shown))
        kind = match["type"]
        if kind not in TYPES and not _DECIMAL.match(kind):
            raise ModelError(
                f"column `{name}` has the type {kind}, which models do not use",
                place=item.place(shown),
                hint=nearest_hint(kind, TYPES) or f"known types: {', '.join(sorted(TYPES))}, DECIMAL(p, s)",
            )
        columns.append(Column(name, kind, match["unit"], match["about"] or ""))
    return tuple(columns)


def _check(value: Value, shown: str) -> Check:
    if not isinstance(value.content, str):
        # `- warn: condition` and `- none: SELECT ...` are mappings of one key to YAML
        content = value.content
        if isinstance(content, Mapping) and len(content) == 1:
            key, below = next(iter(content.items()))
            if key == "warn":
                return _check(below, shown)._replace(warn=True)
            if key == "none" and isinstance(below.content, str):
                return Check(f"none: {' '.join(below.content.split())}", value.place(shown))
        raise ModelError("a check is one line: a condition, or `warn: condition`", place=value.place(shown))
    text = " ".join(value.content.split())
    return Check(text.removeprefix("warn: "), value.place(shown), warn=text.startswith("warn: "))


def _validate(model: Model, values: Mapping[str, Value]) -> None:
    names = [column.name for column in model.columns]

    def place(key: str) -> Place:
        return values[key].place(model.shown_path) if key in values else model.place(1)

    if model.is_python and not model.reads:
        raise ModelError(
            "the front matter has no `reads`: the relations that the function is given", place=place("reads")
        )
    if not model.grain:
        raise ModelError("the front matter has no `grain`: the columns that name a row", place=place("grain"))
    for column in (*model.grain, *([model.partition] if model.partition else [])):
        if column not in names:
            raise ModelError(
                f"`{column}` of the grain or partition is not among the columns",
                place=place("grain" if column in model.grain else "partition"),
                hint=nearest_hint(column, names),
            )
    if model.partition not in (None, *PARTITIONS):
        raise ModelError(
            f"`partition` is a column of raw.files that names what a file holds, not {model.partition}",
            place=place("partition"),
            hint=nearest_hint(model.partition or "", PARTITIONS) or f"there are: {', '.join(PARTITIONS)}",
        )
    if model.kernel is not None and model.kernel not in kernels.NAMES:
        hint = nearest_hint(model.kernel, kernels.NAMES) or f"there are: {', '.join(kernels.NAMES)}"
        raise ModelError(f"no kernel {model.kernel}", place=place("kernel"), hint=hint)
    if model.materialize not in ("table", "view"):
        raise ModelError("`materialize` is table or view", place=place("materialize"))
    if "presorted" in values and _text(values, "presorted", model.shown_path) != "true":
        raise ModelError("`presorted` is true or left out", place=place("presorted"))
