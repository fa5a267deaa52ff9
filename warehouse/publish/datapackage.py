"""`datapackage.json`: description of an export as a Frictionless Data Package 1.0.

Specification: https://specs.frictionlessdata.io/data-package/ and /table-schema/. Each CSV is a table that tools can
validate. Other files are listed with their hash. Each field has its unit as `unit`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from warehouse.publish.foreign_keys import foreign_keys, required
from warehouse.publish.parquet_metadata import TIME_ZONE
from warehouse.reader.cited_sources import traces_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from warehouse.publish.foreign_keys import ForeignKey
    from warehouse.reader.relation import Relation

DATAPACKAGE = "datapackage.json"
_MEDIA = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "duckdb": "application/vnd.duckdb.file",
    "json": "application/json",
}
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")


def datapackage(
    connection: duckdb.DuckDBPyConnection,
    build: str | None,
    files: Sequence[Mapping[str, Any]],
    relations: Mapping[str, Relation],
) -> dict[str, Any]:
    """Return the data package of an export.

    Parameters
    ----------
    connection
        The warehouse, read for the traces that the tables are from.
    files
        The entries of `manifest.json`.
    relations
        The tables that were exported, by name.
    """
    traces = traces_of(connection, relations)
    tables = {str(file["table"]) for file in files if _is_table(file, relations)}
    found: dict[str, Any] = {
        "profile": "data-package",
        "name": "gpu-cluster-tables",
        "title": "Tables on GPU clusters, derived from their published traces",
        "id": f"warehouse:{build}",
        "version": build,
        "time_zone": TIME_ZONE,
    }
    if traces:
        licenses = dict.fromkeys(one.license for one in traces)
        found["licenses"] = [{"name": one} for one in licenses]
        found["sources"] = [{"title": f"{one.title} ({one.license})", "path": one.url} for one in traces]
    found["resources"] = [_resource(file, relations, tables) for file in files]
    return found


def _is_table(file: Mapping[str, Any], relations: Mapping[str, Relation]) -> bool:
    return file["format"] == "csv" and file["table"] in relations and file["path"] == f"{file['table']}.csv"


def _resource(file: Mapping[str, Any], relations: Mapping[str, Relation], tables: set[str]) -> dict[str, Any]:
    form, path = str(file["format"]), str(file["path"])
    table = _is_table(file, relations)
    found: dict[str, Any] = {
        "name": file["table"] if table else re.sub(r"[^a-z0-9._-]", "-", path.lower()),
        "path": path,
        "description": file["about"],
        "format": form,
        "mediatype": _MEDIA.get(form, "application/octet-stream"),
        "bytes": file["bytes"],
        "hash": f"sha256:{file['sha256']}",
    }
    if not table:
        found["type"] = "file"  # stops tools from parsing the file
    else:
        found |= {"profile": "tabular-data-resource", "encoding": "utf-8"}
        found["schema"] = _schema(relations[file["table"]], {name: relations[name] for name in tables})
    return found


def _schema(relation: Relation, tables: Mapping[str, Relation]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "fields": [_field(column, required=column.name in relation.grain) for column in relation.columns],
        "missingValues": [""],
    }
    if relation.grain:
        found["primaryKey"] = list(relation.grain)
    keys = foreign_keys(relation, tables, tables.values())
    keys = [key for key in keys if {*key.columns} <= required(relation)]  # a data package key covers rows with NULL
    if keys:
        found["foreignKeys"] = [_foreign_key(key, relation) for key in keys]
    return found


def _field(column: Any, *, required: bool) -> dict[str, Any]:
    kind = column.type.partition("(")[0]
    form: dict[str, str] = {}
    if column.type.endswith("[]"):
        name = "array"  # encoded as JSON
    elif kind in _INTEGERS or column.type.endswith(",0)") or column.type.endswith(", 0)"):
        name = "integer"
    elif kind in ("DOUBLE", "FLOAT", "DECIMAL"):
        name = "number"
    elif kind in ("BOOLEAN", "DATE"):
        name = kind.lower()
    elif kind == "TIMESTAMP":
        name, form = "datetime", {"format": "any"}  # 2024-05-23 16:00:00, with six decimals unless they are 0
    else:
        name = "string"
    found: dict[str, Any] = {"name": column.name, "type": name, **form, "description": column.about}
    if column.unit:
        found["unit"] = column.unit
    found["duckdbType"] = column.type
    if required:
        found["constraints"] = {"required": True}
    return found


def _foreign_key(key: ForeignKey, relation: Relation) -> dict[str, Any]:
    other = "" if key.other == relation.table.name else key.other
    return {"fields": list(key.columns), "reference": {"resource": other, "fields": list(key.others)}}
