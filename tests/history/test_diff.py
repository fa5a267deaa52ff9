"""Diff of two builds: changes are found with their origin, and equal parts are not read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Said, call
from tests.tiny import Tiny
from warehouse.base.errors import WarehouseError
from warehouse.history.builds import builds
from warehouse.history.diff.compare import diff
from warehouse.history.diff.row_diff import RowDiff, compare_rows
from warehouse.history.diff.sides import Table, find
from warehouse.project.contract import Column

SPEEDS = {"port": "VARCHAR", "speed": "BIGINT"}
POLLS = (
    'SELECT f.hour_utc, c."SaveTimeUTC" AS ms, c."InOctets" AS in_bytes '
    "FROM raw.port_counters AS c JOIN raw.files AS f ON f.read_path = c.filename"
)
POLL_COLUMNS = {"hour_utc": "TIMESTAMP", "ms": "BIGINT", "in_bytes": "BIGINT [B]"}
RAW = "c/trafficinfo/2024052401/x/Leaf-1_1_1.csv"


@pytest.fixture
def built(tiny: Tiny) -> Tiny:
    """Polls by hour, a view on them, and a sum; built once."""
    tiny.model("staging.polls", POLLS, POLL_COLUMNS, "partition: hour_utc", "grain: [hour_utc, ms]")
    tiny.model(
        "metrics.large",
        "SELECT hour_utc, ms, in_bytes FROM staging.polls WHERE in_bytes > 0",
        POLL_COLUMNS,
        "partition: hour_utc",
        "grain: [hour_utc, ms]",
        "materialize: view",
    )
    tiny.model(
        "metrics.hours",
        "SELECT hour_utc, CAST(sum(in_bytes) AS BIGINT) AS in_bytes FROM staging.polls GROUP BY hour_utc",
        {"hour_utc": "TIMESTAMP", "in_bytes": "BIGINT"},
        "partition: hour_utc",
    )
    assert tiny.build().status == 0
    return tiny


def again(tiny: Tiny) -> str:
    """Build again and return the previous build; the new one must differ."""
    before = builds(tiny.target)[0].build
    said = tiny.build()
    assert said.status == 0, said.err
    assert builds(tiny.target)[0].build != before
    return before


def compare(tiny: Tiny, *arguments: str | Path) -> Said:
    return call("diff", "-t", tiny.target, *arguments, cwd=tiny.base)


def differing(tiny: Tiny, *arguments: str | Path) -> dict[str, Any]:
    """Return the tables that differ, as `diff --json` reports them."""
    said = compare(tiny, "--json", *arguments)
    found = json.loads(said.out)
    assert found["equal"] == (said.status == 0) == (not found["differing"])
    return {table["name"]: table for table in found["differing"]}


# differences -------------------------------------------------------------------------------------


def test_a_build_is_equal_to_itself(built: Tiny) -> None:
    build = builds(built.target)[0].build
    said = compare(built, build)
    assert said.status == 0
    assert said.out.splitlines()[-1] == "Equal  6 tables: the same columns and rows"
    assert differing(built, built.target, f"{built.target}@{build[:6]}") == {}


def test_tables_with_equal_digests_are_never_read(built: Tiny) -> None:
    for part in (built.target / "parts").rglob("*.parquet"):
        part.write_bytes(b"nothing that could be read")
    assert compare(built, builds(built.target)[0].build).status == 0


def test_a_changed_cell_is_named_with_its_row_its_column_and_the_totals(built: Tiny) -> None:
    built.file(1, "1,100,2,200,0,0.5", "1,7,2,200,0,0.5")
    before = again(built)
    built.file(1, "1,100,2,200,0,0.5", "1,9,2,200,0,0.5")
    before = again(built)

    found = differing(built, before)

    assert set(found) == {"staging.polls", "metrics.large", "metrics.hours"}
    for name in ("staging.polls", "metrics.large"):
        rows = found[name]["rows"]
        assert (rows["old"], rows["new"]) == (3, 3)
        assert (rows["added"], rows["removed"], rows["changed"]) == (0, 0, 1)
        assert rows["cells"] == {"in_bytes": 1}
        assert rows["totals"] == [{"column": "in_bytes", "old": 207, "new": 209}]
        assert rows["examples"] == [
            {
                "change": "changed",
                "key": {"hour_utc": "2024-05-23 17:00:00", "ms": 1716483602000},
                "cells": {"in_bytes": [7, 9]},
            }
        ]
    text = compare(built, before, "--select", "*.hours")
    assert text.status == 1
    assert text.out.splitlines()[3:] == [
        "metrics.hours: 2 rows, 1 changed",
        "  in_bytes: in 1 row, total 207 → 209",
        "  ~ 2024-05-23 17:00:00",
        "      in_bytes 107 → 109",
        "",
        "0 more tables equal",
    ]


def test_a_new_hour_is_rows_added_and_one_that_is_gone_rows_removed(built: Tiny) -> None:
    built.file(2, "1,5,2,200,0,0.5", "1,6,2,200,0,0.5")
    before = again(built)

    came = differing(built, before)["staging.polls"]["rows"]
    gone = differing(built, built.target, f"{built.target}@{before}")["staging.polls"]["rows"]

    assert (came["old"], came["new"], came["added"], came["removed"], came["changed"]) == (2, 4, 2, 0, 0)
    assert (gone["old"], gone["new"], gone["added"], gone["removed"], gone["changed"]) == (4, 2, 0, 2, 0)
    assert [one["change"] for one in came["examples"]] == ["added", "added"]
    assert came["examples"][0]["cells"] == {"in_bytes": [None, 5]}


def test_the_number_of_examples_is_an_option(built: Tiny) -> None:
    built.file(2, *(f"1,{number},2,200,0,0.5" for number in range(9)))
    before = again(built)
    for asked in (0, 1, 5):
        rows = differing(built, before, "--rows", str(asked))["staging.polls"]["rows"]
        assert len(rows["examples"]) == asked
        assert rows["added"] == 9


def test_added_removed_and_changed_columns_are_reported_apart_from_rows(tiny: Tiny) -> None:
    columns = {"port": "VARCHAR", "speed": "BIGINT [Gbit/s]", "old": "INTEGER"}
    tiny.model("staging.ports", "SELECT port, speed, 1 AS old FROM reference.speeds", columns)
    assert tiny.build().status == 0
    columns = {"port": "VARCHAR", "speed": "INTEGER [Gbit/s]", "new": "DOUBLE [1]"}
    tiny.model("staging.ports", "SELECT port, speed, 0.5 AS new FROM reference.speeds", columns)
    before = again(tiny)

    said = compare(tiny, before, "-s", "staging.ports")

    assert said.status == 1
    assert said.out.splitlines()[3:7] == [
        "staging.ports: 2 rows, all the same in the columns that both have",
        "  + column new DOUBLE [1]",
        "  - column old INTEGER",
        "  ~ column speed BIGINT [Gbit/s] → INTEGER [Gbit/s]",
    ]


def test_a_changed_unit_or_column_order_is_a_difference_without_row_changes(tiny: Tiny) -> None:
    assert tiny.build().status == 0
    tiny.model("staging.ports", "SELECT port, speed FROM reference.speeds", SPEEDS | {"speed": "BIGINT [bit/s]"})
    before = again(tiny)
    assert differing(tiny, before)["staging.ports"]["rows"] is None
    assert "~ column speed BIGINT → BIGINT [bit/s]" in compare(tiny, before).out
    tiny.model(
        "staging.ports",
        "SELECT speed, port FROM reference.speeds",
        {"speed": "BIGINT [bit/s]", "port": "VARCHAR"},
        "grain: [port]",
    )
    before = again(tiny)
    assert differing(tiny, before)["staging.ports"]["reordered"]


def test_a_changed_description_is_no_difference_but_explains_the_new_id(tiny: Tiny) -> None:
    assert tiny.build().status == 0
    tiny.model("staging.ports", "SELECT port, speed FROM reference.speeds", SPEEDS | {"speed": "BIGINT how fast"})
    said = compare(tiny, again(tiny))
    assert said.status == 0
    assert said.out.endswith("Their ids differ: descriptions do, or the bytes of parts.\n")


def test_a_changed_grain_is_reported_and_rows_are_still_matched(tiny: Tiny) -> None:
    assert tiny.build().status == 0
    tiny.model("staging.ports", "SELECT port, speed + 1 AS speed FROM reference.speeds", SPEEDS, "grain: [port, speed]")
    found = differing(tiny, again(tiny))["staging.ports"]
    assert found["grain"] == [["port"], ["port", "speed"]]
    assert (found["rows"]["added"], found["rows"]["removed"]) == (2, 2)


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


def test_reviewed_tables_are_compared_row_by_row(tiny: Tiny) -> None:
    tiny.reference("speeds", SPEEDS, "eth0,10", "eth1,40")
    tiny.model("staging.ports", "SELECT 'a' AS port, CAST(sum(speed) AS BIGINT) AS speed FROM reference.speeds", SPEEDS)
    assert tiny.build().status == 0
    tiny.reference("speeds", SPEEDS, "eth0,10", "eth0,10", "eth1,50")
    rows = differing(tiny, again(tiny))["reference.speeds"]["rows"]
    assert (rows["old"], rows["new"], rows["added"], rows["removed"], rows["changed"]) == (2, 3, 2, 1, 0)


# rows --------------------------------------------------------------------------------------------


def version(rows: Mapping[Any, object], kind: str = "DOUBLE", *, grain: tuple[str, ...] = ("id",)) -> Table:
    values = ", ".join(f"({_sql(key)}, {_sql(value)})" for key, value in rows.items()) or "(NULL, NULL)"
    source = f"(SELECT CAST(a AS INTEGER) AS id, CAST(b AS {kind}) AS x FROM (VALUES {values}) AS v(a, b)"
    source += ")" if rows else " WHERE false)"
    return Table("t", "export", (Column("id", "INTEGER"), Column("x", kind)), grain, source=source)


def _sql(value: object) -> str:
    return "NULL" if value is None else f"'{value}'"


def rows_of(old: Table, new: Table, examples: int = 3) -> RowDiff:
    with duckdb.connect() as connection:
        return compare_rows(connection, old, new, None, examples)


CELL = st.one_of(st.none(), st.sampled_from(["0.5", "1.5", "nan", "inf"]))
VERSION = st.dictionaries(st.one_of(st.none(), st.integers(0, 5)), CELL, max_size=7)


@settings(deadline=None)
@given(VERSION, VERSION)
def test_rows_are_added_removed_and_changed_as_by_definition(old: dict[Any, Any], new: dict[Any, Any]) -> None:
    found = rows_of(version(old), version(new), examples=10)
    changed = {key for key in old.keys() & new.keys() if old[key] != new[key]}
    assert (found.old, found.new) == (len(old), len(new))
    assert (found.added, found.removed) == (len(new.keys() - old.keys()), len(old.keys() - new.keys()))
    assert found.changed == len(changed) == found.cells.get("x", 0)
    assert {one.key["id"] for one in found.examples if one.change == "changed"} == changed


@settings(deadline=None)
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


# compared builds ---------------------------------------------------------------------------------


def test_an_export_is_equal_to_its_build_and_differs_from_the_next(built: Tiny) -> None:
    assert call("export", built.base / "one", "-t", built.target, cwd=built.base).status == 0
    said = compare(built, built.base / "one")
    assert said.status == 0
    assert said.out.splitlines()[-2:] == [
        "Equal  4 tables: the same columns and rows",
        "2 tables not in the export, not compared",
    ]
    built.file(1, "1,101,2,200,0,0.5")
    again(built)
    assert set(differing(built, built.base / "one")) == {"metrics.large", "metrics.hours"}
    assert call("export", built.base / "two", "-t", built.target, cwd=built.base).status == 0
    assert set(differing(built, built.base / "one", built.base / "two")) == {"metrics.large", "metrics.hours"}
    said = compare(built, built.base / "one", "--where-from")
    assert said.err.startswith("error: an export does not say where its rows are from")


def test_two_targets_can_be_compared(built: Tiny) -> None:
    there = built.base / "there"
    built.file(1, "1,101,2,200,0,0.5")
    assert built.build("-t", there).status == 0
    assert set(differing(built, built.target, there)) == {"staging.polls", "metrics.large", "metrics.hours"}


def test_unknown_arguments_are_refused_with_suggestions(built: Tiny) -> None:
    for text, message in (
        ("zz", f"{built.target} keeps no build zz"),
        ("", f"{built.target} keeps no build "),
        (f"{built.target}@zz", f"{built.target} keeps no build zz"),
        ("no/such", "no such folder: no/such"),
        ("nowhere@1", "no such folder: nowhere"),
        (str(built.data), f"{built.data} holds neither a published warehouse nor an export"),
    ):
        with pytest.raises(WarehouseError) as raised:
            find(text, built.target)
        assert raised.value.message == message
        assert raised.value.hint
    with pytest.raises(WarehouseError, match="holds no builds"):
        find("1", built.base / "nothing")
    said = compare(built, built.target, "-s", "metrics.none")
    assert (said.status, said.err.splitlines()[0]) == (2, "error: no table to compare")


def test_an_id_prefix_must_be_unique(built: Tiny) -> None:
    first = builds(built.target)[0].build
    folder = built.target / "builds"
    manifest = json.loads((folder / first / "manifest.json").read_text(encoding="utf-8"))
    other = first[:5] + "0" * 11
    (folder / other).mkdir()
    (folder / other / "manifest.json").write_text(json.dumps(manifest | {"build": other}), encoding="utf-8")
    assert find(first[:6], built.target).build == first
    with pytest.raises(WarehouseError, match="may be one of"):
        find(first[:5], built.target)


def test_a_missing_part_is_reported_with_a_hint(built: Tiny) -> None:
    built.file(1, "1,101,2,200,0,0.5")
    before = again(built)
    for part in (built.target / "parts" / "staging.polls").rglob("*.parquet"):
        part.unlink()
    said = compare(built, before)
    assert said.status == 2
    assert said.err.splitlines()[1].strip() == "warehouse verify tells whether all parts are there and whole"


# origins of changes ------------------------------------------------------------------------------


def origins(tiny: Tiny, before: str) -> dict[str, list[tuple[str, str, list[str]]]]:
    found = differing(tiny, before, "--where-from")
    return {
        name: [(one["kind"], one["name"], one["through"]) for one in table["origins"]] for name, table in found.items()
    }


def test_a_corrected_file_is_named_with_the_models_between(built: Tiny) -> None:
    built.file(1, "1,101,2,200,0,0.5")
    before = again(built)
    assert origins(built, before) == {
        "staging.polls": [("files", "staging.polls", [])],
        "metrics.large": [("files", "staging.polls", [])],
        "metrics.hours": [("files", "staging.polls", [])],
    }
    files = differing(built, before, "--where-from")["metrics.hours"]["origins"][0]["files"]
    assert files == [["changed", RAW]]
    assert compare(built, before, "--where-from", "-s", "metrics.hours").out.splitlines()[7:11] == [
        "  from [1]",
        "",
        "[1] 1 raw file that staging.polls reads",
        f"    ~ {RAW}",
    ]


def test_added_and_removed_files_are_named(built: Tiny) -> None:
    built.file(2, "1,1,2,200,0,0.5")
    (built.data / RAW).unlink()
    found = differing(built, again(built), "--where-from")["staging.polls"]["origins"]
    assert [one["files"] for one in found] == [[["removed", RAW], ["added", RAW.replace("2401", "2402")]]]


def test_files_are_named_for_any_partition_column(built: Tiny) -> None:
    """Split by port, read by hour: each part over the hours shows the change in any part by port."""
    by_port = "SELECT PortName AS port, sum(InOctets) AS in_bytes FROM raw.port_counters GROUP BY PortName"
    built.model("staging.by_port", by_port, {"port": "VARCHAR", "in_bytes": "BIGINT"}, "partition: port")
    built.model(
        "metrics.shares",
        "SELECT h.hour_utc, sum(h.in_bytes) AS in_bytes, (SELECT sum(in_bytes) FROM staging.by_port) AS of_bytes\n"
        "FROM metrics.hours AS h GROUP BY h.hour_utc",
        {"hour_utc": "TIMESTAMP", "in_bytes": "BIGINT", "of_bytes": "BIGINT"},
        "partition: hour_utc",
    )
    assert built.build().status == 0
    built.file(1, "1,101,2,200,0,0.5")
    found = differing(built, again(built), "--where-from")
    assert found["staging.by_port"]["origins"][0]["files"] == [["changed", RAW]]
    assert found["metrics.shares"]["rows"]["changed"] == 2
    assert [(one["kind"], one["name"]) for one in found["metrics.shares"]["origins"]] == [
        ("files", "staging.by_port"),
        ("files", "staging.polls"),
    ]


def test_a_changed_select_or_reviewed_table_is_named_as_the_origin(tiny: Tiny) -> None:
    assert tiny.build().status == 0
    tiny.model("staging.ports", "SELECT port, speed + 1 AS speed FROM reference.speeds", SPEEDS)
    assert origins(tiny, again(tiny)) == {
        "staging.ports": [("sql", "staging.ports", [])],
        "metrics.total": [("sql", "staging.ports", [])],
    }
    tiny.reference("speeds", SPEEDS, "eth0,10", "eth1,50")
    assert origins(tiny, again(tiny)) == {
        "reference.speeds": [("reference", "reference.speeds", [])],
        "staging.ports": [("reference", "reference.speeds", [])],
        "metrics.total": [("reference", "reference.speeds", ["staging.ports"])],
    }


def test_a_change_within_a_view_is_attributed_to_the_view(built: Tiny) -> None:
    built.model(
        "metrics.large",
        "SELECT hour_utc, ms, in_bytes + 1 AS in_bytes FROM staging.polls WHERE in_bytes > 0",
        POLL_COLUMNS,
        "partition: hour_utc",
        "grain: [hour_utc, ms]",
        "materialize: view",
    )
    assert origins(built, again(built)) == {"metrics.large": [("sql", "metrics.large", [])]}


def test_nondeterministic_rows_are_reported_as_such(tiny: Tiny) -> None:
    tiny.model("metrics.dice", "SELECT 1 AS name, random() AS speed", {"name": "BIGINT", "speed": "DOUBLE"})
    assert tiny.build().status == 0
    assert origins(tiny, again(tiny)) == {"metrics.dice": [("volatile", "metrics.dice", [])]}


def test_missing_records_of_inputs_are_reported(tiny: Tiny) -> None:
    assert tiny.build().status == 0
    for notes in (tiny.target / "parts").rglob("*.json"):
        notes.unlink()
    tiny.model("staging.ports", "SELECT port, speed + 1 AS speed FROM reference.speeds", SPEEDS)
    assert origins(tiny, again(tiny))["staging.ports"] == [("unrecorded", "staging.ports", [])]


def test_a_target_equals_itself_under_engine_limits(built: Tiny) -> None:
    side = find(str(built.target), built.target)
    assert diff(side, side, memory="64MB", threads=1).is_equal
