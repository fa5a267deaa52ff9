"""Published traces as data: `data/traces/NAME.yaml` has source, files, and SQL expressions for jobs and nodes.

Docs: docs/traces.md. A project's own files of this form add traces. The models that read mappings call the macro
`mapped` (`sql/macros/traces.sql`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from string import Formatter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from warehouse.base.errors import ModelError, nearest_hint
from warehouse.base.shipped import shipped_root
from warehouse.formats.named_csv import CELLS, NamedCsv

if TYPE_CHECKING:
    from warehouse.base.yaml_text import Value

TARGETS = {
    "jobs": {
        "cluster": "VARCHAR",
        "variant": "VARCHAR",
        "job_id": "VARCHAR",
        "user_id": "VARCHAR",
        "num_nodes": "BIGINT",
        "num_gpus": "DECIMAL(12, 3)",
        "num_cpus": "BIGINT",
        "node": "VARCHAR",
        "gpu_model": "VARCHAR",
        "job_type": "VARCHAR",
        "state_raw": "VARCHAR",
        "submit_seconds": "BIGINT",
        "start_seconds": "BIGINT",
        "end_seconds": "BIGINT",
        "submit_utc": "TIMESTAMP",
        "start_utc": "TIMESTAMP",
        "end_utc": "TIMESTAMP",
        "run_seconds": "BIGINT",
        "published_duration_seconds": "DOUBLE",
        "published_queue_seconds": "DOUBLE",
        "published_gpu_seconds": "DOUBLE",
    },
    "nodes": {
        "cluster": "VARCHAR",
        "variant": "VARCHAR",
        "node": "VARCHAR",
        "num_gpus": "BIGINT",
        "gpu_model": "VARCHAR",
        "num_cpus": "DECIMAL(12, 3)",
        "memory_bytes": "BIGINT",
    },
}
"""Columns that a mapping can fill, by table; `extra` holds any others."""
TOTALS = ("jobs", "clusters", "gpu_seconds", "gpu_hours", "nodes", "gpus")
"""Quantities of published totals, as `models/metrics/claim_quantities.sql` counts them."""
FROM_ORIGIN = ("submit_seconds", "start_seconds", "end_seconds", "run_seconds")
"""Columns in the time unit of the mapping."""
TIME_UNITS = {"seconds": 1, "milliseconds": 1_000, "microseconds": 1_000_000}
"""Time unit of a mapping -> its number in a second."""
_KEYS = (
    *("title", "short", "url", "license", "doi", "cite", "origin", "time unit", "files", *TARGETS, "states", "totals"),
    "examples",
)
_FILE_KEYS = (
    *("about", "name", "cluster", "place", "list", "columns", "key", "repeats", "order", "one of", "without", "only"),
    *("delimiter", "encoding", "header", "final newline"),
)
_ENCODINGS = ("utf-8", "latin-1")
_NO_DOI = "no DOI known"
_COLUMN = re.compile(
    r"(?P<kind>[a-z]+)(?P<needed>!)?(?P<optional>\?)?(?:\s+\[(?P<unit>[^\]]+)\])?(?:\s+(?P<about>.+))?"
)
_RELATION = re.compile(r"[a-z][a-z0-9]*_[a-z0-9_]+")


class License(NamedTuple):
    """License as package formats name it."""

    name: str
    """SPDX identifier, or `none stated`."""
    title: str
    url: str


LICENSES = {
    one.name: one
    for one in (
        License(
            "CC-BY-4.0",
            "Creative Commons Attribution 4.0 International",
            "https://creativecommons.org/licenses/by/4.0/",
        ),
        License("MIT", "MIT License", "https://opensource.org/license/mit"),
        License("none stated", "The publisher states no license", ""),
    )
}


class Mapped(NamedTuple):
    """How one table's rows come of the files of a trace."""

    relation: str
    """Relation of `raw`: `acme_jobs`."""
    columns: Mapping[str, str]
    """Column -> SQL expression over the columns of the files."""
    extra: Mapping[str, str]
    """The same for the members of `extra`."""
    lines: Mapping[str, int]
    """Line of each column's expression in the mapping's file; of a member of `extra`, by its name."""


