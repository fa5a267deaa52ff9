"""Citations: an equal answer, or the differences."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from tests.conftest import call
from warehouse.base.errors import QueryError
from warehouse.reader import citations


def cite(target: Path, sql: str, *more: str) -> citations.Citation:
    said = call("sql", sql, *more, "--cite", "-t", target, cwd=target)
    assert said.status == 0, said
    return citations.load(target, said.err.split()[-1])


def change(target: Path, sql: str) -> None:
    (target / "warehouse.duckdb").chmod(0o644)
    with duckdb.connect(str(target / "warehouse.duckdb")) as opened:
        opened.execute(sql)


def test_a_citation_names_build_query_rows_and_digest(own_target: Path) -> None:
    made = cite(own_target, "SELECT switch FROM topology.switches WHERE role = $role", "--param", "role=leaf")
    assert made.build == "7f3a91c2d0e1f2a3"
    assert made.rows == 2
    assert made.text().startswith("warehouse build 7f3a91c2d0e1f2a3: SELECT switch FROM topology.switches WHERE")
    assert "with role = leaf; 2 rows, sha256 " in made.text()
    assert citations.load(own_target, made.id[:5]) == made
    words = ("sql", "FROM range(9000)", "--limit", "2", "--cite", "--format", "table")
    said = call(*words, "-t", own_target, cwd=own_target)
    assert said.out.endswith("9,000 rows, 2 shown\n"), "the citation ends no row that is counted"


def test_the_digest_ignores_row_order_unless_there_is_an_order_by(own_target: Path) -> None:
    made = cite(own_target, "SELECT switch FROM topology.switches")
    first = cite(own_target, "SELECT switch FROM topology.switches ORDER BY role")
    other = cite(own_target, "SELECT switch FROM topology.switches ORDER BY switch DESC")
    assert first.digest != other.digest
    change(own_target, "CREATE OR REPLACE TABLE topology.switches AS FROM topology.switches ORDER BY switch DESC")
    assert citations.again(own_target, made, {})[1] == []


def test_the_command_says_same_or_differs_and_lists(own_target: Path) -> None:
    made = [cite(own_target, "SELECT switch, count(*) AS n FROM topology.ports GROUP BY ALL ORDER BY ALL").id]
    said = call("sql", "-q", "nic", "--server", "GPU-1", "-t", own_target, "--cite", cwd=own_target)
    assert "named query nic with server = GPU-1" in said.err_text
    made.append(said.err.rpartition("citation ")[2].strip())
    listed = call("cite", "-t", own_target, cwd=own_target).out
    for name in made:
        assert listed.count(name) == 1
        again = call("cite", name, "-t", own_target, cwd=own_target)
        assert (again.status, again.out.splitlines()[-1]) == (0, "same")
    change(own_target, "DELETE FROM topology.ports WHERE port LIKE '%:2'; UPDATE meta.build SET build_id = 'ffff'")
    again = call("cite", made[0], "-t", own_target, cwd=own_target)
    assert (again.status, again.out.splitlines()[1:]) == (
        1,
        ["differs", "  the build is ffff, it was 7f3a91c2d0e1f2a3", "  first other row: Leaf-1  2, it was Leaf-1  3"],
    )


def test_invalid_citations_and_long_answers_are_refused(own_target: Path) -> None:
    for name, message in {
        "abc": "no citation abc",
        "none.json": r"none\.json cannot be read: No such file or dir",
    }.items():
        with pytest.raises(QueryError, match=message):
            citations.load(own_target, name)
    made = cite(own_target, "SELECT 1 AS a")
    path = own_target / citations.FOLDER / f"{made.id}.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), "rows": 2}), encoding="utf-8")
    with pytest.raises(QueryError, match="was changed after it was made"):
        citations.load(own_target, made.id)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(QueryError, match="is not a citation"):
        citations.load(own_target, made.id)
    said = call("sql", "FROM range(100001)", "--cite", "-t", own_target, cwd=own_target)
    assert (said.status, said.err_text.partition("; ")[0]) == (2, "not cited: the answer has more than 100,000 rows")
