"""Verification: the published warehouse is intact, a rebuild byte-identical, and the public hour as reviewed."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import warehouse
from tests.conftest import Completed, Restored, call
from tests.history.test_diff import POLL_COLUMNS, POLLS, SPEEDS
from tests.tiny import HOURS, Tiny
from warehouse.history import verify as reference
from warehouse.store.manifest import folder_of, last_manifest


@pytest.fixture
def published(tiny: Tiny, restored: Restored) -> Tiny:
    """Polls by hour, built once."""

    def write(tiny: Tiny) -> None:
        tiny.model("staging.polls", POLLS, POLL_COLUMNS, "partition: hour_utc", "grain: [hour_utc, ms]")

    return tiny.restore(restored, "polls-to-verify", write, is_up_to_date=False)


def run(tiny: Tiny, *arguments: str | Path) -> Completed:
    return call("verify", "-t", tiny.target, *arguments, cwd=tiny.base)


def verdict(tiny: Tiny, *arguments: str | Path) -> dict[str, Any]:
    said = run(tiny, "--json", *arguments)
    found: dict[str, Any] = json.loads(said.out)
    assert found["good"] == (said.status == 0)
    return found


def build_of(tiny: Tiny) -> str:
    manifest = last_manifest(tiny.target)
    assert manifest is not None
    return manifest.build


def turn(path: Path) -> None:
    """Flip one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)


# rebuild -----------------------------------------------------------------------------------------


def test_a_rebuild_is_byte_identical_and_readers_can_go_on(published: Tiny) -> None:
    before = {path: path.stat().st_mtime_ns for path in published.target.rglob("*") if path.name != "lock"}
    with warehouse.open(published.target) as connection:
        said = run(published)
        assert connection.execute("SELECT count(*) FROM staging.polls").fetchall() == [(2,)]
    assert said.status == 0
    whole, same = said.out.splitlines()
    assert whole.startswith(f"Whole  build {build_of(published)[:8]}: 4 parts, ")
    assert same.startswith("Same   every part, byte by byte; ")
    assert said.err == f"Again  from {published.data}\n"
    after = {path: path.stat().st_mtime_ns for path in published.target.rglob("*") if path.name != "lock"}
    assert after == before | {published.target / "tmp": after[published.target / "tmp"]}  # no temporary file
    state = published.target / "state.sqlite"
    state.unlink()
    assert run(published, "--hour", HOURS[0]).status == 0, "a lost state is no damage of the build"
    state.write_bytes(b"no database")
    assert run(published, "--hour", HOURS[0]).status == 0, "nor is a damaged one"


def test_a_corrected_file_is_found_with_its_rows_and_the_file_and_models_not_selected_do_not_differ(
    published: Tiny,
) -> None:
    path = published.file(1, "1,101,2,200,0,0.5")
    found = verdict(published)
    assert found["others"] == [{"model": "staging.polls", "partition": "2024-05-23T17", "how": "other bytes"}]
    (table,) = found["comparison"]["differing"]
    assert table["rows"]["cells"] == {"in_bytes": 1}
    assert table["origins"][0]["files"] == [["changed", path.relative_to(published.data).as_posix()]]
    assert verdict(published, "--hour", HOURS[0])["good"]
    said = run(published, "--hour", HOURS[1])
    assert said.status == 1
    assert said.out.splitlines()[1:] == ["Differs in 1 part", f"  staging.polls {HOURS[1]}: other bytes"]
    published.reference("speeds", SPEEDS, "eth0,1")
    assert published.build("-s", "staging.ports,staging.polls").status == 0
    said = run(published)
    assert said.status == 0
    assert "not selected in that build: metrics.total" in said.out


