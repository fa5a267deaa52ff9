"""DuckDB SQL in, Spark SQL out: construct by construct, and every shipped model.

`fixtures/spark/constructs.sql` holds the pairs; each was run on Spark 4.3 with rows equal to DuckDB's.
"""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest
import sqlglot

from warehouse.errors import ModelError
from warehouse.project import Project
from warehouse.spark_dialect import to_spark

CONSTRUCTS = Path(__file__).parent / "fixtures" / "spark" / "constructs.sql"
SHIPPED = Project.open()


def pairs() -> list[tuple[str, str, str]]:
    """(title, DuckDB, Spark) of each block of the fixture file."""
    found = []
    for block in CONSTRUCTS.read_text(encoding="utf-8").strip().split("\n\n"):
        title, ours, sparks = block.split("\n")
        found.append((title.removeprefix("-- "), ours.removesuffix(";"), sparks.removesuffix(";")))
    return found


def on_one_line(sql: str) -> str:
    return re.sub(r"\s+", " ", sql).replace("( ", "(").replace(" )", ")").strip()


@pytest.mark.parametrize(("ours", "sparks"), [pytest.param(*pair[1:], id=pair[0]) for pair in pairs()])
def test_a_construct_becomes_what_gives_equal_rows(ours: str, sparks: str) -> None:
    assert on_one_line(to_spark(ours)) == sparks


@pytest.mark.parametrize("ours", [pytest.param(pair[1], id=pair[0]) for pair in pairs()])
def test_the_duckdb_side_of_a_pair_is_duckdbs(ours: str) -> None:
    assert duckdb.extract_statements(ours)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT to_timestamp(s) FROM t",
        "SELECT date_diff('week', a, b) FROM t",
        "SELECT arg_max(x, k, 3) FROM t",
        "SELECT arg_max(x, k) OVER (PARTITION BY g) FROM t",
        "SELECT quantile_disc(x, [0.1, 0.9]) FROM t",
        "SELECT list(x) FROM t",
        "SELECT list(DISTINCT x ORDER BY x) FROM t",
        "SELECT unnest(range(1, 10, 2))",
        "SELECT r FROM range(3)",
        "SELECT u, o FROM unnest([1, 2]) WITH ORDINALITY AS q(u, o)",
        "SELECT a, b FROM unnest([1], [2]) AS q(a, b)",
        "SELECT regexp_replace(s, 'a', 'b') FROM t",
        "SELECT regexp_matches(s, 'a', 'i') FROM t",
        "SELECT sum(x) OVER (ORDER BY k ROWS 1 PRECEDING EXCLUDE CURRENT ROW) FROM t",
    ],
)
def test_what_would_give_other_rows_is_refused(sql: str) -> None:
    with pytest.raises(ModelError, match="not to be said in Spark's SQL"):
        to_spark(sql)


def test_sql_that_does_not_parse_is_a_sentence() -> None:
    with pytest.raises(ModelError, match="portable_sql"):
        to_spark("SELECT (1 FROM t")


@pytest.mark.parametrize("name", [name for name, model in SHIPPED.models.items() if not model.is_python])
def test_a_shipped_model_renders_and_parses_again(name: str) -> None:
    rendered = to_spark(SHIPPED.render(SHIPPED.models[name]))
    again = sqlglot.parse_one(rendered, read="spark")
    assert isinstance(again, sqlglot.exp.Query)
    assert again.named_selects == [column.name for column in SHIPPED.models[name].columns]
