"""Writer of the four hour-level tables: in turn, CSV files in one hour and sheets of one workbook in the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warehouse.sample import clock, hour_flow, hour_link, hour_nic, hour_port
from warehouse.sample.xlsx import Cell, write_xlsx

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from warehouse.sample.plan import Plan


def write_hour_tables(root: Path, plan: Plan) -> list[dict[str, Any]]:
    """Write the tables of every hour under `root`; return their planted totals, one entry per hour."""
    truth = []
    for hour in range(plan.options.hours):
        folder = clock.hour_folder(hour, plan.options)
        tables: dict[str, Sequence[Sequence[Cell]]] = {}
        planted: dict[str, Any] = {}
        for name, header, make in (
            ("flow", hour_flow.HEADER, hour_flow.flow_table),
            ("nic", hour_nic.HEADER, hour_nic.nic_table),
            ("link", hour_link.HEADER, hour_link.link_table),
            ("port", hour_port.HEADER, hour_port.port_table),
        ):
            rows, totals = make(plan, hour)
            tables[name] = [header, *rows]
            planted[name] = {"rows": len(rows), **totals}
        as_sheets = hour % 2 == 1
        if as_sheets:
            files = [f"{folder}.xlsx"]
            write_xlsx(root / folder / files[0], tables)
        else:
            files = [f"{folder}_{name}.csv" for name in tables]
            for file, table in zip(files, tables.values(), strict=True):
                (root / folder / file).write_bytes(csv_text(table).encode())
        truth.append(
            {
                "hour_utc": clock.utc_text(clock.hour_start(hour, plan.options)),
                "folder": folder,
                "files": files,
                "form": "sheets" if as_sheets else "csv",
                **planted,
            }
        )
    return truth


def csv_text(rows: Sequence[Sequence[Cell]]) -> str:
    r"""Return rows as CSV text; no cell needs quotes.

    >>> csv_text([("a", None, 1, 1.826184052268872e+16)])
    'a,,1,1.826184052268872e+16\n'
    """
    return "".join(",".join("" if cell is None else str(cell) for cell in row) + "\n" for row in rows)
