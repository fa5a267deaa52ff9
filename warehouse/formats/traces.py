"""Published traces as data: `data/traces/NAME.yaml` has source, files, and SQL expressions for jobs and nodes.

Docs: docs/traces.md. A project's own files of this form add traces. The models that read mappings call the macro
`mapped` (`sql/macros/traces.sql`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from warehouse.base.errors import ModelError, nearest_hint
from warehouse.base.settings import shipped_root
from warehouse.base.startup import regex
from warehouse.base.yaml_text import Form, Value, checked, keys_of, one_of, read_yaml_file
from warehouse.formats.base import READ, RawFile, RawRelation
from warehouse.formats.named_csv import CELLS, NamedCsv

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
FROM_ORIGIN = ("submit_seconds", "start_seconds", "end_seconds", "run_seconds")
"""Columns in the time unit of the mapping."""
TIME_UNITS = {"seconds": 1, "milliseconds": 1_000, "microseconds": 1_000_000}
"""Time unit of a mapping -> its number in a second."""
_NO_DOI = "no DOI known"
_COLUMN = re.compile(
    rf"(?P<kind>{'|'.join(CELLS)})(?P<required>!)?(?P<optional>\?)?(\s+\[(?P<unit>[^\]]+)\])?(\s+(?P<about>.+))?",
    re.DOTALL,
)


_TEXT, _ANY, _NO = Form(r".*", "a text"), Form(r".+", "a name"), one_of("no")
_NUMBER = Form(CELLS["number"].pattern.pattern, CELLS["number"].what)
_FILE = {
    **dict.fromkeys(("about!", "name!", "cluster", "place", "list"), _TEXT),
    **{key: [_TEXT] for key in ("key", "ids", "order", "without")},
    "columns!": {
        _ANY: Form(
            _COLUMN.pattern,
            "`KIND [unit] meaning`, with ! behind the kind for cells that are never blank and ? for a column that a"
            f" file may lack; kinds: {', '.join(CELLS)}",
        )
    },
    "delimiter": Form(".", "one character"),
    "encoding": one_of("utf-8", "latin-1"),
    **dict.fromkeys(("header", "final newline"), _NO),
}
_MAPPING = {
    **dict.fromkeys(("title!", "url!", "license!", "short", "doi", "cite"), _TEXT),
    "origin": Form(CELLS["clock"].pattern.pattern, CELLS["clock"].what),
    "time unit": one_of(*TIME_UNITS),
    "files": {Form(r"[a-z][a-z0-9]*_[a-z0-9_]+", "small letters with an underscore, as acme_jobs"): _FILE},
    **{
        table: {"from!": _TEXT, **dict.fromkeys(columns, _TEXT), "extra": {_ANY: _TEXT}}
        for table, columns in TARGETS.items()
    },
    "states": {
        _ANY: Form(r"\S+( (completed|cancelled|failed))?", "a state, then completed, cancelled, failed or none")
    },
    "totals": [
        {
            # As `models/metrics/claim_quantities.sql` counts them.
            "quantity!": one_of("jobs", "clusters", "gpu_seconds", "gpu_hours", "nodes", "gpus"),
            "value!": _NUMBER,
            "tolerance": _NUMBER,
            "place!": _TEXT,
        }
    ],
    "examples": {_ANY: _TEXT},
}
"""Keys of a mapping and the forms of their values: `!` behind a key that is needed, a Form for keys of any name."""


class Mapped(NamedTuple):
    """How one table's rows come of the files of a trace."""

    relation: str
    """Relation of `raw`: `acme_jobs`."""
    columns: Mapping[str, Value]
    """Column -> SQL expression over the columns of the files, with its place."""
    extra: Mapping[str, Value]
    """The same for the members of `extra`."""


class Trace(NamedTuple):
    """Published trace."""

    name: str
    """Name of its file, and value of the column `trace`."""
    title: str
    url: str
    license: str
    """SPDX identifier, or `none stated`."""
    short: str = ""
    """Name in messages, if it is not the title."""
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
        return f"{self.name}: {self.title}, {self.license}, {self.doi or _NO_DOI}, {self.url}"


def stated(source: str) -> Trace:
    """Return a trace by its line of `source`."""
    titled, license_, doi, url = source.rsplit(", ", 3)  # a title may have commas
    name, _, title = titled.partition(": ")
    return Trace(name, title, url, license_, doi="" if doi == _NO_DOI else doi)


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


def by_prefix(traces: Sequence[Trace]) -> dict[str, Trace]:
    """Return traces by the first parts of the names of their formats: `acme` of `acme.jobs`."""
    return {prefix: one for one in traces for prefix in (one.name, *(of.name.partition(".")[0] for of in one.formats))}


