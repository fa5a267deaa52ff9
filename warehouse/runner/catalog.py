"""Catalog of a build: one DuckDB file with all relations, and `meta` tables that describe tables and columns.

Tables of small parts are copied into the catalog. Larger tables are views over an explicit list of their parts: a
pattern of paths would match parts of other builds, too.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from warehouse.base.errors import ModelError, Place, WarehouseError
from warehouse.base.sql_text import identifier, literal, qualified
from warehouse.base.startup import duckdb
from warehouse.base.version import __version__
from warehouse.engine.duckdb_errors import sentence
from warehouse.engine.sources import Select, Source, source_sql
from warehouse.formats.traces import by_prefix
from warehouse.graph.plan import Key, parts_source, reference_source
from warehouse.ingest.reading import FILES, REJECTED, abouts
from warehouse.project.contract import NOTHING_SAID, Column, Semantics
from warehouse.project.named_queries import Query, load_queries, table_macro
from warehouse.runner.session import Session
from warehouse.runner.work import Work
from warehouse.store.manifest import ALL, MACROS, CheckResult, Manifest

STORAGE_VERSION = "v1.4.0"
"""The file format that DuckDB 1.4 and later read."""
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
    "meta.upstream": {"model": "VARCHAR", "upstream": "VARCHAR"},
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
    "meta.upstream": "All tables that each table reads, directly or through others.",
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
    "upstream": "table that it reads, directly or through others",
}
"""Meaning of the columns of `meta`, which mean the same in each table."""


UNMET = "no row of the loaded files meets its conditions"
"""Reason why a table is empty, if no kind of file is missing."""
START = "reference.start"
SMALL_BYTES = 250_000
"""Mean size of a table's parts up to which its rows are copied into the catalog. Of larger parts, the catalog has a
view over the files: they are not written twice."""


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
    partition: tuple[str, ...] = ()
    rows: int | None = None
    bytes: int | None = None
    file: str | None = None
    sources: str = ""
    reads: tuple[str, ...] = ()
    stale: bool = False
    needs: tuple[tuple[str, ...], ...] = ()
    """Groups of relations: if all relations of one group are empty, this relation is empty."""
    checks: Sequence[tuple[str, Sequence[CheckResult]]] = ()
    """Results of each part's checks, with its partition."""
    semantics: Semantics = NOTHING_SAID
    empty: str = ""
    """Reason why it has no rows."""


def catalog_entries(work: Work) -> list[Entry]:
    """Return the entries of the catalog in dependency order."""
    references = (
        Entry(one.name, one.about, "reference", reference_source(one), one.columns, file=f"data/{one.path.name}")
        for one in work.session.project.references.values()
    )
    entries = [*_raw_entries(work), *references, *_model_entries(work)]
    return list(_with_reasons([*entries, *_start_entries(work, entries)], work))


