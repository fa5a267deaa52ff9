"""Remarks printed after a build: the lines of the named query `after-build`."""

from __future__ import annotations

from pathlib import Path

from warehouse.base.errors import QueryError
from warehouse.base.startup import duckdb
from warehouse.engine.duckdb_errors import sentence
from warehouse.project.project import Project
from warehouse.reader.connection import connect
from warehouse.reader.named_queries import load_query


def remarks(project: Project, target: Path) -> tuple[str, ...]:
    """Return the lines of the named query `after-build`, or nothing if the project has no such query."""
    query = load_query("after-build", project.query_folders)
    if query is None:
        return ()
    try:
        with connect(target) as connection:
            return tuple(str(row[0]) for row in connection.execute(query.sql).fetchall())
    except QueryError as error:  # for example, another process opened the file for writing; the build is published
        return (f"no remarks: {error.message}",)
    except duckdb.Error as error:  # for example, the query reads models that the project leaves out
        return (f"no remarks: {query.path}: {sentence(error)}",)
