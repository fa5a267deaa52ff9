"""Writer of small workbooks whose bytes depend only on the cells.

Zip entries are stored, not deflated, and dated like the release's workbook. So the bytes depend neither on the clock
nor on the version of a compression library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape
from zipfile import ZIP_STORED, ZipFile, ZipInfo

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Cell = str | int | float | None

_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_MOMENT = "2024-05-24T00:00:00Z"


def write_xlsx(path: Path, sheets: dict[str, Sequence[Sequence[Cell]]]) -> None:
    """Write sheets of rows: text as shared strings, numbers as numbers, None as no cell."""
    shared: dict[str, int] = {}
    parts = {f"xl/worksheets/sheet{n}.xml": _sheet(rows, shared) for n, rows in enumerate(sheets.values(), 1)}
    entries = {
        "[Content_Types].xml": _content_types(len(sheets)),
        "_rels/.rels": _relations([("officeDocument", "xl/workbook.xml")]),
        "docProps/core.xml": _core(),
        "xl/workbook.xml": _workbook(list(sheets)),
        "xl/_rels/workbook.xml.rels": _relations(
            [("worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(sheets) + 1)]
            + [("sharedStrings", "sharedStrings.xml")]
        ),
        "xl/sharedStrings.xml": _strings(shared),
        **parts,
    }
    with ZipFile(path, "w", ZIP_STORED) as archive:
        for name, text in entries.items():
            entry = ZipInfo(name, (2012, 7, 2, 9, 52, 0))
            entry.create_system = 0
            archive.writestr(entry, (_HEAD + text).encode())


def column_letters(index: int) -> str:
    """Return the letters of a column, counted from 0.

    >>> column_letters(0), column_letters(25), column_letters(26)
    ('A', 'Z', 'AA')
    """
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def _sheet(rows: Sequence[Sequence[Cell]], shared: dict[str, int]) -> str:
    width = max(map(len, rows))
    letters = [column_letters(index) for index in range(width)]
    text = [f'<worksheet xmlns="{_MAIN}"><dimension ref="A1:{letters[-1]}{len(rows)}"/><sheetData>']
    for number, row in enumerate(rows, 1):
        text.append(f'<row r="{number}">')
        for letter, value in zip(letters, row, strict=False):
            if isinstance(value, str):
                index = shared.setdefault(value, len(shared))
                text.append(f'<c r="{letter}{number}" t="s"><v>{index}</v></c>')
            elif value is not None:
                text.append(f'<c r="{letter}{number}"><v>{value!r}</v></c>')
        text.append("</row>")
    text.append("</sheetData></worksheet>")
    return "".join(text)


def _strings(shared: dict[str, int]) -> str:
    items = "".join(f"<si><t>{escape(value)}</t></si>" for value in shared)
    return f'<sst xmlns="{_MAIN}" uniqueCount="{len(shared)}">{items}</sst>'


def _workbook(names: list[str]) -> str:
    sheets = "".join(f'<sheet name="{escape(name)}" sheetId="{n}" r:id="rId{n}"/>' for n, name in enumerate(names, 1))
    return f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{sheets}</sheets></workbook>'


def _relations(targets: list[tuple[str, str]]) -> str:
    links = "".join(
        f'<Relationship Id="rId{n}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for n, (kind, target) in enumerate(targets, 1)
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{links}</Relationships>'


def _content_types(sheets: int) -> str:
    kinds = {
        "/xl/workbook.xml": f"{_TYPES}.sheet.main+xml",
        "/xl/sharedStrings.xml": f"{_TYPES}.sharedStrings+xml",
    }
    kinds |= {f"/xl/worksheets/sheet{n}.xml": f"{_TYPES}.worksheet+xml" for n in range(1, sheets + 1)}
    kinds["/docProps/core.xml"] = "application/vnd.openxmlformats-package.core-properties+xml"
    parts = "".join(f'<Override PartName="{part}" ContentType="{kind}"/>' for part, kind in kinds.items())
    return (
        f'<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{parts}</Types>'
    )


def _core() -> str:
    return (
        f'<cp:coreProperties xmlns:cp="{_PACKAGE}/metadata/core-properties" '
        'xmlns:dcterms="http://purl.org/dc/terms/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        f'<dcterms:created xsi:type="dcterms:W3CDTF">{_MOMENT}</dcterms:created>'
        f'<dcterms:modified xsi:type="dcterms:W3CDTF">{_MOMENT}</dcterms:modified></cp:coreProperties>'
    )
