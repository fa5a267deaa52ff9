"""Task of a build: make one part, check it, or both. It is plain data: it can run in any thread, process or machine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from warehouse.base import hashing
from warehouse.base.errors import CheckError, ModelError
from warehouse.base.sql_text import identifier, literal
from warehouse.base.text import plural
from warehouse.engine import python_model
from warehouse.engine.duckdb import DuckDBEngine, DuckDBScratch
from warehouse.engine.duckdb_errors import EngineError
from warehouse.engine.sources import CsvFiles, Parts, Select, Source
from warehouse.graph.dag import check_is_not_valid, model_error
from warehouse.graph.plan import Key
from warehouse.project.contract import Check
from warehouse.project.model import Model, all_checks, ascent, compile_check, grain_check
from warehouse.store.atomic import sync
from warehouse.store.manifest import CheckResult, values_of
from warehouse.store.parts import Written
from warehouse.store.signatures import refuse_changed

SHOWN_ROWS = 5
KEPT_ROWS = 50
"""Failing rows of a check and partition that the catalog keeps."""


def run_checks(scratch: DuckDBScratch, model: Model, checks: Sequence[Check]) -> list[CheckResult]:
    """Return the result of each check; failed ones include their first rows as JSON, sorted by all columns.

    Raises
    ------
    ModelError
        With the line of the check, when its SQL is invalid.
    """
    counted, rows = [], model.name
    for check in checks:
        compiled = compile_check(check, model)
        fails = f"({compiled.predicate}) IS NOT TRUE" if compiled.predicate else None  # NULL fails, too
        if check == grain_check(model):
            rows, fails = ascent(model)
        counted.append(f"count(*) FILTER (WHERE {fails})" if fails else f"(SELECT count(*) FROM ({compiled.failing}))")
    try:
        # One scan of the part counts all of them.
        counts = scratch.rows(f"SELECT {', '.join(counted)} FROM {rows}")[0] if counted else ()
    except EngineError:
        for check in (one for one in checks if one != grain_check(model)):  # each alone, to name the one that fails
            try:
                scratch.rows(f"SELECT count(*) FROM ({compile_check(check, model).failing})")
            except EngineError as error:
                raise check_is_not_valid(check, model, error) from error
        raise

    def result(check: Check, failures: int) -> CheckResult:
        first = f"SELECT * FROM ({compile_check(check, model).failing}) ORDER BY ALL LIMIT {KEPT_ROWS}"
        found = scratch.rows(f"SELECT CAST(to_json(failed) AS VARCHAR) FROM ({first}) AS failed") if failures else ()
        return CheckResult(check.text, check.warn, failures, rows=tuple(str(row) for (row,) in found), says=check.says)

    return [result(check, int(str(count))) for check, count in zip(checks, counts, strict=True)]


def check_error(model: Model, partition: str | None, result: CheckResult) -> CheckError:
    """Return the error of a failed check: check, place, number of rows, and the first rows."""
    place = next(check.place for check in all_checks(model) if check.text == result.check)
    is_grain = result.check == grain_check(model).text
    shown = f"grain ({', '.join(model.grain)}) is not unique" if is_grain else result.check
    where = "" if partition is None else f" in {partition}"
    values = ["  ".join(str(value) for value in json.loads(row).values())[:200] for row in result.rows]
    return CheckError(
        f"{model.name}{where}: {shown}: {plural(result.failures, 'row')} {'fails' if result.failures == 1 else 'fail'}",
        place=place,
        details=[f"  {line}" for line in (result.sentences or values)[:SHOWN_ROWS]],
    )


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
    model = task.model
    order = () if model.presorted else model.grain
    try:
        with engine.scratch(task.sources) as scratch:
            rows = _write(task, scratch, order)
            file = task.path or task.part
            own = Parts(model.columns, (file,)) if file else Select(task.sql, model.columns)
            scratch.bind([(model.name, own)])
            results = run_checks(scratch, model, task.checks)
            if task.path and model.presorted and results[0].failures:  # the grain check comes first
                rows = _write(task, scratch, model.grain)
                results = run_checks(scratch, model, task.checks)
            if task.path:
                _refuse_other_values(task, scratch)
    except EngineError as error:
        raise model_error(model, task.sql, error) from error
    written = None
    if task.path:
        sync(task.path)
        written = Written(task.path, rows, hashing.of_file(task.path))
    for source in task.sources.values():
        if isinstance(source, CsvFiles):
            refuse_changed(source.seen)
    return Made(written, results)


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