def test_added_and_removed_hours_and_a_changed_contract_or_select_are_named(published: Tiny) -> None:
    columns = {"port": "VARCHAR", "speed": "BIGINT how fast"}
    published.model("staging.ports", "SELECT port, speed FROM reference.speeds", columns)
    said = run(published)
    assert said.status == 1
    assert said.out.splitlines()[1].startswith("Differs in what is promised, not in any part: now build ")
    published.model("staging.ports", "SELECT port, speed + 1 AS speed FROM reference.speeds", SPEEDS)
    published.model("metrics.dice", "SELECT 1 AS name, random() AS speed", {"name": "BIGINT", "speed": "DOUBLE"})
    said = run(published)
    assert said.status == 1
    assert "the SQL of staging.ports" in said.out
    assert published.build().status == 0
    published.file(2, "1,1,2,200,0,0.5")
    shutil.rmtree(published.data / "c" / "trafficinfo" / "2024052400")
    found = verdict(published)
    assert [(other["partition"], other["how"]) for other in found["others"]] == [
        ("all", "other bytes"),
        ("2024-05-23T16", "not made again"),
        ("2024-05-23T18", "new"),
    ]
    assert [one["origins"][0]["kind"] for one in found["comparison"]["differing"]] == ["volatile", "files"]


def test_a_target_among_its_own_data_is_not_taken_for_data(tiny: Tiny) -> None:
    tiny.file(1, "1,100,2,200,0,0.5", "torn")
    target = tiny.data / "c" / "build" / "warehouse"
    tiny.model("staging.polls", "SELECT count(*) AS polls FROM raw.port_counters", {"polls": "BIGINT"})
    assert tiny.build("-t", target).status == 0
    assert list((target / "cache" / "clean").rglob("*.csv"))  # a repaired copy, which looks like data
    assert call("verify", "-t", target, cwd=tiny.base).status == 0


# integrity ---------------------------------------------------------------------------------------


DAMAGES: tuple[tuple[Callable[[Path], object], str], ...] = (
    (turn, "its content is not what was written"),
    (lambda path: path.write_bytes(path.read_bytes()[:-1]), "bytes, not "),
    (Path.unlink, "it cannot be read: No such file"),
)


def test_a_damaged_part_is_named_with_a_hint_that_works(published: Tiny) -> None:
    part = next((published.target / "parts" / "staging.polls" / folder_of(HOURS[1])).glob("*.parquet"))
    whole = part.read_bytes()
    for damage, problem in DAMAGES:
        damage(part)
        said = run(published)
        assert said.status == 1
        assert said.err == ""  # nothing was built
        assert said.out.splitlines()[0] == f"Damaged: 1 file of build {build_of(published)[:8]}"
        assert said.out.splitlines()[1].strip() == part.relative_to(published.target).as_posix()
        assert problem in said.out.splitlines()[2]
        assert f"warehouse build -t {published.target} --paranoid" in said.out
        assert verdict(published, "--hour", HOURS[0], "--quick")["good"]
        assert run(published, "--hour", HOURS[1]).out.startswith("Damaged: 1 file of build")
        part.unlink(missing_ok=True)
        part.write_bytes(whole)
    turn(part)
    assert published.build("--paranoid").status == 0
    assert run(published, "--quick").status == 0


