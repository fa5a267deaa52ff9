"""Catalog of a build: one DuckDB file with all relations, and `meta` tables that describe tables and columns.

Small tables are copied into the catalog. Larger tables are views over an explicit list of their parts. If few
relations differ from the last build, its catalog is copied and these relations are replaced. Otherwise, or if the
last catalog is not byte-identical to what its build wrote, the catalog is written from scratch.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from warehouse.base import hashing
from warehouse.base.errors import ModelError, Place, WarehouseError
from warehouse.base.sql_text import identifier, literal, qualified
from warehouse.base.startup import duckdb
from warehouse.engine.base import CsvFiles, Engine, Source
from warehouse.engine.duckdb_errors import sentence
from warehouse.engine.duckdb_sql import json_rows, source_sql
from warehouse.project.contract import Column
from warehouse.project.semantics import NOTHING_SAID, Semantics
from warehouse.store.layout import CATALOG, CATALOG_HASHES
from warehouse.store.part_records import CheckResult

STORAGE_VERSION = "v1.4.0"
"""The file format that DuckDB 1.4 and later read."""
_FORMAT = 2
_GROWTH = 2.5
"""Growth factor of the file above which the catalog is written from scratch."""
CHECKS = "meta.checks"
META = {
    "meta.build": {
        "build_id": "VARCHAR", "published_utc": "TIMESTAMP", "version": "VARCHAR", "engine": "VARCHAR",
        "data_folders": "VARCHAR[]", "target": "VARCHAR",
    },
    "meta.models": {
        "model": "VARCHAR", "about": "VARCHAR", "grain": "VARCHAR[]", "partition_column": "VARCHAR",
        "kind": "VARCHAR", "rows": "BIGINT", "bytes": "BIGINT", "file": "VARCHAR", "sources": "VARCHAR",
        "reads": "VARCHAR[]", "stale": "BOOLEAN", "needs": "VARCHAR[][]",
    },
    "meta.columns": {
        "model": "VARCHAR", "position": "INTEGER", "column_name": "VARCHAR", "type": "VARCHAR", "unit": "VARCHAR",
        "about": "VARCHAR",
    },
    "meta.checks": {
        "model": "VARCHAR", "partition": "VARCHAR", "check_text": "VARCHAR", "severity": "VARCHAR",
        "status": "VARCHAR", "failures": "BIGINT",
    },
    "meta.measures": {
        "model": "VARCHAR", "column_name": "VARCHAR", "how": "VARCHAR", "not_over": "VARCHAR[]", "above": "VARCHAR",
        "below": "VARCHAR", "display_unit": "VARCHAR", "display_factor": "DOUBLE",
    },
    "meta.dimensions": {"model": "VARCHAR", "column_name": "VARCHAR", "is_time": "BOOLEAN"},
    "meta.failures": {
        "model": "VARCHAR", "partition": "VARCHAR", "check_text": "VARCHAR", "severity": "VARCHAR",
        "position": "INTEGER", "failing_row": "VARCHAR", "sentence": "VARCHAR",
    },
    "meta.dropped": {"model": "VARCHAR", "last_hour": "VARCHAR"},
}  # fmt: skip
META_ABOUT = {
    "meta.build": "Which build this is, and of what.",
    "meta.models": "Every relation: what it is, its grain, how it is kept, its size.",
    "meta.columns": "Every column: type, unit, meaning.",
    "meta.checks": "What the checks of this build found.",
    "meta.measures": "How to sum each number: sum, mean, min, max, none, or ratio, which is sum(above) / sum(below).",
    "meta.dimensions": "By what to group, and the column of time.",
    "meta.failures": "The first rows that fail a check, as JSON and, where the check says it, in a sentence; "
    "meta.checks says how many there are.",
    "meta.dropped": "Tables of detail from which --keep-hours left out hours, and the last of these.",
}
META_COLUMNS = {
    "build_id": "hash of the inputs of all parts: equal on every machine",
    "published_utc": "when it was published",
    "version": "version of warehouse",
    "engine": "engine that wrote the parts",
    "data_folders": "folders of raw files",
    "target": "folder of the warehouse",
    "model": "table with its schema, such as metrics.port_hour",
    "about": "what it is",
    "grain": "columns that name a row",
    "partition_column": "column whose values have a part each",
    "kind": "table, partitioned (a view of its parts), view, raw or reference",
    "rows": "number of rows; NULL for a view",
    "bytes": "size of its parts in bytes",
    "file": "file of the project that defines it",
    "sources": "page or publication that explains it",
    "reads": "tables that it reads",
    "stale": "true if a build with --select left it as it was",
    "needs": "groups of relations: it is empty if all of one group are",
    "position": "place in its list, from 1",
    "column_name": "the column",
    "type": "type in DuckDB",
    "unit": "unit of the values",
    "partition": "hour or other value of the partition column",
    "check_text": "the check as written in the model",
    "severity": "error or warn",
    "status": "passed, failed or not run",
    "failures": "number of rows that fail",
    "how": "sum, mean, min, max, none, or ratio, which is sum(above) / sum(below)",
    "not_over": "columns over which it must not be aggregated: group by them or choose one value",
    "above": "numerator of a ratio of sums",
    "below": "denominator of a ratio of sums",
    "display_unit": "unit to show",
    "display_factor": "divide by it to get the unit to show",
    "is_time": "true for the column of time",
    "failing_row": "the row as JSON",
    "sentence": "the row in words",
    "last_hour": "last hour that was left out",
}
"""Meaning of the columns of `meta`, which mean the same in each table."""


class Entry(NamedTuple):
    """Relation of the catalog."""

    name: str
    about: str
    kind: str
    """`table` (copied here), `partitioned` (a view over its parts, even if it has one), `view` (its SELECT), `raw`,
    `reference`."""
    source: Source
    columns: tuple[Column, ...]
    grain: tuple[str, ...] = ()
    partition: str | None = None
    rows: int | None = None
    bytes: int | None = None
    file: str | None = None
    sources: str = ""
    reads: tuple[str, ...] = ()
    stale: bool = False
    needs: tuple[tuple[str, ...], ...] = ()
    """Groups of relations: if all relations of one group are empty, this relation is empty."""
    checks: tuple[tuple[str, Sequence[CheckResult]], ...] = ()
    """Results of each part's checks, with its partition."""
    semantics: Semantics = NOTHING_SAID
    dropped: str | None = None
    """Last hour whose rows `--keep-hours` left out."""
    empty: str = ""
    """Reason why it has no rows."""


