"""The Superset bundle: complete, without dangling references, and without sums of non-additive columns."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import warehouse
from bi.superset import bundle as made
from bi.superset.datasets import written
from bi.superset.layout import boxes_of, charts_of
from tests.e2e.like_real import LEAVES
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
def packed(opened: duckdb.DuckDBPyConnection) -> bytes:
    return made.bundle(opened, URIS["duck"], "duck")


@pytest.fixture(scope="module")
def duck(packed: bytes) -> Files:
    return made.unzipped(packed)


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


def test_two_connections_do_not_collide(duck: Files, packed: bytes, opened: duckdb.DuckDBPyConnection) -> None:
    other = files(opened, "pg")
    assert not {one["uuid"] for one in duck.values() if "uuid" in one} & {
        one["uuid"] for one in other.values() if "uuid" in one
    }
    for kind in ("charts", "datasets"):
        for one, two in zip(of_kind(duck, kind), of_kind(other, kind), strict=True):
            ids = {"uuid", "dataset_uuid", "database_uuid"}
            assert {k: v for k, v in one.items() if k not in ids} == {k: v for k, v in two.items() if k not in ids}
    assert of_kind(duck, "databases")[0]["sqlalchemy_uri"].endswith("?access_mode=read_only")
    assert made.bundle(opened, URIS["duck"], "duck") == packed


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
    unfiltered = [
        tab["title"] for tab in said["tabs"] if all(tab["title"] not in one["tabs"] for one in said["filters"])
    ]
    assert unfiltered == ["Findings", "Utilization"]
    assert "No filter applies" in said["tabs"][0]["note"]


def test_time_filters_select_whole_hours(duck: Files) -> None:
    [dashboard] = of_kind(duck, "dashboards")
    assert {one["filterType"] for one in dashboard["metadata"]["native_filter_configuration"]} == {"filter_select"}
    for chart in of_kind(duck, "charts"):
        assert all(one["operator"] != "TEMPORAL_RANGE" for one in chart["params"]["adhoc_filters"])
    for tab in made.template()["tabs"]:
        if tab["title"] in ("Tasks", "Jobs"):
            assert "the filter of hours does not apply here" in tab["note"]


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
        text = (ROOT / path).read_text(encoding="utf-8").partition(f"def {name}(")[2].partition("\ndef ")[0]
        for columns in one["measures"].values():
            assert [column for column in columns if column not in text] == [], one["test"]


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


def test_leaves_are_sorted_by_number(duck: Files) -> None:
    leaf = one_of(duck, "datasets", "leaf_hour")
    [order] = [one["expression"] for one in leaf["metrics"] if one["metric_name"] == "order_of_switch"]
    found = duckdb.execute(
        f"SELECT switch FROM unnest({[*LEAVES]}) AS t (switch) GROUP BY switch ORDER BY {order}"
    ).fetchall()
    assert tuple(name for (name,) in found) == LEAVES
    assert sorted(LEAVES) != list(LEAVES)


def test_tables_are_sorted_by_the_numbers_in_names(duck: Files, opened: duckdb.DuckDBPyConnection) -> None:
    ports = one_of(duck, "charts", "Server ports")["params"]
    by = "server, hour, switch, short_port"
    dataset = one_of(duck, "datasets", "server_port_hour")
    computed = ", ".join(
        f"{one['expression']} AS {one['column_name']}" for one in dataset["columns"] if one["expression"]
    )
    rows = opened.execute(
        f"SELECT {by} FROM (SELECT *, {computed} FROM {source(dataset)}) "
        f"GROUP BY {by} ORDER BY {ports['timeseries_limit_metric']['sqlExpression']}"
    ).fetchall()
    number = re.compile(r"\d+")
    keys = [(int("".join(number.findall(a))), hour, int(number.findall(leaf)[0]), port) for a, hour, leaf, port in rows]
    assert keys == sorted(keys)
    assert len({leaf for _, _, leaf, _ in rows}) > 4
    for chart in of_kind(duck, "charts"):
        if chart["viz_type"] == "table":
            assert chart["params"].get("order_by_cols") or chart["params"]["timeseries_limit_metric"], chart[
                "slice_name"
            ]


def test_every_suspect_link_names_its_evidence(opened: duckdb.DuckDBPyConnection, duck: Files) -> None:
    with_site = files(opened, "duck", "https://example.org/docs/")
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


def test_axes_of_shares_have_labels_at_quarters(duck: Files) -> None:
    shares = [one for one in of_kind(duck, "charts") if one["params"].get("y_axis_bounds") == [0, 1]]
    assert len(shares) == 3
    assert {one["params"]["echart_options"] for one in shares} == {"{ yAxis: { interval: 0.25 } }"}
    others = [one["params"].get("echart_options") for one in of_kind(duck, "charts") if one not in shares]
    assert set(others) == {None}


def changed(monkeypatch: pytest.MonkeyPatch, title: str, **more: object) -> None:
    """Patch the template so that one chart differs."""
    said = copy.deepcopy(made.template())
    [chart] = [one for tab in said["tabs"] for one in charts_of(tab) if one["chart"] == title]
    chart.update(more)
    monkeypatch.setattr(made, "template", lambda: said)


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
        ("GPU time by job type", {"measures": ["job_share"]}, "job_share does not add up"),
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
    changed(monkeypatch, title, **more)
    with pytest.raises((LookupError, ValueError), match=refused):
        files(opened, "duck")


def test_a_chart_without_a_written_reason_gets_a_default_one(
    opened: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not [chart for tab in made.filled(opened)["tabs"] for chart in boxes_of(tab) if "reason" in chart]
    changed(monkeypatch, "Jobs", where={"kind": "tpu"})
    [empty] = [chart for tab in made.filled(opened)["tabs"] for chart in boxes_of(tab) if "reason" in chart]
    assert empty["reason"] == "This warehouse has no numbers for it in metrics.job_totals with kind tpu."


def test_in_and_out_have_one_color_everywhere(duck: Files) -> None:
    [dashboard] = of_kind(duck, "dashboards")
    colors = dashboard["metadata"]["label_colors"]
    for chart in of_kind(duck, "charts"):
        for metric in chart["params"].get("metrics", []):
            label = metric["label"] if isinstance(metric, dict) else ""
            if label.startswith(("in,", "out,")):
                assert colors[label] == colors[", ".join([*label.split(", ")[:-1], "TB"])], label
    assert len({colors["in, TB"], colors["out, TB"]}) == 2
    assert {colors["in, share"], colors["in, ratio"]} == {colors["in, TB"]}
    assert json.dumps(colors)


def test_every_package_of_the_lock_is_pinned() -> None:
    lines = (made.TEMPLATE.parent / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert all("==" in line for line in lines if not line.startswith("#"))
    assert not any("://" in line or line.startswith("-") for line in lines)
