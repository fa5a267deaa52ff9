"""What the checks of a table found: in this build, in those before that are kept, and in one that failed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO

from warehouse.base.errors import WarehouseError
from warehouse.reader import value_text
from warehouse.reader.connection import connect

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from warehouse.reader.relation import Relation

BUILDS_BEFORE = 2
SHOWN_ROWS = 3


def with_results(relation: Relation, connection: duckdb.DuckDBPyConnection, target: Path) -> Relation:
    """A table with the failing rows of its checks, and with what these found before."""
    from warehouse.store.manifest import kept_manifests, last_manifest

    failing = failing_rows(connection, relation.table.name)
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
        )
        for check in relation.checks
    )
    return replace(relation, checks=checks, stopped=_stopped(target, relation.table.name))


def failing_rows(connection: duckdb.DuckDBPyConnection, name: str) -> dict[str, tuple[str, ...]]:
    """Of each check of a table the first rows that fail, as JSON."""
    from warehouse.reader.relation import has_meta

    if not has_meta(connection, "failures"):  # a build of an earlier version
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for check, row in connection.execute(
        "SELECT check_text, failing_row FROM meta.failures WHERE model = $1 ORDER BY partition, position", [name]
    ).fetchall():
        found[check] = (*found.get(check, ()), row)
    return found


def _results(target: Path, build: str, name: str) -> dict[str, str]:
    """The results of a kept build, by check."""
    try:
        connection = connect(target, build=build)
    except WarehouseError:  # damaged, or gone since
        return {}
    try:
        found = connection.execute(
            "SELECT check_text, sum(failures)::BIGINT FROM meta.checks WHERE model = $1 GROUP BY check_text", [name]
        ).fetchall()
    finally:
        connection.close()
    return {check: f"{failures:,} rows" if failures else "passed" for check, failures in found}


def _stopped(target: Path, name: str) -> str | None:
    from warehouse.runner.checks import FAILED
    from warehouse.store.signatures import read_text

    try:
        said = json.loads(read_text(target / "builds" / FAILED))
        if said["model"] != name:
            return None
        where = f" in {said['partition']}" if said["partition"] else ""
        return f"{said['place']}: {said['check']}{where}: {int(said['failures']):,} rows, {said['at_utc']} UTC"
    except (OSError, ValueError, KeyError, TypeError):
        return None


def print_results(relation: Relation, stream: TextIO, width: int | None) -> None:
    """Print the checks of a table, the builds before beside them, and the first rows that fail."""
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
            said = ", ".join(f"{name} {value}" for name, value in json.loads(row).items() if value is not None)
            stream.writelines(f"  {line}" for line in wrapped(escape(said), wide - 2))
