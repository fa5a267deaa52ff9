"""Metadata of Parquet files: table, meaning, grain and build of the file; unit and meaning of each field.

The format itself has metadata of files alone. Fields have theirs in the Arrow schema, which is metadata of the file
under the key `ARROW:schema`: pyarrow, pandas, polars and R read it. The engine writes the rows. Writing them by Arrow
would take their time again, and give other bytes with each version of Arrow.
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
"""Zone of all times, which stand without one."""


def metadata_option(
    connection: duckdb.DuckDBPyConnection, select: str, path: Path, relation: Relation, build: str | None
) -> str:
    """Return the option of COPY that writes what is known of a table and its columns.

    Parameters
    ----------
    select
        The rows that are to be written.
    path
        Where to; first without rows, to read how Arrow sees the types.
    """
    import pyarrow
    from pyarrow import parquet

    told = {
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
        said = {"unit": column.unit, "about": column.about, "type": column.type} if column else {}
        fields.append(field.with_metadata({name: text for name, text in said.items() if text}))
    schema = pyarrow.schema(fields, metadata=told).serialize().to_pybytes()
    told["ARROW:schema"] = base64.b64encode(schema).decode()
    return f"KV_METADATA {{{', '.join(f'{literal(name)}: {literal(text)}' for name, text in told.items())}}}"
