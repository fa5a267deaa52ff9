"""The dashboard in a real Superset and a real browser, over two targets and two servers: `make e2e`.

`WRITE_DOCS=1 make e2e` puts the screenshots into docs/images.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

import warehouse
from bi.superset.bundle import filled
from bi.superset.layout import boxes_of, charts_of, slug
from tests.e2e.like_real import write_like_real
from tests.e2e.superset_server import Superset, superset
from tests.environments import ASKED, ROOT, missing
from warehouse.sample import SampleOptions, write_sample

PICTURES = ROOT / "docs" / "images"
CONNECTIONS = ("DuckDB", "PostgreSQL", "like real")
FIRST, SECOND = "2024-05-23 16:00 UTC", "2024-05-23 17:00 UTC"
SETTINGS: list[dict[str, Any]] = [
    {
        "tab": "Fabric",
        "filters": {"Cluster": ["cluster_sample"], "Hour": [SECOND], "Leaf": ["Leaf-1", "ST-leaf-1"]},
        "where": "hour_utc = '2024-05-23 17:00:00' AND switch IN ('Leaf-1', 'ST-leaf-1')",
    },
    {"tab": "Servers", "filters": {"Server": ["GPU-1"]}, "where": "server = 'GPU-1'"},
    {
        "tab": "Servers",
        "filters": {"Hour": [FIRST], "Leaf of servers": ["Leaf-1"], "Server": ["GPU-1", "GPU-2"]},
        "where": "hour_utc = '2024-05-23 16:00:00' AND switch = 'Leaf-1' AND server IN ('GPU-1', 'GPU-2')",
    },
]
"""Filter settings, and the same filters in handwritten SQL."""
BY_HAND = {
    "Fabric": "metrics.port_hour",
    "Servers": "metrics.port_hour JOIN topology.hour_owners USING (cluster, switch, port, hour_utc)",
}
TILES = {"Fabric": ("Into leaves", "Out of leaves"), "Servers": ("Sent by servers", "Received by servers")}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Superset]:
    if not os.environ.get(ASKED):
        pytest.skip("Superset is 700 MB and minutes: `make e2e` runs it")
    if not Path(os.environ.get("CHROMIUM", "/usr/bin/chromium")).is_file():
        missing("no Chromium: apt-get install chromium, or set CHROMIUM")
    folder = tmp_path_factory.mktemp("targets")
    write_sample(folder / "sample", SampleOptions())
    warehouse.build(folder / "sample", folder / "demo")
    real = Path(os.environ.get("WAREHOUSE_REAL") or ROOT / "data" / "real")
    if not (real / "zhejiang").is_dir():
        real = folder / "like_real"
        write_like_real(real)
    warehouse.build(real, folder / "real")
    with superset(folder / "demo", folder / "real", tmp_path_factory.mktemp("superset")) as found:
        yield found


@pytest.fixture(scope="module")
def seen(running: Superset, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The dashboard's content in the browser, by connection."""
    found = {}
    for name, one in running.connections.items():
        pictures = tmp_path_factory.mktemp(slug(name))
        found[name] = running.browse(slug(one.name), pictures, SETTINGS if name != "like real" else ())
        if os.environ.get("WRITE_DOCS") and name == "DuckDB":
            for picture in pictures.glob("*.png"):
                shutil.copy(picture, PICTURES / picture.name)
    return found


@cache
def said(target: Path) -> dict[str, Any]:
    """Return the dashboard of a target."""
    with warehouse.open(target) as opened:
        return filled(opened)


def dashboard_of(running: Superset, name: str) -> list[dict[str, Any]]:
    """Return the expected tabs of a connection's dashboard."""
    return list(said(running.connections[name].target)["tabs"])


def box_of(boxes: list[dict[str, Any]], title: str) -> dict[str, Any]:
    """Return the box of a chart; its title may end with unit and remark."""
    [box] = [box for box in boxes if box["title"].partition("; ")[0].rpartition(", ")[0] == title.partition("; ")[0]
             or box["title"] == title]  # fmt: skip
    return box


def test_everything_in_the_bundles_was_imported(running: Superset) -> None:
    charts = sum(len(charts_of(tab)) for name in CONNECTIONS for tab in dashboard_of(running, name))
    dashboards, slices, tables, databases = running.counts()
    assert (dashboards, slices, databases) == (3, charts, 3), "an import that drops what it cannot match says OK"
    assert tables % 3 == 0


@pytest.mark.parametrize("name", CONNECTIONS)
def test_every_chart_drew_data_or_says_why_not(name: str, running: Superset, seen: dict[str, dict[str, Any]]) -> None:
    drawn = seen[name]["drawn"]
    assert list(drawn) == [tab["title"] for tab in dashboard_of(running, name)]
    for tab in dashboard_of(running, name):
        boxes = drawn[tab["title"]]
        assert len(boxes) == len(boxes_of(tab)) + 1, "a box a chart, and the note"
        for chart in boxes_of(tab):
            if "reason" in chart:
                assert [box for box in boxes if chart["chart"] in box["note"] and chart["reason"] in box["note"]]
                continue
            how = {"number": "number", "table": "cells"}.get(chart["kind"], "canvas")
            assert box_of(boxes, chart["chart"])[how], f"{chart['chart']} shows nothing"
    for bad in ("There is no chart definition", "No results were returned", "Unable to", "µ"):
        assert bad not in seen[name]["text"], bad


