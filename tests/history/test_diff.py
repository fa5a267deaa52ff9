"""Diff of two builds: changes and their origins are found, and equal parts are not read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Completed, Restored, call
from tests.tiny import Tiny
from warehouse.base.errors import WarehouseError
from warehouse.history.builds import builds
from warehouse.history.diff import RowDiff, compare_rows
from warehouse.history.sides import Table, find
from warehouse.project.contract import Column
from warehouse.store.manifest import read_manifest

SPEEDS = {"port": "VARCHAR", "speed": "BIGINT"}
POLLS = (
    'SELECT f.hour_utc, c."SaveTimeUTC" AS ms, c."InOctets" AS in_bytes '
    "FROM raw.port_counters AS c JOIN raw.files AS f ON f.read_path = c.filename"
)
POLL_COLUMNS = {"hour_utc": "TIMESTAMP", "ms": "BIGINT", "in_bytes": "BIGINT [B]"}
OF_POLLS = {"staging.polls", "metrics.large", "metrics.hours"}
RAW = "c/trafficinfo/2024052401/x/Leaf-1_1_1.csv"


@pytest.fixture
def polls(tiny: Tiny, restored: Restored) -> Tiny:
    """Polls by hour, a view on them, and a sum; built once."""
    return tiny.restore(restored, "polls-to-compare", _write_polls, is_up_to_date=False)


def _write_polls(tiny: Tiny) -> None:
    tiny.model("staging.polls", POLLS, POLL_COLUMNS, "partition: hour_utc", "grain: [hour_utc, ms]")
    large(tiny, "in_bytes")
    tiny.model(
        "metrics.hours",
        "SELECT hour_utc, CAST(sum(in_bytes) AS BIGINT) AS in_bytes FROM staging.polls GROUP BY hour_utc",
        {"hour_utc": "TIMESTAMP", "in_bytes": "BIGINT"},
        "partition: hour_utc",
    )


def large(tiny: Tiny, value: str) -> None:
    """Write the view."""
    select = f"SELECT hour_utc, ms, {value} AS in_bytes FROM staging.polls WHERE in_bytes > 0"
    more = ("partition: hour_utc", "grain: [hour_utc, ms]", "materialize: view")
    tiny.model("metrics.large", select, POLL_COLUMNS, *more)


def again(tiny: Tiny) -> str:
    """Build again and return the previous build; the new one must differ."""
    before = builds(tiny.target)[0].build
    said = tiny.build()
    assert said.status == 0, said.err
    assert builds(tiny.target)[0].build != before
    return before


def compare(tiny: Tiny, *arguments: str | Path) -> Completed:
    return call("diff", "-t", tiny.target, *arguments, cwd=tiny.base)


def differing(tiny: Tiny, *arguments: str | Path) -> dict[str, Any]:
    """Return the tables that differ, as `diff --json` reports them."""
    said = compare(tiny, "--json", *arguments)
    found = json.loads(said.out)
    assert found["equal"] == (said.status == 0) == (not found["differing"])
    return {table["name"]: table for table in found["differing"]}


def counts(table: Mapping[str, Any]) -> list[int]:
    return [table["rows"][name] for name in ("old", "new", "added", "removed", "changed")]


def origins(tiny: Tiny, before: str) -> dict[str, list[tuple[str, str, list[str]]]]:
    return {
        name: [(one["kind"], one["name"], one["through"]) for one in table["origins"]]
        for name, table in differing(tiny, before, "--where-from").items()
    }


# tables ------------------------------------------------------------------------------------------


def test_a_build_is_equal_to_itself_and_parts_with_equal_digests_are_not_read(polls: Tiny) -> None:
    build = builds(polls.target)[0].build
    for part in (polls.target / "parts").rglob("*.parquet"):
        part.write_bytes(b"nothing that could be read")
    said = compare(polls, build)
    assert (said.status, said.out.splitlines()[-1]) == (0, "Equal  6 tables: the same columns and rows")
    assert differing(polls, polls.target, f"{polls.target}@{build[:6]}") == {}


def test_changed_added_and_removed_rows_are_named_with_their_columns_totals_and_files(polls: Tiny) -> None:
    polls.file(1, "1,100,2,200,0,0.5", "1,7,2,200,0,0.5")
    again(polls)
    polls.file(1, "1,100,2,200,0,0.5", "1,9,2,200,0,0.5")
    before = again(polls)
    found = differing(polls, before, "--where-from")
    assert set(found) == OF_POLLS
    for name in ("staging.polls", "metrics.large"):
        rows = found[name]["rows"]
        assert counts(found[name]) == [3, 3, 0, 0, 1]
        assert (rows["cells"], rows["totals"]) == ({"in_bytes": 1}, {"in_bytes": [207, 209]})
        key = {"hour_utc": "2024-05-23 17:00:00", "ms": 1716483602000}
        assert rows["examples"] == [{"change": "changed", "key": key, "cells": {"in_bytes": [7, 9]}}]
    origin = {"kind": "files", "name": "staging.polls", "through": [], "files": [["changed", RAW]]}
    assert [table["origins"] for table in found.values()] == [[origin]] * 3
    text = compare(polls, before, "--select", "*.hours", "--where-from")
    assert text.status == 1
    assert text.out.splitlines()[3:] == [
        "metrics.hours: 2 rows, 1 changed",
        "  in_bytes: in 1 row, total 207 → 209",
        "  ~ 2024-05-23 17:00:00: in_bytes 107 → 109",
        "  from [1]",
        "",
        "[1] 1 raw file that staging.polls reads",
        f"    ~ {RAW}",
        "",
        "0 more tables equal",
    ]
    polls.file(2, "1,5,2,200,0,0.5", "1,6,2,200,0,0.5")
    before = again(polls)
    came = differing(polls, before)["staging.polls"]
    assert counts(came) == [3, 5, 2, 0, 0]
    assert [one["change"] for one in came["rows"]["examples"]] == ["added", "added"]
    assert came["rows"]["examples"][0]["cells"] == {"in_bytes": [None, 5]}
    assert counts(differing(polls, polls.target, f"{polls.target}@{before}")["staging.polls"]) == [5, 3, 0, 2, 0]
    rows = differing(polls, before, "--rows", "1")["staging.polls"]["rows"]
    assert (len(rows["examples"]), rows["added"]) == (1, 2)
    (polls.data / RAW).unlink()
    polls.file(3, "1,1,2,200,0,0.5")
    before = again(polls)
    gone = differing(polls, before, "--where-from")["staging.polls"]["origins"]
    assert [one["files"] for one in gone] == [[["removed", RAW], ["added", RAW.replace("2401", "2403")]]]
    for part in (polls.target / "parts" / "staging.polls").rglob("*.parquet"):
        part.unlink()
    said = compare(polls, before)
    hint = f"warehouse verify -t {polls.target} tells whether all parts are there and whole"
    assert (said.status, said.err.splitlines()[1].strip()) == (2, hint)


def test_columns_descriptions_order_and_grain_are_told_apart_from_rows(tiny: Tiny) -> None:
    columns = {"port": "VARCHAR", "speed": "BIGINT [Gbit/s]", "old": "INTEGER"}
    tiny.model("staging.ports", "SELECT port, speed, 1 AS old FROM reference.speeds", columns)
    assert tiny.build().status == 0
    select, columns = "SELECT speed, port FROM reference.speeds", {"speed": "INTEGER [Gbit/s]", "port": "VARCHAR"}
    tiny.model("staging.ports", select, columns, "grain: [port]")
    said = compare(tiny, again(tiny), "-s", "staging.ports")
    assert said.status == 1
    assert said.out.splitlines()[3:8] == [
        "staging.ports: 2 rows, all the same in the columns that both have",
        "  + column speed INTEGER [Gbit/s]",
        "  - column speed BIGINT [Gbit/s]",
        "  - column old INTEGER",
        "",
    ]
    tiny.model("staging.ports", select, columns | {"speed": "INTEGER [Gbit/s] how fast"}, "grain: [port]")
    said = compare(tiny, again(tiny))
    assert (said.status, "Their ids differ: descriptions do" in said.out) == (0, True)
    columns["speed"] = "INTEGER [bit/s]"
    tiny.model("staging.ports", select, columns, "grain: [port]")
    found = differing(tiny, again(tiny))["staging.ports"]
    assert (found["rows"], len(found["contract"])) == (None, 2)
    tiny.model("staging.ports", select.replace("speed,", "speed + 1 AS speed,"), columns, "grain: [port, speed]")
    found = differing(tiny, again(tiny))["staging.ports"]
    assert found["contract"] == ["- grain (port)", "+ grain (port, speed)"]
    assert counts(found)[2:4] == [2, 2]


def test_added_and_removed_tables_are_named_with_row_counts(tiny: Tiny) -> None:
    assert tiny.build().status == 0
    tiny.model("topology.fast", "SELECT port, speed FROM staging.ports WHERE speed > 20", SPEEDS)
    (tiny.folder / "models" / "metrics" / "total.sql").unlink()
    said = compare(tiny, again(tiny), "--where-from")
    assert said.out.splitlines()[3:] == [
        "metrics.total: removed, 1 row",
        "  from [1]",
        "",
        "topology.fast: added, 1 row",
        "  from [2]",
        "",
        "[1] metrics.total is gone",
        "[2] topology.fast is new",
        "",
        "2 more tables equal",
    ]


def test_an_export_is_equal_to_its_build_and_differs_from_the_next_and_so_do_two_targets(polls: Tiny) -> None:
    assert call("export", polls.base / "one", "-t", polls.target, cwd=polls.base).status == 0
    said = compare(polls, polls.base / "one")
    assert (said.status, said.out.splitlines()[-2:]) == (0, [
        "Equal  4 tables: the same columns and rows",
        "2 tables not in the export, not compared",
    ])  # fmt: skip
    polls.file(1, "1,101,2,200,0,0.5")
    there = polls.base / "there"
    assert polls.build("-t", there).status == 0
    assert set(differing(polls, polls.target, there)) == OF_POLLS
    again(polls)
    assert set(differing(polls, polls.base / "one")) == OF_POLLS - {"staging.polls"}
    assert call("export", polls.base / "two", "-t", polls.target, cwd=polls.base).status == 0
    assert set(differing(polls, polls.base / "one", polls.base / "two")) == OF_POLLS - {"staging.polls"}
    said = compare(polls, polls.base / "one", "--where-from")
    assert said.err.startswith("error: an export does not say where its rows are from")


def test_unknown_and_ambiguous_arguments_are_refused_with_suggestions(polls: Tiny) -> None:
    for text, message in (
        ("zz", f"{polls.target} keeps no single build that begins with zz"),
        ("nowhere@1", "nowhere holds no builds"),
        (str(polls.data), f"{polls.data} holds neither a published warehouse nor an export"),
    ):
        with pytest.raises(WarehouseError) as raised:
            find(text, polls.target)
        assert raised.value.message == message
        assert raised.value.hint
    said = compare(polls, polls.target, "-s", "metrics.none")
    assert (said.status, said.err.splitlines()[0]) == (2, "error: no table to compare")
    first = builds(polls.target)[0].build
    folder = polls.target / "builds"
    manifest = read_manifest(folder / first / "manifest.json")
    other = first[:5] + "0" * 11
    (folder / other).mkdir()
    manifest._replace(build=other).write(folder / other / "manifest.json")
    assert find(first[:6], polls.target).build == first
    with pytest.raises(WarehouseError, match="single build that begins with"):
        find(first[:5], polls.target)


# origins -----------------------------------------------------------------------------------------


def test_files_are_named_for_any_partition_columns(polls: Tiny) -> None:
    """By hour and switch; and by port, read by hour: each part over the hours shows the change in any part by port."""
    columns = {"hour_utc": "TIMESTAMP", "switch": "VARCHAR", **POLL_COLUMNS}
    select = POLLS.replace("f.hour_utc", "f.hour_utc, f.switch")
    polls.model("staging.polls", select, columns, "partition: [hour_utc, switch]", "grain: [hour_utc, switch, ms]")
    by_port = "SELECT PortName AS port, sum(InOctets) AS in_bytes FROM raw.port_counters GROUP BY PortName"
    polls.model("staging.by_port", by_port, {"port": "VARCHAR", "in_bytes": "BIGINT"}, "partition: port")
    polls.model(
        "metrics.shares",
        "SELECT h.hour_utc, sum(h.in_bytes) AS in_bytes, (SELECT sum(in_bytes) FROM staging.by_port) AS of_bytes\n"
        "FROM metrics.hours AS h GROUP BY h.hour_utc",
        {"hour_utc": "TIMESTAMP", "in_bytes": "BIGINT", "of_bytes": "BIGINT"},
        "partition: hour_utc",
    )
    assert polls.build().status == 0
    polls.file(1, "1,101,2,200,0,0.5")
    found = differing(polls, again(polls), "--where-from")
    assert found.keys() == {*OF_POLLS, "staging.by_port", "metrics.shares"}
    for name, table in found.items():
        assert counts(table)[2:] == [0, 0, 2 if name == "metrics.shares" else 1]
        assert [one["files"] for one in table["origins"]] == [[["changed", RAW]]] * len(table["origins"])
    assert [one["name"] for one in found["metrics.shares"]["origins"]] == ["staging.by_port", "staging.polls"]
    polls.model("staging.polls", select, columns, "partition: hour_utc", "grain: [hour_utc, switch, ms]")
    assert differing(polls, again(polls)) == {}, "of other parts, but with the same rows"
    large(polls, "in_bytes + 1")
    assert origins(polls, again(polls)) == {"metrics.large": [("sql", "metrics.large", [])]}


def test_a_changed_select_or_reviewed_table_is_named_as_the_origin(tiny: Tiny) -> None:
    tiny.model("metrics.dice", "SELECT 1 AS name, random() AS speed", {"name": "BIGINT", "speed": "DOUBLE"})
    assert tiny.build().status == 0
    tiny.model("staging.ports", "SELECT port, speed + 1 AS speed FROM reference.speeds", SPEEDS)
    volatile: dict[str, list[tuple[str, str, list[str]]]] = {"metrics.dice": [("volatile", "metrics.dice", [])]}
    assert origins(tiny, again(tiny)) == volatile | {
        "staging.ports": [("sql", "staging.ports", [])],
        "metrics.total": [("sql", "staging.ports", [])],
    }
    tiny.reference("speeds", SPEEDS, "eth0,10", "eth1,50")
    before = again(tiny)
    assert counts(differing(tiny, before)["reference.speeds"]) == [2, 2, 1, 1, 0]
    assert origins(tiny, before) == volatile | {
        "reference.speeds": [("reference", "reference.speeds", [])],
        "staging.ports": [("reference", "reference.speeds", [])],
        "metrics.total": [("reference", "reference.speeds", ["staging.ports"])],
    }
    (tiny.target / "state.sqlite").unlink()
    tiny.model("staging.ports", "SELECT port, speed + 2 AS speed FROM reference.speeds", SPEEDS)
    assert origins(tiny, again(tiny))["staging.ports"] == [("unrecorded", "staging.ports", [])]


# rows --------------------------------------------------------------------------------------------


def version(rows: Iterable[tuple[object, object]], kind: str = "DOUBLE") -> Table:
    """Return a table with these keys and values."""
    values = ", ".join(f"({_sql(key)}, {_sql(value)})" for key, value in rows)
    source = f"SELECT CAST(a AS INTEGER) AS id, CAST(b AS {kind}) AS x FROM (VALUES {values or '(1, NULL)'}) AS v(a, b)"
    columns = (Column("id", "INTEGER"), Column("x", kind))
    return Table("t", "export", columns, ("id",), source=f"({source} WHERE {bool(values)})")


def _sql(value: object) -> str:
    return "NULL" if value is None else f"'{value}'"


ENGINE = duckdb.connect(config={"threads": 1})


def rows_of(old: Table, new: Table, examples: int = 3) -> RowDiff:
    return compare_rows(ENGINE, old, new, None, examples)


CELL = st.one_of(st.none(), st.sampled_from(["0.5", "1.5", "nan", "inf"]))
VERSION = st.dictionaries(st.one_of(st.none(), st.integers(0, 5)), CELL, max_size=7)


@settings(deadline=None, max_examples=25)
@given(VERSION, VERSION)
def test_rows_are_added_removed_and_changed_as_by_definition(old: dict[Any, Any], new: dict[Any, Any]) -> None:
    found = rows_of(version(old.items()), version(new.items()), examples=10)
    changed = {key for key in old.keys() & new.keys() if old[key] != new[key]}
    assert (found.old, found.new) == (len(old), len(new))
    assert (found.added, found.removed) == (len(new.keys() - old.keys()), len(old.keys() - new.keys()))
    assert found.changed == len(changed) == found.cells.get("x", 0)
    assert {one.key["id"] for one in found.examples if one.change == "changed"} == changed
    json.dumps(asdict(found), allow_nan=False)


@settings(deadline=None, max_examples=25)
@given(st.lists(CELL, max_size=6), st.lists(CELL, max_size=6))
def test_without_a_unique_grain_rows_are_compared_with_multiplicity(old: list[Any], new: list[Any]) -> None:
    twice = ["0.5", "0.5"]
    before, after = (version((1, cell) for cell in [*cells, *twice]) for cells in (old, new))
    found = rows_of(before, after)
    assert (found.key, found.changed) == ((), 0)
    assert found.added == (Counter(new) - Counter(old)).total()
    assert found.removed == (Counter(old) - Counter(new)).total()


def test_other_types_are_compared_as_numbers_or_text_and_whole_numbers_summed_exactly() -> None:
    one = [(1, "1"), (2, "2")]
    assert rows_of(version(one, "INTEGER"), version(one, "DOUBLE")).is_equal
    assert rows_of(version(one, "VARCHAR"), version(one, "INTEGER")).is_equal
    assert rows_of(version(one, "VARCHAR"), version([(1, "1"), (2, "3")], "INTEGER")).changed == 1
    large = [(1, str(2**62)), (2, str(2**62))]
    found = rows_of(version([*large, (3, "1")], "BIGINT"), version([*large, (3, "2")], "BIGINT"))
    assert found.totals == {"x": (2**63 + 1, 2**63 + 2)}