@lru_cache(maxsize=64)
def _trace(path: Path, _mtime: int) -> Trace:  # the time is only a key of the cache
    shown = f"data/traces/{path.name}"
    mapping = Value(read_yaml_file(path, shown, "the mapping"), 1, 1)
    keys = checked(mapping, _MAPPING, "a mapping", shown)
    places = keys_of(mapping)
    files = {
        name: _file(name, keys["files"][name], keys_of(one), shown)
        for name, one in keys_of(places.get("files")).items()
    }
    tables = {table: _mapped(keys_of(places[table]), files, shown) for table in TARGETS if table in places}
    states = {raw.upper(): one.partition(" ")[::2] for raw, one in keys.get("states", {}).items()}
    return Trace(
        path.stem,
        **{key: keys[key] for key in ("title", "url", "license", "short", "doi", "cite", "origin") if key in keys},
        formats=tuple(files.values()),
        tables=tables,
        states=states,
        unit=TIME_UNITS[keys.get("time unit", "seconds")],
        totals=[{"tolerance": "0", **one} for one in keys.get("totals", ())],
        examples=keys_of(places.get("examples")),
    )


def _file(relation: str, keys: Mapping[str, Any], places: Mapping[str, Value], shown: str) -> NamedCsv:
    """Return a kind of files. Raises ModelError for a column or placeholder that it lacks."""
    prefix, _, kind = relation.partition("_")
    try:
        file_name = re.compile(rf"(?:{keys['name']})(?:\.gz|\.zst)?", re.IGNORECASE)
    except re.error as error:
        raise ModelError(f"the pattern is not valid: {error}", place=places["name"].place(shown)) from error
    texts = {"cluster": "{cluster}", "place": f"{prefix}/{{name}}", "list": ""}
    for key in texts:
        texts[key] = keys.get(key, texts[key])
        try:
            texts[key].format_map(dict.fromkeys(("name", *file_name.groupindex), ""))
        except (KeyError, ValueError) as error:
            place = places.get(key, places["name"]).place(shown)
            hint = f"write (?P<group>...) in `name`, or a fixed `{key}`"
            raise ModelError(f"`{key}` has a group that `name` lacks: {error}", place=place, hint=hint) from error
    cells = {}
    for column, text in keys["columns"].items():
        found = _COLUMN.fullmatch(text)
        assert found is not None
        cells[column] = CELLS[found["kind"]]._replace(
            required=bool(found["required"]),
            optional=bool(found["optional"]),
            unit=found["unit"],
            about=found["about"] or "",
        )
    for key in ("key", "ids", "order"):
        for name in keys.get(key, ()):
            if name not in cells:
                raise ModelError(f"no column {name}", place=places[key].place(shown), hint=nearest_hint(name, cells))
    return NamedCsv(
        name=f"{prefix}.{kind}",
        relation=relation,
        about=keys["about"],
        cells=cells,
        file_name=file_name,
        cluster=texts["cluster"],
        place=texts["place"],
        group=texts["list"],
        **{key: keys[key] for key in ("key", "ids", "order", "without", "delimiter", "encoding") if key in keys},
        has_header="header" not in keys,
        ends_with_newline="final newline" not in keys,
    )


def _mapped(keys: Mapping[str, Value], files: Mapping[str, NamedCsv], shown: str) -> Mapped:
    relation = str(keys["from"].content)
    if relation not in files:
        raise ModelError(f"`from` names one of the files: {', '.join(files)}", place=keys["from"].place(shown))
    columns = {key: one for key, one in keys.items() if key not in ("from", "extra")}
    return Mapped(relation, columns, keys_of(keys.get("extra")))


_ARCHIVE = regex(r"[^/]*trace[^/]*\.(tar(\.(gz|xz|bz2|zst))?|tgz)", re.IGNORECASE)


class ItpArchive:
    """Format `itp.archive`: archives of the ElasticFlow repository, `raw-traces.tar.gz`, `elasticflow-traces.tar.gz`.

    Docs: docs/formats/itp.md. Other names are accepted, too: the headers of the members decide what each member is.
    """

    name = "itp.archive"
    version = 1
    relations: Sequence[RawRelation] = ()
    max_bytes = 2**30
    max_members = 1000

    def claims(self, path: Path) -> bool:
        """Return True if the file is named like an archive of traces."""
        return _ARCHIVE.fullmatch(path.name) is not None

    def inspect(self, file: RawFile) -> RawFile:
        """Set cluster and release path. The archive is not opened here; a damaged one is found when it is read."""
        return file.but(status=READ, cluster="itp", release_path=f"itp/{file.path.name}")


ARCHIVE = ItpArchive()