class Trace(NamedTuple):
    """Published trace."""

    name: str
    """Name of its file, and value of the column `trace`."""
    title: str
    short: str
    """Name in messages."""
    url: str
    license: License
    doi: str = ""
    """Digital object identifier; empty if none is known."""
    cite: str = ""
    origin: str = ""
    """Time that seconds count from, UTC; empty if none is published."""
    formats: Sequence[NamedCsv] = ()
    tables: Mapping[str, Mapped] = MappingProxyType({})
    states: Mapping[str, tuple[str, str]] = MappingProxyType({})
    """State as written, in upper case -> state and outcome in the tables."""
    unit: int = 1
    """Number of time units in a second."""
    totals: Sequence[Mapping[str, str]] = ()
    """Published totals."""
    examples: Mapping[str, Value] = MappingProxyType({})
    """Lines by the name of an example file, and the rows that they give, by table; `warehouse test` runs them."""

    @property
    def shown(self) -> str:
        """Path of the mapping for messages."""
        return f"data/traces/{self.name}.yaml"

    @property
    def source(self) -> str:
        """Name, title, license, DOI and address in one line; `stated` reads it."""
        return f"{self.name}: {self.title}, {self.license.name}, {self.doi or _NO_DOI}, {self.url}"

    @property
    def prefixes(self) -> set[str]:
        """First parts of the names of formats of the trace: `acme` of `acme.jobs`."""
        return {self.name, *(one.name.partition(".")[0] for one in self.formats)}


def stated(source: str) -> Trace:
    """Return a trace by its line of `source`."""
    titled, license_, doi, url = source.rsplit(", ", 3)
    name, _, title = titled.partition(": ")
    known = LICENSES.get(license_) or License(license_, license_, "")
    return Trace(name, title, title, url, known, "" if doi == _NO_DOI else doi)


def shipped_traces() -> tuple[Trace, ...]:
    """Return the traces of the shipped mappings, by name."""
    return traces_in(sorted((shipped_root() / "data" / "traces").glob("*.yaml")))


def traces_in(files: Sequence[Path]) -> tuple[Trace, ...]:
    """Return the traces of these files.

    Raises
    ------
    ModelError
        With file and line, if a mapping is not valid.
    """
    return tuple(_trace(path, path.stat().st_mtime_ns) for path in files)


def trace_of(format_name: str) -> Trace | None:
    """Return the shipped trace that a format is of: `acme` for `acme.jobs`."""
    prefix = format_name.partition(".")[0]
    return next((one for one in shipped_traces() if prefix in one.prefixes), None)


@lru_cache(maxsize=64)
def _trace(path: Path, _mtime: int) -> Trace:
    from warehouse.base.yaml_text import read_yaml

    shown = f"data/traces/{path.name}"
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"{path} is not UTF-8 text") from error
    return _Reader(shown).trace(path.stem, read_yaml(text, shown, "the mapping"))