def _start_entries(work: Work, entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the views of the schema `start`: the tables that `reference.start` lists."""
    listed = work.session.project.references.get(START)
    if listed is None:
        return
    known = {entry.name: entry for entry in entries}
    with listed.path.open(encoding="utf-8", newline="") as file:
        names = [row["relation"] for row in csv.DictReader(file)]
    for one in (known[name] for name in names if name in known):
        yield Entry(
            f"start.{one.name.partition('.')[2]}",
            one.about,
            "view",
            Select(f"FROM {qualified(one.name)}", one.columns),
            one.columns,
            grain=one.grain,
            file=one.file,
            sources=one.sources,
            reads=(one.name,),
            needs=((one.name,),),
            semantics=one.semantics,
        )


def _with_reasons(entries: Sequence[Entry], work: Work) -> Iterator[Entry]:
    """Yield the entries, those without rows with the reason: the kinds of files that are missing.

    A relation is empty if all relations of one of the groups that it needs are empty.
    """
    missing = _missing_files(work)
    for entry in entries:
        groups = [group for group in entry.needs if all(one in missing for one in group)]
        if entry.rows == 0 or (entry.kind == "view" and groups):
            missing[entry.name] = [kind for group in groups for one in group for kind in missing[one]]
        if entry.name not in missing:
            yield entry
            continue
        *others, last = dict.fromkeys(missing[entry.name]) or [""]
        listed = f"{', '.join(others)} or {last}" if others else last
        yield entry._replace(empty=f"no files of {listed} in the data folders" if listed else UNMET)


def _missing_files(work: Work) -> dict[str, list[str]]:
    """Return, for each raw relation without files, the kinds of files that feed it, as people name them.

    That is the job trace, if no file of it is loaded, else the kind of file.
    """
    raw_files, formats = work.raw_files, work.raw_files.formats.values()
    traces = by_prefix(work.session.project.traces) if formats else {}
    feeds = {of.full_name: raw_files.feeds(of.full_name) for one in formats for of in one.relations}
    loaded = {one.name.partition(".")[0] for one in formats if any(feeds[of.full_name] for of in one.relations)}
    found: dict[str, list[str]] = {}
    for one in formats:
        prefix, _, kind = one.name.partition(".")
        label, trace = kind.replace("_", " "), traces.get(prefix)
        if trace and trace.tables:
            named = trace.short or trace.title
            label = f"{label} of {named}" if prefix in loaded else named
        for name in (of.full_name for of in one.relations if not feeds[of.full_name]):
            found.setdefault(name, []).append(label)
    return found


def _raw_entries(work: Work) -> Iterator[Entry]:
    """Yield the raw relations that have files or that a model reads."""
    raw_files = work.raw_files
    about = abouts(list(raw_files.formats.values())) if raw_files.inventory.roots else {}
    traces = by_prefix(work.session.project.traces if about else ())
    of = {
        fed.full_name: traces[prefix].source
        for one in raw_files.formats.values()
        if (prefix := one.name.partition(".")[0]) in traces
        for fed in one.relations
    }
    read = {name for node in work.graph.nodes.values() for name in node.reads}
    for name, columns in work.graph.source_columns.items():
        if name in about and (name in read or raw_files.feeds(name)):
            yield Entry(
                name,
                about[name],
                "table" if name in (FILES, REJECTED) else "raw",  # the lists are temporary files
                work.plan.outside(name, ALL),
                columns,
                rows=raw_files.inventory.count if name == FILES else None,
                sources=of.get(name, "") if raw_files.feeds(name) else "",
            )


def _model_entries(work: Work) -> Iterator[Entry]:
    for name in work.graph.order:
        node, model = work.graph.nodes[name], work.graph.nodes[name].model
        keys = [Key(name, partition) for partition in work.plan.partitions(name)]
        parts = [work.plan.parts[key] for key in keys if not model.is_view]
        size = sum(part.bytes for part in parts)
        source: Source = parts_source(node, parts)
        kind = "table" if size <= SMALL_BYTES * len(parts) else "partitioned"
        if model.is_view:
            source, kind = Select(node.sql, model.columns), "view"
        yield Entry(
            name,
            model.about,
            kind,
            source,
            model.columns,
            grain=model.grain,
            partition=model.partition,
            rows=None if model.is_view else sum(part.rows for part in parts),
            bytes=None if model.is_view else size,
            file=model.shown_path,
            sources=model.sources,
            reads=node.reads,
            stale=name in work.stale,
            needs=tuple(sorted(tuple(sorted(group)) for group in node.needs)),
            semantics=model.semantics,
            checks=[(key.partition, work.results[key]) for key in keys if key in work.results],
        )


def write_catalog(path: Path, entries: Sequence[Entry], manifest: Manifest, session: Session) -> list[str]:
    """Write the DuckDB file of a build; return a sentence for each named query that is no macro of it.

    Entries come in dependency order.

    Raises
    ------
    ModelError
        When a relation cannot be written.
    WarehouseError
        When the file cannot be written, for example on a full disk.
    """
    meta = _meta(entries, manifest, session.store.target)
    with closing(session.engine.connection()) as connection:
        try:
            connection.execute("SET GLOBAL checkpoint_threshold = '1B'")  # commits go to the file, not to a `.wal`
            connection.execute(f"ATTACH {literal(str(path))} AS published (STORAGE_VERSION {literal(STORAGE_VERSION)})")
            connection.execute("USE published; BEGIN")
            for schema in sorted({name.partition(".")[0] for name in (*meta, *(entry.name for entry in entries))}):
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {identifier(schema)}")
            for entry in entries:
                _create(connection, entry)
            for name, rows in meta.items():
                _write_meta(connection, name, rows)
            connection.execute("COMMIT")
            problems = _create_macros(connection, list(load_queries(session.project.query_folders).values()))
            # DuckDB detaches no catalog that is in use.
            connection.execute("CHECKPOINT published; USE memory; DETACH published")
        except duckdb.Error as error:
            raise WarehouseError(f"the catalog cannot be written: {sentence(error)}") from error
    return problems


def _create_macros(connection: duckdb.DuckDBPyConnection, queries: Sequence[Query]) -> list[str]:
    """Create the table macros of the named queries that bind; return a sentence for each other query."""
    connection.execute(f"BEGIN; CREATE SCHEMA IF NOT EXISTS {MACROS}")
    for query in queries:
        try:
            connection.execute(table_macro(query))
        except (ModelError, duckdb.Error) as error:
            connection.execute("ROLLBACK")  # the engine ends a transaction with a statement that does not bind
            why = error.message if isinstance(error, ModelError) else sentence(error)
            others = [other for other in queries if other is not query]
            return [f"the named query {query.name} is no macro of the file: {why}", *_create_macros(connection, others)]
    connection.execute("COMMIT")
    return []


def _create(connection: duckdb.DuckDBPyConnection, entry: Entry) -> None:
    """Create a relation with its rows and comments. Raises ModelError."""
    name, kind = qualified(entry.name), "TABLE" if entry.kind in ("table", "reference") else "VIEW"
    about = f"empty: {entry.empty}. {entry.about}" if entry.empty else entry.about
    made = f"CREATE {kind} {name} AS {source_sql(entry.source)}"
    try:
        connection.execute(f"{made}; {comments(kind, name, about, {one.name: one.comment for one in entry.columns})}")
    except duckdb.Error as error:
        place = Place(entry.file) if entry.file else None
        raise ModelError(f"{entry.name} cannot be published: {sentence(error)}", place=place) from error


def comments(kind: str, name: str, about: str, columns: Mapping[str, str]) -> str:
    """Return the statements that describe a relation, whose `name` is quoted, and those of its columns with a text."""
    texts = [f"COMMENT ON {kind} {name} IS {literal(about)}"]
    texts += [f"COMMENT ON COLUMN {name}.{identifier(one)} IS {literal(text)}" for one, text in columns.items() if text]
    return "; ".join(texts)


def _meta(entries: Sequence[Entry], manifest: Manifest, target: Path) -> dict[str, list[dict[str, object]]]:
    """Return the rows of each table of `meta`."""
    upstream: dict[str, set[str]] = {}
    for e in entries:
        upstream[e.name] = {*e.reads, *(name for read in e.reads for name in upstream.get(read, ()))}
    rows: dict[str, list[Sequence[object]]] = {
        "meta.build": [
            [
                manifest.build, manifest.published_utc, __version__, manifest.engine,
                [*manifest.data, *manifest.linked], str(target),
            ]
        ],
        "meta.models": [
            [
                e.name, e.about, list(e.grain), ", ".join(e.partition) or None, e.kind, e.rows, e.bytes, e.file,
                e.sources or None, list(e.reads), e.stale, [list(group) for group in e.needs],
            ]
            for e in entries
        ],
        "meta.upstream": [[e.name, name] for e in entries for name in sorted(upstream[e.name])],
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
        "meta.checks": [
            [e.name, partition, r.check, "warn" if r.warn else "error", r.status, r.failures]
            for e in entries
            for partition, results in e.checks
            for r in results
        ],
        "meta.failures": [
            [
                e.name, partition, r.check, "warn" if r.warn else "error", position, row,
                r.sentences[position - 1] if r.says else None,
            ]
            for e in entries
            for partition, results in e.checks
            for r in results
            for position, row in enumerate(r.rows, start=1)
        ],
    }  # fmt: skip
    return {name: [dict(zip(META[name], row, strict=True)) for row in found] for name, found in rows.items()}


def describe_meta(name: str, catalog: str = "") -> str:
    """Return the statements that describe a table of `meta`; `catalog` is `exported.` or another prefix."""
    return comments("TABLE", catalog + name, META_ABOUT[name], {one: META_COLUMNS[one] for one in META[name]})


def _write_meta(connection: duckdb.DuckDBPyConnection, name: str, rows: Sequence[Mapping[str, object]]) -> None:
    columns = ", ".join(f"{column} {kind}" for column, kind in META[name].items())
    connection.execute(f"CREATE TABLE {name} ({columns}); {describe_meta(name)}")
    if rows:
        shape = {column: [kind[:-2]] if kind.endswith("[]") else kind for column, kind in META[name].items()}
        # Ten times as fast as VALUES.
        listed = f"SELECT unnest(from_json(?::VARCHAR::JSON, {literal(json.dumps([shape]))}), max_depth := 2)"
        connection.execute(f"INSERT INTO {name} {listed}", [json.dumps(rows, default=str)])
