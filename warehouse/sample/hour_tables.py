"""Writer of the four hour-level tables, CSV files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warehouse.sample import clock, hour_flow, hour_link, hour_nic, hour_port

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from warehouse.sample.names import Cell
    from warehouse.sample.plan import Plan


def write_hour_tables(root: Path, plan: Plan) -> list[dict[str, Any]]:
    """Write the tables of every hour under `root`; return their planted totals, one entry per hour."""
    truth = []
    for hour in range(plan.options.hours):
        folder = clock.hour_folder(hour, plan.options)
        planted: dict[str, Any] = {}
        for name, header, make in (
            ("flow", hour_flow.HEADER, hour_flow.flow_table),
            ("nic", hour_nic.HEADER, hour_nic.nic_table),
            ("link", hour_link.HEADER, hour_link.link_table),
            ("port", hour_port.HEADER, hour_port.port_table),
        ):
            rows, totals = make(plan, hour)
            (root / folder / f"{folder}_{name}.csv").write_bytes(csv_text([header, *rows]).encode())
            planted[name] = {"rows": len(rows), **totals}
        begin = clock.utc_text(clock.hour_start(hour, plan.options))
        files = [f"{folder}_{name}.csv" for name in planted]
        truth.append({"hour_utc": begin, "folder": folder, "files": files, **planted})
    return truth


def csv_text(rows: Sequence[Sequence[Cell]]) -> str:
    r"""Return rows as CSV text; no cell needs quotes.

    >>> csv_text([("a", None, 1, 1.826184052268872e+16)])
    'a,,1,1.826184052268872e+16\n'
    """
    return "".join(",".join("" if cell is None else str(cell) for cell in row) + "\n" for row in rows)
