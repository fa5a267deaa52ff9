"""Diff of two builds: changes are found, and equal parts are not read."""

from __future__ import annotations

import pytest

from tests.conftest import call
from tests.history.diffing import SPEEDS, again, compare, differing
from tests.tiny import Tiny
from warehouse.base.errors import WarehouseError
from warehouse.history.builds import builds
from warehouse.history.diff.sides import find
from warehouse.store.manifest import read_manifest


def test_a_build_is_equal_to_itself_and_parts_with_equal_digests_are_not_read(polls: Tiny) -> None:
    build = builds(polls.target)[0].build
    for part in (polls.target / "parts").rglob("*.parquet"):
        part.write_bytes(b"nothing that could be read")
    said = compare(polls, build)
    assert said.status == 0
    assert said.out.splitlines()[-1] == "Equal  6 tables: the same columns and rows"
    assert differing(polls, polls.target, f"{polls.target}@{build[:6]}") == {}


def test_a_changed_cell_is_named_with_its_row_its_column_and_the_totals(polls: Tiny) -> None:
    polls.file(1, "1,100,2,200,0,0.5", "1,7,2,200,0,0.5")
    before = again(polls)
    polls.file(1, "1,100,2,200,0,0.5", "1,9,2,200,0,0.5")
    before = again(polls)

    found = differing(polls, before)

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
    text = compare(polls, before, "--select", "*.hours")
    assert text.status == 1
    assert text.out.splitlines()[3:] == [
        "metrics.hours: 2 rows, 1 changed",
        "  in_bytes: in 1 row, total 207 → 209",
        "  ~ 2024-05-23 17:00:00",
        "      in_bytes 107 → 109",
        "",
        "0 more tables equal",
    ]


def test_a_new_hour_is_rows_added_and_one_that_is_gone_rows_removed(polls: Tiny) -> None:
    polls.file(2, "1,5,2,200,0,0.5", "1,6,2,200,0,0.5")
    before = again(polls)

    came = differing(polls, before)["staging.polls"]["rows"]
    gone = differing(polls, polls.target, f"{polls.target}@{before}")["staging.polls"]["rows"]

    assert (came["old"], came["new"], came["added"], came["removed"], came["changed"]) == (2, 4, 2, 0, 0)
    assert (gone["old"], gone["new"], gone["added"], gone["removed"], gone["changed"]) == (4, 2, 0, 2, 0)
    assert [one["change"] for one in came["examples"]] == ["added", "added"]
    assert came["examples"][0]["cells"] == {"in_bytes": [None, 5]}
    rows = differing(polls, before, "--rows", "1")["staging.polls"]["rows"]
    assert (len(rows["examples"]), rows["added"]) == (1, 2)


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


def test_a_changed_description_unit_column_order_or_grain_is_told_apart_from_changed_rows(tiny: Tiny) -> None:
    assert tiny.build().status == 0
    select = "SELECT port, speed FROM reference.speeds"
    tiny.model("staging.ports", select, SPEEDS | {"speed": "BIGINT how fast"})
    said = compare(tiny, again(tiny))
    assert said.status == 0
    assert said.out.endswith("Their ids differ: descriptions do, or the bytes of parts.\n")
    tiny.model("staging.ports", select, SPEEDS | {"speed": "BIGINT [bit/s]"})
    before = again(tiny)
    assert differing(tiny, before)["staging.ports"]["rows"] is None
    assert "~ column speed BIGINT → BIGINT [bit/s]" in compare(tiny, before).out
    columns = {"speed": "BIGINT [bit/s]", "port": "VARCHAR"}
    tiny.model("staging.ports", "SELECT speed, port FROM reference.speeds", columns, "grain: [port]")
    assert differing(tiny, again(tiny))["staging.ports"]["reordered"]
    select = "SELECT speed + 1 AS speed, port FROM reference.speeds"
    tiny.model("staging.ports", select, columns, "grain: [port, speed]")
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


def test_an_export_is_equal_to_its_build_and_differs_from_the_next_and_so_do_two_targets(polls: Tiny) -> None:
    assert call("export", polls.base / "one", "-t", polls.target, cwd=polls.base).status == 0
    said = compare(polls, polls.base / "one")
    assert said.status == 0
    assert said.out.splitlines()[-2:] == [
        "Equal  4 tables: the same columns and rows",
        "2 tables not in the export, not compared",
    ]
    polls.file(1, "1,101,2,200,0,0.5")
    there = polls.base / "there"
    assert polls.build("-t", there).status == 0
    assert set(differing(polls, polls.target, there)) == {"staging.polls", "metrics.large", "metrics.hours"}
    again(polls)
    assert set(differing(polls, polls.base / "one")) == {"metrics.large", "metrics.hours"}
    assert call("export", polls.base / "two", "-t", polls.target, cwd=polls.base).status == 0
    assert set(differing(polls, polls.base / "one", polls.base / "two")) == {"metrics.large", "metrics.hours"}
    said = compare(polls, polls.base / "one", "--where-from")
    assert said.err.startswith("error: an export does not say where its rows are from")


def test_unknown_and_ambiguous_arguments_are_refused_with_suggestions(polls: Tiny) -> None:
    for text, message in (
        ("zz", f"{polls.target} keeps no build zz"),
        ("nowhere@1", "no such folder: nowhere"),
        (str(polls.data), f"{polls.data} holds neither a published warehouse nor an export"),
    ):
        with pytest.raises(WarehouseError) as raised:
            find(text, polls.target)
        assert raised.value.message == message
        assert raised.value.hint
    with pytest.raises(WarehouseError, match="holds no builds"):
        find("1", polls.base / "nothing")
    said = compare(polls, polls.target, "-s", "metrics.none")
    assert (said.status, said.err.splitlines()[0]) == (2, "error: no table to compare")

    first = builds(polls.target)[0].build
    folder = polls.target / "builds"
    manifest = read_manifest(folder / first / "manifest.json")
    other = first[:5] + "0" * 11
    (folder / other).mkdir()
    manifest._replace(build=other).write(folder / other / "manifest.json")
    assert find(first[:6], polls.target).build == first
    with pytest.raises(WarehouseError, match="may be one of"):
        find(first[:5], polls.target)


def test_a_missing_part_is_reported_with_a_hint(polls: Tiny) -> None:
    polls.file(1, "1,101,2,200,0,0.5")
    before = again(polls)
    for part in (polls.target / "parts" / "staging.polls").rglob("*.parquet"):
        part.unlink()
    said = compare(polls, before)
    assert said.status == 2
    hint = f"warehouse verify -t {polls.target} tells whether all parts are there and whole"
    assert said.err.splitlines()[1].strip() == hint