class Base(NamedTuple):
    """Catalog of the last build, to copy and update."""

    path: Path
    kinds: Mapping[str, str]
    """Kind of each relation."""
    hashes: Mapping[str, str]
    """Hash of each relation."""
    fresh_bytes: int | None
    """Size in bytes when the catalog was last written from scratch; None if it is being written."""


def write_catalog(
    path: Path, entries: Sequence[Entry], build: Mapping[str, object], engine: Engine, base: Base | None = None
) -> None:
    """Write the DuckDB file of a build. Entries come in dependency order.

    Raises
    ------
    ModelError
        When a relation cannot be written.
    WarehouseError
        When the file cannot be written, for example on a full disk.
    """
    hashes = {entry.name: entry_hash(entry) for entry in entries}
    if base is not None and _is_rewrite_due(base, hashes):
        base = None
    meta = _meta(entries, build)
    kinds = {entry.name: entry.kind for entry in entries} | dict.fromkeys(meta, "table")
    hashes |= {name: hashing.of([META[name], META_ABOUT[name], META_COLUMNS, rows]) for name, rows in meta.items()}
    others = {name for name, digest in hashes.items() if base is None or base.hashes.get(name) != digest}
    with closing(engine.connection()) as connection:
        try:
            begin(connection, path, base)
            if base is not None:
                _drop(connection, base, hashes)
            for schema in sorted({name.partition(".")[0] for name in hashes}):
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {identifier(schema)}")
            for entry in entries:
                if entry.name in others:
                    create(connection, entry, engine.held)
            for name, rows in meta.items():
                if name in others:
                    _write_meta(connection, name, rows)
            connection.execute("COMMIT; CHECKPOINT published; USE memory; DETACH published")
        except duckdb.Error as error:
            raise WarehouseError(f"the catalog cannot be written: {sentence(error)}") from error
    size = path.stat().st_size
    record = {
        "format": _FORMAT,
        "digest": hashing.of_file(path),
        "fresh_bytes": (base and base.fresh_bytes) or size,
        "relations": {name: [kinds[name], digest] for name, digest in hashes.items()},
    }
    path.with_name(CATALOG_HASHES).write_text(json.dumps(record), encoding="utf-8")


