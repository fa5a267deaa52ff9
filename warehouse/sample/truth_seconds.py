"""Writer of the planted bytes of every second, one Parquet file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import numpy as np

from warehouse.sample.clock import epoch_ms

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.sample.plan import Plan

_COPY = """
COPY (
  SELECT '{cluster}' AS cluster, names.switch, names.port,
         make_timestamp(seconds.second * 1000000) AS second_utc, seconds.in_bytes, seconds.out_bytes
  FROM seconds JOIN names USING (id)
  ORDER BY seconds.id, seconds.second
) TO '{path}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)
"""


def write_seconds(path: Path, cluster: str, plan: Plan) -> int:
    """Write (cluster, switch, port, second_utc, in_bytes, out_bytes); return the number of rows.

    Seconds without bytes have no row.
    """
    names = sorted((switch.name, port.name) for switch in plan.fabric.switches for port in switch.ports)
    start = epoch_ms(plan.options) // 1000
    ids, seconds, into, out = [], [], [], []
    for number, (switch_name, port_name) in enumerate(names):
        position = plan.fabric.switch(switch_name).index[port_name]
        row_in, row_out = plan.traffic.into[switch_name][position], plan.traffic.out[switch_name][position]
        moved = np.flatnonzero(row_in | row_out)
        ids.append(np.full(len(moved), number, np.int32))
        seconds.append(start + moved)
        into.append(row_in[moved])
        out.append(row_out[moved])
    columns = {
        "id": np.concatenate(ids),
        "second": np.concatenate(seconds),
        "in_bytes": np.concatenate(into),
        "out_bytes": np.concatenate(out),
    }
    literals = ", ".join(f"({n}, '{switch}', '{port}')" for n, (switch, port) in enumerate(names))
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("seconds", columns)
        connection.execute(f"CREATE TABLE names AS SELECT * FROM (VALUES {literals}) AS t(id, switch, port)")
        connection.execute(_COPY.format(cluster=cluster, path=str(path).replace("'", "''")))
    return sum(map(len, ids))
