"""Parquet metadata: table, description, grain and build of the file; unit and description of each field.

Parquet itself has key-value metadata for files only. Field metadata lives in the Arrow schema, stored under the file
key `ARROW:schema`; pyarrow, pandas, polars and R read it. DuckDB writes the rows. Arrow would need as long again to
write them, and its bytes depend on the version of Arrow.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from warehouse.base.sql_text import literal

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from warehouse.reader.relation import Relation

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
        "table": relation.table.name,
        "about": relation.table.about,
        "grain": json.dumps(list(relation.grain)),
        "build": build or "",
        "time_zone": TIME_ZONE,
    }
    known = {column.name: column for column in relation.columns}
    fields = []
    connection.execute(f"COPY (SELECT * FROM ({select}) LIMIT 0) TO {literal(str(path))} (FORMAT parquet)")
    for field in parquet.read_schema(path):
        column = known.get(field.name)
        attributes = {"unit": column.unit, "about": column.about, "type": column.type} if column else {}
        fields.append(field.with_metadata({name: text for name, text in attributes.items() if text}))
    schema = pyarrow.schema(fields, metadata=metadata).serialize().to_pybytes()
    metadata["ARROW:schema"] = base64.b64encode(schema).decode()
    return f"KV_METADATA {{{', '.join(f'{literal(name)}: {literal(text)}' for name, text in metadata.items())}}}"