@pytest.mark.parametrize("name", CONNECTIONS)
def test_no_answer_failed_was_empty_or_was_cut(name: str, running: Superset, seen: dict[str, dict[str, Any]]) -> None:
    assert seen[name]["elsewhere"] == [], "all requests stay on this machine"
    answers = seen[name]["answers"]
    charts = {running.titles()[answer["slice"]] for answer in answers}
    assert len(charts) == sum(len(charts_of(tab)) for tab in dashboard_of(running, name))
    top = {
        chart["chart"]: chart["top"]
        for tab in dashboard_of(running, name)
        for chart in charts_of(tab)
        if "top" in chart
    }
    for answer in answers:
        shown = {what: answer[what] for what in ("slice", "status", "rows", "limit", "error")}
        assert (answer["status"], answer["error"]) == (200, None), shown
        title = running.titles()[answer["slice"]].rpartition(", ")[0]
        assert 0 < answer["rows"] < answer["limit"] or answer["rows"] == top.get(title), shown


@pytest.mark.parametrize("number", [None, *range(len(SETTINGS))])
@pytest.mark.parametrize("name", CONNECTIONS[:2])
def test_tiles_and_minutes_equal_sql_by_hand(
    name: str, number: int | None, running: Superset, seen: dict[str, dict[str, Any]]
) -> None:
    asked = {"tab": "Fabric", "where": "true"} if number is None else SETTINGS[number]
    with warehouse.open(running.connections[name].target) as opened:
        by_hand = opened.execute(
            f"SELECT sum(in_bytes) / 1e12, sum(out_bytes) / 1e12 FROM {BY_HAND[asked['tab']]} WHERE {asked['where']}"
        ).fetchone()
    assert by_hand
    all_of_it = {"drawn": seen[name]["drawn"]["Fabric"], "answers": seen[name]["answers"]}
    found = all_of_it if number is None else seen[name]["settings"][number]
    answers = {running.titles()[answer["slice"]]: answer["data"] for answer in found["answers"]}
    for tile, expected in zip(TILES[asked["tab"]], by_hand, strict=True):
        assert expected > 1
        assert box_of(found["drawn"], tile)["number"] == f"{expected:,.1f}"
        [(_, exact)] = answers[f"{tile}, TB"][0].items() if len(answers[f"{tile}, TB"]) == 1 else [("", None)]
        assert exact == pytest.approx(expected, rel=1e-12)
        minutes = answers[f"{tile} per minute, TB"]
        total = sum(value or 0 for row in minutes for title, value in row.items() if title != "minute_utc")
        assert total == pytest.approx(expected, rel=1e-9), "minutes are those of the same hours"


@pytest.mark.parametrize("name", CONNECTIONS[:2])
def test_filters_reach_all_charts_of_a_tab(name: str, running: Superset, seen: dict[str, dict[str, Any]]) -> None:
    for asked, found in zip(SETTINGS, seen[name]["settings"], strict=True):
        [tab] = [tab for tab in dashboard_of(running, name) if tab["title"] == asked["tab"]]
        assert len({answer["slice"] for answer in found["answers"]}) == len(charts_of(tab)), asked
        for column, filter_name in (("switch", "Leaf"), ("server", "Server"), ("hour", "Hour")):
            values = {row[column] for answer in found["answers"] for row in answer["data"] if column in row}
            chosen = set(asked["filters"].get(filter_name) or asked["filters"].get(f"{filter_name} of servers", values))
            assert values <= chosen, asked


def test_both_servers_show_the_same_numbers(running: Superset, seen: dict[str, dict[str, Any]]) -> None:
    titles = running.titles()
    ours, theirs = (
        {
            titles[one["slice"]]: sorted(
                value for row in one["data"] for value in row.values() if isinstance(value, float | int)
            )
            for one in seen[name]["answers"]
        }
        for name in CONNECTIONS[:2]
    )
    assert ours.keys() == theirs.keys()
    for title, numbers in ours.items():
        assert theirs[title] == pytest.approx(numbers, rel=1e-9), title


def test_loading_again_updates_datasets_and_charts_and_adds_none(running: Superset) -> None:
    before = running.counts()
    with psycopg.connect(running.metastore, autocommit=True) as changed:
        changed.execute("UPDATE sql_metrics SET d3format = 'old'")
        changed.execute("UPDATE slices SET slice_name = 'old', params = '{}'")
        changed.execute("UPDATE tables SET description = 'old'")
    for name in CONNECTIONS:
        running.load(name)
    assert running.counts() == before
    with psycopg.connect(running.metastore) as asked:
        for table, column in (("sql_metrics", "d3format"), ("slices", "slice_name"), ("tables", "description")):
            assert asked.execute(f"SELECT count(*) FROM {table} WHERE {column} = 'old'").fetchone() == (0,)
        certified = asked.execute("SELECT count(*) FROM sql_metrics WHERE extra LIKE '%certified_by%tests/models/%'")
        assert (certified.fetchone() or (0,))[0] > 60


def test_charts_show_a_build_that_was_published_meanwhile(running: Superset, seen: dict[str, dict[str, Any]]) -> None:
    assert seen  # the browser saw the previous build
    connection = running.connections["DuckDB"].name
    before = running.rows_of(connection, "suspect_links")
    new = running.file.with_suffix(".new")
    shutil.copyfile(running.file, new)
    with duckdb.connect(str(new)) as changed:
        changed.execute("INSERT INTO metrics.suspect_links FROM metrics.suspect_links")
    new.replace(running.file)
    assert running.rows_of(connection, "suspect_links") == 2 * before > 0
