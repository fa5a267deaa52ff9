"""What is ranked is ranked by values that are not rounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from warehouse.project.project import Project
from warehouse.reader.named_queries import load_queries
from warehouse.report import fabric
from warehouse.report.words import foremost

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDERS = Project.open()
QUERIES = {
    f"{kind}/{name}": query.sql
    for kind, folders in (("queries", FOLDERS.query_folders), ("report", FOLDERS.report_folders))
    for name, query in load_queries(folders).items()
}


def rounded(sql: str) -> set[tuple[str, str]]:
    """The columns that a query rounds where it makes them, each with the CTE that has it; '' for the answer."""
    found = set()
    for one in sqlglot.parse_one(sql, "duckdb").find_all(exp.Alias):
        if one.find(exp.Round):
            cte = one.find_ancestor(exp.CTE)
            found.add((cte.alias if cte else "", one.alias))
    return found


def ranked_by(sql: str) -> Iterator[tuple[str, str]]:
    """The columns that an ORDER BY, also that of a window, compares, each with all that it may be a column of."""
    for order in sqlglot.parse_one(sql, "duckdb").find_all(exp.Ordered):
        column, select, cte = order.this, order.find_ancestor(exp.Select), order.find_ancestor(exp.CTE)
        if isinstance(column, exp.Column) and select:
            tables = {one.alias_or_name: one.name for one in select.find_all(exp.Table)}
            of = [tables[column.table]] if column.table else [cte.alias if cte else "", *tables.values()]
            yield from ((one, column.name) for one in of)


@pytest.mark.parametrize("name", QUERIES)
def test_no_query_ranks_by_a_rounded_column(name: str) -> None:
    assert not rounded(QUERIES[name]) & set(ranked_by(QUERIES[name]))


def test_a_query_that_ranks_by_a_rounded_column_is_seen() -> None:
    wrong = "SELECT switch, round(load, 1) AS percent FROM t ORDER BY percent DESC"
    assert rounded(wrong) & set(ranked_by(wrong)) == {("", "percent")}
    wrong = "WITH a AS (SELECT round(load) AS load FROM t) SELECT rank() OVER (ORDER BY b.load) FROM a AS b"
    assert rounded(wrong) & set(ranked_by(wrong)) == {("a", "load")}


def test_of_links_that_look_equally_full_the_fullest_is_named() -> None:
    """Leaf-9 comes first and differs in no digit that is shown; a spare port of Leaf-10 is suspect twice."""
    with duckdb.connect() as made:
        made.execute("""
            CREATE SCHEMA topology; CREATE SCHEMA metrics;
            CREATE TABLE topology.switches AS SELECT 'c' AS cluster, * FROM (VALUES
                ('Leaf-9', 'g'), ('Leaf-10', 'g')) AS t(switch, leaf_group);
            CREATE TABLE topology.ports AS SELECT 'c' AS cluster, * FROM (VALUES
                ('Leaf-9', 'u1', 'uplink', 'spine-7', NULL), ('Leaf-10', 'u1', 'uplink', 'spine-1', NULL),
                ('Leaf-10', 'u2', 'uplink', 'spine-1', NULL), ('Leaf-10', 's1', 'spare', NULL, 'GPU-1'),
                ('Leaf-9', 's1', 'spare', NULL, NULL)) AS t(switch, port, port_class, peer_switch, server);
            CREATE TABLE metrics.port_hour AS
                SELECT 'c' AS cluster, TIMESTAMP '2024-05-23 16:00:00' AS hour_utc, * FROM (VALUES
                ('Leaf-9', 'u1', 0.039401::DOUBLE, 0.01), ('Leaf-10', 'u1', 0.01, 0.02),
                ('Leaf-10', 'u2', 0.01, 0.039402), ('Leaf-10', 's1', 0.0, 0.0::DOUBLE))
                AS t(switch, port, in_utilization, out_utilization);
            CREATE TABLE metrics.suspect_links AS SELECT 'c' AS cluster, * FROM (VALUES
                ('Leaf-10', 's1', 'one'), ('Leaf-10', 's1', 'other'), ('Leaf-9', 'u1', 'one')) AS t(switch, port, kind);
        """)
        asked = made.execute(QUERIES["report/fabric"], {"cluster": "c"})
        names = [str(column[0]) for column in asked.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in asked.fetchall()]
    assert [row["fullest_percent"] for row in rows if row["tier"] == "uplink"] == [3.94, 3.94]
    assert (foremost(rows)["leaf"], foremost(rows)["fullest_port"]) == ("Leaf-10", "u2")
    [figure] = [one for one in fabric.section(["c"]).figures if one.query == "fabric"]
    assert figure.says(rows) == (
        "1 leaf group, 2 leaves and 2 spines. The fullest uplink is u2 of Leaf-10 to spine-1, 3.94 % over the hour. "
        "3 suspect links, marked with a cross."
    )
    assert [row["links"] for row in rows] == [1, 2, 1]
