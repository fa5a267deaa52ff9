"""Files of a dashboard in Superset's import format, for one target and one connection.

Uuids derive from the names of connection, dataset, chart and dashboard. The bundle of another build thus has the same
uuids, and `python -m bi.superset.load` overwrites the objects. Another connection gets a second copy of the
dashboard.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from bi.superset.charts import chart_numbers, chart_params, chart_title
from bi.superset.datasets import VERSION, dataset_file, read_dataset
from bi.superset.layout import Ids, boxes_of, charts_of, dashboard, slug
from bi.superset.target import many_days, without_empty

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import duckdb

TEMPLATE = Path(__file__).with_name("dashboard.yaml")
Files = dict[str, dict[str, Any]]


def template() -> dict[str, Any]:
    """Return the parsed dashboard.yaml."""
    return dict(yaml.safe_load(TEMPLATE.read_text(encoding="utf-8")))


def filled(warehouse: duckdb.DuckDBPyConnection, site: str | None = None) -> dict[str, Any]:
    """Return the dashboard of this target: without empty tabs, with reasons for empty charts."""
    content = template()
    return without_empty(content, {name: read_dataset(warehouse, name, site) for name in _named(content)}, warehouse)


def bundle(warehouse: duckdb.DuckDBPyConnection, uri: str, connection: str, site: str | None = None) -> bytes:
    """Return a zip file for `python -m bi.superset.load` or the page Dashboards > Import.

    Parameters
    ----------
    warehouse
        A published warehouse: its `meta` describes tables, columns and measures.
    uri
        SQLAlchemy URI of the tables: `duckdb:////DIR/warehouse.duckdb`, or
        `postgresql+psycopg2://USER@HOST:PORT/NAME`.
    connection
        The name of this connection in Superset; another name makes another dashboard.
    site
        URL of the site of `warehouse docs`, if it is served: evidence links to it.

    Raises
    ------
    LookupError
        The template names a table or column that the warehouse does not have.
    ValueError
        A chart sums a non-additive column.
    """
    return zipped(dict(_files(warehouse, uri, connection, site)))


def zipped(files: Mapping[str, dict[str, Any]]) -> bytes:
    """Return the files as a byte-identical zip."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
            archive.writestr(zipfile.ZipInfo(f"bundle/{name}", (1980, 1, 1, 0, 0, 0)), text)
    return stream.getvalue()


def unzipped(content: bytes) -> Files:
    """Return the files of a bundle by path."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {one.partition("/")[2]: yaml.safe_load(archive.read(one)) for one in archive.namelist()}


def metadata(kind: str) -> dict[str, str]:
    """Return the metadata.yaml by which Superset knows the type of a bundle."""
    return {"version": VERSION, "type": kind, "timestamp": "2024-01-01T00:00:00+00:00"}


def _files(
    warehouse: duckdb.DuckDBPyConnection, uri: str, connection: str, site: str | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    content, ids = filled(warehouse, site), Ids(connection)
    tables = {name: read_dataset(warehouse, name, site) for name in sorted(_named(content))}
    titles = {one["chart"]: chart_title(one, tables[one["table"]]) for tab in content["tabs"] for one in charts_of(tab)}
    labels = {
        one.label: content["colors"].get(one.label.rpartition(", ")[0])
        for tab in content["tabs"]
        for chart in charts_of(tab)
        for one in chart_numbers(chart, tables[chart["table"]])
    }
    content["colors"] = {label: color for label, color in labels.items() if color}
    dates = many_days(warehouse)
    yield "metadata.yaml", metadata("Dashboard")
    yield f"databases/{slug(connection)}.yaml", _database(uri, connection, ids)
    for name, table in tables.items():
        yield f"datasets/{slug(connection)}/{slug(name)}.yaml", dataset_file(table, ids)
    for tab in content["tabs"]:
        for chart in charts_of(tab):
            table = tables[chart["table"]]
            params = chart_params(chart, table, many_days=dates)
            yield (
                f"charts/{slug(chart['chart'])}.yaml",
                {
                    "slice_name": titles[chart["chart"]],
                    "description": table.about,
                    "viz_type": params["viz_type"],
                    "params": params,
                    "query_context": None,
                    "cache_timeout": 0,
                    "uuid": ids("chart", chart["chart"]),
                    "version": VERSION,
                    "dataset_uuid": ids("dataset", chart["table"]),
                },
            )
    yield f"dashboards/{slug(connection)}.yaml", dashboard(content, titles, connection, ids) | {"version": VERSION}


def _named(content: Mapping[str, Any]) -> set[str]:
    """Return all tables that charts and filters use."""
    named = {chart["table"] for tab in content["tabs"] for chart in boxes_of(tab)}
    return named | {one["column"].rpartition(".")[0] for one in content["filters"]}


def _database(uri: str, connection: str, ids: Ids) -> dict[str, Any]:
    duck = uri.startswith("duckdb:")
    return {
        "database_name": connection,
        # a connection that can write would lock out builds and other workers
        "sqlalchemy_uri": f"{uri}?access_mode=read_only" if duck else uri,
        "cache_timeout": 0,
        "expose_in_sqllab": True,
        "allow_run_async": False,
        "allow_ctas": False,
        "allow_cvas": False,
        "allow_dml": False,
        "allow_csv_upload": False,
        "extra": {"engine_params": {"connect_args": {"read_only": True}}} if duck else {},
        "uuid": ids("database", ""),
        "version": VERSION,
    }
