"""Descriptions of exported tables: foreign keys, the data package, semantics, metadata of Parquet files.

Foreign keys come from checks: `references`, and `referenced` of the table that is joined. A build has proven these
joins. `datapackage.json` is a Frictionless Data Package 1.0 (https://specs.frictionlessdata.io/data-package/ and
/table-schema/): each CSV is a table that tools can validate, each field has its unit as `unit`, other files are listed
with their hash. The JSON Schema of the semantics is `semantics.schema.json` in this folder.
"""

from __future__ import annotations

import base64
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from warehouse.base.sql_text import literal
from warehouse.base.startup import duckdb
from warehouse.project.contract import Column, Measure
from warehouse.project.model import NOT_NULL, REFERENCED, REFERENCES
from warehouse.reader.citations import traces_of
from warehouse.reader.table_info import Relation


class ForeignKey(NamedTuple):
    """Columns whose values, where none is NULL, stand in columns of another table."""

    other: str
    """The other table, `reference.dim_port`."""
    columns: tuple[str, ...]
    others: tuple[str, ...]

    def __str__(self) -> str:
        return f"({', '.join(self.columns)}) -> {self.other}({', '.join(self.others)})"


def foreign_keys(relations: Iterable[Relation], tables: Collection[str]) -> dict[str, list[ForeignKey]]:
    """Return the keys of each table into `tables` that hold for every row of this build.

    A table of an hour names no table that spans hours: such a dimension says itself which tables refer to it.
    """
    found: dict[str, list[ForeignKey]] = defaultdict(list)
    for relation in relations:
        name = relation.name
        for match in _passed(relation, REFERENCES):
            found[name].append(ForeignKey(match["relation"], _names(match["columns"]), _names(match["others"])))
        for match in _passed(relation, REFERENCED):
            found[match["relation"]].append(ForeignKey(name, _names(match["others"]), _names(match["columns"])))
    listed = {name: sorted(key for key in keys if key.other in tables) for name, keys in found.items()}
    return defaultdict(list, listed)


