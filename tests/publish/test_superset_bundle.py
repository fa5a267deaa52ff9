"""The Superset bundle: it holds what the template says, nothing dangles, and no chart sums what does not add up."""

from __future__ import annotations

import copy
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

import warehouse
from bi.superset import bundle as made
from bi.superset.layout import charts_of

URIS = {"duck": "duckdb:////data/warehouse.duckdb", "pg": "postgresql+psycopg2://viewer@localhost/traces"}
Files = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def opened(built: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with warehouse.open(built) as connection:
        yield connection


def files(opened: duckdb.DuckDBPyConnection, name: str) -> Files:
    with zipfile.ZipFile(io.BytesIO(made.bundle(opened, URIS[name], name))) as archive:
        return {one.partition("/")[2]: yaml.safe_load(archive.read(one)) for one in archive.namelist()}


def of_kind(found: Files, kind: str) -> list[dict[str, Any]]:
    return [content for name, content in found.items() if name.startswith(f"{kind}/")]


@pytest.fixture(scope="module")
def duck(opened: duckdb.DuckDBPyConnection) -> Files:
    return files(opened, "duck")


def test_charts_datasets_and_database_follow_each_other_by_uuid(duck: Files) -> None:
    [database] = of_kind(duck, "databases")
    [dashboard] = of_kind(duck, "dashboards")
    datasets = {one["uuid"]: one for one in of_kind(duck, "datasets")}
    assert {one["database_uuid"] for one in datasets.values()} == {database["uuid"]}
    assert {one["dataset_uuid"] for one in of_kind(duck, "charts")} <= datasets.keys()
    boxes = {
        box["meta"]["uuid"]: box["meta"]["sliceName"]
        for box in dashboard["position"].values()
        if isinstance(box, dict) and box["type"] == "CHART"
    }
    assert boxes == {one["uuid"]: one["slice_name"] for one in of_kind(duck, "charts")}
    for one in dashboard["metadata"]["native_filter_configuration"]:
        assert set(one["scope"]["rootPath"]) <= dashboard["position"].keys()
        for where in one["targets"]:
            if where:
                columns = {column["column_name"] for column in datasets[where["datasetUuid"]]["columns"]}
                assert where["column"]["name"] in columns


def test_two_connections_stand_beside_each_other(duck: Files, opened: duckdb.DuckDBPyConnection) -> None:
    other = files(opened, "pg")
    assert not {one["uuid"] for one in duck.values() if "uuid" in one} & {
        one["uuid"] for one in other.values() if "uuid" in one
    }
    for kind in ("charts", "datasets"):
        for one, two in zip(of_kind(duck, kind), of_kind(other, kind), strict=True):
            ids = {"uuid", "dataset_uuid", "database_uuid"}
            assert {k: v for k, v in one.items() if k not in ids} == {k: v for k, v in two.items() if k not in ids}
    assert of_kind(duck, "databases")[0]["sqlalchemy_uri"].endswith("?access_mode=read_only")
    assert made.bundle(opened, URIS["duck"], "duck") == made.bundle(opened, URIS["duck"], "duck")


def test_every_measure_computes_and_carries_its_unit(duck: Files, built: Path) -> None:
    with duckdb.connect(str(built / "warehouse.duckdb"), read_only=True) as asked:
        for dataset in of_kind(duck, "datasets"):
            source = f"({dataset['sql']})" if dataset["sql"] else f"{dataset['schema']}.{dataset['table_name']}"
            measures = ", ".join(one["expression"] for one in dataset["metrics"])
            columns = ", ".join(one["column_name"] for one in dataset["columns"])
            asked.execute(f"SELECT {measures} FROM {source}")
            asked.execute(f"SELECT {columns} FROM {source} LIMIT 1")
    titles = {one["slice_name"] for one in of_kind(duck, "charts")}
    assert {"Bytes into leaves, TB", "Unevenness of uplinks by the hour, %", "GPU time by how jobs end, h"} <= titles


def test_a_ratio_is_the_sums_divided_and_shown_in_its_unit(duck: Files, built: Path) -> None:
    [leaf] = [one for one in of_kind(duck, "datasets") if one["table_name"] == "leaf_hour"]
    [share] = [one for one in leaf["metrics"] if one["verbose_name"] == "leaving_share, %"]
    with duckdb.connect(str(built / "warehouse.duckdb"), read_only=True) as asked:
        (shown,) = asked.execute(f"SELECT {share['expression']} FROM metrics.leaf_hour").fetchone() or (None,)
        out, into = asked.execute(
            "SELECT sum(uplink_out_bytes)::BIGINT, sum(access_in_bytes)::BIGINT FROM metrics.leaf_hour"
        ).fetchone() or (0, 1)
    assert shown == pytest.approx(100 * out / into)


def changed(monkeypatch: pytest.MonkeyPatch, title: str, **more: object) -> None:
    """The template with a chart that is another."""
    said = copy.deepcopy(made.template())
    [chart] = [one for tab in said["tabs"] for one in charts_of(tab) if one["chart"] == title]
    chart.update(more)
    monkeypatch.setattr(made, "template", lambda: said)


@pytest.mark.parametrize(
    ("title", "more", "refused"),
    [
        ("Unevenness of uplinks by the hour", {"by": ["switch"]}, "cov means nothing over several"),
        ("Unevenness of uplinks by the hour", {"grain": "P1D"}, "cov means nothing over several hour_utc"),
        ("Bytes into leaves", {"measures": ["in_out_imbalance"]}, "in_out_imbalance does not add up"),
        ("GPU time by how jobs end", {"measures": ["job_share"]}, "job_share does not add up"),
        ("Bytes into leaves", {"measures": ["no_such"]}, "has no measure no_such"),
        ("Bytes of each server and NIC", {"x": "no_such"}, "has no column no_such"),
        ("Totals", {"table": "metrics.no_such"}, "no table metrics.no_such"),
    ],
)
def test_what_does_not_add_up_or_is_not_there_is_refused(
    title: str,
    more: dict[str, object],
    refused: str,
    opened: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changed(monkeypatch, title, **more)
    with pytest.raises((LookupError, ValueError), match=refused):
        files(opened, "duck")


def test_every_package_of_the_lock_is_pinned() -> None:
    lines = (made.TEMPLATE.parent / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert all("==" in line for line in lines if not line.startswith("#"))
    assert not any("://" in line or line.startswith("-") for line in lines)
