"""The files of a dashboard in the form that Superset imports, for one connection.

Names of connection, dataset, chart and dashboard give their uuids, so importing again overwrites instead of adding,
and the same template stands beside itself for two connections.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from bi.superset.charts import chart_params, chart_title
from bi.superset.layout import Ids, charts_of, dashboard, slug
from bi.superset.semantic import ROWS, Measure, Table, read_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import duckdb

TEMPLATE = Path(__file__).parent / "dashboard.yaml"
VERSION = "1.0.0"


def template() -> dict[str, Any]:
    """The dashboard as it is written in dashboard.yaml."""
    return dict(yaml.safe_load(TEMPLATE.read_text(encoding="utf-8")))


def bundle(warehouse: duckdb.DuckDBPyConnection, uri: str, connection: str) -> bytes:
    """A zip file for `superset import-dashboards` or the page Dashboards > Import.

    Parameters
    ----------
    warehouse
        A published warehouse: its `meta` says what tables, columns and measures are.
    uri
        Where Superset finds the tables, in the form of SQLAlchemy: `duckdb:////DIR/warehouse.duckdb`, or
        `postgresql+psycopg2://USER@HOST:PORT/NAME`.
    connection
        The name of this connection in Superset; another name makes another dashboard.

    Raises
    ------
    LookupError
        When the template names a table or column that the warehouse does not have.
    ValueError
        When a chart sums what does not add up.
    """
    files = dict(_files(warehouse, uri, connection))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
            archive.writestr(zipfile.ZipInfo(f"bundle/{name}", (1980, 1, 1, 0, 0, 0)), text)
    return stream.getvalue()


def _files(warehouse: duckdb.DuckDBPyConnection, uri: str, connection: str) -> Iterator[tuple[str, dict[str, Any]]]:
    said, ids = template(), Ids(connection)
    joined = said["joined"]
    tables = {name: _table(warehouse, name, joined) for name in sorted(_named(said))}
    titles = {one["chart"]: chart_title(one, tables[one["table"]]) for tab in said["tabs"] for one in charts_of(tab)}
    yield "metadata.yaml", {"version": VERSION, "type": "Dashboard", "timestamp": "2024-01-01T00:00:00+00:00"}
    yield f"databases/{slug(connection)}.yaml", _database(uri, connection, ids)
    for name, table in tables.items():
        sql = joined[name]["sql"] if name in joined else None
        yield f"datasets/{slug(connection)}/{slug(name)}.yaml", _dataset(name, table, sql, ids)
    for tab in said["tabs"]:
        for chart in charts_of(tab):
            table = tables[chart["table"]]
            params = chart_params(chart, table)
            said_of_it = {
                "slice_name": titles[chart["chart"]],
                "description": table.about,
                "viz_type": params["viz_type"],
                "params": params,
                "query_context": None,
                "cache_timeout": 0,
                "uuid": ids("chart", chart["chart"]),
                "version": VERSION,
                "dataset_uuid": ids("dataset", chart["table"]),
            }
            yield f"charts/{slug(chart['chart'])}.yaml", said_of_it
    yield f"dashboards/{slug(connection)}.yaml", dashboard(said, titles, connection, ids) | {"version": VERSION}


def _named(said: Mapping[str, Any]) -> set[str]:
    """All tables that charts and filters use."""
    named = {chart["table"] for tab in said["tabs"] for chart in charts_of(tab)}
    return named | {place.rpartition(".")[0] for tab in said["tabs"] for place in tab["filters"].values()}


def _table(warehouse: duckdb.DuckDBPyConnection, name: str, joined: Mapping[str, Any]) -> Table:
    if name not in joined:
        return read_table(warehouse, name)
    like = read_table(warehouse, joined[name]["like"])
    more = {column: (kind, "") for column, kind in joined[name]["columns"].items()}
    return replace(like, columns=like.columns | more)


def _database(uri: str, connection: str, ids: Ids) -> dict[str, Any]:
    duck = uri.startswith("duckdb:")
    return {
        "database_name": connection,
        # a reader that could write would keep builds and other workers out
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


def _dataset(name: str, table: Table, sql: str | None, ids: Ids) -> dict[str, Any]:
    schema, _, short = table.name.partition(".")
    count = {"metric_name": ROWS, "verbose_name": ROWS, "expression": "count(*)", "description": "how many rows"}
    return {
        "table_name": name if sql else short,
        "main_dttm_col": table.time,
        "description": table.about,
        "cache_timeout": 0,
        "schema": schema,
        "sql": sql,
        "params": None,
        "filter_select_enabled": True,
        "extra": None,
        "uuid": ids("dataset", name),
        "metrics": [count, *(_metric(one, table) for one in table.measures.values() if one.how != "none")],
        "columns": [_column(column, kind, about) for column, (kind, about) in table.columns.items()],
        "version": VERSION,
        "database_uuid": ids("database", ""),
    }


def _metric(measure: Measure, table: Table) -> dict[str, Any]:
    summed = f"; {measure.how} of several rows"
    beside = f", not over {', '.join(measure.not_over)}" if measure.not_over else ""
    return {
        "metric_name": measure.name,
        "verbose_name": measure.title,
        "expression": measure.expression,
        "description": table.columns[measure.column][1] + summed + beside,
        "d3format": None,
    }


def _column(name: str, kind: str, about: str) -> dict[str, Any]:
    return {
        "column_name": name,
        "verbose_name": name,
        "description": about,
        "type": kind,
        "is_dttm": kind.startswith(("TIMESTAMP", "DATE")),
        "is_active": True,
        "groupby": True,
        "filterable": True,
    }
