"""Entries of a build's catalog: raw and reference relations, then models in dependency order."""

from __future__ import annotations

import csv
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from warehouse.base.sql_text import qualified
from warehouse.engine.base import Parts, Select, Source
from warehouse.graph.dag import Graph
from warehouse.graph.empty_tables import EmptyTables
from warehouse.graph.sources import reference_source
from warehouse.ingest.files_table import MANY_FILES
from warehouse.ingest.schemas import FILES, REJECTED, abouts
from warehouse.project.contract import Column
from warehouse.runner.catalog import Entry
from warehouse.runner.own_hours import MANY_PARTS, hour_of_folders
from warehouse.runner.preparation import Prepared
from warehouse.runner.result import Outcome
from warehouse.store.part_records import CheckResult, Part
from warehouse.store.parts import Store

if TYPE_CHECKING:
    from warehouse.store.signatures import Stamp

START = "reference.start"

COPIED_BYTES = 20 * 10**6
"""Total size of the tables that are copied into the catalog, the smallest first. Larger tables are views of their
parts. A catalog without its parts still has most tables, and a build does not copy large ones."""


def catalog_entries(prepared: Prepared, outcome: Outcome) -> list[Entry]:
    """Return the entries of the catalog in dependency order."""
    entries = [*_raw_entries(prepared), *_reference_entries(prepared), *_model_entries(prepared, outcome)]
    return [*with_reasons([*entries, *_start_entries(prepared, entries)], prepared)]


def _start_entries(prepared: Prepared, entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the views of the schema `start`: the tables that `reference.start` lists."""
    listed = prepared.project.references.get(START)
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


def with_reasons(entries: Sequence[Entry], prepared: Prepared) -> Iterator[Entry]:
    """Yield the entries, those without rows with the reason."""
    raw_files = prepared.raw_files
    tables = EmptyTables(
        {entry.name: entry.kind for entry in entries},
        {entry.name: entry.rows for entry in entries},
        {entry.name: entry.needs for entry in entries},
        {entry.name: entry.reads for entry in entries},
        {name for name, one in raw_files.formats.items() if any(raw_files.feeds(of.full_name) for of in one.relations)},
    )
    for entry in entries:
        is_empty = not entry.dropped and entry.name not in (FILES, REJECTED) and tables.is_empty(entry.name)
        yield entry._replace(empty=tables.reason(entry.name)) if is_empty else entry


def part_signatures(entries: Sequence[Entry], store: Store) -> dict[str, Stamp]:
    """Return the signatures of the parts that the catalog's views read or that its tables are copied from, by path."""
    found = {str(path) for entry in entries if isinstance(entry.source, Parts) for path in entry.source.paths}
    inside = f"{store.folder}{os.sep}"
    return store.signatures(path for path in found if path.startswith(inside))


def _raw_entries(prepared: Prepared, leave_out: Collection[str] = ()) -> Iterator[Entry]:
    raw_files = prepared.raw_files
    about = abouts(list(raw_files.formats.values())) if raw_files.inventory.roots else {}
    for name, columns in prepared.graph.source_columns.items():
        if name in about and name not in leave_out:
            yield _raw_entry(name, columns, about[name], prepared)


def _raw_entry(name: str, columns: tuple[Column, ...], about: str, prepared: Prepared) -> Entry:
    source = prepared.raw_files.source_of_view(name, prepared.engine)
    rows = prepared.raw_files.inventory.count if name == FILES else None
    kind = "table" if name in (FILES, REJECTED) and (rows or 0) <= MANY_FILES else "raw"
    return Entry(name, about, kind, source, columns, rows=rows)


def _reference_entries(prepared: Prepared) -> Iterator[Entry]:
    for one in prepared.project.references.values():
        yield Entry(one.name, one.about, "reference", reference_source(one), one.columns, file=f"data/{one.path.name}")


def early_entries(prepared: Prepared) -> list[Entry]:
    """Return the entries that are known before any part is made: raw files of the engine, and reference tables."""
    entries = [*_raw_entries(prepared, leave_out=(FILES, REJECTED)), *_reference_entries(prepared)]
    return list(with_reasons(entries, prepared))


def model_entry(
    prepared: Prepared,
    name: str,
    parts: Sequence[Part],
    *,
    folder_hour: str = "",
    is_copied: bool = True,
    is_stale: bool = False,
    checks: Sequence[tuple[str, Sequence[CheckResult]]] = (),
    dropped: str | None = None,
) -> Entry:
    """Return the entry of a model."""
    node = prepared.graph.nodes[name]
    model = node.model
    source: Source = Parts(model.columns, tuple(part.file for part in parts), folder_hour)
    kind = "table" if is_copied else "partitioned"
    if model.is_view:
        source, kind = Select(node.sql, model.columns), "view"
    return Entry(
        name,
        model.about,
        kind,
        source,
        model.columns,
        grain=model.grain,
        partition=model.partition,
        rows=None if kind == "view" else sum(part.rows for part in parts),
        bytes=None if kind == "view" else sum(part.bytes for part in parts),
        file=model.shown_path,
        sources=model.sources,
        reads=node.reads,
        stale=is_stale,
        needs=tuple(sorted(tuple(sorted(group)) for group in node.needs)),
        semantics=model.semantics,
        checks=tuple(checks),
        dropped=dropped,
    )


def _model_entries(prepared: Prepared, outcome: Outcome) -> Iterator[Entry]:
    parts_of, checks_of = outcome.parts_by_model(), outcome.checks_by_model()
    copied = _copied_tables(prepared.graph, parts_of)
    for name in prepared.graph.order:
        parts = parts_of.get(name, [])
        yield model_entry(
            prepared,
            name,
            parts,
            folder_hour=hour_of_folders(parts, outcome),
            is_copied=name in copied,
            is_stale=name in outcome.stale,
            checks=checks_of.get(name, ()),
            dropped=outcome.dropped.get(name),
        )


def _copied_tables(graph: Graph, parts_of: Mapping[str, Sequence[Part]]) -> set[str]:
    """Return the tables to copy into the catalog: the smallest of few parts, up to `COPIED_BYTES` together."""
    tables = (name for name in graph.order if not graph.nodes[name].model.is_view)
    parts = {name: parts_of.get(name, ()) for name in tables}
    sizes = {name: sum(part.bytes for part in parts[name]) for name in parts if len(parts[name]) <= MANY_PARTS}
    ordered = sorted(sizes, key=lambda name: (sizes[name], name))
    together = accumulate(sizes[name] for name in ordered)
    return {name for name, size in zip(ordered, together, strict=True) if size <= COPIED_BYTES}