def _passed(relation: Relation, form: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Return the checks of this form that passed, in the order of their texts."""
    found = {check.check: form.match(check.check) for check in relation.checks if check.status == "passed"}
    return (match for match in found.values() if match)


def required(relation: Relation) -> set[str]:
    """Return the columns that have no NULL: those of the grain, and of `not null` checks that passed."""
    return {*relation.grain, *(name for match in _passed(relation, NOT_NULL) for name in _names(match["columns"]))}


def _names(listed: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in listed.split(","))


def about_with_keys(relation: Relation, keys: Sequence[ForeignKey]) -> str:
    """Return the description of a table, which ends in its foreign keys, for a comment."""
    return relation.about + (f" Foreign keys: {'; '.join(map(str, keys))}." if keys else "")


LAYERS = ("reference", "topology", "metrics")
"""Layers that exports and PostgreSQL have, unless others are asked for."""
TIME_ZONE = "UTC"
"""Zone of all timestamps, which carry no zone themselves."""


def metadata_option(
    connection: duckdb.DuckDBPyConnection, select: str, path: Path, relation: Relation, build: str | None
) -> str:
    """Return the COPY option that writes the metadata of a table and its columns.

    Parameters
    ----------
    select
        The SELECT of the rows.
    path
        The output file. It is first written without rows, to read the Arrow types.
    """
    import pyarrow
    from pyarrow import parquet

    metadata = {
        "table": relation.name,
        "about": relation.about,
        "grain": json.dumps(list(relation.grain)),
        "build": build or "",
        "time_zone": TIME_ZONE,
    }
    known = {column.name: column for column in relation.columns}
    fields = []
    # The types must be those that DuckDB will write, so an empty file tells them.
    connection.execute(f"COPY (SELECT * FROM ({select}) LIMIT 0) TO {literal(str(path))} (FORMAT parquet)")
    for field in parquet.read_schema(path):
        column = known.get(field.name)
        attributes = {"unit": column.unit, "about": column.about, "type": column.type} if column else {}
        fields.append(field.with_metadata({name: text for name, text in attributes.items() if text}))
    schema = pyarrow.schema(fields, metadata=metadata).serialize().to_pybytes()
    # Arrow finds the metadata of columns under this key.
    metadata["ARROW:schema"] = base64.b64encode(schema).decode()
    return f"KV_METADATA {{{', '.join(f'{literal(name)}: {literal(text)}' for name, text in metadata.items())}}}"


DATAPACKAGE = "datapackage.json"
_MEDIA = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "duckdb": "application/vnd.duckdb.file",
    "json": "application/json",
}
_FIELD_TYPES = {
    "BOOLEAN": "boolean", "DATE": "date", "TIMESTAMP": "datetime", "DOUBLE": "number", "FLOAT": "number",
    "TINYINT": "integer", "SMALLINT": "integer", "INTEGER": "integer", "BIGINT": "integer", "HUGEINT": "integer",
    "UTINYINT": "integer", "USMALLINT": "integer", "UINTEGER": "integer", "UBIGINT": "integer",
}  # fmt: skip
"""Types of fields in a data package. Others are text, but lists are arrays and decimals numbers."""


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
    tables = {str(file["table"]): relations[file["table"]] for file in files if file["format"] == "csv"}
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
    keys = foreign_keys(tables.values(), tables)
    found["resources"] = [_resource(file, tables, keys) for file in files]
    return found


def _resource(
    file: Mapping[str, Any], tables: Mapping[str, Relation], keys: Mapping[str, Sequence[ForeignKey]]
) -> dict[str, Any]:
    form, path = str(file["format"]), str(file["path"])
    found: dict[str, Any] = {
        # A name of the specification has only these letters.
        "name": file["table"] if form == "csv" else re.sub(r"[^a-z0-9._-]", "-", path.lower()),
        "path": path,
        "description": file["about"],
        "format": form,
        "mediatype": _MEDIA.get(form, "application/octet-stream"),
        "bytes": file["bytes"],
        "hash": f"sha256:{file['sha256']}",
    }
    if form != "csv":
        return found | {"type": "file"}  # stops tools from parsing the file
    schema = _schema(tables[file["table"]], keys[file["table"]])
    return found | {"profile": "tabular-data-resource", "encoding": "utf-8", "schema": schema}


def _schema(relation: Relation, keys: Sequence[ForeignKey]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "fields": [_field(column, required=column.name in relation.grain) for column in relation.columns],
        "missingValues": [""],
    }
    if relation.grain:
        found["primaryKey"] = list(relation.grain)
    own = relation.name
    # In a data package, a key covers rows with NULL, too.
    whole = [
        {
            "fields": list(key.columns),
            "reference": {
                "resource": "" if key.other == own else key.other,
                "fields": list(key.others),
            },
        }
        for key in keys
        if {*key.columns} <= required(relation)
    ]
    return found | ({"foreignKeys": whole} if whole else {})


def _field(column: Column, *, required: bool) -> dict[str, Any]:
    kind, _, digits = column.type.partition("(")
    name = "array" if column.type.endswith("[]") else _FIELD_TYPES.get(kind, "string")  # an array is JSON in the CSV
    if kind == "DECIMAL" and name != "array":
        name = "integer" if digits.endswith((",0)", ", 0)")) else "number"
    found: dict[str, Any] = {"name": column.name, "type": name}
    if name == "datetime":
        found["format"] = "any"  # 2024-05-23 16:00:00, with six decimals unless they are 0
    found["description"] = column.about
    if column.unit:
        found["unit"] = column.unit
    found["duckdbType"] = column.type
    if required:
        found["constraints"] = {"required": True}
    return found


SCHEMA = "semantics.schema.json"


def semantics_json(relations: Mapping[str, Relation], build: str | None) -> str:
    """Return the semantics of tables with measures or dimensions, and of the tables their keys reference."""
    keys = foreign_keys(relations.values(), relations)
    facts = [name for name, one in relations.items() if one.semantics.dimensions or one.semantics.measures]
    names, waiting = set(facts), facts
    while waiting:
        waiting = sorted({key.other for name in waiting for key in keys[name]} - names)
        names.update(waiting)
    found = {
        "kind": "warehouse semantics",
        "version": 1,
        "build": build,
        "time_zone": TIME_ZONE,
        "tables": [_table(relations[name], keys[name]) for name in sorted(names)],
    }
    return json.dumps(found, ensure_ascii=False, indent=2) + "\n"


def _table(relation: Relation, keys: Sequence[ForeignKey]) -> dict[str, Any]:
    semantics = relation.semantics
    columns = {column.name: column for column in relation.columns}
    measured = {one.column for one in semantics.measures}
    # to group by: without the time column, which has a place of its own
    dimensions = [name for name in semantics.dimensions or relation.grain if name != semantics.time]
    return {
        "name": relation.name,
        "about": relation.about,
        "grain": list(relation.grain),
        "time": semantics.time,
        "dimensions": [column_facts(columns[name]) for name in dimensions],
        "measures": [_measure(one, columns[one.column]) for one in semantics.measures],
        "attributes": [
            column_facts(one) for name, one in columns.items() if name not in {*dimensions, *measured, semantics.time}
        ],
        "foreign_keys": [
            {"columns": list(key.columns), "table": key.other, "table_columns": list(key.others)} for key in keys
        ],
    }


def column_facts(column: Column) -> dict[str, Any]:
    """Return name, type, unit and meaning of a column."""
    return {"name": column.name, "type": column.type, "unit": column.unit, "about": column.about}


def _measure(measure: Measure, column: Column) -> dict[str, Any]:
    return {
        **column_facts(column),
        "aggregate": measure.how,
        "not_over": list(measure.not_over),
        "numerator": measure.above,
        "denominator": measure.below,
        "shown_in": measure.unit,
        "shown_factor": measure.factor,
    }
