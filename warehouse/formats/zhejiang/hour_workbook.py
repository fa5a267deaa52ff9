"""The four tables of an hour as sheets of one workbook, `<hour>.xlsx`.

Docs: docs/formats/hour_tables.md. A separate format because each file has exactly one format.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from warehouse.base.errors import DataError, Place
from warehouse.formats.base import COMPRESSIONS, PARTIAL, READ, SKIPPED, RawFile, RawRelation, Rejected
from warehouse.formats.zhejiang import xlsx
from warehouse.formats.zhejiang.hour_header import HourHeader, read_header
from warehouse.formats.zhejiang.hour_rows import TABLES, VERSION, hour_of, typed_rows
from warehouse.formats.zhejiang.hour_units import check_units

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from warehouse.formats.zhejiang.hour_columns import HourTable


_FIRST = 300
"""Number of rows whose units are checked."""


class HourWorkbook:
    """Format `zhejiang.hour_workbook`: `<hour>.xlsx` with one sheet per table, `flow` or `<hour>_flow`.

    The sheets feed the relations of the four CSV formats. If one of these tables is also a CSV file in the same folder,
    the workbook is skipped, so that no row counts twice.
    """

    name = "zhejiang.hour_workbook"
    version = VERSION + TABLES["flow"].version
    relations: Sequence[RawRelation] = tuple(table.relation for table in TABLES.values())

    def claims(self, path: Path) -> bool:
        """Return True if the workbook is named like an hour."""
        return re.fullmatch(r"[0-9]{10}\.xlsx", path.name, re.IGNORECASE) is not None

    def inspect(self, file: RawFile) -> RawFile:
        """Compare the headers of the four sheets; an unreadable sheet makes the file `partial`."""
        try:
            found = file.but(hour_utc=hour_of(file.path))
            with xlsx.opened(file.path) as book:
                sheets = {name: _sheet(book, file.path, table) for name, table in TABLES.items()}
                titles = book.titles
        except ValueError as error:
            return file.but(status=SKIPPED, reason=str(error))
        except DataError as error:
            return file.but(status=SKIPPED, reason=error.message)
        problems = [sheet.problem for sheet in sheets.values() if sheet.problem]
        good = {name: sheet for name, sheet in sheets.items() if not sheet.problem}
        if not good:
            return file.but(status=SKIPPED, reason=f"not a workbook of hour tables: {', '.join(problems)}")
        duplicates = [path.name for name in good for path in _csv_files(file.path, name)]
        if duplicates:
            return found.but(status=SKIPPED, reason=f"the same rows lie beside it: {', '.join(duplicates)}")
        known = {title for sheet in sheets.values() for title in sheet.titles}
        unknown = [title for title in titles if title not in known]
        clauses = [
            *problems,
            *([f"sheets ignored: {', '.join(unknown)[:200]}"] if unknown else []),
            *(f"sheet {name!r}: {clause}" for name, sheet in good.items() for clause in sheet.matched.applied),
        ]
        is_partial = any(sheet.is_unreadable for sheet in sheets.values())
        return found.but(status=PARTIAL if is_partial else READ, reason="; ".join(clauses) or None)

    def read(self, files: Sequence[RawFile], relation: str, reject: list[Rejected]) -> Iterator[Mapping[str, object]]:
        """Yield the rows of one sheet of each workbook; a workbook without that sheet yields none.

        Raises
        ------
        DataError
            If a file cannot be opened, changed since it was inspected, or has too many bad rows.
        """
        for file in files:
            hour = file.hour_utc or hour_of(file.path)
            with xlsx.opened(file.read_path) as book:
                sheet = _sheet(book, file.path, TABLES[relation])
                if sheet.is_unreadable and file.status == READ:
                    raise DataError(f"changed while it was read: {sheet.problem}", place=Place(file.path))
                if not sheet.problem:
                    header, title = sheet.matched, sheet.titles[0]
                    bad = xlsx.Rejects(file.path, title)
                    yield from typed_rows(TABLES[relation], sheet.rows(), file, hour, bad, header, title)
                    reject += bad


def _sheet(book: xlsx.Book, path: Path, table: HourTable) -> xlsx.Table[HourHeader]:
    titles = (table.name, f"{path.name[:10]}_{table.name}")
    sheet = book.table(titles, partial(read_header, table=table))
    if sheet.problem:
        return sheet
    lines = iter(sheet.lines)
    first = list(itertools.islice(lines, _FIRST))
    try:
        check_units(table, sheet.matched, [row.values for row in replace(sheet, lines=first).rows()])
    except ValueError as error:
        return replace(sheet, problem=f"sheet {sheet.titles[0]!r}: {error}", lines=())
    return replace(sheet, lines=itertools.chain(first, lines))


def _csv_files(path: Path, name: str) -> list[Path]:
    """Return the CSV files of the same table and hour in the workbook's folder."""
    paths = (path.with_name(f"{path.name[:10]}_{name}.csv{suffix}") for suffix in ("", *COMPRESSIONS))
    return [path for path in paths if path.exists()]


HOUR_WORKBOOK = HourWorkbook()
