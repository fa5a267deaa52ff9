"""Writers of tables: CSV files, and the topology workbook.

The workbook has two sheets, all cells text, with the empty cells and odd rows of the roster.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from warehouse.sample import names

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.sample.fabric import Fabric, Nic, Place

TOPOLOGY_HEADER = ("accessport", "serverIP", "nicname", "portname", "switchIP", "switchname", "sysname")
NIC_HEADER = ("GPU IP", "NIC name1", "NIC name 2")

STRAY_ROW = 4
"""Data row, from 1, where one row of the last leaf is among those of the first leaf."""


def write_csv(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """Write rows as a CSV file; None is an empty cell."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)


def write_workbook(path: Path, fabric: Fabric) -> None:
    """Write both sheets, dated like the release's workbook."""
    from xlsxwriter import Workbook

    sheets = {
        "cluster topology": [TOPOLOGY_HEADER, *topology_rows(fabric)],
        "GPU NIC info": [NIC_HEADER, *nic_rows(fabric)],
    }
    with Workbook(path) as book:
        book.set_properties({"created": datetime(2024, 5, 24)})  # noqa: DTZ001 - a workbook's date has no zone
        for title, rows in sheets.items():
            sheet = book.add_worksheet(title)
            for number, row in enumerate(rows):
                sheet.write_row(number, 0, row)


def topology_rows(fabric: Fabric) -> list[tuple[str | None, ...]]:
    """Return one row per listed NIC, by leaf and text of the address; rows without address come last."""
    places = {place.number: place for place in fabric.places}
    listed = [nic for nic in fabric.all_nics() if nic.listed]
    full = [nic for nic in listed if not places[nic.server].null_address]
    full.sort(key=lambda nic: (int(nic.switch.rpartition("-")[2]), nic.ip))
    stray = [nic for nic in full if not places[nic.server].role][-2]
    full.remove(stray)
    full.insert(STRAY_ROW - 1, stray)
    empty = [nic for nic in listed if places[nic.server].null_address]
    return [_row(fabric, nic, places[nic.server]) for nic in full + empty]


def nic_rows(fabric: Fabric) -> list[tuple[str | None, ...]]:
    """Return four rows per server, in numerical order of address, and in the order of its leaves."""
    rows: list[tuple[str | None, ...]] = []
    for place in fabric.places:
        if place.in_nic_sheet:
            family = names.FAMILIES[place.family]
            hca_of = dict(zip(sorted(family), place.hcas, strict=True))
            rows += [(names.gpu_ip(place.number), hca_of[nic], nic) for nic in family]
    return rows


def _row(fabric: Fabric, nic: Nic, place: Place) -> tuple[str | None, ...]:
    switch = fabric.switch(nic.switch)
    return (
        nic.sheet_port,
        None if place.null_address else nic.ip,
        None if nic.rail in place.null_nic_rails else nic.name,
        nic.sheet_port,
        None if place.null_address else switch.ip,
        switch.device,
        names.sysname(place.number),
    )
