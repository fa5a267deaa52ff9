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
from typing import NamedTuple

from warehouse.base.errors import ModelError, Place, nearest_hint
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
_OWN_ROWS = regex(r"^(?:unique|not null|references|referenced|total|rows|none)\b", re.IGNORECASE)
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
