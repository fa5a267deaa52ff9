"""The Superset bundle: complete, without dangling references, and without sums of non-additive columns."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import warehouse
from bi.superset import bundle as made
from bi.superset import load
from bi.superset.datasets import written
from bi.superset.layout import boxes_of, charts_of
from tests.environments import ROOT

URIS = {"duck": "duckdb:////data/warehouse.duckdb", "pg": "postgresql+psycopg2://viewer@localhost/traces"}
Files = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def opened(built: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with warehouse.open(built) as connection:
        yield connection


def files(opened: duckdb.DuckDBPyConnection, name: str, site: str | None = None) -> Files:
    return made.unzipped(made.bundle(opened, URIS[name], name, site))


def of_kind(found: Files, kind: str) -> list[dict[str, Any]]:
    return [content for name, content in found.items() if name.startswith(f"{kind}/")]


def one_of(found: Files, kind: str, name: str) -> dict[str, Any]:
    """Return the file of a dataset or a chart by its name."""
    [one] = [one for one in of_kind(found, kind) if name in (one.get("table_name"), one.get("slice_name"))]
    return one


def source(dataset: dict[str, Any]) -> str:
    """Return what follows FROM."""
    return f"({dataset['sql']}) AS virtual" if dataset["sql"] else f"{dataset['schema']}.{dataset['table_name']}"


@pytest.fixture(scope="module")
def duck(opened: duckdb.DuckDBPyConnection) -> Files:
    return files(opened, "duck")


def test_charts_datasets_and_database_reference_each_other_by_uuid(duck: Files) -> None:
    [database] = of_kind(duck, "databases")
    [dashboard] = of_kind(duck, "dashboards")
    datasets = {one["uuid"]: one for one in of_kind(duck, "datasets")}
    assert {one["database_uuid"] for one in datasets.values()} == {database["uuid"]}
    assert {one["dataset_uuid"] for one in of_kind(duck, "charts")} <= datasets.keys()
    boxes = [box for box in dashboard["position"].values() if isinstance(box, dict)]
    shown = {box["meta"]["uuid"]: box["meta"]["sliceName"] for box in boxes if box["type"] == "CHART"}
    assert shown == {one["uuid"]: one["slice_name"] for one in of_kind(duck, "charts")}
    for one in dashboard["metadata"]["native_filter_configuration"]:
        assert set(one["scope"]["rootPath"]) <= dashboard["position"].keys()
        [target] = one["targets"]
        columns = {column["column_name"] for column in datasets[target["datasetUuid"]]["columns"]}
        metrics = {metric["metric_name"] for metric in datasets[target["datasetUuid"]]["metrics"]}
        assert target["column"]["name"] in columns
        assert one.get("sortMetric", "rows") in metrics
        for parent in one["cascadeParentIds"]:
            [above] = [x for x in dashboard["metadata"]["native_filter_configuration"] if x["id"] == parent]
            assert above["targets"][0]["column"]["name"] in columns


def test_two_connections_do_not_collide(duck: Files, opened: duckdb.DuckDBPyConnection) -> None:
    other = files(opened, "pg")
    assert not {one["uuid"] for one in duck.values() if "uuid" in one} & {
        one["uuid"] for one in other.values() if "uuid" in one
    }
    for kind in ("charts", "datasets"):
        for one, two in zip(of_kind(duck, kind), of_kind(other, kind), strict=True):
            ids = {"uuid", "dataset_uuid", "database_uuid"}
            assert {k: v for k, v in one.items() if k not in ids} == {k: v for k, v in two.items() if k not in ids}
    assert of_kind(duck, "databases")[0]["sqlalchemy_uri"].endswith("?access_mode=read_only")


def test_every_filter_works_on_every_chart_of_its_tabs(duck: Files) -> None:
    said = made.template()
    columns = {
        one["table_name"]: {column["column_name"] for column in one["columns"]} for one in of_kind(duck, "datasets")
    }
    for one in said["filters"]:
        name = one["column"].rpartition(".")[2]
        for tab in said["tabs"]:
            for chart in boxes_of(tab) if tab["title"] in one["tabs"] else []:
                assert name in columns[chart["table"].rpartition(".")[2]], (one["name"], chart["chart"])
    [dashboard] = of_kind(duck, "dashboards")
    assert {one["filterType"] for one in dashboard["metadata"]["native_filter_configuration"]} == {"filter_select"}
    for one in of_kind(duck, "charts"):
        assert all(clause["operator"] != "TEMPORAL_RANGE" for clause in one["params"]["adhoc_filters"])


def test_every_metric_has_a_format_a_meaning_and_a_unit(duck: Files) -> None:
    metrics = [metric for dataset in of_kind(duck, "datasets") for metric in dataset["metrics"]]
    assert len(metrics) > 150
    for metric in metrics:
        assert metric["d3format"], metric
        assert metric["description"].strip().endswith("]"), metric
        assert metric["description"].rpartition(" [")[0].strip(), metric


def test_certified_metrics_name_an_existing_test(duck: Files) -> None:
    metrics = [metric for dataset in of_kind(duck, "datasets") for metric in dataset["metrics"]]
    shown = {metric["extra"]["certification"]["certified_by"] for metric in metrics if "extra" in metric}
    assert shown == {one["test"] for one in written()["certified"]}
    assert 20 < sum("extra" in metric for metric in metrics) < len(metrics) / 2
    for one in written()["certified"]:
        path, _, name = one["test"].partition("::")
        module = (ROOT / path).read_text(encoding="utf-8")
        assert f"\ndef {name}(" in module
        if "bench.acceptance" in module:
            module += (ROOT / "bench" / "acceptance.py").read_text(encoding="utf-8")
        for table, columns in one["measures"].items():
            assert [word for word in (table, *columns) if word not in module] == [], one["test"]


def test_every_measure_computes_and_carries_its_unit(duck: Files, opened: duckdb.DuckDBPyConnection) -> None:
    for dataset in of_kind(duck, "datasets"):
        opened.execute(f"SELECT {', '.join(one['expression'] for one in dataset['metrics'])} FROM {source(dataset)}")
        columns = [one["expression"] or one["column_name"] for one in dataset["columns"]]
        opened.execute(f"SELECT {', '.join(columns)} FROM {source(dataset)} LIMIT 1")
    titles = {one["slice_name"] for one in of_kind(duck, "charts")}
    assert {"Into leaves, TB", "Into each leaf by minute UTC, TB; gaps blank"} <= titles


def test_a_share_is_a_quotient_of_sums_shown_as_a_percentage(duck: Files, opened: duckdb.DuckDBPyConnection) -> None:
    leaf = one_of(duck, "datasets", "leaf_hour")
    [share] = [one for one in leaf["metrics"] if one["verbose_name"] == "leaving_share"]
    (shown,) = opened.execute(f"SELECT {share['expression']} FROM metrics.leaf_hour").fetchone() or (None,)
    out, into = opened.execute(
        "SELECT sum(uplink_out_bytes)::BIGINT, sum(access_in_bytes)::BIGINT FROM metrics.leaf_hour"
    ).fetchone() or (0, 1)
    assert shown == pytest.approx(out / into)
    assert share["d3format"] == ".1%"


def test_minutes_without_a_row_are_gaps_and_the_opening_gap_is_separate(
    duck: Files, opened: duckdb.DuckDBPyConnection
) -> None:
    rows = opened.execute(
        "SELECT count(*), count(in_bytes), sum(in_bytes)::BIGINT, sum(in_observed_bytes)::BIGINT, "
        f"sum(in_gap_bytes)::BIGINT, sum(in_whole_bytes)::BIGINT FROM {source(one_of(duck, 'datasets', 'leaf_minute'))}"
    ).fetchone()
    asked = (
        "SELECT 60 * (SELECT count(*) FROM metrics.leaf_hour), count(DISTINCT (switch, minute_utc)), "
        "sum(in_bytes)::BIGINT, "
        "sum(in_bytes) FILTER (quality <> 'gap')::BIGINT, sum(in_bytes) FILTER (quality = 'gap')::BIGINT, "
        "(SELECT sum(b)::BIGINT FROM (SELECT sum(in_bytes) AS b FROM metrics.port_minute GROUP BY switch, minute_utc "
        "HAVING bool_and(quality <> 'gap'))) FROM metrics.port_minute"
    )
    assert rows == opened.execute(asked).fetchone()
    assert rows is not None
    assert 0 < rows[4] < rows[2]
    assert rows[1] <= rows[0]


def test_every_suspect_link_names_its_evidence(opened: duckdb.DuckDBPyConnection, duck: Files) -> None:
    with_site = files(opened, "duck", "https://example.org/docs/")
    assert [one.get("uuid") for one in with_site.values()] == [one.get("uuid") for one in duck.values()]
    for found, start in ((duck, "cluster_sample/"), (with_site, "<a href=")):
        suspects = one_of(found, "datasets", "suspect_links")
        rows = opened.execute(f"SELECT kind, switch, port, server, source FROM ({suspects['sql']})").fetchall()
        assert rows
        assert all(place.startswith(start) for *_, place in rows)
    assert 'href="https://example.org/docs/tables/metrics.suspect_links.html"' in rows[0][4]
    for kind, switch, port, server, place in rows:
        plain = place.partition(">")[2].partition("<")[0]
        if kind.startswith("uplink_"):
            assert f"/{switch}_{port.rpartition('/')[2]}.csv:2" in plain
        elif kind == "peer_differs":
            assert re.search(r"link\S*\.csv:\d+", plain), plain
        else:
            sheet_row = int(plain.rpartition(":")[2])
            assert opened.execute(
                "SELECT sysname LIKE '%-' || $1, portname, switchname LIKE '%-' || $2 || '.GPU%' "
                "FROM raw.cluster_topology WHERE sheet_row = $3",
                [server, switch, sheet_row],
            ).fetchall() == [(True, port, True)]


UNEVEN = "Variation among each leaf's uplinks in its most uneven hour"


@pytest.mark.parametrize(
    ("title", "more", "refused"),
    [
        (UNEVEN, {"extreme": None}, "cov does not add up"),
        (
            "Uplink balance of each leaf and hour",
            {"by": ["switch", "hour"]},
            "means nothing over several cluster, direction",
        ),
        ("Into leaves", {"measures": ["in_out_difference"]}, "in_out_difference does not add up"),
        ("Into leaves", {"measures": ["no_such"]}, "has no measure no_such"),
        ("Bytes sent by each server (rows) and NIC (columns)", {"x": "no_such"}, "has no column no_such"),
        ("Totals", {"table": "metrics.no_such"}, "no table metrics.no_such"),
    ],
)
def test_non_additive_sums_and_missing_columns_are_refused(
    title: str,
    more: dict[str, object],
    refused: str,
    opened: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = copy.deepcopy(made.template())
    [chart] = [one for tab in said["tabs"] for one in charts_of(tab) if one["chart"] == title]
    chart.update(more)
    monkeypatch.setattr(made, "template", lambda: said)
    with pytest.raises((LookupError, ValueError), match=refused):
        files(opened, "duck")


def test_a_bundle_that_cannot_be_loaded_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dashboard.zip").write_bytes(made.zipped({"metadata.yaml": made.metadata("Dashboard")}))
    nowhere = "http://127.0.0.1:1"
    monkeypatch.delenv("SUPERSET_PASSWORD", raising=False)
    for name, url, said in (
        ("dashboard.zip", nowhere, "no password: set SUPERSET_PASSWORD"),
        ("dashboard.zip", nowhere, "refused"),
        ("dashboard.zip", "ftp://127.0.0.1", "not a URL of Superset: ftp://127.0.0.1"),
        ("none.zip", nowhere, "No such file"),
    ):
        monkeypatch.setattr("sys.argv", ["load", str(tmp_path / name), url])
        assert load.main() == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert (error.count("\n"), said in error) == (1, True)
        monkeypatch.setenv("SUPERSET_PASSWORD", "secret")
    (tmp_path / "no.zip").write_text("no zip", encoding="utf-8")
    monkeypatch.setattr(load.Superset, "__init__", lambda *_: None)
    monkeypatch.setattr("sys.argv", ["load", str(tmp_path / "no.zip"), nowhere])
    assert load.main() == 2
    assert "no.zip is not a zip file" in capsys.readouterr().err