def read_base(folder: Path) -> Base | None:
    """Return the catalog in a build's folder; None if it is missing or not byte-identical to what was written."""
    path = folder / CATALOG
    try:
        record = json.loads((folder / CATALOG_HASHES).read_text(encoding="utf-8"))
        if record["format"] != _FORMAT or hashing.of_file(path) != record["digest"]:
            return None
        kinds = {name: str(kind) for name, (kind, _) in record["relations"].items()}
        return Base(
            path, kinds, {name: digest for name, (_, digest) in record["relations"].items()}, record["fresh_bytes"]
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _is_rewrite_due(base: Base, hashes: Mapping[str, str]) -> bool:
    """Return True if most relations have changed or the file has grown too much for another update."""
    changed = sum(base.hashes.get(name) != digest for name, digest in hashes.items())
    if base.fresh_bytes is None:
        return False
    return changed > len(hashes) / 2 or base.path.stat().st_size > _GROWTH * base.fresh_bytes


def begin(connection: duckdb.DuckDBPyConnection, path: Path, base: Base | None) -> None:
    """Open the catalog file and begin a transaction."""
    if base is not None and base.fresh_bytes is None:
        base.path.replace(path)
    elif base is not None:
        shutil.copyfile(base.path, path)
    connection.execute("SET GLOBAL checkpoint_threshold = '1B'")  # commits go to the file, not to a `.wal`
    connection.execute(f"ATTACH {literal(str(path))} AS published (STORAGE_VERSION {literal(STORAGE_VERSION)})")
    connection.execute("USE published; BEGIN")


def _drop(connection: duckdb.DuckDBPyConnection, base: Base, hashes: Mapping[str, str]) -> None:
    """Drop relations that changed or no longer exist, and empty schemas."""
    names = [name for name, digest in base.hashes.items() if hashes.get(name) != digest]
    for name in names:
        connection.execute(f"DROP {_sql_kind(base.kinds[name])} {qualified(name)}")
    before, after = ({name.partition(".")[0] for name in one} for one in (base.hashes, hashes))
    for schema in sorted(before - after):
        connection.execute(f"DROP SCHEMA {identifier(schema)}")


def _sql_kind(kind: str) -> str:
    """Return the kind of a relation in DuckDB's SQL."""
    return "TABLE" if kind in ("table", "reference") else "VIEW"


def create(connection: duckdb.DuckDBPyConnection, entry: Entry, held: Mapping[str, str]) -> None:
    """Create a relation with its rows and comments. Raises ModelError."""
    try:
        connection.execute(";".join(_statements(entry, held)))
    except duckdb.Error as error:
        place = Place(entry.file) if entry.file else None
        raise ModelError(f"{entry.name} cannot be published: {sentence(error)}", place=place) from error


def _statements(entry: Entry, held: Mapping[str, str]) -> Iterator[str]:
    """Yield the statements that create a relation with its rows and comments."""
    name, kind = qualified(entry.name), _sql_kind(entry.kind)
    if kind == "VIEW":
        yield f"CREATE VIEW {name} AS {source_sql(entry.source, globs=True)}"
    else:
        yield f"CREATE TABLE {name} AS {source_sql(entry.source, held)}"
    about = f"empty: {entry.empty}. {entry.about}" if entry.empty else entry.about
    yield f"COMMENT ON {kind} {name} IS {literal(about)}"
    for column in entry.columns:
        if column.comment:
            yield f"COMMENT ON COLUMN {name}.{identifier(column.name)} IS {literal(column.comment)}"


def entry_hash(entry: Entry) -> str:
    """Return the hash of a relation. Paths of parts contain a content hash; reference tables are hashed here."""
    content = []
    if entry.kind == "reference" and isinstance(entry.source, CsvFiles):
        content = [hashing.of_file(path) for path in entry.source.paths]
    return hashing.of([entry.kind, list(_statements(entry, {})), content])


def _meta(entries: Sequence[Entry], build: Mapping[str, object]) -> dict[str, list[dict[str, object]]]:
    """Return the rows of each table of `meta`."""
    lists = {id(results): results for e in entries for _, results in e.checks}  # unchanged parts share a list
    with_rows = {at for at, results in lists.items() if any(one.rows for one in results)}
    rows: dict[str, list[Sequence[object]]] = {
        "meta.build": [[build[name] for name in META["meta.build"]]],
        "meta.models": [
            [
                e.name, e.about, list(e.grain), e.partition, e.kind, e.rows, e.bytes, e.file, e.sources or None,
                list(e.reads), e.stale, [list(group) for group in e.needs],
            ]
            for e in entries
        ],
        "meta.dropped": [[e.name, e.dropped] for e in entries if e.dropped],
        "meta.columns": [
            [e.name, position, c.name, c.type, c.unit, c.about]
            for e in entries
            for position, c in enumerate(e.columns, start=1)
        ],
        "meta.measures": [
            [e.name, m.column, m.how, list(m.not_over), m.above, m.below, m.unit, m.factor]
            for e in entries
            for m in e.semantics.measures
        ],
        "meta.dimensions": [
            [e.name, name, name == e.semantics.time]
            for e in entries
            for name in dict.fromkeys([*filter(None, [e.semantics.time]), *e.semantics.dimensions])
        ],
        "meta.failures": [
            [
                e.name, partition, r.check, "warn" if r.warn else "error", position, row,
                r.sentences[position - 1] if r.says else None,
            ]
            for e in entries
            for partition, results in e.checks
            if id(results) in with_rows
            for r in results
            for position, row in enumerate(r.rows, start=1)
        ],
    }  # fmt: skip
    tables = {name: [dict(zip(META[name], row, strict=True)) for row in found] for name, found in rows.items()}
    return tables | {CHECKS: _grouped_checks(entries)}


def _grouped_checks(entries: Sequence[Entry]) -> list[dict[str, object]]:
    """Return the check results of parts; parts of a model that share a list of results are one row."""
    found: list[dict[str, object]] = []
    for place, entry in enumerate(entries):
        groups: dict[int, tuple[list[str], Sequence[CheckResult]]] = {}  # unchanged parts share a list of results
        for partition, results in entry.checks:
            groups.setdefault(id(results), ([], results))[0].append(partition)
        found += (
            {
                "place": place,
                "model": entry.name,
                "partitions": partitions,
                "checks": [
                    {
                        "check_text": one.check,
                        "severity": "warn" if one.warn else "error",
                        "status": one.status,
                        "failures": one.failures,
                    }
                    for one in results
                ],
            }
            for partitions, results in groups.values()
        )
    return found


def _write_meta(connection: duckdb.DuckDBPyConnection, name: str, rows: Sequence[Mapping[str, object]]) -> None:
    columns = ", ".join(f"{column} {kind}" for column, kind in META[name].items())
    connection.execute(f"CREATE TABLE {name} ({columns})")
    connection.execute(f"COMMENT ON TABLE {name} IS {literal(META_ABOUT[name])}")
    for column in META[name]:
        connection.execute(f"COMMENT ON COLUMN {name}.{column} IS {literal(META_COLUMNS[column])}")
    if rows:
        select = _select_checks() if name == CHECKS else _select_rows(META[name])
        connection.execute(f"INSERT INTO {name} {select}", [json.dumps(rows, default=str)])


def _select_rows(columns: Mapping[str, str]) -> str:
    """Return the SELECT of a table's rows from JSON."""
    return json_rows({name: [kind[:-2]] if kind.endswith("[]") else kind for name, kind in columns.items()})


def _select_checks() -> str:
    """Return the SELECT of check results from `_grouped_checks`, a row for each partition.

    Rows come by model, partition and place among the model's checks.
    """
    result = {name: kind for name, kind in META[CHECKS].items() if name not in ("model", "partition")}
    groups = json_rows({"place": "BIGINT", "model": "VARCHAR", "partitions": ["VARCHAR"], "checks": [result]})
    partitions = f"SELECT place, model, unnest(partitions) AS partition, checks FROM ({groups})"
    return f"SELECT model, partition, unnest(checks, max_depth := 2) FROM ({partitions} ORDER BY place, partition)"
