"""Answer of a query in Python: a DuckDB relation with what it needs to be shown and cited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warehouse.api.pages import table
from warehouse.base.errors import QueryError
from warehouse.base.startup import complete, duckdb
from warehouse.reader.answer_table import people_values
from warehouse.reader.damaged_parts import refuse_damage
from warehouse.reader.guard import check_read_only
from warehouse.reader.query_errors import from_engine
from warehouse.reader.readable import header_unit
from warehouse.reader.result import Asked, open_result
from warehouse.reader.units import column_meanings
from warehouse.reader.why_empty import no_rows, unknown_parameters

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from warehouse.reader.named_queries import Query

SHOWN = 40
"""Rows that a notebook shows."""


class Answer:
    """Rows of a query: a DuckDB relation that knows its query, its units and why it is empty.

    It has each attribute of a `duckdb.DuckDBPyRelation`: `.fetchall()` (a list of tuples), `.df()` (pandas), `.pl()`
    (polars), `.arrow()`, `.filter(...)`, `.show()`; `.relation` is the relation itself. `.df()` and `.pl()` need that
    library. Values are exact: bytes are whole numbers in B, rates are in bit/s, durations in s, shares are fractions of
    1, and timestamps are UTC without a zone. A notebook shows the first 40 rows with readable numbers, units and
    meanings, or the reason why there are none.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        target: Path,
        sql: str,
        query: Query | None,
        values: Mapping[str, object],
        given: Mapping[str, object],
    ) -> None:
        checked = check_read_only(connection, sql)
        if len(checked) != 1:
            raise QueryError(f"{len(checked)} statements, but the rows of one are asked for", hint="give one SELECT")
        [self.statement] = checked
        self.values = {name: value for name, value in values.items() if name in self.statement.parameters}
        if unknown := sorted(values.keys() - self.values.keys() if query is None else ()):
            raise QueryError(f"the query has no ${unknown[0]}")
        refuse_damage(target, self.statement.tables)
        complete()
        texts = {name: str(value) for name, value in given.items()}
        self._connection, self.asked = connection, Asked(target, query, self.values, texts)
        try:
            self.relation = connection.sql(sql, params=self.values)
            not_loaded = list(unknown_parameters(connection, query, given)) if query else []
            if not_loaded and not self.relation.limit(1).fetchall():
                raise QueryError("; ".join(not_loaded))
        except duckdb.Error as error:
            raise from_engine(error, sql, connection) from error

    def __getattr__(self, name: str) -> Any:
        if name == "relation":  # its constructor failed
            raise AttributeError(name)
        return getattr(self.relation, name)

    def __repr__(self) -> str:
        return repr(self.relation)

    @property
    def units(self) -> dict[str, str | None]:
        """Unit by column: `B`, `bit/s`, `s`, `share` (of 1), `count`, another one of a contract, or None."""
        return {name: unit for name, (unit, _) in self._described().items()}

    @property
    def meanings(self) -> dict[str, str]:
        """Meaning by column, where the contracts of the tables of the query have one."""
        return {name: about for name, (_, about) in self._described().items() if about}

    def _described(self) -> dict[str, tuple[str | None, str]]:
        names = self.relation.columns
        return dict(zip(names, column_meanings(self._connection.cursor(), self.statement.tables, names), strict=True))

    def _repr_html_(self) -> str:
        """Return the first rows with units and meanings for a notebook, or why there are none."""
        cursor = self._connection.cursor()
        result = open_result(cursor, self.statement, self.values)
        names = [one.name for one in result.columns]
        meanings = column_meanings(self._connection.cursor(), self.statement.tables, names)
        rows = result.first_rows(SHOWN)
        above = f"the first {SHOWN} rows" if result.is_cut else ""
        if not rows:
            above = no_rows(cursor, self.statement, self.asked)
        values = people_values(result.columns, [unit for unit, _ in meanings], rows)
        headers = [
            (one.name + header_unit(unit), about) for one, (unit, about) in zip(result.columns, meanings, strict=True)
        ]
        return table(headers, zip(*values, strict=True), above=above)
