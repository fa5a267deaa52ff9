"""Run the checks of a model as SQL and collect the failing rows.

The grain is always checked, and first. Conditions on single rows share one scan, and so do sums of one relation.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from warehouse.base.errors import CheckError, Place
from warehouse.base.text import plural
from warehouse.engine.base import EngineError
from warehouse.engine.duckdb_scratch import DuckDBScratch
from warehouse.graph.binding import check_is_not_valid
from warehouse.project.check_language import all_checks, ascent, compile_check, grain_check
from warehouse.project.contract import Check
from warehouse.project.model import Model
from warehouse.store.part_records import CheckResult

SHOWN_ROWS = 5
KEPT_ROWS = 50
"""Failing rows of a check and partition that the catalog keeps."""


def run_checks(scratch: DuckDBScratch, model: Model, checks: Sequence[Check]) -> list[int]:
    """Return the number of failing rows of each check.

    Raises
    ------
    ModelError
        With the line of the check, when its SQL is invalid.
    """
    counts: dict[int, int] = {}
    conditions: list[tuple[int, str]] = []
    totals: dict[str, list[tuple[int, str, str]]] = {}
    rows = model.name
    for position, check in enumerate(checks):
        if check == grain_check(model):
            grain = ascent(model)
            rows = grain.rows
            conditions.append((position, grain.fails))
            continue
        compiled = compile_check(check, model)
        if compiled.predicate is not None:
            conditions.append((position, f"({compiled.predicate}) IS NOT TRUE"))
        elif compiled.total is not None:
            mine, relation, other = compiled.total
            totals.setdefault(relation, []).append((position, mine, other))
        else:
            counts[position] = _count(scratch, model, f"SELECT count(*) FROM ({compiled.failing})", check)[0]
    if conditions:
        counted = ", ".join(f"count(*) FILTER (WHERE {fails})" for _, fails in conditions)
        found = _count(
            scratch, model, f"SELECT {counted} FROM {rows}", *(checks[position] for position, _ in conditions)
        )
        counts |= {position: failures for (position, _), failures in zip(conditions, found, strict=True)}
    for relation, sums in totals.items():
        own_sums = ", ".join(f"coalesce(sum({mine}), 0) AS a{position}" for position, mine, _ in sums)
        other_sums = ", ".join(f"coalesce({other}, 0) AS b{position}" for position, _, other in sums)
        same = ", ".join(f"CAST(a{position} <> b{position} AS INTEGER)" for position, _, _ in sums)
        found = _count(
            scratch,
            model,
            f"SELECT {same} FROM (SELECT {own_sums} FROM {model.name}), (SELECT {other_sums} FROM {relation})",
            *(checks[position] for position, _, _ in sums),
        )
        counts |= {position: differs for (position, _, _), differs in zip(sums, found, strict=True)}
    return [counts[position] for position in range(len(checks))]


def _count(scratch: DuckDBScratch, model: Model, sql: str, *checks: Check) -> list[int]:
    """Return one row of counts. Raises ModelError at the invalid check; of several checks, each is tried alone."""
    try:
        return [int(str(value)) for value in scratch.rows(sql)[0]]
    except EngineError as error:
        written = [check for check in checks if check != grain_check(model)]
        for check in written if len(written) > 1 else ():
            _count(scratch, model, f"SELECT count(*) FROM ({compile_check(check, model).failing})", check)
        wrong = (written or list(checks))[0]
        raise check_is_not_valid(wrong, model, error) from error


def results_of(
    scratch: DuckDBScratch, model: Model, checks: Sequence[Check], counts: Sequence[int], keys: Sequence[str] = ()
) -> list[CheckResult]:
    """Return check results; failed ones include their first rows as JSON, sorted by all columns."""
    results = []
    for position, (check, failures) in enumerate(zip(checks, counts, strict=True)):
        rows: tuple[str, ...] = ()
        if failures:
            failing = _failing(model, check.text)[0]
            first = f"SELECT * FROM ({failing}) ORDER BY ALL LIMIT {KEPT_ROWS}"
            rows = tuple(
                str(row[0]) for row in scratch.rows(f"SELECT CAST(to_json(failed) AS VARCHAR) FROM ({first}) AS failed")
            )
        key = keys[position] if keys else ""
        results.append(CheckResult(check.text, check.warn, failures, key, rows, says=check.says))
    return results


def check_error(model: Model, partition: str | None, result: CheckResult) -> CheckError:
    """Return the error of a failed check: check, place, number of rows, and the first rows."""
    _, check, place = _failing(model, result.check)
    where = "" if partition is None else f" in {partition}"
    values = ["  ".join(str(value) for value in json.loads(row).values())[:200] for row in result.rows]
    shown = (result.sentences or values)[:SHOWN_ROWS]
    error = CheckError(
        f"{model.name}{where}: {check}: {plural(result.failures, 'row')} {'fails' if result.failures == 1 else 'fail'}",
        place=place,
        details=[f"  {line}" for line in shown],
    )
    error.found = {
        "model": model.name, "partition": partition, "check": result.check, "failures": result.failures,
        "place": str(place), "rows": list(result.rows),
    }  # fmt: skip
    return error


def _failing(model: Model, text: str) -> tuple[str, str, Place]:
    """Return the SELECT of the failing rows, the text to show, and the place of the check."""
    check = next(check for check in all_checks(model) if check.text == text)
    shown = f"grain ({', '.join(model.grain)}) is not unique" if check == grain_check(model) else text
    return compile_check(check, model).failing, shown, check.place
