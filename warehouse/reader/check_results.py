"""Check results of a table: from this build, from earlier kept builds, and from a failed build."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO

from warehouse.base.errors import WarehouseError
from warehouse.base.text import plural
from warehouse.reader import value_text
from warehouse.reader.connection import connect

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from warehouse.reader.relation import Relation

BUILDS_BEFORE = 2
SHOWN_ROWS = 3


def with_results(relation: Relation, connection: duckdb.DuckDBPyConnection, target: Path) -> Relation:
    """Return the table with the failing rows of its checks and their results in earlier builds."""
    from warehouse.store.manifest import kept_manifests, last_manifest

    failing = failing_rows(connection, relation.table.name)
    sentences = failing_sentences(connection, relation.table.name)
    before: list[dict[str, str]] = []
    current = last_manifest(target)
    for manifest in kept_manifests(target) if current else ():
        if len(before) < BUILDS_BEFORE and current and manifest.build != current.build:
            before.append(_results(target, manifest.build, relation.table.name))
    checks = tuple(
        replace(
            check,
            before=tuple(found.get(check.check, "not there") for found in before),
            rows=failing.get(check.check, ()),
            sentences=sentences.get(check.check, ()),
        )
        for check in relation.checks
    )
    return replace(relation, checks=checks, stopped=_stopped(target, relation.table.name))


def failing_rows(connection: duckdb.DuckDBPyConnection, name: str) -> dict[str, tuple[str, ...]]:
    """Return the first failing rows of each check of a table, as JSON."""
    found: dict[str, tuple[str, ...]] = {}
    for check, row in connection.execute(
        "SELECT check_text, failing_row FROM meta.failures WHERE model = $1 ORDER BY partition, position", [name]
    ).fetchall():
        found[check] = (*found.get(check, ()), row)
    return found


def failing_sentences(connection: duckdb.DuckDBPyConnection, name: str) -> dict[str, tuple[str, ...]]:
    """Return the sentences on failing rows, for each check of a table that has them."""
    found: dict[str, tuple[str, ...]] = {}
    for check, sentence in connection.execute(
        "SELECT check_text, sentence FROM meta.failures WHERE model = $1 AND sentence IS NOT NULL "
        "ORDER BY partition, position",
        [name],
    ).fetchall():
        found[check] = (*found.get(check, ()), sentence)
    return found


def warnings(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return a line for each warning of the build: table, first sentence or check, and number of rows."""
    rows = connection.execute(
        "WITH c AS (FROM meta.checks WHERE status = 'warned'), "
        "counts AS (SELECT model, check_text, sum(failures)::BIGINT AS failures FROM c GROUP BY ALL), "
        "sentences AS (SELECT model, check_text, first(f.sentence ORDER BY f.partition, f.position) AS sentence "
        "FROM c LEFT JOIN meta.failures AS f USING (model, partition, check_text) GROUP BY model, check_text) "
        "SELECT model, check_text, sentence, failures FROM sentences JOIN counts USING (model, check_text) ORDER BY ALL"
    ).fetchall()
    lines = []
    for model, check, sentence, count in rows:
        more = f" .. {count - 1:,} more" if count > 1 else ""
        lines.append(f"{model}: {sentence}{more}" if sentence else f"{model}: {check}: {plural(count, 'row')}")
    return lines


def _results(target: Path, build: str, name: str) -> dict[str, str]:
    """Return the results of a kept build, by check."""
    try:
        connection = connect(target, build=build)
    except WarehouseError:  # damaged, or deleted meanwhile
        return {}
    try:
        found = connection.execute(
            "SELECT check_text, sum(failures)::BIGINT FROM meta.checks WHERE model = $1 GROUP BY check_text", [name]
        ).fetchall()
    finally:
        connection.close()
    return {check: f"{failures:,} rows" if failures else "passed" for check, failures in found}


def _stopped(target: Path, name: str) -> str | None:
    from warehouse.store.state import FAILED, NAME, DamagedStateError, State

    try:
        state = State(target / NAME)
    except DamagedStateError:
        return None
    last = state.get(FAILED, "")
    state.close()
    if last is None or last["model"] != name:
        return None
    where = f" in {last['partition']}" if last["partition"] else ""
    return f"{last['place']}: {last['check']}{where}: {int(last['failures']):,} rows, {last['at_utc']} UTC"


def print_results(relation: Relation, stream: TextIO, width: int | None) -> None:
    """Print the checks of a table with their earlier results and the first failing rows."""
    from warehouse.reader.text_table import escape, make_console, print_rows, wrapped

    wide = make_console(stream, width).width
    if relation.stopped:
        stream.write("\n")
        stream.writelines(wrapped(f"the last build ended here: {escape(relation.stopped)}", wide))
    if not relation.checks:
        return
    stream.write("\n")
    has_before = any(check.before for check in relation.checks)
    names = ("status", "#failures", *(("before",) if has_before else ()), "check")
    rows = [
        (check.status, f"{check.failures:,}", *((", ".join(check.before),) if has_before else ()), check.check)
        for check in relation.checks
    ]
    columns = [value_text.Column(name.lstrip("#"), "number" if name[0] == "#" else "text", "") for name in names]
    print_rows(columns, rows, stream, width=width, wrap_last=True)
    for check in relation.checks:
        for position, row in enumerate(check.rows[:SHOWN_ROWS]):
            if position == 0:
                stream.write("\n")
                stream.writelines(wrapped(f"fails {escape(check.check)}; meta.failures has more", wide))
            if check.sentences:
                stream.writelines(f"  {line}" for line in wrapped(escape(check.sentences[position]), wide - 2))
                continue
            text = ", ".join(f"{name} {value}" for name, value in json.loads(row).items() if value is not None)
            stream.writelines(f"  {line}" for line in wrapped(escape(text), wide - 2))
