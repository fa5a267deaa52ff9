"""The dashboard in a real Superset and a real browser, over both connections: `make e2e`.

`WRITE_DOCS=1 make e2e` puts the screenshots into docs/images.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from bi.superset.bundle import template
from bi.superset.layout import charts_of, slug
from tests.e2e.browse import SWITCH
from tests.e2e.superset_server import CONNECTIONS, Superset, superset
from tests.environments import ASKED, ROOT, missing

PICTURES = ROOT / "docs" / "images"


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Superset]:
    if not os.environ.get(ASKED):
        pytest.skip("Superset is 700 MB and minutes: `make e2e` runs it")
    if not Path(os.environ.get("CHROMIUM", "/usr/bin/chromium")).is_file():
        missing("no Chromium: apt-get install chromium, or set CHROMIUM")
    built: Path = request.getfixturevalue("built")  # not before it is needed
    with superset(built, tmp_path_factory.mktemp("superset")) as found:
        yield found


@pytest.fixture(scope="module")
def seen(running: Superset, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the browser saw, by engine."""
    found = {}
    for engine, connection in CONNECTIONS.items():
        pictures = tmp_path_factory.mktemp(engine)
        found[engine] = json.loads(running.browse(slug(connection), pictures))
        if os.environ.get("WRITE_DOCS") and engine == "DuckDB":
            PICTURES.mkdir(exist_ok=True)
            for picture in pictures.glob("*.png"):
                shutil.copy(picture, PICTURES / picture.name)
    return found


def test_all_that_the_bundles_hold_was_imported(running: Superset) -> None:
    said = template()
    tables = {chart["table"] for tab in said["tabs"] for chart in charts_of(tab)}
    tables |= {place.rpartition(".")[0] for tab in said["tabs"] for place in tab["filters"].values()}
    expected = [len(CONNECTIONS), 2 * sum(len(charts_of(tab)) for tab in said["tabs"]), 2 * len(tables), 2]
    with psycopg.connect(running.metastore) as asked:
        found = [
            (asked.execute(f"SELECT count(*) FROM {name}").fetchone() or (0,))[0]
            for name in ("dashboards", "slices", "tables", "dbs")
        ]
    assert found == expected, "an import that drops what it cannot match says OK"


@pytest.mark.parametrize("engine", CONNECTIONS)
def test_every_chart_drew_data(engine: str, seen: dict[str, dict[str, Any]]) -> None:
    drawn = seen[engine]["drawn"]
    assert {name: len(boxes) for name, boxes in drawn.items()} == {
        tab["title"]: len(charts_of(tab)) for tab in template()["tabs"]
    }, "a box a chart"
    for tab in template()["tabs"]:
        boxes = {box["title"]: box for box in drawn[tab["title"]]}
        for chart in charts_of(tab):
            [box] = [
                box for title, box in boxes.items() if title == chart["chart"] or title.startswith(f"{chart['chart']},")
            ]
            how = {"number": "number", "table": "cells"}.get(chart["kind"], "canvas")
            assert box[how], f"{chart['chart']} shows nothing"
    assert "There is no chart definition" not in seen[engine]["text"]


@pytest.mark.parametrize("engine", CONNECTIONS)
def test_no_answer_failed_was_empty_or_was_cut(engine: str, seen: dict[str, dict[str, Any]]) -> None:
    answers = seen[engine]["answers"]
    assert len({answer["slice"] for answer in answers} - {None}) == sum(len(charts_of(t)) for t in template()["tabs"])
    for answer in answers:
        said = {name: answer[name] for name in ("slice", "status", "rows", "limit", "error")}
        assert (answer["status"], answer["error"]) == (200, None), said
        assert 0 < answer["rows"] < answer["limit"], said


@pytest.mark.parametrize("engine", CONNECTIONS)
def test_a_filter_reaches_the_charts_of_its_tab(engine: str, seen: dict[str, dict[str, Any]]) -> None:
    fabric = template()["tabs"][0]
    filtered = [answer for answer in seen[engine]["filtered"] if answer["slice"] is not None]
    assert len({answer["slice"] for answer in filtered}) == len(charts_of(fabric))
    before = {answer["slice"]: answer["rows"] for answer in seen[engine]["answers"]}
    assert all(0 < answer["rows"] <= before[answer["slice"]] for answer in filtered)
    assert {row["switch"] for answer in filtered for row in answer["data"] if "switch" in row} == {SWITCH}


@pytest.mark.parametrize("engine", CONNECTIONS)
def test_all_requests_stayed_on_this_machine(engine: str, seen: dict[str, dict[str, Any]]) -> None:
    assert seen[engine]["elsewhere"] == []


def test_both_connections_show_the_same_numbers(running: Superset, seen: dict[str, dict[str, Any]]) -> None:
    with psycopg.connect(running.metastore) as asked:
        titles: dict[int, str] = dict(asked.execute("SELECT id, slice_name FROM slices").fetchall())
    ours, theirs = (_rows(seen[engine]["answers"], titles) for engine in CONNECTIONS)
    assert ours.keys() == theirs.keys()
    for title, rows in ours.items():
        for left, right in zip(rows, theirs[title], strict=True):
            assert all(_same(a, b) for a, b in zip(left, right, strict=True)), (title, left, right)


def test_charts_show_a_build_that_was_published_meanwhile(running: Superset, seen: dict[str, dict[str, Any]]) -> None:
    assert seen  # by a browser, of the build before
    before = running.rows_of("suspect_links")
    new = running.file.with_suffix(".new")
    shutil.copyfile(running.file, new)
    with duckdb.connect(str(new)) as changed:
        changed.execute("INSERT INTO metrics.suspect_links FROM metrics.suspect_links")
    new.replace(running.file)
    assert running.rows_of("suspect_links") == 2 * before > 0


def _rows(answers: list[dict[str, Any]], titles: dict[int, str]) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of each chart, in an order that does not depend on the server."""
    return {
        titles[answer["slice"]]: sorted((tuple(row[name] for name in sorted(row)) for row in answer["data"]), key=_key)
        for answer in answers
        if answer["slice"] is not None
    }


def _key(row: tuple[Any, ...]) -> list[str]:
    return [f"{value:.6g}" if isinstance(value, float | int) else str(value) for value in row]


def _same(a: object, b: object) -> bool:
    if isinstance(a, float | int) and isinstance(b, float | int):
        return math.isclose(a, b, rel_tol=1e-9)
    return a == b
