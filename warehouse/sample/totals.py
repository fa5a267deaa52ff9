"""Writer of the port files of one switch, with their totals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warehouse.sample import clock, counters, polls, port_files

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.sample.counters import Rows
    from warehouse.sample.fabric import Port, Switch
    from warehouse.sample.plan import Plan

WRAPPED_SWITCH = "Leaf-5"
"""Switch whose management port counts past 2^32, midway in the first hour."""


def write_switch(root: Path, switch: Switch, plan: Plan) -> list[dict[str, Any]]:
    """Write all files of one switch into the folders of the hours; return the totals of each file."""
    options = plan.options
    times, hour_of = polls.hours_of_polls(switch, options)
    starts = port_files.row_starts(switch, times, options)
    asked = np.bincount(hour_of, minlength=options.hours).tolist()
    folders = [root / clock.hour_folder(hour, options) / switch.folder for hour in range(options.hours)]
    for folder in folders:
        folder.mkdir(parents=True)
    into, out = plan.traffic.into[switch.name], plan.traffic.out[switch.name]
    totals = []
    for position, port in enumerate(switch.ports):
        wraps = port.kind == "management" and switch.name == WRAPPED_SWITCH
        rows = counters.stored_rows(
            switch, port, into[position], out[position], times, options, asked[0] // 2 if wraps else None
        )
        edges = np.searchsorted(hour_of[rows.poll], np.arange(options.hours + 1)).tolist()
        for hour, folder in enumerate(folders):
            part = slice(edges[hour], edges[hour + 1])
            port_files.write_port_file(folder / f"{switch.prefix}_{port.stem}.csv", port, rows, part, starts)
            moment = clock.utc_text(clock.hour_start(hour, options))
            totals.append(_total(switch, port, moment, asked[hour], rows, part))
    return totals


def _total(switch: Switch, port: Port, hour_utc: str, polls_asked: int, rows: Rows, part: slice) -> dict[str, Any]:
    into, out = rows.in_bytes[part], rows.out_bytes[part]
    wraps = int((out < 0).sum())
    return {
        "switch": switch.name,
        "port": port.name,
        "hour_utc": hour_utc,
        "rows": len(into),
        "polls": polls_asked,
        "missing_polls": polls_asked - len(into),
        "in_bytes": int(into.sum()),
        "out_bytes": int(out.sum()) + wraps * 2**32,
        "in_bytes_raw": int(into.sum()),
        "out_bytes_raw": int(out.sum()),
        "in_packets": int(rows.in_packets[part].sum()),
        "out_packets": int(rows.out_packets[part].sum()),
        "zero_rows": int(((into == 0) & (out == 0)).sum()),
        "wraps": wraps,
    }
