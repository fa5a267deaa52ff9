"""Model file: front matter and one SELECT or, rarely, a Python function.

The front matter is YAML between `/* ---` and `--- */` at the top of the file; all values are text. It is replaced by
the same number of newlines, so that the SELECT keeps its line numbers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from warehouse.base import sentences
from warehouse.base.errors import ModelError, Place, nearest_hint
from warehouse.base.startup import regex
from warehouse.project import semantics
from warehouse.project.contract import TYPES, Check, Column
from warehouse.project.semantics import NOTHING_SAID, Measure, Semantics
from warehouse.store.parse_cache import ParseCache
from warehouse.store.signatures import read_text

if TYPE_CHECKING:
    from warehouse.base.yaml_text import Value


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
    for mark in ("/*", "*/"):
        if mark in header:
            line = header[: header.index(mark)].count("\n") + 1
            raise ModelError(f"`{mark}` cannot stand inside the front matter", place=Place(shown, line))
    body = content[end + len(_CLOSE) :]
    if not body.strip():
        raise ModelError("no SELECT follows the front matter", place=Place(shown, header.count("\n") + 1))
    return header, "\n" * header.count("\n") + body


def read_header(header: str, shown: str, keys: Sequence[str]) -> dict[str, Value]:
    """Return the top-level keys of a front matter. Raises ModelError for unknown and duplicate keys."""
    from warehouse.base.yaml_text import read_yaml

    found = read_yaml(header, shown, "the front matter")
    for key, below in found.items():
        if key not in keys:
            raise ModelError(
                f"unknown key `{key}` in the front matter",
                place=below.place(shown),
                hint=nearest_hint(key, keys) or f"known keys: {', '.join(keys)}",
            )
    return found


_MARK = "---"


def split_docstring(content: str, shown: str) -> tuple[str, str]:
    """Return the YAML text, and the source with newlines in place of the docstring. Both keep the line numbers.

    Raises
    ------
    ModelError
        When the file does not parse, or its docstring is not a front matter.
    """
    tree = parse_source(content, shown)
    first = tree.body[0] if tree.body else None
    docstring = first.value if isinstance(first, ast.Expr) else None
    text = docstring.value if isinstance(docstring, ast.Constant) else None
    if docstring is None or not isinstance(text, str) or not text.startswith(_MARK):
        raise ModelError('a Python model starts with its front matter: `"""---`', place=Place(shown, 1, 1))
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
SQL_KEYS = (
    "about",
    "partition",
    "grain",
    "columns",
    "checks",
    "sources",
    "materialize",
    "presorted",
)
KEYS = (*SQL_KEYS, *semantics.KEYS)
PYTHON_KEYS = ("about", "partition", "reads", "stream", "grain", "columns", "checks", "sources", *semantics.KEYS)
PARTITIONS = ("format", "cluster", "hour_utc", "switch", "device", "port", "file_group")
"""Columns of `raw.files` that can partition a model."""
_COLUMN = regex(r"^(?P<type>[A-Z]+(?:\(\d+, ?\d+\))?(?:\[\])?)(?:\s+\[(?P<unit>[^\]]+)\])?(?:\s+(?P<about>.+))?$")
_DECIMAL = regex(r"^DECIMAL\(\d+, ?\d+\)$")
_OWN_ROWS = regex(r"^(?:unique|not null|references|referenced|total|latest|rows|none)\b", re.IGNORECASE)
"""Checks whose failing rows have other columns than the model."""
_NAME = regex(r"^[a-z][a-z0-9_]*$")


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

    def to_json(self) -> dict[str, object]:
        """Return the fields as JSON-able values, without the path."""
        return self._asdict() | {"path": None, "reads": dict(self.reads)}

    @staticmethod
    def from_json(values: Mapping[str, Any], path: Path) -> Model:
        """Return the model from the values of `to_json`."""
        time, dimensions, measures = values["semantics"]
        ways = tuple(Measure(column, how, tuple(but), *shown) for column, how, but, *shown in measures)
        return Model(
            **{
                **values,
                "path": path,
                "columns": tuple(Column(*one) for one in values["columns"]),
                "grain": tuple(values["grain"]),
                "partition": tuple(values["partition"]),
                "reads": {name: Place(*place) for name, place in values["reads"].items()},
                "checks": tuple(Check(text, Place(*place), *rest) for text, place, *rest in values["checks"]),
                "semantics": Semantics(time, tuple(dimensions), ways),
            }
        )


def read_model(path: Path, project: Path, parse_cache: ParseCache | None = None) -> Model:
    """Read one model file, or take its parsed front matter from the cache.

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
    if not _NAME.match(name):
        raise ModelError("a model's name is lower case letters, digits and _", place=Place(shown))
    try:
        content = read_text(path, "utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError("the file is not UTF-8 text", place=Place(shown)) from error
    except OSError as error:
        raise ModelError(f"the file cannot be read: {error.strerror}", place=Place(shown)) from error
    parse_cache = parse_cache or ParseCache(None)
    header, sql = _split(content, path, shown, parse_cache)
    values = parse_cache.get(["model", shown, header], lambda: _parse(header, path, f"{layer}.{name}", shown).to_json())
    return Model.from_json(values, path)._replace(sql=sql)


def _split(content: str, path: Path, shown: str, parse_cache: ParseCache) -> Sequence[str]:
    """Return the front matter of a model and the text after it."""
    if path.suffix == ".py":
        halves: Sequence[str] = parse_cache.get(["split", shown, content], lambda: split_docstring(content, shown))
        return halves
    return split_header(content, shown)


def _parse(header: str, path: Path, name: str, shown: str) -> Model:
    """Return the model of a front matter."""
    values = read_header(header, shown, PYTHON_KEYS if path.suffix == ".py" else KEYS)
    model = Model(
        name=name,
        path=path,
        about=_text(values, "about", shown, required=True),
        columns=_columns(values.get("columns"), shown),
        grain=tuple(_list(values.get("grain"), shown)),
        sql="",
        partition=_partition(values.get("partition"), shown),
        materialize=_text(values, "materialize", shown) or "table",
        reads=_reads(values.get("reads"), shown),
        stream=_text(values, "stream", shown),
        presorted=_text(values, "presorted", shown) == "true",
        checks=tuple(_check(item, shown) for item in _items(values.get("checks"), shown)),
        sources=_text(values, "sources", shown),
        shown_path=shown,
    )
    _validate(model, values)
    return model._replace(semantics=semantics.read_semantics(values, model.columns, model.grain, shown))


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


def _partition(value: Value | None, shown: str) -> tuple[str, ...]:
    if value is not None and isinstance(value.content, str):
        return tuple(value.content.split())
    return tuple(_list(value, shown))


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
        # in YAML, `- warn: condition` and `- none: SELECT ...` are mappings of one key, with an optional `says:`
        content = value.content
        if isinstance(content, Mapping) and "says" in content and len(content) == 2:
            alone = value._replace(content={key: below for key, below in content.items() if key != "says"})
            return _check(alone, shown)._replace(says=_says(content["says"], shown))
        if isinstance(content, Mapping) and len(content) == 1:
            key, below = next(iter(content.items()))
            if key == "warn":
                return _check(below, shown)._replace(warn=True)
            if key == "check":
                return _check(below, shown)
            if key == "none" and isinstance(below.content, str):
                return Check(f"none: {' '.join(below.content.split())}", value.place(shown))
        raise ModelError("a check is one line: a condition, or `warn: condition`", place=value.place(shown))
    text = " ".join(value.content.split())
    return Check(text.removeprefix("warn: "), value.place(shown), warn=text.startswith("warn: "))


def _says(value: Value, shown: str) -> str:
    if not isinstance(value.content, str) or not value.content.strip():
        raise ModelError("`says` is one sentence", place=value.place(shown))
    try:
        sentences.fields(value.content)
    except ValueError as error:
        raise ModelError(f"`says` cannot be filled: {error}", place=value.place(shown)) from error
    return " ".join(value.content.split())


def _validate_sentences(model: Model) -> None:
    """Raise ModelError if a sentence names an unknown column; skip checks whose failing rows have other columns."""
    names = {column.name for column in model.columns}
    for check in model.checks:
        if check.says and not _OWN_ROWS.match(check.text):
            unknown = next((name for name in sentences.fields(check.says) if name not in names), None)
            if unknown:
                raise ModelError(
                    f"`says` names {unknown}, which is no column of the model",
                    place=check.place,
                    hint=nearest_hint(unknown, names),
                )


def _validate(model: Model, values: Mapping[str, Value]) -> None:
    names = [column.name for column in model.columns]

    def place(key: str) -> Place:
        return values[key].place(model.shown_path) if key in values else model.place(1)

    _validate_sentences(model)
    presorted = _text(values, "presorted", model.shown_path)
    rules = (
        ("reads", model.is_python and not model.reads,
         "the front matter has no `reads`: the relations that the function is given"),
        ("stream", model.stream and model.stream not in model.reads,
         f"`stream` is one of `reads`, not {model.stream}"),
        ("grain", not model.grain, "the front matter has no `grain`: the columns that name a row"),
        ("materialize", model.materialize not in ("table", "view"), "`materialize` is table or view"),
        ("presorted", "presorted" in values and presorted != "true", "`presorted` is true or left out"),
    )  # fmt: skip
    for key, is_broken, message in rules:
        if is_broken:
            raise ModelError(message, place=place(key))
    for column in (*model.grain, *model.partition):
        if column not in names:
            raise ModelError(
                f"`{column}` of the grain or partition is not among the columns",
                place=place("grain" if column in model.grain else "partition"),
                hint=nearest_hint(column, names),
            )
    for column in model.partition:
        if column not in PARTITIONS:
            raise ModelError(
                f"`partition` is a column of raw.files that names what a file holds, not {column}",
                place=place("partition"),
                hint=nearest_hint(column, PARTITIONS) or f"there are: {', '.join(PARTITIONS)}",
            )
