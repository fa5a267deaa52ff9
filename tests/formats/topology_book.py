"""Topology workbook of two rows, and the rows that are read of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from warehouse.formats.base import RawFile, Rejected
from warehouse.formats.zhejiang.workbook import WORKBOOK

Row = dict[str, object]
MakeFile = Callable[[Path], RawFile]


SwapPart = Callable[[Path, str, bytes | Callable[[bytes], bytes]], None]

FIRST, SECOND, LEAF = "TwoHundredGigE1/0/1:1", "TwoHundredGigE1/0/1:2", "NH-DC-NM129-B03-ROCE-Leaf-1.GPU.S9825"
TOPOLOGY: list[list[object]] = [
    ["accessport", "serverIP", "nicname", "portname", "switchIP", "switchname", "sysname"],
    [FIRST, "10.107.222.1", "ens10np0", FIRST, "10.107.208.111", LEAF, "NH-GPU-1"],
    [SECOND, None, None, SECOND, None, LEAF, "NH-GPU-2"],
]
NICS: list[list[object]] = [["GPU IP", "NIC name1", "NIC name 2"], ["10.107.254.1", "mlx5_2", "ens10np0"]]
BOOK: dict[str, list[list[object]]] = {"cluster topology": TOPOLOGY, "GPU NIC info": NICS}
SHEET1 = "xl/worksheets/sheet1.xml"


def rows_of(file: RawFile, relation: str) -> tuple[list[Row], list[Rejected]]:
    rejected: list[Rejected] = []
    return [dict(row) for row in WORKBOOK.read([file], relation, rejected)], rejected
