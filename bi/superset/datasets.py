"""Datasets of the bundle: tables of the warehouse, and virtual datasets from datasets.yaml."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from bi.superset.evidence import evidence_rows
from bi.superset.semantic import ROWS, Column, Measure, Metric, Table, read_table, with_labels

if TYPE_CHECKING:
    import duckdb

    from bi.superset.layout import Ids

DATASETS = Path(__file__).with_name("datasets.yaml")
VERSION = "1.0.0"


@cache
def written() -> dict[str, Any]:
    """Return the parsed datasets.yaml."""
    return dict(yaml.safe_load(DATASETS.read_text(encoding="utf-8")))


def read_dataset(warehouse: duckdb.DuckDBPyConnection, name: str, site: str | None) -> Table:
    """Return a table of the warehouse, or a virtual dataset, with its labels.

    Raises
    ------
    LookupError
        No table and no dataset has this name.
    """
    if name not in written()["datasets"]:
        return with_labels(read_table(warehouse, name))
    entry = written()["datasets"][name]
    like = read_table(warehouse, entry["like"]) if "like" in entry else Table(name, "", (), {})
    columns = {column: one for column, one in like.columns.items() if column not in entry.get("without", [])}
    for column, text in entry.get("columns", {}).items():
        kind, _, about = text.partition(" ")
        columns[column] = Column(kind, about)
    as_ = {new: replace(like.measures[old], column=new) for new, old in entry.get("measures", {}).items()}
    sql = entry["sql"].strip()
    if "{places}" in sql:
        sql = sql.replace("{places}", evidence_rows(warehouse, site))
    return with_labels(
        Table(
            name,
            entry.get("about", like.about),
            tuple(entry.get("grain", like.grain)),
            columns,
            {column: one for column, one in like.measures.items() if column in columns} | as_,
            {
                metric: Metric(metric, one["title"], one["expression"], one["about"], one.get("format", ",d"))
                for metric, one in entry.get("metrics", {}).items()
            },
            sql,
        )
    )


def certified_by(table: str, column: str) -> str | None:
    """Return the test that plants or recomputes the numbers of a measure."""
    entry = written()["datasets"].get(table, {})
    if "like" in entry:
        table, column = entry["like"], entry.get("measures", {}).get(column, column)
    tests = [one["test"] for one in written()["certified"] if column in one["measures"].get(table, [])]
    return tests[0] if tests else None


def dataset_file(table: Table, ids: Ids) -> dict[str, Any]:
    """Return a dataset in Superset's import format."""
    schema, _, short = table.name.rpartition(".")
    rows = Metric(ROWS, ROWS, "count(*)", "number of rows [1]")
    return {
        "table_name": short,
        "main_dttm_col": None,  # no time filter: all filters select whole hours
        "description": table.about,
        "cache_timeout": 0,
        "schema": schema or None,
        "sql": table.sql,
        "params": None,
        "filter_select_enabled": True,
        "extra": None,
        "uuid": ids("dataset", table.name),
        "metrics": [
            *(_written_metric(one) for one in [rows, *table.metrics.values()]),
            *(_metric(one, table) for one in table.measures.values() if one.how != "none"),
        ],
        "columns": [_column(name, one) for name, one in table.columns.items()],
        "version": VERSION,
        "database_uuid": ids("database", ""),
    }


def _written_metric(metric: Metric) -> dict[str, Any]:
    return {
        "metric_name": metric.name,
        "verbose_name": metric.title,
        "expression": metric.expression,
        "description": metric.about,
        "d3format": metric.number_format,
    }


def _metric(measure: Measure, table: Table) -> dict[str, Any]:
    meaning, _, _ = table.columns[measure.column].about.partition(" [")
    beside = f", not over {', '.join(measure.not_over)}" if measure.not_over else ""
    test = certified_by(table.name, measure.column)
    return {
        "metric_name": measure.name,
        "verbose_name": measure.title,
        "expression": measure.expression,
        "description": f"{meaning} ({measure.how} of several rows{beside}) [{measure.unit}]",
        "d3format": measure.number_format,
        **({"extra": _certificate(test)} if test else {}),
    }


def _certificate(test: str) -> dict[str, Any]:
    details = "The test plants these numbers, or computes them from the raw files without the models."
    return {"certification": {"certified_by": test, "details": details}}


def _column(name: str, column: Column) -> dict[str, Any]:
    return {
        "column_name": name,
        "verbose_name": name,
        "description": column.about,
        "type": column.type,
        "expression": column.expression,
        "is_dttm": column.type.startswith(("TIMESTAMP", "DATE")),
        "is_active": True,
        "groupby": True,
        "filterable": True,
    }
