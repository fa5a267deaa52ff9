"""Task of a build: make one part, check it, or both. It is plain data: it can run in any thread, process or machine."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from warehouse.base import hashing
from warehouse.base.errors import ModelError
from warehouse.base.sql_text import identifier, literal
from warehouse.engine import python_model
from warehouse.engine.base import CsvFiles, EngineError, Parts, Select, Source
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.duckdb_scratch import DuckDBScratch
from warehouse.graph.dag import model_error
from warehouse.graph.plan import Key
from warehouse.project.contract import Check
from warehouse.project.model import Model
from warehouse.runner.check_sql import results_of, run_checks
from warehouse.store.atomic import sync
from warehouse.store.changed_files import refuse_changed
from warehouse.store.part_records import CheckResult
from warehouse.store.partitions import values_of
from warehouse.store.parts import Written


class Task(NamedTuple):
    """Part to make or to check."""

    key: Key
    model: Model
    sql: str
    """Rendered SELECT; of a Python model its source."""
    sources: Mapping[str, Source]
    """Relations that the SELECT and the checks read, in dependency order."""
    orders: Sequence[Sequence[str]]
    """Of a Python model, the grain of each input."""
    path: Path | None
    """File to write; None to check a part that is there, or a view."""
    part: str
    """The part that is there; empty if there is none."""
    checks: Sequence[Check]
    """Checks to run, the grain check first."""


class Made(NamedTuple):
    """What a task has made and found."""

    written: Written | None
    results: list[CheckResult]
    seconds: float


def make(task: Task, engine: DuckDBEngine) -> Made:
    """Make and check a part.

    The rows of a `presorted` model are written without sorting. If the grain check finds them out of order, the part is
    written a second time, sorted.

    Raises
    ------
    ModelError
        When the SELECT or a check fails, with the place in the model's file.
    DataError
        When a raw file has changed since it was hashed: the bytes that were read may not be those of the fingerprint.
    """
    started = time.perf_counter()
    model = task.model
    order = () if model.presorted else model.grain
    try:
        with engine.scratch(task.sources) as scratch:
            rows = _write(task, scratch, order)
            file = task.path or task.part
            own = Parts(model.columns, (file,)) if file else Select(task.sql, model.columns)
            scratch.bind([(model.name, own)])
            counts = run_checks(scratch, model, task.checks)
            if task.path and model.presorted and counts[0]:
                rows = _write(task, scratch, model.grain)
                counts = run_checks(scratch, model, task.checks)
            if task.path:
                _refuse_other_values(task, scratch)
            results = results_of(scratch, model, task.checks, counts)
    except EngineError as error:
        raise model_error(model, task.sql, error) from error
    written = None
    if task.path:
        sync(task.path)
        written = Written(task.path, rows, hashing.of_file(task.path))
    for source in task.sources.values():
        if isinstance(source, CsvFiles):
            refuse_changed(source.seen)
    return Made(written, results, time.perf_counter() - started)


def _write(task: Task, scratch: DuckDBScratch, order: Sequence[str]) -> int:
    """Write the rows of a part; return their number."""
    if task.path is None:
        return 0
    if task.model.is_python:
        return python_model.write(scratch, task.model, task.orders, task.path)
    return scratch.write(Select(task.sql, task.model.columns), task.path, order)


def _refuse_other_values(task: Task, scratch: DuckDBScratch) -> None:
    """Raise ModelError if a row belongs to another partition: readers find parts by the names of their folders."""
    for column, value in values_of(task.key.partition).items():
        other = f"CAST({identifier(column)} AS VARCHAR) IS DISTINCT FROM {literal(value)}"
        found = scratch.rows(f"SELECT {identifier(column)} FROM {task.model.name} WHERE {other} LIMIT 1")
        if found:
            raise ModelError(
                f"a row of the part of {column} = {value} has {column} = {found[0][0]}",
                place=task.model.place(1),
                hint="with `partition`, all rows of a part have its values",
            )