class _Reader:
    """Reader of one mapping, which knows the file for messages."""

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def trace(self, name: str, keys: Mapping[str, Value]) -> Trace:
        """Return the trace of a file's keys."""
        self._refuse_unknown("a mapping", keys, _KEYS)
        for needed in ("title", "url", "license"):
            if needed not in keys:
                raise ModelError(f"{self._shown} has no `{needed}`", hint="docs/traces.md has an example")
        formats = tuple(self._file(one, below) for one, below in self._below(keys, "files").items())
        relations = {one.relation: one for one in formats}
        title, url, license_ = (self._text(keys[key]) for key in ("title", "url", "license"))
        return Trace(
            name,
            title,
            self._text(keys["short"]) if "short" in keys else title,
            url,
            LICENSES.get(license_) or License(license_, license_, ""),
            **{key: self._text(keys[key]) for key in ("doi", "cite", "origin") if key in keys},
            unit=TIME_UNITS[self._one_of(keys["time unit"], TIME_UNITS)] if "time unit" in keys else 1,
            formats=formats,
            tables={table: self._mapped(table, keys[table], relations) for table in TARGETS if table in keys},
            states={raw.upper(): self._state(below) for raw, below in self._below(keys, "states").items()},
            totals=[self._total(one) for one in self._items(keys["totals"])] if "totals" in keys else (),
            examples=self._below(keys, "examples"),
        )

    def _file(self, relation: str, value: Value) -> NamedCsv:
        keys = self._mapping(value)
        self._refuse_unknown("a kind of files", keys, _FILE_KEYS)
        for needed in ("about", "name", "columns"):
            if needed not in keys:
                raise ModelError(f"{relation} has no `{needed}`", place=value.place(self._shown))
        if not _RELATION.fullmatch(relation):
            raise ModelError(
                f"{relation} is no name of a relation: small letters with an underscore, as acme_jobs",
                place=value.place(self._shown),
            )
        name = self._pattern(keys["name"])
        columns = {one: self._column(one, below) for one, below in self._below(keys, "columns").items()}
        prefix, _, kind = relation.partition("_")
        file = NamedCsv(
            name=f"{prefix}.{kind}",
            relation=relation,
            about=self._text(keys["about"]),
            cells={
                one: replace(CELLS[found["kind"]], required=bool(found["needed"])) for one, found in columns.items()
            },
            file_name=name,
            cluster=self._text(keys["cluster"]) if "cluster" in keys else "{cluster}",
            place=self._text(keys["place"]) if "place" in keys else f"{prefix}/{{name}}",
            group=self._text(keys["list"]) if "list" in keys else "",
            optional=frozenset(one for one, found in columns.items() if found["optional"]),
            one_of=[one.split(" or ") for one in self._texts(keys, "one of")],
            without=frozenset(self._texts(keys, "without")),
            only={one: frozenset(map(self._text, self._items(of))) for one, of in self._below(keys, "only").items()},
            key=self._text(keys["key"]) if "key" in keys else None,
            repeats=self._texts(keys, "repeats"),
            order=self._texts(keys, "order"),
            delimiter=self._text(keys["delimiter"]) if "delimiter" in keys else ",",
            encoding=self._one_of(keys["encoding"], _ENCODINGS) if "encoding" in keys else _ENCODINGS[0],
            has_header="header" not in keys,
            ends_with_newline="final newline" not in keys,
            meanings={one: (found["unit"], found["about"] or "") for one, found in columns.items()},
        )
        self._check_names(file, keys)
        return file

    def _check_names(self, file: NamedCsv, keys: Mapping[str, Value]) -> None:
        """Raise ModelError for a column or placeholder that the file lacks."""
        for key in ("key", "repeats", "order", "one of"):
            names = [one for text in self._texts(keys, key) for one in text.split(" or ")]
            for name in names:
                if name not in file.cells:
                    place = keys[key].place(self._shown)
                    raise ModelError(f"no column {name}", place=place, hint=nearest_hint(name, file.cells))
        for key, text in (("cluster", file.cluster), ("place", file.place), ("list", file.group)):
            known = {"name", *file.file_name.groupindex}
            for group in (field for _, field, _, _ in Formatter().parse(text) if field is not None):
                if group not in known:
                    place = keys.get(key, keys["name"]).place(self._shown)
                    hint = f"write (?P<{group}>...) in `name`, or a fixed `{key}`"
                    raise ModelError(f"`name` has no group {group}, which `{key}` needs", place=place, hint=hint)
        if len(file.delimiter) != 1:
            raise ModelError("`delimiter` is one character", place=keys["delimiter"].place(self._shown))

    def _column(self, name: str, value: Value) -> re.Match[str]:
        found = _COLUMN.fullmatch(" ".join(self._text(value).split()))
        if found is None or found["kind"] not in CELLS:
            raise ModelError(
                f"column {name} is not `KIND [unit] meaning`, with ! behind the kind for cells that are never blank"
                " and ? for a column that a file may lack",
                place=value.place(self._shown),
                hint=f"kinds: {', '.join(CELLS)}",
            )
        return found

    def _pattern(self, value: Value) -> re.Pattern[str]:
        try:
            return re.compile(rf"(?:{self._text(value)})(?:\.gz|\.zst)?", re.IGNORECASE)
        except re.error as error:
            raise ModelError(f"the pattern is not valid: {error}", place=value.place(self._shown)) from error

    def _mapped(self, table: str, value: Value, relations: Mapping[str, NamedCsv]) -> Mapped:
        keys = self._mapping(value)
        self._refuse_unknown(f"`{table}`", keys, ("from", *TARGETS[table], "extra"))
        relation = self._text(keys["from"]) if "from" in keys else ""
        if relation not in relations:
            place = keys.get("from", value).place(self._shown)
            raise ModelError(f"`from` names one of the files: {', '.join(relations)}", place=place)
        columns = {key: self._text(below) for key, below in keys.items() if key not in ("from", "extra")}
        extra = self._below(keys, "extra")
        lines = {key: below.line for key, below in (*keys.items(), *extra.items())}
        return Mapped(relation, columns, {one: self._text(of) for one, of in extra.items()}, lines)

    def _state(self, value: Value) -> tuple[str, str]:
        state, _, outcome = self._text(value).partition(" ")
        if outcome not in ("", "completed", "cancelled", "failed"):
            raise ModelError(f"{outcome} is no outcome: completed, cancelled or failed", place=value.place(self._shown))
        return state, outcome

    def _total(self, value: Value) -> dict[str, str]:
        keys = self._mapping(value)
        self._refuse_unknown("a total", keys, ("quantity", "value", "tolerance", "place"))
        found = {"tolerance": "0", **{key: self._text(below) for key, below in keys.items()}}
        numbers = [found.get("value", ""), found["tolerance"]]
        if "place" not in found or not all(CELLS["number"].pattern.fullmatch(one) for one in numbers):
            raise ModelError(
                "a total has a `quantity`, a number as `value`, and the `place` of its publication",
                place=value.place(self._shown),
            )
        self._one_of(keys.get("quantity", value), TOTALS)
        return found

    def _refuse_unknown(self, what: str, keys: Mapping[str, Value], known: Sequence[str]) -> None:
        for key, below in keys.items():
            if key not in known:
                hint = nearest_hint(key, known) or f"it has {', '.join(known)}"
                raise ModelError(f"{what} has no `{key}`", place=below.place(self._shown), hint=hint)

    def _mapping(self, value: Value) -> Mapping[str, Value]:
        if not isinstance(value.content, Mapping):
            raise ModelError("a list of `key: value` is expected here", place=value.place(self._shown))
        return value.content

    def _below(self, keys: Mapping[str, Value], key: str) -> Mapping[str, Value]:
        return self._mapping(keys[key]) if key in keys else {}

    def _items(self, value: Value) -> Sequence[Value]:
        return [value] if isinstance(value.content, (str, Mapping)) else value.content

    def _texts(self, keys: Mapping[str, Value], key: str) -> list[str]:
        return [self._text(one) for one in self._items(keys[key])] if key in keys else []

    def _one_of(self, value: Value, known: Iterable[str]) -> str:
        text = self._text(value)
        if text not in known:
            raise ModelError(f"one of {', '.join(known)} is expected here", place=value.place(self._shown))
        return text

    def _text(self, value: Value) -> str:
        if not isinstance(value.content, str):
            raise ModelError("a text is expected here", place=value.place(self._shown))
        return value.content
