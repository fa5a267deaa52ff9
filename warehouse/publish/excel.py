"""Tables as Excel workbooks: one sheet with the meaning of each column, one with the rows.

A worksheet holds 1,048,576 rows, numbers of 15 digits and times in milliseconds. Values beyond these limits are
written as text, never rounded. The header and the first sheet mark such columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from warehouse.base.sql_text import identifier, qualified
from warehouse.base.startup import duckdb
from warehouse.publish.descriptions import TIME_ZONE
from warehouse.reader.result import INTEGERS, SHARE, text_of, unit_of
from warehouse.reader.table_info import Relation

MOST_ROWS = 1_048_575
"""Rows of a worksheet, without the header."""
LARGE = 100_000
"""Rows of a table that becomes a workbook without being named."""
LONGEST_TEXT = 32_767  # characters of a cell, a limit of Excel
DIGITS = 15
"""Significant digits that Excel keeps."""
_TEXT = "text: Excel keeps 15 digits of a number"
_OTHER_FORM = "; --format csv or parquet has it"
# Excel counts 1900 as a leap year, so its earlier days are one off.
_ODD_TIME = "bool_or(epoch_us({0}) % 1000 <> 0 OR {0} < TIMESTAMP '1900-03-01')"
_ALTERED = {
    "integer": (f"max(abs({{0}}::HUGEINT)) >= 10::HUGEINT ** {DIGITS}", "number", _TEXT),
    "decimal": (f"max(length(regexp_replace({{0}}::VARCHAR, '[-.]', '', 'g'))) > {DIGITS}", "number", _TEXT),
    "double": ("bool_or(NOT isfinite({0}))", "number", "text: some are not finite"),
    "float": ("bool_or(NOT isfinite({0}))", "number", "text: some are not finite"),
    "timestamp": (_ODD_TIME, "time", "text: Excel keeps milliseconds"),
    "date": ("false", "date", ""),
    "boolean": ("false", "boolean", ""),
}
"""Of each type: SQL that is true if Excel would alter a value, what a cell holds, and the note if it is text."""


class DoesNotFitError(Exception):
    """A table with more rows than a sheet, or a text longer than a cell; the message is the reason."""


@dataclass(frozen=True)
class _Column:
    name: str
    head: str
    """Name with its unit, as in the first row."""
    select: str
    cell: str
    """`number`, `time`, `date`, `boolean` or `text`."""
    note: str
    form: str
    """Number format of Excel."""
    width: int
    """Column width in characters."""


def write_workbook(
    connection: duckdb.DuckDBPyConnection,
    relation: Relation,
    order: str,
    path: Path,
    build: str | None,
    *,
    is_named: bool,
) -> int:
    """Write a table and return the number of its rows.

    Parameters
    ----------
    relation
        Name, columns and units of the table.
    order
        The columns to sort by, in SQL, of the table under the name `rows`.
    is_named
        True if the user asked for this table.

    Raises
    ------
    DoesNotFitError
        When the table has more rows than a sheet or a text longer than a cell. Nothing is written.
    """
    import xlsxwriter

    name, source = relation.name, qualified(relation.name)
    [(rows,)] = connection.execute(f"SELECT count(*) FROM {source}").fetchall()
    if rows > MOST_ROWS:
        raise DoesNotFitError(f"{rows:,} rows, more than the {MOST_ROWS:,} of an Excel sheet{_OTHER_FORM}")
    if rows > LARGE and not is_named:
        raise DoesNotFitError(f"{rows:,} rows; -s {name} writes it")
    columns = _columns(connection, source, relation)
    selected = ", ".join(f"{one.select} AS {identifier(one.name)}" for one in columns)
    # A text that begins with `=` or `http` must stay a text.
    options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    book = xlsxwriter.Workbook(str(path), options)
    made = datetime(2000, 1, 1)  # noqa: DTZ001 - the same for the same rows: no clock
    book.set_properties({"title": name, "comments": f"warehouse build {build}", "created": made})
    _about(book, relation, columns, build)
    _rows(connection.execute(f"SELECT {selected} FROM {source} AS rows ORDER BY {order}"), book, columns)
    try:
        book.close()
    except xlsxwriter.exceptions.FileCreateError as error:
        raise error.args[0] from error  # an OSError
    return int(rows)


def _columns(connection: duckdb.DuckDBPyConnection, source: str, relation: Relation) -> list[_Column]:
    described = [(name, kind) for name, kind, *_ in connection.execute(f"FROM {source} LIMIT 0").description]
    facts = [
        f"(coalesce({_altered(kind.id)[0].format(identifier(name))}, false), "
        f"coalesce(max(length({text_of(identifier(name), kind)})), 0))"
        for name, kind in described
    ]
    [row] = connection.execute(f"SELECT {', '.join(facts)} FROM {source}").fetchall()
    known = {one.name: one for one in relation.columns}
    found = []
    for (name, kind), (is_altered, longest) in zip(described, row, strict=True):
        _, cell, note = _altered(kind.id)
        of = f"rows.{identifier(name)}"
        select, cell, note = (text_of(of, kind), "text", note) if is_altered or cell == "text" else (of, cell, "")
        if cell == "text" and longest > LONGEST_TEXT:
            longer = f"a text in {name} is longer than the {LONGEST_TEXT:,} characters of an Excel cell"
            raise DoesNotFitError(longer + _OTHER_FORM)
        unit = known[name].unit if name in known else None
        head = name + (f" [{unit}]" if unit and unit != "1" else "") + (" (text)" if note else "")
        shown = _shown(cell, kind.id, unit_of(name, str(kind), unit), longest)
        wide = longest * 4 // 3 if cell == "number" else longest  # with commas between thousands
        width = min(max(wide + 2, len(head) + 4), 60)  # room for the filter button
        found.append(_Column(name, head, select, cell, note, shown, width))
    return found


def _altered(kind: str) -> tuple[str, str, str]:
    return _ALTERED.get("integer" if kind in INTEGERS else kind, ("false", "text", ""))


def _shown(cell: str, kind: str, unit: str | None, longest: int) -> str:
    """Return the number format of a column."""
    if cell == "time":
        return "yyyy-mm-dd hh:mm:ss" + (".000" if longest > len("2024-05-23 16:00:00") else "")
    if cell == "date":
        return "yyyy-mm-dd"
    if cell != "number":
        return ""
    if kind in INTEGERS:
        return "#,##0" if unit else "0"
    return "0.0##%" if unit == SHARE else "#,##0" if unit in ("B", "B/s", "bit/s", "FLOP/s") else "General"


def _about(book: Any, relation: Relation, columns: Sequence[_Column], build: str | None) -> None:
    sheet, bold = book.add_worksheet("about"), book.add_format({"bold": True})
    wrapped = book.add_format({"text_wrap": True, "valign": "top"})
    facts = [
        ("table", relation.name),
        ("a row is", relation.about),
        ("named by", ", ".join(relation.grain)),
        ("build", build or ""),
        ("to cite", f"warehouse build {build}, table {relation.name}; and the traces, see datapackage.json"),
        ("times", TIME_ZONE),
        ("numbers", "16 digits of a fraction; the CSV and Parquet of the same export have all of them"),
    ]
    sheet.set_column(0, 0, 28)
    sheet.set_column(1, 2, 12)
    sheet.set_column(3, 3, 90, wrapped)
    sheet.set_column(4, 4, 36)
    for at, (name, value) in enumerate(facts):
        sheet.write_string(at, 0, name, bold)
        sheet.write_string(at, 3, value)
    start = len(facts) + 1
    for at, name in enumerate(("column", "type", "unit", "meaning", "in this file")):
        sheet.write_string(start, at, name, bold)
    notes = {one.name: one.note for one in columns}
    for at, column in enumerate(relation.columns, start=start + 1):
        texts = (column.name, column.type, column.unit or "", column.about, notes.get(column.name, ""))
        for place, text in enumerate(texts):
            sheet.write_string(at, place, text)


def _rows(cursor: duckdb.DuckDBPyConnection, book: Any, columns: Sequence[_Column]) -> None:
    sheet = book.add_worksheet("rows")
    writers = {
        "number": sheet.write_number, "boolean": sheet.write_boolean, "text": sheet.write_string,
        "time": sheet.write_datetime, "date": sheet.write_datetime,
    }  # fmt: skip
    cells = []
    for at, one in enumerate(columns):
        side = {"align": "right" if one.cell == "number" else "left"}
        sheet.write_string(0, at, one.head, book.add_format({"bold": True, "bottom": 1, **side}))
        sheet.set_column(at, at, one.width)
        cells.append((at, writers[one.cell], book.add_format({"num_format": one.form, **side}) if one.form else None))
    sheet.freeze_panes(1, 0)
    count = 0
    while rows := cursor.fetchmany(10_000):
        for row in rows:
            count += 1
            for value, (at, write, form) in zip(row, cells, strict=True):
                if value is not None:
                    write(count, at, value, form)
    if count:
        sheet.autofilter(0, 0, count, len(columns) - 1)
