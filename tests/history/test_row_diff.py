"""Diff of the rows of two versions of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.history.diff.row_diff import RowDiff, compare_rows
from warehouse.history.diff.sides import Table
from warehouse.project.contract import Column


def version(rows: Mapping[Any, object], kind: str = "DOUBLE", *, grain: tuple[str, ...] = ("id",)) -> Table:
    values = ", ".join(f"({_sql(key)}, {_sql(value)})" for key, value in rows.items()) or "(NULL, NULL)"
    source = f"(SELECT CAST(a AS INTEGER) AS id, CAST(b AS {kind}) AS x FROM (VALUES {values}) AS v(a, b)"
    source += ")" if rows else " WHERE false)"
    return Table("t", "export", (Column("id", "INTEGER"), Column("x", kind)), grain, source=source)


def _sql(value: object) -> str:
    return "NULL" if value is None else f"'{value}'"


ENGINE = duckdb.connect(config={"threads": 1})


def rows_of(old: Table, new: Table, examples: int = 3) -> RowDiff:
    return compare_rows(ENGINE, old, new, None, examples)


CELL = st.one_of(st.none(), st.sampled_from(["0.5", "1.5", "nan", "inf"]))
VERSION = st.dictionaries(st.one_of(st.none(), st.integers(0, 5)), CELL, max_size=7)


@settings(deadline=None, max_examples=40)
@given(VERSION, VERSION)
def test_rows_are_added_removed_and_changed_as_by_definition(old: dict[Any, Any], new: dict[Any, Any]) -> None:
    found = rows_of(version(old), version(new), examples=10)
    changed = {key for key in old.keys() & new.keys() if old[key] != new[key]}
    assert (found.old, found.new) == (len(old), len(new))
    assert (found.added, found.removed) == (len(new.keys() - old.keys()), len(old.keys() - new.keys()))
    assert found.changed == len(changed) == found.cells.get("x", 0)
    assert {one.key["id"] for one in found.examples if one.change == "changed"} == changed


@settings(deadline=None, max_examples=40)
@given(st.lists(CELL, max_size=6), st.lists(CELL, max_size=6))
def test_without_a_grain_rows_are_compared_with_multiplicity(old: list[Any], new: list[Any]) -> None:
    def table(cells: list[Any]) -> Table:
        listed = ", ".join(f"({_sql(cell)})" for cell in cells) or "(NULL)"
        source = f"(SELECT CAST(a AS DOUBLE) AS x FROM (VALUES {listed}) AS v(a){'' if cells else ' WHERE false'})"
        return Table("t", "export", (Column("x", "DOUBLE"),), source=source)

    found = rows_of(table(old), table(new))
    assert found.added == (Counter(new) - Counter(old)).total()
    assert found.removed == (Counter(old) - Counter(new)).total()
    assert found.changed == 0


def test_a_violated_grain_multiplies_no_rows() -> None:
    source = "(SELECT 1 AS id, CAST(range AS DOUBLE) AS x FROM range({}))"
    columns = (Column("id", "INTEGER"), Column("x", "DOUBLE"))
    old, new = (Table("t", "export", columns, ("id",), source=source.format(count)) for count in (3, 5))
    found = rows_of(old, new)
    assert (found.key, found.added, found.removed, found.changed) == ((), 2, 0, 0)


def test_numbers_of_another_type_are_compared_as_numbers_and_others_as_text() -> None:
    one = {1: "1", 2: "2"}
    assert rows_of(version(one, "INTEGER"), version(one, "DOUBLE")).is_equal
    assert rows_of(version(one, "VARCHAR"), version(one, "INTEGER")).is_equal
    assert rows_of(version(one, "VARCHAR"), version({1: "1", 2: "3"}, "INTEGER")).changed == 1


def test_whole_numbers_are_summed_exactly() -> None:
    found = rows_of(version({1: 2**62, 2: 2**62, 3: 1}, "BIGINT"), version({1: 2**62, 2: 2**62, 3: 2}, "BIGINT"))
    assert [(total.old, total.new) for total in found.totals] == [(2**63 + 1, 2**63 + 2)]
