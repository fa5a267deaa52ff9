"""The Superset bundle: complete, without dangling references, and without sums of non-additive columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import warehouse
from bi.superset import bundle as made
from bi.superset import load
from bi.superset.charts import chart_params
from bi.superset.datasets import read_dataset, written
from bi.superset.evidence import evidence_rows
from bi.superset.layout import Ids, boxes_of, charts_of
from tests.environments import ROOT

URI = "duckdb:////data/warehouse.duckdb"
Files = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def opened(built: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with warehouse.open(built) as connection:
        yield connection


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
    return made.unzipped(made.bundle(opened, URI, "duck"))


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


def test_two_connections_do_not_collide(duck: Files) -> None:
    [database] = of_kind(duck, "databases")
    assert database["sqlalchemy_uri"].endswith("?access_mode=read_only")
    ours, theirs = (Ids(name)("chart", "Into leaves") for name in ("duck", "pg"))
    assert ours in {one["uuid"] for one in of_kind(duck, "charts")}
    assert ours != theirs


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


def test_certified_metrics_name_an_existing_test(duck: Files) -> None:
    metrics = [metric for dataset in of_kind(duck, "datasets") for metric in dataset["metrics"]]
    assert [one for one in metrics if not (one["d3format"] and one["description"].strip().endswith("]"))] == []
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
    [share] = [
        one for one in one_of(duck, "datasets", "leaf_hour")["metrics"] if one["verbose_name"] == "leaving_share"
    ]
    quotient = "sum(uplink_out_bytes)::BIGINT / sum(access_in_bytes)::BIGINT"
    asked = opened.execute(f"SELECT {share['expression']}, {quotient} FROM metrics.leaf_hour").fetchone() or (0, 1)
    assert asked[0] == pytest.approx(asked[1])
    assert share["d3format"] == ".1%"
    titles = {one["slice_name"] for one in of_kind(duck, "charts")}
    assert {"Into leaves, TB", "Into each leaf by minute UTC, TB; gaps blank"} <= titles


def test_minutes_without_a_row_are_gaps_and_the_opening_gap_is_separate(
    duck: Files, opened: duckdb.DuckDBPyConnection
) -> None:
    minutes = source(one_of(duck, "datasets", "leaf_minute"))
    told = ", ".join(f"sum(in_{part}bytes)::BIGINT" for part in ("", "observed_", "gap_", "whole_"))
    found = opened.execute(f"SELECT count(*), count(in_bytes), {told} FROM {minutes}").fetchall()[0]
    by_hand = opened.execute(
        "SELECT 60 * (SELECT count(*) FROM metrics.leaf_hour), count(*), sum(b)::BIGINT, (sum(b) - sum(g))::BIGINT, "
        "sum(g)::BIGINT, sum(b) FILTER (NOT is_gap)::BIGINT FROM (SELECT sum(in_bytes) AS b, "
        "coalesce(sum(in_bytes) FILTER (quality = 'gap'), 0) AS g, bool_or(quality = 'gap') AS is_gap "
        "FROM metrics.port_minute GROUP BY switch, minute_utc)"
    ).fetchall()
    assert [found] == by_hand
    assert 0 < found[4] < found[2]
    assert found[1] <= found[0]


def test_every_suspect_link_names_its_evidence(opened: duckdb.DuckDBPyConnection, duck: Files) -> None:
    suspects = one_of(duck, "datasets", "suspect_links")
    rows = opened.execute(f"SELECT kind, switch, port, server, source FROM ({suspects['sql']})").fetchall()
    assert rows
    for kind, switch, port, server, place in rows:
        assert place.startswith("cluster_sample/")
        if kind.startswith("uplink_"):
            assert f"/{switch}_{port.rpartition('/')[2]}.csv:2" in place
        elif kind == "peer_differs":
            assert re.search(r"link\S*\.csv:\d+", place), place
        else:
            assert opened.execute(
                "SELECT sysname LIKE '%-' || $1, portname, switchname LIKE '%-' || $2 || '.GPU%' "
                "FROM raw.cluster_topology WHERE sheet_row = $3",
                [server, switch, int(place.rpartition(":")[2])],
            ).fetchall() == [(True, port, True)]
    link = '<a href="https://example.org/docs/tables/metrics.suspect_links.html" target="_blank">cluster_sample/'
    assert evidence_rows(opened, "https://example.org/docs/").count(link) == len(rows)


REFUSED = (
    ("Variation among each leaf's uplinks in its most uneven hour", {"extreme": None}, "cov does not add up"),
    ("Uplink balance of each leaf and hour", {"by": ["switch", "hour"]}, "over several cluster, direction"),
    ("Into leaves", {"measures": ["no_such"]}, "has no measure no_such"),
    ("Bytes sent by each server (rows) and NIC (columns)", {"x": "no_such"}, "has no column no_such"),
)


def test_non_additive_sums_and_missing_columns_are_refused(opened: duckdb.DuckDBPyConnection) -> None:
    charts = {one["chart"]: one for tab in made.template()["tabs"] for one in charts_of(tab)}
    for title, more, refused in REFUSED:
        table = read_dataset(opened, charts[title]["table"], None)
        with pytest.raises((LookupError, ValueError), match=refused):
            chart_params(charts[title] | more, table)
    with pytest.raises(LookupError, match=r"no table metrics\.no_such"):
        read_dataset(opened, "metrics.no_such", None)


def test_a_bundle_that_cannot_be_loaded_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dashboard.zip").write_bytes(made.zipped({"metadata.yaml": made.metadata("Dashboard")}))
    for password, name, url, said in (
        (None, "dashboard.zip", "http://127.0.0.1:1", "no password: set SUPERSET_PASSWORD"),
        ("secret", "dashboard.zip", "http://127.0.0.1:1", "refused"),
        ("secret", "dashboard.zip", "ftp://127.0.0.1", "not a URL of Superset: ftp://127.0.0.1"),
        ("secret", "none.zip", "http://127.0.0.1:1", "No such file"),
    ):
        monkeypatch.delenv("SUPERSET_PASSWORD", raising=False)
        if password:
            monkeypatch.setenv("SUPERSET_PASSWORD", password)
        monkeypatch.setattr("sys.argv", ["load", str(tmp_path / name), url])
        assert load.main() == 2
        error = capsys.readouterr().err
        assert (error.startswith("error: "), error.count("\n"), said in error) == (True, 1, True), error
