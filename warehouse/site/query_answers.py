"""Named queries with their answers on the warehouse."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError
from warehouse.base.sql_text import identifier
from warehouse.reader.named_queries import tables_of
from warehouse.site.people_rows import NO_ROWS, Rows, run

if TYPE_CHECKING:
    import duckdb

    from warehouse.reader.named_queries import Query

SHOWN = 10
"""Most rows shown."""
_COLUMNS = {"leaf": "switch"}
"""Column of the values of a parameter that has another name."""


@dataclass(frozen=True)
class Answer:
    """Result of a query."""

    command: str
    rows: Rows
    has_more: bool = False
    """True if rows are left out."""
    problem: str = ""
    """Reason why there is no answer."""


def answer(connection: duckdb.DuckDBPyConnection, query: Query) -> Answer:
    """Run a query; each parameter gets the first value that its tables have of that name."""
    from warehouse.base.startup import duckdb

    given: Mapping[str, str] = {}
    command = f"warehouse sql -q {query.name}"
    try:
        given = {one.name: _example(connection, query, one.name) for one in query.parameters.values() if one.required}
        command += "".join(f" --{name.replace('_', '-')} {shlex.quote(text)}" for name, text in given.items())
        # One more row tells if rows are left out.
        found = run(connection, query, given, SHOWN + 1)
    except duckdb.InterruptException:
        raise
    except (QueryError, duckdb.Error) as error:
        return Answer(command, NO_ROWS, problem=str(error).splitlines()[0])
    return Answer(command, replace(found, rows=found.rows[:SHOWN]), len(found.rows) > SHOWN)


def _example(connection: duckdb.DuckDBPyConnection, query: Query, name: str) -> str:
    """Return a value for a parameter: the first of its column in a table of the query."""
    found = connection.execute(
        "SELECT model, column_name FROM meta.columns WHERE column_name IN ($1, $2) AND list_contains($3, model) "
        "ORDER BY column_name <> $1, model",
        [name, _COLUMNS.get(name, name), sorted(tables_of(query.sql))],
    ).fetchall()
    for model, column in found:
        of, source = identifier(column), ".".join(map(identifier, str(model).split(".")))
        row = connection.execute(
            f"SELECT CAST({of} AS VARCHAR) AS value FROM {source} WHERE {of} IS NOT NULL "
            # The shortest first, so that GPU-2 comes before GPU-10.
            "ORDER BY length(value), value LIMIT 1"
        ).fetchone()
        if row:
            return str(row[0])
    raise QueryError(f"it needs a value for {name}, and no loaded table has one")
