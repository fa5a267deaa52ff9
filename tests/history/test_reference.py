"""The reviewed rows of the public hour, compared with a build by `warehouse verify --reference`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import call
from warehouse.history import verify

SWITCHES = {
    "name": "switches",
    "about": "switches of the sheet",
    "needs": {"zhejiang.workbook": 1},
    "sql": "SELECT role, count(*) AS switches FROM topology.switches WHERE cluster = 'cluster_sample' "
    "GROUP BY ALL ORDER BY ALL",
    "rows": [{"role": "leaf", "switches": 8}],
}


@pytest.fixture
def of_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a reference of the sample, and let it be the shipped one."""

    def write(*queries: dict[str, Any]) -> None:
        (tmp_path / "data").mkdir(exist_ok=True)
        text = json.dumps({"cluster": "cluster_sample", "hour": "2024-05-23T16", "queries": queries})
        (tmp_path / "data" / "public_hour.json").write_text(text)
        monkeypatch.setattr(verify, "shipped_root", lambda: tmp_path)

    return write


def rows_here(built: Path) -> list[dict[str, object]]:
    answer = call("sql", "-t", built, str(SWITCHES["sql"]), "--format", "json", cwd=built)
    rows: list[dict[str, object]] = json.loads(answer.out)
    return rows


def test_equal_rows_are_the_same_and_other_cells_and_missing_rows_are_told_apart(built: Path, of_sample: Any) -> None:
    rows = rows_here(built)
    wrong = [{**rows[0], "switches": 99}, *rows[1:]]
    of_sample(
        *({**SWITCHES, "rows": one} for one in (rows, wrong, rows[:-1], [*rows, {"role": "core", "switches": 1}]))
    )
    same, differs, many, few = verify.compare_reference(built)
    assert (same.verdict, same.details) == ("same", ())
    assert differs.verdict == "differs"
    assert differs.details == (
        f"published  role {rows[0]['role']}, switches 99",
        f"here       role {rows[0]['role']}, switches {rows[0]['switches']}",
    )
    assert many.details[0] == "published  no such row"
    assert few.details == ("published  role core, switches 1", "here       no such row")


def test_another_cluster_and_a_query_without_its_files_are_not_comparable(built: Path, of_sample: Any) -> None:
    said = call("verify", "--reference", "-t", built, cwd=built)
    assert (said.status, said.out.splitlines()[-1]) == (1, "15 not comparable")
    of_sample({**SWITCHES, "needs": {"zhejiang.port_counters": 9_999, "zhejiang.workbook": 1}, "rows": []})
    (one,) = verify.compare_reference(built)
    assert one.verdict == "not comparable"
    assert one.details[0].startswith("needs 9,999 files zhejiang.port_counters of cluster_sample, this build has ")


def test_a_part_of_the_public_hour(real_output: tuple[Path, str]) -> None:
    target, _ = real_output
    said = call("verify", "--reference", "--json", "-t", target, cwd=target)
    found = json.loads(said.out)
    assert said.status == 0
    assert Counter(one["verdict"] for one in found) == {"same": 4, "not comparable": 11}