def test_a_missing_damaged_or_foreign_catalog_is_named(published: Tiny) -> None:
    file = published.target / "warehouse.duckdb"
    catalog = file.read_bytes()
    for content, problem in (
        (None, "it is gone"),
        (b"no database", "is no DuckDB file"),
        (catalog[: len(catalog) // 2], "damaged"),
    ):
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_bytes(content)
        (damage,) = verdict(published, "--quick")["damages"]
        assert damage["path"] == "warehouse.duckdb"
        assert problem in damage["problem"]
    file.write_bytes(catalog)
    with duckdb.connect(str(file)) as connection:
        connection.execute("UPDATE metrics.total SET speed = 1")
    problems = [one["problem"] for one in verdict(published, "--quick")["damages"]]
    assert "metrics.total has other rows than its parts" in problems
    assert f"it is not the catalog of build {build_of(published)[:8]}" in problems
    assert call("rollback", build_of(published), "-t", published.target, cwd=published.base).status == 0
    assert run(published, "--quick").status == 0


# one hour ----------------------------------------------------------------------------------------


def test_one_hour_is_made_again_from_its_own_files_and_the_models_that_it_reads(published: Tiny) -> None:
    published.model(
        "metrics.share",
        "SELECT p.hour_utc, sum(p.in_bytes)::BIGINT AS bytes, (SELECT sum(speed) FROM staging.ports)::BIGINT AS speed "
        "FROM staging.polls AS p GROUP BY ALL",
        {"hour_utc": "TIMESTAMP", "bytes": "BIGINT", "speed": "BIGINT"},
        "partition: hour_utc",
        "grain: [hour_utc]",
    )
    published.made()
    published.file(1, "1,101,2,200,0,0.5").write_bytes(b"\xff")  # of the other hour
    said = run(published, "--hour", HOURS[0])
    assert said.status == 0, said
    whole, same = said.out.splitlines()
    assert whole.startswith(f"Whole  hour {HOURS[0]} of build {build_of(published)[:8]}: 2 parts, ")
    assert same.startswith("Same   every part, byte by byte; ")
    assert not list((published.target / "tmp").iterdir())
    published.model("staging.ports", "SELECT port, speed + 1 AS speed FROM reference.speeds", SPEEDS)
    found = verdict(published, "--hour", HOURS[0])
    assert (found["hour"], found["parts"], found["rebuilt"]) == (HOURS[0], 2, None)
    assert found["others"] == [{"model": "metrics.share", "partition": HOURS[0], "how": "other bytes"}]


def test_an_unknown_hour_missing_files_and_moved_data_are_named(published: Tiny) -> None:
    said = run(published, "--hour", "2024-05-23")
    assert said.status == 2
    assert said.err.splitlines()[-2:] == [
        f"error: build {build_of(published)[:8]} has no hour 2024-05-23",
        f"       it has {HOURS[0]} to {HOURS[1]}, in UTC",
    ]
    moved = published.data.rename(published.base / "elsewhere")
    assert verdict(published, "--quick")["rebuilt"] is None, "it needs no data"
    said = run(published)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(f"error: the data folder {published.data} is not there\n")
    assert run(published, "-d", moved).status == 0
    shutil.rmtree(moved / "c" / "trafficinfo" / "2024052400")
    said = run(published, "-d", moved, "--hour", HOURS[0])
    assert said.status == 2
    assert f"no readable file of {HOURS[0]} in {moved}" in said.err


# the public hour ---------------------------------------------------------------------------------


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
        monkeypatch.setattr(reference, "shipped_root", lambda: tmp_path)

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
    same, differs, many, few = reference.compare_reference(built)
    assert (same["verdict"], same["details"]) == ("same", [])
    assert differs["verdict"] == "differs"
    assert "99" in differs["details"][0]
    assert differs["details"][1:] == [f"here       {rows[0]}", "rows that differ: 1"]
    assert many["details"][0] == "published  no such row"
    assert few["details"][1] == "here       no such row"


def test_another_cluster_and_a_query_without_its_files_are_not_comparable(built: Path, of_sample: Any) -> None:
    said = call("verify", "--reference", "-t", built, cwd=built)
    assert (said.status, said.out.splitlines()[-1]) == (1, "15 not comparable")
    of_sample({**SWITCHES, "needs": {"zhejiang.port_counters": 9_999, "zhejiang.workbook": 1}, "rows": []})
    (one,) = reference.compare_reference(built)
    assert one["verdict"] == "not comparable"
    assert one["details"][0].startswith("needs 9,999 files zhejiang.port_counters of cluster_sample, this build has ")


def test_a_part_of_the_public_hour(real_output: tuple[Path, str]) -> None:
    target, _ = real_output
    said = call("verify", "--reference", "--json", "-t", target, cwd=target)
    found = json.loads(said.out)
    assert said.status == 0
    assert Counter(one["verdict"] for one in found) == {"same": 4, "not comparable": 11}
