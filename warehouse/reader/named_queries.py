"""Named queries of a question: found by name, and bound to the values of their parameters."""

from __future__ import annotations

from collections.abc import Mapping

from warehouse.base.errors import QueryError, nearest_hint
from warehouse.base.startup import regex
from warehouse.project.named_queries import Parameter, Query, load_queries, parse_value, read_query

__all__ = [
    "Parameter",
    "Query",
    "bind",
    "find_query",
    "load_queries",
    "parse_value",
    "read_query",
    "tables_of",
]
_TABLE = regex(r"\b(?:raw|staging|topology|metrics|reference)\.\w+")


def tables_of(sql: str) -> set[str]:
    """Return the names of relations in a SQL text.

    >>> sorted(tables_of("FROM metrics.port_hour JOIN topology.ports USING (port)"))
    ['metrics.port_hour', 'topology.ports']
    """
    return set(_TABLE.findall(sql))


def find_query(name: str, queries: Mapping[str, Query]) -> Query:
    """Return the query of that name or alias.

    Raises
    ------
    QueryError
        If there is no such query; the message has the nearest name.
    """
    if found := queries.get(name) or next((one for one in queries.values() if name in one.aliases), None):
        return found
    names = [*queries, *(alias for one in queries.values() for alias in one.aliases)]
    raise QueryError(f"no query {name}", hint=nearest_hint(name, names) or "warehouse sql --list lists them")


def bind(query: Query, given: Mapping[str, str]) -> dict[str, object]:
    """Convert the given parameter values to their types and add defaults.

    Parameters
    ----------
    query
        From `load_queries`.
    given
        Text by parameter, as typed by the user; `-` and `_` in names are equivalent.

    Raises
    ------
    QueryError
        If a value is missing or of another type, or the query has no such parameter.
    """
    named = {name.replace("-", "_"): text for name, text in given.items()}
    for name in named:
        if name not in query.parameters:
            known = ", ".join(query.parameters) or "none"
            raise QueryError(
                f"query {query.name} has no parameter {name}",
                hint=nearest_hint(name, query.parameters) or f"its parameters: {known}",
            )
    for name, parameter in query.parameters.items():
        if parameter.required and name not in named:
            raise QueryError(
                f"query {query.name} needs {name}: {parameter.about}", hint=f"give --{name.replace('_', '-')} VALUE"
            )
    return {
        name: _typed(parameter, named[name], query) if name in named else parameter.default
        for name, parameter in query.parameters.items()
    }


def _typed(parameter: Parameter, text: str, query: Query) -> object:
    try:
        return parse_value(text, parameter.type)
    except ValueError as error:
        raise QueryError(
            f"{parameter.name} of query {query.name} is {error}", hint=f"{parameter.name}: {parameter.about}"
        ) from error
