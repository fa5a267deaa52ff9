"""Entries of a build's catalog: raw and reference relations, then models in dependency order."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

from warehouse.base.sql_text import qualified
from warehouse.engine.base import Select, Source
from warehouse.formats.traces import by_prefix
from warehouse.graph.empty_tables import EmptyTables
from warehouse.graph.plan import parts_source, reference_source
from warehouse.ingest.schemas import FILES, REJECTED, abouts
from warehouse.runner.catalog import Entry
from warehouse.runner.result import Outcome
from warehouse.runner.work import Work
from warehouse.store.layout import ALL
from warehouse.store.manifest import CheckResult, Part

START = "reference.start"
SMALL_BYTES = 250_000
"""Mean size of a table's parts up to which its rows are copied into the catalog. Of larger parts, the catalog has a
view over the files: they are not written twice."""


def catalog_entries(work: Work, outcome: Outcome) -> list[Entry]:
    """Return the entries of the catalog in dependency order."""
    entries = [*_raw_entries(work), *_reference_entries(work), *_model_entries(work, outcome)]
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
    """Yield the entries, those without rows with the reason."""
    raw_files = work.raw_files
    tables = EmptyTables(
        {entry.name: entry.kind for entry in entries},
        {entry.name: entry.rows for entry in entries},
        {entry.name: entry.needs for entry in entries},
        {name for name, one in raw_files.formats.items() if any(raw_files.feeds(of.full_name) for of in one.relations)},
    )
    for entry in entries:
        is_empty = entry.name not in (FILES, REJECTED) and tables.is_empty(entry.name)
        yield entry._replace(empty=tables.reason(entry.name)) if is_empty else entry


def _raw_entries(work: Work) -> Iterator[Entry]:
    """Yield the raw relations that have files or that a model reads."""
    raw_files = work.raw_files
    about = abouts(list(raw_files.formats.values())) if raw_files.inventory.roots else {}
    mapped = work.session.project.traces if about else ()
    traces = by_prefix(mapped)
    of = {
        fed.full_name: traces[prefix].source
        for one in raw_files.formats.values()
        if (prefix := one.name.partition(".")[0]) in traces
        for fed in one.relations
    }
    read = {name for node in work.graph.nodes.values() for name in node.reads}
    for name, columns in work.graph.source_columns.items():
        if name in about and (name in read or raw_files.feeds(name)):
            source = work.plan.outside(name, ALL)
            rows = raw_files.inventory.count if name == FILES else None
            kind = "table" if name in (FILES, REJECTED) else "raw"  # the lists are temporary files
            stated = of.get(name, "") if raw_files.feeds(name) else ""
            yield Entry(name, about[name], kind, source, columns, rows=rows, sources=stated)


def _reference_entries(work: Work) -> Iterator[Entry]:
    for one in work.session.project.references.values():
        yield Entry(one.name, one.about, "reference", reference_source(one), one.columns, file=f"data/{one.path.name}")


def _model_entries(work: Work, outcome: Outcome) -> Iterator[Entry]:
    parts_of: dict[str, list[Part]] = {}
    checks_of: dict[str, list[tuple[str, list[CheckResult]]]] = {}
    for key in sorted(outcome.checks):
        checks_of.setdefault(key.model, []).append((key.partition, outcome.checks[key]))
    for key in sorted(outcome.parts):
        parts_of.setdefault(key.model, []).append(outcome.parts[key])
    for name in work.graph.order:
        node, parts = work.graph.nodes[name], parts_of.get(name, [])
        model = node.model
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
            stale=name in outcome.stale,
            needs=tuple(sorted(tuple(sorted(group)) for group in node.needs)),
            semantics=model.semantics,
            checks=checks_of.get(name, ()),
        )
