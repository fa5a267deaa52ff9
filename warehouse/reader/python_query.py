"""Implementation of `warehouse.query`: the answer to a named query or to SQL, as a DuckDB relation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError
from warehouse.base.startup import duckdb
from warehouse.project.project import Project
from warehouse.reader.guard import check_read_only
from warehouse.reader.named_queries import bind, find_query, load_queries
from warehouse.reader.query_errors import from_engine
from warehouse.reader.why_empty import unknown_parameters

if TYPE_CHECKING:
    from pathlib import Path

_NAME = re.compile(r"[a-z][a-z0-9-]*")


def ask(
    connection: duckdb.DuckDBPyConnection, statement: str, parameters: Mapping[str, object], project: Path | None
) -> duckdb.DuckDBPyRelation:
    """Return the rows of a named query, or of one SELECT.

    Raises
    ------
    QueryError
        If there is no such query or parameter, the SELECT is refused or invalid, or there is no row because a
        parameter of a named query has a value that is not loaded.
    """
    values = dict(parameters)
    sql, query = statement, None
    if _NAME.fullmatch(statement):
        query = find_query(statement, load_queries(Project.open(project).query_folders))
        sql, values = query.sql, bind(query, {name: str(value) for name, value in parameters.items()})
    checked = check_read_only(connection, sql)
    if len(checked) != 1:
        raise QueryError(f"{len(checked)} statements, but the rows of one are asked for", hint="give one SELECT")
    used = {name: value for name, value in values.items() if name in checked[0].parameters}
    unknown = sorted(parameters.keys() - values.keys() | values.keys() - used.keys() if query is None else ())
    if unknown:
        raise QueryError(f"the query has no ${unknown[0]}")
    try:
        answer = connection.sql(sql, params=used)
        not_loaded = list(unknown_parameters(connection, query, parameters)) if query else []
        if not_loaded and not answer.limit(1).fetchall():
            raise QueryError("; ".join(not_loaded))
        return answer
    except duckdb.Error as error:
        raise from_engine(error, sql, connection) from error
